//! The way to a value in JSON, which lives on the stack of the walk and is written only when it is shown.

use std::fmt;

/// A step from the way to what is around a value.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    /// By its name; of a field of a type, that type, and nothing for a key of a map.
    Field(&'a Path<'a>, &'a str, Option<&'static str>),
    Item(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The names of the fields on the way, from the root on: what Go names, which neither keys of maps nor places in lists are.
    pub(super) fn fields(&self) -> Vec<&'a str> {
        match *self {
            Self::Root => Vec::new(),
            Self::Item(parent, _) | Self::Field(parent, _, None) => parent.fields(),
            Self::Field(parent, name, Some(of)) => {
                let mut fields = parent.fields();
                // Go names the structs that it embeds on the way.
                fields.extend(crate::proto::embedded(of, name));
                fields.push(name);
                fields
            }
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name, _) => out.write_str(name),
            Self::Field(parent, name, _) => write!(out, "{parent}.{name}"),
            Self::Item(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}
