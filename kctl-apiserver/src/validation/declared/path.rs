//! The path of a field during the walk over an object.

use std::fmt;

/// The path of a field, as a list through the calls that lead to it. It becomes a string only for an error.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    /// The path of the value that contains this one; `None` for a top-level field.
    pub(super) parent: Option<&'a Path<'a>>,
    /// The last step.
    pub(super) part: PathSegment<'a>,
}

/// One step of a path.
#[derive(Clone, Copy)]
pub(super) enum PathSegment<'a> {
    /// A field, `.name`; the first one has no dot.
    Field(&'a str),
    /// An item of a list, `[0]`.
    Index(usize),
    /// A value of a map, `[key]`, without quotes as upstream prints it.
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// Returns the path with one more step. It borrows from this one, so no step allocates.
    pub(super) fn then(&'a self, part: PathSegment<'a>) -> Self {
        Path { parent: Some(self), part }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match (self.part, self.parent) {
            (PathSegment::Field(name), None) => f.write_str(name),
            (PathSegment::Field(name), Some(_)) => write!(f, ".{name}"),
            (PathSegment::Index(index), _) => write!(f, "[{index}]"),
            (PathSegment::Key(key), _) => write!(f, "[{key}]"),
        }
    }
}
