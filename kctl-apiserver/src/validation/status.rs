//! Validation of the parts of statuses that several kinds share: counts and conditions.
//!
//! A write of the subresource `status` runs these rules. They reject statuses whose counts contradict each other or
//! whose conditions are malformed. The status of a Pod is in `kinds/core/pod/status.rs`.

use kctl_apimachinery::validation::is_condition_reason;
use serde_json::Value;

use crate::{field::Field, field_errors::Errors};

/// Rules for the numbers in a status. Absent numbers count as 0, as in Go.
pub(crate) struct Numbers {
    /// Fields of `status` that must not be negative (`FieldValueInvalid`), besides those in `subsets`.
    pub(crate) counts: &'static [&'static str],
    /// Numbers of some of the Pods, which must neither be negative nor exceed `replicas`.
    pub(crate) subsets: &'static [&'static str],
}

/// The numbers of `ReplicaSet` and `ReplicationController`.
pub(crate) const REPLICA_SET_NUMBERS: Numbers = Numbers {
    counts: &["replicas", "observedGeneration", "terminatingReplicas"],
    subsets: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
};

/// Validates the numbers in a status. Available Pods are a subset of the ready ones. `collisionCount` may only grow:
/// controllers hash it into the names of their children, so a lower number would reuse a name. Kinds without these
/// fields have 0 on both sides.
pub(crate) fn validate_numbers(numbers: &Numbers, old: &Value, new: &Value, errors: &mut Errors) {
    let (before, status) = (&old["status"], Field::new(&new["status"], "status", errors));
    let number = |status: &Value, name: &str| status[name].as_i64().unwrap_or(0);
    for name in numbers.counts.iter().chain(numbers.subsets) {
        status.at(name).not_negative();
    }
    let subsets = numbers.subsets.iter().map(|name| (*name, "replicas"));
    for (less, more) in subsets.chain([("availableReplicas", "readyReplicas")]) {
        let is_more = number(&status, less) > number(&status, more);
        status.at(less).invalid_if(is_more, format_args!("cannot be greater than status.{more}"));
    }
    let name = "collisionCount";
    status.at(name).invalid_if(number(before, name) > number(&status, name), "cannot be decremented");
}

/// Maximum length of a condition's reason, in bytes (`maxReasonLen`).
const REASON_LEN_MAX: usize = 1024;
/// Maximum length of a condition's message, in bytes (`maxMessageLen`).
const MESSAGE_LEN_MAX: usize = 32 * 1024;

/// Validates a list of `metav1.Condition` (`ValidateConditions` in `k8s.io/apimachinery/pkg/apis/meta/v1/validation`).
/// A tag of each of these lists makes the types unique. Older kinds (Pod, Node, the workloads) have condition types of
/// their group, which do not follow these rules.
pub(crate) fn validate_condition_list(conditions: &Field<'_>) {
    for condition in conditions.items() {
        condition.require_children(&["type", "lastTransitionTime", "reason"]);
        let (kind, reason) = (condition.at("type"), condition.at("reason"));
        if !kind.is_empty() {
            kind.qualified_name();
        }
        condition.at("status").required_one_of(&["False", "True", "Unknown"]);
        condition.at("observedGeneration").not_negative();
        let is_word = reason.is_empty() || is_condition_reason(reason.text());
        let detail = "must be a word such as MyReason: letters, digits, underscores, commas and colons";
        reason.invalid_if(!is_word, detail);
        reason.max_bytes(REASON_LEN_MAX);
        condition.at("message").max_bytes(MESSAGE_LEN_MAX);
    }
}
