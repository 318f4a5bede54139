//! The way to a value in JSON, which lives on the stack of the walk and is written only when it is shown.

use std::fmt;

/// A step from the way to what is around a value.
#[derive(Clone, Copy)]
pub(super) enum JsonPath<'a> {
    Root,
    /// A field, or a key of a map.
    Field(&'a JsonPath<'a>, &'a str),
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
