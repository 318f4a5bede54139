//! Reads from the response to a write if an object that is being deleted still exists.
//!
//! The response decides, and not the cached form of the object. A field mask removes `spec`, and an object that does
//! not fit its Rust type still has metadata.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::object::{Kind, Uid};

/// An object whose deletion was requested.
pub(super) struct Deletion {
    pub(super) uid: Uid,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A finalizer or the grace period holds the object.
    Terminating,
    /// Nothing holds the object, so the API server has removed it.
    Ended,
}

/// The fields of an object that decide. They are empty in a `Status`.
#[derive(Deserialize)]
struct Response<'a> {
    metadata: ResponseMeta,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResponseMeta {
    uid: Uid,
    deletion_timestamp: Option<IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct NamespaceSpec {
    finalizers: Option<Vec<IgnoredAny>>,
}

impl Deletion {
    /// Returns the deletion of the object in a response, or `None` for a `Status` and for an object whose deletion was not
    /// requested.
    pub(super) fn from_response(kind: &Kind, text: &str) -> Option<Self> {
        let Response { metadata, spec } = serde_json::from_str(text).ok()?;
        metadata.deletion_timestamp?;
        let has_any = |list: Option<Vec<IgnoredAny>>| list.is_some_and(|all| !all.is_empty());
        let is_blocked = metadata.deletion_grace_period_seconds.unwrap_or(0) > 0
            || has_any(metadata.finalizers)
            || has_any(spec.and_then(|spec| finalizers_of_spec(kind, spec)));
        let stage = if is_blocked { Stage::Terminating } else { Stage::Ended };
        Some(Self { uid: metadata.uid, stage })
    }
}

/// Returns `spec.finalizers` of a Namespace, which the namespace controller empties once the namespace has no objects.
/// No other kind has finalizers there (Kubernetes, `pkg/registry/core/namespace/storage`).
fn finalizers_of_spec(kind: &Kind, spec: &RawValue) -> Option<Vec<IgnoredAny>> {
    if !kind.group.is_empty() || kind.plural != "namespaces" {
        return None;
    }
    serde_json::from_str::<NamespaceSpec>(spec.get()).ok()?.finalizers
}
