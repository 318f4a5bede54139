//! Objects that must be cleaned up but cannot be decoded as the primary's type.

use serde_json::Value;

use super::{Error, Result, ResultExt};
use crate::{object::Kind, source::Unreadable};

/// An object of the primary's kind that cannot be decoded, for [`Finalize::finalize_unreadable`].
///
/// [`Finalize::finalize_unreadable`]: super::Finalize::finalize_unreadable
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnreadableObject {
    /// The object as the API server has it, without `managedFields`.
    pub json: Value,
    /// The message of the decoder.
    pub error: String,
    /// The error if no cleanup is implemented: what to do by hand.
    advice: String,
}

impl UnreadableObject {
    pub(crate) fn new(unreadable: &Unreadable, kind: &Kind, finalizer: &str) -> Self {
        let json = serde_json::from_str(&unreadable.stored.json()).unwrap_or_default();
        Self { json, error: unreadable.error.clone(), advice: advice(unreadable, kind, finalizer) }
    }

    /// Returns a terminal error: the finalizer is kept, and only a change of the object helps.
    pub(crate) fn into_error(self) -> Error {
        let failed: Result<()> = Err(self.advice.into());
        failed.terminal().err().unwrap_or_else(|| self.error.into())
    }
}

fn advice(unreadable: &Unreadable, kind: &Kind, finalizer: &str) -> String {
    let meta = unreadable.stored.meta();
    let left = meta.finalizers_without(finalizer);
    let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
    let namespace = meta.namespace().map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
    format!(
        "the finalizer {finalizer} is kept, because the object can't be read as {} and so can't be cleaned up: {}; correct the \
         object, or implement `Finalize::finalize_unreadable`; after a cleanup by hand: kubectl patch {}{group} {}{namespace} \
         --type=merge -p '{{\"metadata\":{{\"finalizers\":{}}}}}'",
        kind.kind,
        unreadable.error,
        kind.plural,
        meta.name(),
        serde_json::json!(left),
    )
}
