//! Rules of the statuses that controllers write.

use serde_json::Value;

use super::{Errors, entries, text};

/// What is demanded of the numbers in a status.
struct Numbers {
    group: &'static str,
    resource: &'static str,
    /// They are not negative.
    counts: &'static [&'static str],
    /// The first of two is not greater than the second, which is called so.
    orders: &'static [(&'static str, &'static str, &'static str)],
}

const NUMBERS: &[Numbers] = &[
    Numbers {
        group: "apps",
        resource: "deployments",
        counts: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        orders: &[
            ("updatedReplicas", "replicas", "status.replicas"),
            ("readyReplicas", "replicas", "status.replicas"),
            ("availableReplicas", "replicas", "status.replicas"),
            ("availableReplicas", "readyReplicas", "readyReplicas"),
        ],
    },
    Numbers { group: "apps", resource: "replicasets", counts: SETS, orders: ORDERS_OF_SETS },
    Numbers { group: "", resource: "replicationcontrollers", counts: SETS, orders: ORDERS_OF_SETS },
    Numbers {
        group: "apps",
        resource: "statefulsets",
        counts: &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        orders: &[
            ("readyReplicas", "replicas", "status.replicas"),
            ("currentReplicas", "replicas", "status.replicas"),
            ("updatedReplicas", "replicas", "status.replicas"),
            ("availableReplicas", "replicas", "status.replicas"),
            ("availableReplicas", "readyReplicas", "status.readyReplicas"),
        ],
    },
    Numbers {
        group: "apps",
        resource: "daemonsets",
        counts: &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        orders: &[],
    },
    Numbers {
        group: "policy",
        resource: "poddisruptionbudgets",
        counts: &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"],
        orders: &[],
    },
    Numbers {
        group: "autoscaling",
        resource: "horizontalpodautoscalers",
        counts: &["currentReplicas", "desiredReplicas"],
        orders: &[],
    },
];

const SETS: &[&str] = &[
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
];
const ORDERS_OF_SETS: &[(&str, &str, &str)] = &[
    ("fullyLabeledReplicas", "replicas", "status.replicas"),
    ("readyReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "replicas", "status.replicas"),
    ("availableReplicas", "readyReplicas", "readyReplicas"),
];

/// What is wrong with a status, by group and resource.
pub(super) fn status(of: (&str, &str), old: &Value, new: &Value, errors: &mut Errors) {
    let Some(numbers) = NUMBERS.iter().find(|numbers| (numbers.group, numbers.resource) == of) else { return };
    let (before, status) = (&old["status"], &new["status"]);
    if of.0 == "policy" {
        conditions(&status["conditions"], "status.conditions", errors);
    }
    let number = |name: &str| status[name].as_i64().unwrap_or(0);
    for name in numbers.counts {
        errors.not_negative(&format!("status.{name}"), &status[*name]);
    }
    for (less, more, called) in numbers.orders {
        if number(less) > number(more) {
            errors.invalid(
                &format!("status.{less}"),
                &number(less).into(),
                &format!("cannot be greater than {called}"),
            );
        }
    }
    let collisions = before["collisionCount"].as_i64();
    if collisions.is_some_and(|known| known > number("collisionCount")) {
        errors.invalid("status.collisionCount", &number("collisionCount").into(), "cannot be decremented");
    }
}

/// Bytes of the reason and of the message of a condition.
const REASON_LEN_MAX: usize = 1024;
const MESSAGE_LEN_MAX: usize = 32 * 1024;

/// What is wrong with conditions of the shared type (`ValidateConditions` in
/// `k8s.io/apimachinery/pkg/apis/meta/v1/validation`).
pub(super) fn conditions(conditions: &Value, at: &str, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in entries(conditions) {
        let at = |field: &str| format!("{at}[{index}].{field}");
        let (kind, reason) = (text(&condition["type"]), text(&condition["reason"]));
        if seen.contains(&kind) {
            errors.duplicate(&at("type"), &Value::from(kind).to_string());
        }
        seen.push(kind);
        errors.qualified_name(&at("type"), kind);
        errors.always_one_of(&at("status"), &condition["status"], &["False", "True", "Unknown"]);
        if condition["observedGeneration"].as_i64().is_some_and(|generation| generation < 0) {
            let detail = "must be greater than or equal to zero";
            errors.invalid(&at("observedGeneration"), &condition["observedGeneration"], detail);
        }
        if !condition["lastTransitionTime"].is_string() {
            errors.required(&at("lastTransitionTime"), "");
        }
        if reason.is_empty() {
            errors.required(&at("reason"), "");
        } else if !is_reason(reason) {
            errors.invalid(
                &at("reason"),
                &reason.into(),
                "a condition reason must start with alphabetic character, optionally followed by a string of \
                 alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  \
                 or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
                 '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
            );
        }
        for (field, most) in [("reason", REASON_LEN_MAX), ("message", MESSAGE_LEN_MAX)] {
            if text(&condition[field]).len() > most {
                errors.too_long(&at(field), most);
            }
        }
    }
}

fn is_reason(reason: &str) -> bool {
    let last = reason.as_bytes().last().copied().unwrap_or_default();
    reason.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte))
        && reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && (last.is_ascii_alphanumeric() || last == b'_')
}
