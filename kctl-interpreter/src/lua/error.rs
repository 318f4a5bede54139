//! What can go wrong with a script: a class for programs, the script's line for its author.

use std::time::Duration;

/// The class of a [`ScriptError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The source is not Lua 5.1 text.
    Syntax,
    /// The script raised an error, or lacks the function of its operation.
    Runtime,
    /// The script ran out of time or steps.
    Timeout,
    /// The script ran out of memory.
    Memory,
    /// The function returned something that its operation does not accept.
    WrongResult,
    /// The caller gave no object, or an operation that scripts do not have.
    WrongInput,
}

/// Why a script gave no answer. None of them goes away by itself: the script or the object has to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The source does not compile.
    #[error("script of {function}{}: {message}", at(*.line))]
    Syntax {
        /// The function that the script should define.
        function: String,
        /// The line at fault, from 1.
        line: Option<usize>,
        /// What the compiler found.
        message: String,
    },
    /// The script raised an error.
    #[error("script of {function}{}: {message}", at(*.line))]
    Runtime {
        /// The function that was called.
        function: String,
        /// The line that raised it, from 1.
        line: Option<usize>,
        /// The text of the error.
        message: String,
    },
    /// The script ran into its limit of time or steps.
    #[error("script of {function}{}: context deadline exceeded, a script may run for {limit:?}: loop over less", at(*.line))]
    Timeout {
        /// The function that was called.
        function: String,
        /// The line that ran when the limit was noticed, from 1.
        line: Option<usize>,
        /// The limit of time.
        limit: Duration,
    },
    /// The script, or what it returned, is larger than its limit of memory.
    #[error("script of {function}{}: not enough memory, a script may use {limit_bytes} bytes: build smaller values", at(*.line))]
    Memory {
        /// The function that was called.
        function: String,
        /// The line that allocated, from 1; rarely known.
        line: Option<usize>,
        /// The limit.
        limit_bytes: usize,
    },
    /// The function returned a value of the wrong shape.
    #[error("result of {function}: {message}")]
    WrongResult {
        /// The function that was called.
        function: String,
        /// What was expected and what was returned.
        message: String,
    },
    /// The call lacks something that the operation needs.
    #[error("operation {operation}: {message}")]
    WrongInput {
        /// The name of the operation.
        operation: String,
        /// What is missing.
        message: String,
    },
}

impl ScriptError {
    /// Returns the class, for metrics and for callers that treat a bad script and a bad answer differently.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Syntax { .. } => ErrorClass::Syntax,
            Self::Runtime { .. } => ErrorClass::Runtime,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::Memory { .. } => ErrorClass::Memory,
            Self::WrongResult { .. } => ErrorClass::WrongResult,
            Self::WrongInput { .. } => ErrorClass::WrongInput,
        }
    }

    /// Returns the script's line, from 1, where one is known.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Syntax { line, .. }
            | Self::Runtime { line, .. }
            | Self::Timeout { line, .. }
            | Self::Memory { line, .. } => *line,
            Self::WrongResult { .. } | Self::WrongInput { .. } => None,
        }
    }
}

fn at(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

/// Splits `<string>:3: text` and the traceback off a message of Lua: the line and the text stay. An error of
/// the library, or one that the script raised without its position, has its line in the traceback.
pub(super) fn split_position(message: &str) -> (Option<usize>, String) {
    let (message, traceback) = message.split_once("\nstack traceback:").unwrap_or((message, ""));
    let message = message.strip_prefix("syntax error: ").unwrap_or(message);
    let positioned = message.strip_prefix("<string>:").and_then(|rest| rest.split_once(": "));
    if let Some((Ok(line), text)) = positioned.map(|(line, text)| (line.parse(), text)) {
        return (Some(line), text.to_owned());
    }
    let called = traceback.split_once("<string>:").and_then(|(_, rest)| rest.split_once(':'));
    let line = called.and_then(|(line, _)| line.parse().ok());
    (line, without_library_position(message).unwrap_or(message).to_owned())
}

/// Removes the position of an error that C raised in the library's own Lua; none for another message.
pub(super) fn without_library_position(message: &str) -> Option<&str> {
    let (line, text) = message.strip_prefix("[kctl]:")?.split_once(": ")?;
    line.parse::<usize>().is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::split_position;

    #[test]
    fn the_line_is_split_off_a_message_that_has_one() {
        for (message, line, text) in [
            ("<string>:3: boom\nstack traceback:\n\t[C]: in ?", Some(3), "boom"),
            ("syntax error: <string>:1: '}' expected near 'end'", Some(1), "'}' expected near 'end'"),
            ("boom", None, "boom"),
            ("<string>:x: boom", None, "<string>:x: boom"),
            ("<string>:2: a: b", Some(2), "a: b"),
            (
                "[kctl]:9: bad argument\nstack traceback:\n\t[C]: in ?\n\t<string>:4: in function 'f'",
                Some(4),
                "bad argument",
            ),
            ("[kctl]:9: bad argument", None, "bad argument"),
            ("[kctl] is odd", None, "[kctl] is odd"),
        ] {
            assert_eq!(split_position(message), (line, text.to_owned()), "{message}");
        }
    }
}
