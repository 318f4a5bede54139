//! Kinds of the core group.
//!
//! This file has the rules that several kinds of the group share. Each kind has a file with its static `KIND`.

pub(crate) mod binding;
pub(crate) mod component_status;
pub(crate) mod config_map;
pub(crate) mod endpoints;
pub(crate) mod event;
pub(crate) mod limit_range;
pub(crate) mod namespace;
pub(crate) mod node;
pub(crate) mod persistent_volume;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod;
pub(crate) mod pod_template;
pub(crate) mod replication_controller;
pub(crate) mod resource_quota;
pub(crate) mod secret;
pub(crate) mod service;
pub(crate) mod service_account;

use serde_json::Value;

/// A kind that quotas also count by its plain name. A quota can limit such a kind under two names in `spec.hard`, such
/// as `configmaps` and `count/configmaps`. This macro is for the first; the second applies to all kinds.
macro_rules! counted_by_name {
    ($name:literal) => {
        $crate::registry::kind::Quota {
            counts: |name| name == $name,
            usage: |_, _| $crate::amounts::Amounts::from([($name.to_owned(), $crate::quantity::count(1))]),
            ..$crate::registry::kind::Quota::DEFAULT
        }
    };
}
use counted_by_name;

/// Returns `true` if a term of a quota's scope selector selects one of the names, or their absence. With `NotIn`, an
/// object that has several names is selected unless all of them are listed.
fn is_selected(names: &[&str], operator: &str, values: &Value) -> bool {
    let is_listed = |name: &&str| values.as_array().is_some_and(|values| values.iter().any(|value| value == name));
    match operator {
        "In" => names.iter().any(is_listed),
        "NotIn" => names.is_empty() || !names.iter().all(is_listed),
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        _ => false,
    }
}
