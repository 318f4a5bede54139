//! The description of a function, for errors and logs.

use std::fmt;

use crate::operation::Operation;

/// The operation, the name and the source position of a function, for errors and logs.
///
/// ```
/// use kctl_interpreter::{function::FunctionInfo, operation::Operation};
///
/// let about = FunctionInfo::new(Operation::Retain, "keep_paused", "src/interpreter.rs", 12);
/// assert_eq!(about.to_string(), "`keep_paused` (src/interpreter.rs:12)");
/// assert_eq!(about.location(), "src/interpreter.rs:12");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// The operation that the function answers.
    pub operation: Operation,
    /// The name of the function.
    pub name: &'static str,
    /// The source file, as `file!()` returns it.
    file: &'static str,
    /// The line in the file, from 1.
    line: u32,
}

impl FunctionInfo {
    /// Creates the description of a function. Pass `file!()` and `line!()` for the position.
    pub fn new(operation: Operation, name: &'static str, file: &'static str, line: u32) -> Self {
        Self { operation, name, file, line }
    }

    /// Returns `file:line` of the function.
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

impl fmt::Display for FunctionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({}:{})", self.name, self.file, self.line)
    }
}
