//! The rows of what governs the cluster: access, admission, certificates, fairness, scheduling, devices, aggregation.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{age, human};
use super::fields::{at, condition, flag, int, is_deleting, list, name, text, text_or};
use super::labels::{NONE, go_notation};

const UNSET: &str = "<unset>";

/// Returns the cells of a binding of a role, in a namespace or not.
pub(crate) fn role_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = at(object, "/roleRef");
    let subjects = |kind: &str| {
        let of_kind = list(object, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
        let shown = of_kind.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
            _ => text(subject, "/name").to_owned(),
        });
        json!(shown.collect::<Vec<_>>().join(", "))
    };
    vec![
        json!(name(object)),
        json!(format!("{}/{}", text(role, "/kind"), text(role, "/name"))),
        json!(age(object, now)),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

pub(crate) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(list(object, "/webhooks").len()), json!(age(object, now))]
}

pub(crate) fn validating_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    admission_policy(object, now, list(object, "/spec/validations").len())
}

pub(crate) fn mutating_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    admission_policy(object, now, list(object, "/spec/mutations").len())
}

fn admission_policy(object: &Value, now: Timestamp, n_rules: usize) -> Vec<Value> {
    let kind = at(object, "/spec/paramKind");
    let kind = if kind.is_object() {
        format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind"))
    } else {
        UNSET.to_owned()
    };
    vec![json!(name(object)), json!(n_rules), json!(kind), json!(age(object, now))]
}

pub(crate) fn policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameter = at(object, "/spec/paramRef");
    let shown = if !parameter.is_object() {
        UNSET.to_owned()
    } else if text(parameter, "/name").is_empty() {
        go_notation(at(parameter, "/selector"))
    } else {
        format!("{}/{}", text_or(parameter, "/namespace", "*"), text(parameter, "/name"))
    };
    vec![json!(name(object)), json!(text(object, "/spec/policyName")), json!(shown), json!(age(object, now))]
}

pub(crate) fn certificate_signing_request(object: &Value, now: Timestamp) -> Vec<Value> {
    let has = |kind: &str| condition(object, kind).is_some();
    let mut status = String::from(if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    });
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    let requested = at(object, "/spec/expirationSeconds").as_i64().map_or_else(|| NONE.to_owned(), human);
    vec![
        json!(name(object)),
        json!(age(object, now)),
        json!(text_or(object, "/spec/signerName", NONE)),
        json!(text(object, "/spec/username")),
        json!(requested),
        json!(status),
    ]
}

pub(crate) fn flow_schema(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(text(object, "/spec/priorityLevelConfiguration/name")),
        json!(int(object, "/spec/matchingPrecedence")),
        json!(text_or(object, "/spec/distinguisherMethod/type", NONE)),
        json!(age(object, now)),
        json!(condition(object, "Dangling").map_or("?", |dangling| text(dangling, "/status"))),
    ]
}

pub(crate) fn priority_level(object: &Value, now: Timestamp) -> Vec<Value> {
    let limit = |field: &str| {
        let number = at(object, &format!("/spec/limited/{field}")).as_i64();
        number.map_or_else(|| json!(NONE), |number| json!(number))
    };
    vec![
        json!(name(object)),
        json!(text(object, "/spec/type")),
        limit("nominalConcurrencyShares"),
        limit("limitResponse/queuing/queues"),
        limit("limitResponse/queuing/handSize"),
        limit("limitResponse/queuing/queueLengthLimit"),
        json!(age(object, now)),
    ]
}

pub(crate) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(int(object, "/value")),
        json!(flag(object, "/globalDefault")),
        json!(age(object, now)),
        json!(text_or(object, "/preemptionPolicy", "PreemptLowerPriority")),
    ]
}

pub(crate) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/spec/holderIdentity")), json!(age(object, now))]
}

pub(crate) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/handler")), json!(age(object, now))]
}

pub(crate) fn resource_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let states = [
        ("deleted", is_deleting(object)),
        ("allocated", at(object, "/status/allocation").is_object()),
        ("reserved", !list(object, "/status/reservedFor").is_empty()),
    ];
    let states: Vec<_> = states.into_iter().filter(|(_, holds)| *holds).map(|(state, _)| state).collect();
    let state = if states.is_empty() { "pending".to_owned() } else { states.join(",") };
    vec![json!(name(object)), json!(state), json!(age(object, now))]
}

pub(crate) fn resource_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(text(object, "/spec/nodeName")),
        json!(text(object, "/spec/driver")),
        json!(text(object, "/spec/pool/name")),
        json!(age(object, now)),
    ]
}

pub(crate) fn api_service(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = at(object, "/spec/service");
    let service = if service.is_object() {
        format!("{}/{}", text(service, "/namespace"), text(service, "/name"))
    } else {
        "Local".to_owned()
    };
    let available = condition(object, "Available").map_or_else(
        || "Unknown".to_owned(),
        |available| match text(available, "/status") {
            "True" => "True".to_owned(),
            status => format!("{status} ({})", text(available, "/reason")),
        },
    );
    vec![json!(name(object)), json!(service), json!(available), json!(age(object, now))]
}
