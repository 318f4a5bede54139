//! What is wrong with an expression: each issue with its place, in words for programs; shown, in those of cel-go.

use std::fmt;

use crate::Type;

/// Something that is wrong with an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Issue {
    /// Where, in letters from the beginning.
    pub(crate) at: usize,
    /// The kind of issue.
    pub why: Why,
}

/// The kind of an issue, with its details.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// There is no variable or function of this name.
    Undeclared {
        /// The name.
        name: String,
        /// Whether it is called.
        is_function: bool,
    },
    /// No form of a function takes these arguments.
    NoOverload {
        /// Its name in the tree: operators as `_+_`.
        function: String,
        /// Whether the first argument stands before the dot.
        is_method: bool,
        /// The arguments.
        given: Vec<Type>,
    },
    /// A type has no such field.
    UndefinedField {
        /// The name of the type.
        of: String,
        /// The field.
        field: String,
    },
    /// A type has no fields at all.
    NoFields {
        /// The type.
        of: Type,
        /// The field that was asked for.
        field: String,
    },
    /// One type is needed, and another is there.
    Mismatch {
        /// What is needed.
        wanted: Type,
        /// What is there.
        found: Type,
    },
    /// A macro goes through something that has no items.
    NoRange {
        /// Its type.
        of: Type,
    },
    /// A literal that its function cannot read.
    Literal {
        /// `matches`, `duration`, `timestamp`.
        function: String,
        /// The literal; empty where it is no text.
        text: String,
    },
    /// Something else, in the words of cel-go.
    Other(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undeclared { name, .. } => write!(f, "undeclared reference to '{name}' (in container '')"),
            Self::NoOverload { function, is_method, given } => {
                let shown: Vec<String> = given.iter().map(ToString::to_string).collect();
                let shown = match shown.as_slice() {
                    [target, rest @ ..] if *is_method => format!("{target}.({})", rest.join(", ")),
                    all => format!("({})", all.join(", ")),
                };
                write!(f, "found no matching overload for '{function}' applied to '{shown}'")
            }
            Self::UndefinedField { field, .. } => write!(f, "undefined field '{field}'"),
            Self::NoFields { of, .. } => write!(f, "type '{of}' does not support field selection"),
            Self::Mismatch { wanted, found } => write!(f, "expected type '{wanted}' but found '{found}'"),
            Self::NoRange { of } => {
                let why = "cannot be range of a comprehension (must be list, map, or dynamic)";
                write!(f, "expression of type '{of}' {why}")
            }
            Self::Literal { function, .. } => write!(f, "invalid {function} argument"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

/// All that is wrong with an expression, in the order of its places; shown as cel-go shows it, one below the other, each
/// with its line and a mark below.
#[derive(Clone, Debug, PartialEq)]
pub struct Issues {
    expression: String,
    all: Vec<Issue>,
}

impl Issues {
    pub(crate) fn new(expression: &str, mut all: Vec<Issue>) -> Self {
        all.sort_by_key(|issue| issue.at);
        Self { expression: expression.into(), all }
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.all.iter()
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.all.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            shown(&self.expression, issue, f)?;
        }
        Ok(())
    }
}

fn shown(expression: &str, issue: &Issue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let before: Vec<char> = expression.chars().take(issue.at).collect();
    let line = before.iter().filter(|letter| **letter == '\n').count();
    let column = before.iter().rev().take_while(|letter| **letter != '\n').count();
    let text = expression.split('\n').nth(line).unwrap_or_default();
    let (shown, pointer) = (text.replace('\t', " "), pointer(text, column));
    write!(f, "ERROR: <input>:{}:{}: {}\n | {shown}\n | {pointer}", line + 1, column + 1, issue.why)
}

/// Returns the line of dots and a caret that points at a column of `line`, as cel-go prints it. Multi-byte characters get wide marks.
///
/// ```
/// assert_eq!(kctl_cel::pointer("a.b", 2), "..^");
/// assert_eq!(kctl_cel::pointer("é.é", 2), "．.＾");
/// ```
#[must_use]
pub fn pointer(line: &str, column: usize) -> String {
    let mark = |letter: Option<char>, narrow, wide| {
        if letter.is_some_and(|letter| letter.len_utf8() > 1) { wide } else { narrow }
    };
    let dots = line.chars().take(column).map(|letter| mark(Some(letter), '.', '．'));
    dots.chain([mark(line.chars().nth(column), '^', '＾')]).collect()
}
