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
        /// The types of the arguments. The first argument of a method is its receiver.
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
            Self::Undeclared { name, is_function: true } => write!(f, "unknown function `{name}`"),
            Self::Undeclared { name, .. } => write!(f, "unknown variable `{name}`"),
            Self::NoOverload { function, arguments } => {
                let types: Vec<String> = arguments.iter().map(ToString::to_string).collect();
                write!(f, "`{function}` does not accept ({})", types.join(", "))
            }
            Self::UndefinedField { field, .. } => write!(f, "unknown field `{field}`"),
            Self::NoFields { operand, .. } => write!(f, "a value of type {operand} has no fields"),
            Self::Mismatch { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::NoRange { operand } => write!(f, "expected a list or a map, found {operand}"),
            Self::Literal { function, .. } => write!(f, "invalid argument of `{function}`"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

/// All validation errors of an expression, in the order of their positions.
///
/// Never empty: an expression without errors has a type instead. `Display` prints each error as `LINE:COLUMN: MESSAGE`, separated by `; `. Both numbers
/// start at 1. [`type_of`](crate::type_of) has an example.
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
            let before: Vec<char> = self.expression.chars().take(issue.at).collect();
            let line = before.iter().filter(|letter| **letter == '\n').count() + 1;
            let column = before.iter().rev().take_while(|letter| **letter != '\n').count() + 1;
            let separator = if index > 0 { "; " } else { "" };
            write!(f, "{separator}{line}:{column}: {}", issue.kind)?;
        }
        Ok(())
    }
}
