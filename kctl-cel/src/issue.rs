//! Validation errors of an expression: typed for programs, and with message and position for people.

use std::fmt;

use crate::Type;

/// A validation error of an expression.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Issue {
    /// Position in characters from the start of the expression.
    pub(crate) at: usize,
    /// The reason for the error, with its details.
    pub kind: IssueKind,
}

/// The kind of a validation error, with its details. `Display` writes a message without the position.
///
/// Callers match on it to add help for an author, such as the fields that a type has.
///
/// ```
/// use kctl_cel::{Environment, OldSelf, SchemaOf, IssueKind, type_of};
/// use serde_json::json;
///
/// let schema = json!({ "type": "object", "properties": { "min": { "type": "integer" } } });
/// let environment = Environment::for_rule(&schema, SchemaOf::Value, OldSelf::Value).unwrap();
/// let issues = type_of("self.max > 0", &environment).unwrap_err();
/// let IssueKind::UndefinedField { operand, field } = &issues.iter().next().unwrap().kind else { panic!() };
/// assert_eq!((field.as_str(), environment.fields(operand).collect::<Vec<_>>()), ("max", vec!["min"]));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum IssueKind {
    /// No variable or function has this name.
    Undeclared {
        /// The name as the expression has it.
        name: String,
        /// `true` for a call.
        is_function: bool,
    },
    /// No overload of a function accepts these arguments.
    NoOverload {
        /// Its name in cel-go: operators are `_+_`.
        function: String,
        /// `true` for a method: the first argument is the receiver.
        is_method: bool,
        /// The types of the arguments, including the receiver of a method.
        arguments: Vec<Type>,
    },
    /// A type has no such field.
    UndefinedField {
        /// The name of the type.
        operand: String,
        /// The field that the expression selects.
        field: String,
    },
    /// A type has no fields at all.
    NoFields {
        /// The type of the value before the dot.
        operand: Type,
        /// The selected field.
        field: String,
    },
    /// An expression has another type than the one that is needed here.
    Mismatch {
        /// The type that is needed.
        expected: Type,
        /// The type that the expression has.
        found: Type,
    },
    /// A macro iterates over something other than a list or map.
    NoRange {
        /// The type of the value that the macro iterates over.
        operand: Type,
    },
    /// A literal that its function can't parse.
    Literal {
        /// `matches`, `duration`, `timestamp`.
        function: String,
        /// The literal; empty if it is not a string.
        text: String,
    },
    /// Another error, with its message.
    Other(String),
}

impl fmt::Display for IssueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undeclared { name, .. } => write!(f, "undeclared reference to '{name}' (in container '')"),
            Self::NoOverload { function, is_method, arguments } => {
                let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
                let shown = match shown.as_slice() {
                    [target, rest @ ..] if *is_method => format!("{target}.({})", rest.join(", ")),
                    all => format!("({})", all.join(", ")),
                };
                write!(f, "found no matching overload for '{function}' applied to '{shown}'")
            }
            Self::UndefinedField { field, .. } => write!(f, "undefined field '{field}'"),
            Self::NoFields { operand, .. } => write!(f, "type '{operand}' does not support field selection"),
            Self::Mismatch { expected, found } => write!(f, "expected type '{expected}' but found '{found}'"),
            Self::NoRange { operand } => {
                let why = "cannot be range of a comprehension (must be list, map, or dynamic)";
                write!(f, "expression of type '{operand}' {why}")
            }
            Self::Literal { function, .. } => write!(f, "invalid {function} argument"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

/// All validation errors of an expression, in the order of their positions.
///
/// Never empty: an expression without errors has a type instead. `Display` prints them like cel-go: message, source line, and a caret below the position.
/// [`type_of`](crate::type_of) has an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Issues {
    expression: String,
    /// Invariant: not empty, and sorted by position.
    all: Vec<Issue>,
}

impl Issues {
    /// Sorts the errors by position, as cel-go reports them.
    pub(crate) fn new(expression: &str, mut all: Vec<Issue>) -> Self {
        debug_assert!(!all.is_empty(), "an expression without errors has a type");
        all.sort_by_key(|issue| issue.at);
        Self { expression: expression.into(), all }
    }

    /// Returns the errors in the order of their positions.
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
            write_issue(&self.expression, issue, f)?;
        }
        Ok(())
    }
}

/// Writes one error with its line, column and caret.
fn write_issue(expression: &str, issue: &Issue, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let before: Vec<char> = expression.chars().take(issue.at).collect();
    let line = before.iter().filter(|letter| **letter == '\n').count();
    let column = before.iter().rev().take_while(|letter| **letter != '\n').count();
    let text = expression.split('\n').nth(line).unwrap_or_default();
    let (shown, dots) = (text.replace('\t', " "), ".".repeat(column));
    write!(f, "ERROR: <input>:{}:{}: {}\n | {shown}\n | {dots}^", line + 1, column + 1, issue.kind)
}
