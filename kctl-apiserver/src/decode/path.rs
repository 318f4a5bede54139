//! The path of a JSON value. It lives on the stack of a recursion, and is formatted only for an error.

use std::fmt;

/// A path, as its last step and the path of the parent.
#[derive(Clone, Copy)]
pub(super) enum JsonPath<'a> {
    /// Formatted as the empty string; fields below it have no leading dot.
    Root,
    /// A field, or a key of a map.
    Field(&'a JsonPath<'a>, &'a str),
    /// `[0]`.
    Item(&'a JsonPath<'a>, usize),
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => out.write_str(name),
            Self::Field(parent, name) => write!(out, "{parent}.{name}"),
            Self::Item(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}
