//! What a write does not change, whatever is sent: nobody comes to own it, and nobody has a conflict about it.

use super::field_set::FieldSet;

/// Fields that the server resets where something is written, with all that is below them (`GetResetFields` of the strategies of
/// kube-apiserver).
#[derive(Clone, Copy, Debug)]
pub struct Resets(pub &'static [&'static [&'static str]]);

impl Resets {
    /// Nothing is reset.
    pub const NOTHING: Self = Self(&[]);

    /// The fields of a set that can be written.
    pub(super) fn left_of(self, set: FieldSet) -> FieldSet {
        self.0.iter().fold(set, |set, path| set.without(path))
    }
}
