//! Finds the default class of a kind, for `DefaultStorageClass` and `DefaultIngressClass`.

use std::sync::Arc;

use serde_json::Value;

use crate::{field_errors::text, registry::kind::Kind, state::State};

/// Returns the name of the default class. The newest of several is used, and the first by name among equally old ones.
///
/// `None` without a default class. Timestamps have whole seconds, so equal ages are common in tests.
pub(super) fn default_class(state: &State, kind: &Kind, annotations: &[&str]) -> Option<Value> {
    let says = |class: &Arc<Value>| {
        annotations.iter().any(|annotation| class["metadata"]["annotations"][annotation] == "true")
    };
    let created = |class: &Value| text(&class["metadata"]["creationTimestamp"]).to_owned();
    // The objects are ordered by name.
    let newest = state
        .objects_of(kind, None)
        .filter(says)
        .reduce(|newest_so_far, other| if created(&other) > created(&newest_so_far) { other } else { newest_so_far })?;
    Some(newest["metadata"]["name"].clone())
}
