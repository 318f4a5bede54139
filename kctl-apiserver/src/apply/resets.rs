//! Fields that a write resets: no manager owns them or gets a conflict about them.
//!
//! Upstream: `ResetFieldsStrategy` of `k8s.io/apiserver/pkg/registry/rest`.

use super::field_set::FieldSet;

/// The fields that the server resets on a write, with all their children (`GetResetFields` of the strategies in
/// kube-apiserver). Each path is a list of field names from the root, such as `status`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resets(pub &'static [&'static [&'static str]]);

impl Resets {
    /// No field is reset.
    pub(crate) const NOTHING: Self = Self(&[]);

    /// Returns the fields of a set that the request may write. Upstream subtracts these fields from a manager's set
    /// after each write.
    pub(super) fn without_reset_fields(self, set: FieldSet) -> FieldSet {
        self.0.iter().fold(set, |set, path| set.without(path))
    }
}
