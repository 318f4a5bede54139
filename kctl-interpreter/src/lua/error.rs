//! Errors of scripts: a class for programs, and the line of the script for its author.

use std::time::Duration;

/// The class of a [`ScriptError`], for metrics and for code that treats a bad script and a bad
/// result differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The source is not valid Lua 5.1.
    Syntax,
    /// The script raised an error, or does not define the function of its operation.
    Runtime,
    /// The script ran out of time or steps.
    Timeout,
    /// The script ran out of memory.
    Memory,
    /// The function returned a value that its operation does not accept.
    WrongResult,
    /// The caller passed no object, or an operation that scripts do not have.
    WrongInput,
}

/// The error of a script. A retry can help after a [`ScriptError::Timeout`] on a busy machine, because
/// [`Limits::time`](super::Limits::time) is wall-clock time. After any other error the script or the object has to change.
///
/// ```
/// use kctl_interpreter::lua::{ErrorClass, ScriptInputs, Limits, Pool, Script};
/// use serde_json::json;
///
/// let script = Script::compile("function InterpretHealth(o) return 'yes' end", "InterpretHealth")?;
/// let object = json!({ "kind": "Widget" });
/// let inputs = ScriptInputs { observed: Some(&object), ..ScriptInputs::default() };
/// let error = Pool::new(Limits::default()).interpret("InterpretHealth", &script, &inputs).unwrap_err();
/// assert_eq!(error.class(), ErrorClass::WrongResult);
/// assert_eq!(error.to_string(), "result of InterpretHealth: result type 3 is not bool");
/// # Ok::<(), kctl_interpreter::lua::ScriptError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The source does not compile.
    #[error("script of {function}{}: {message}", line_suffix(*.line))]
    #[non_exhaustive]
    Syntax {
        /// The function that the script should define.
        function: String,
        /// The line with the error, from 1.
        line: Option<usize>,
        /// The message of the compiler.
        message: String,
    },
    /// The script raised an error.
    #[error("script of {function}{}: {message}", line_suffix(*.line))]
    #[non_exhaustive]
    Runtime {
        /// The function that was called.
        function: String,
        /// The line that raised the error, from 1.
        line: Option<usize>,
        /// The message of the error.
        message: String,
    },
    /// The script exceeded its limit of time or steps.
    #[error("script of {function}{}: context deadline exceeded, a script may run for {limit:?}: loop over less", line_suffix(*.line))]
    #[non_exhaustive]
    Timeout {
        /// The function that was called.
        function: String,
        /// The line that ran when the limit was noticed, from 1.
        line: Option<usize>,
        /// The limit of time, also if the steps ran out.
        limit: Duration,
    },
    /// The script or its result exceeded the limit of memory.
    #[error("script of {function}{}: not enough memory, a script may use {limit_bytes} bytes: build smaller values", line_suffix(*.line))]
    #[non_exhaustive]
    Memory {
        /// The function that was called.
        function: String,
        /// The line that allocated, from 1; rarely known.
        line: Option<usize>,
        /// The maximum that one Lua state may allocate, in bytes.
        limit_bytes: usize,
    },
    /// The function returned a value of the wrong form.
    #[error("result of {function}: {message}")]
    #[non_exhaustive]
    WrongResult {
        /// The function that was called.
        function: String,
        /// The expected and the returned type, in Karmada's words.
        message: String,
    },
    /// The call lacks an input that the operation needs.
    #[error("operation {operation}: {message}")]
    #[non_exhaustive]
    WrongInput {
        /// The name of the operation.
        operation: String,
        /// The missing input.
        message: String,
    },
}

impl ScriptError {
    /// Returns the error of an operation that scripts do not have, such as `Prune`.
    pub(super) fn unsupported_operation(operation: &str) -> Self {
        Self::WrongInput { operation: operation.to_owned(), message: "scripts have no such operation".to_owned() }
    }

    /// Returns the class of the error, without its details.
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

    /// Returns the line of the script, from 1; `None` if it is unknown, and for results and inputs.
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

/// Returns `, line 3` for messages; an empty string for an unknown line.
fn line_suffix(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

/// Splits a message of Lua into the line of the script and the message without position and
/// traceback.
///
/// An error of the library, or one that the script raised without its position, has its line in the
/// traceback.
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

/// Removes the position of an error that C raised in the library's own Lua; `None` for another
/// message.
pub(super) fn without_library_position(message: &str) -> Option<&str> {
    let (line, text) = message.strip_prefix("[kctl]:")?.split_once(": ")?;
    line.parse::<usize>().is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::split_position;

    #[test]
    fn line_is_split_off_a_message() {
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
