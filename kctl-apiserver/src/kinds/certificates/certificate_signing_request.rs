//! `CertificateSigningRequest` of `certificates.k8s.io`: asks a signer to sign a client's certificate request.
//!
//! - The spec is immutable: an update through any path keeps the stored one without an error.
//! - `approval` writes the conditions; `status` writes the certificate, and conditions other than approvals.
//! - The creator does not own the fields of the spec: upstream resets them in each write (`GetResetFields`).
//! - `spec.signerName` is selectable, so that a signer can watch only its own requests.
//!
//! Upstream: `pkg/registry/certificates/certificates/strategy.go` and `pkg/apis/certificates/validation/validation.go`.

pub(crate) mod validation;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    json_path::{entries, set},
    names::NameRule,
    registry::kind::{
        Cell, Environment, Kind, ManagedFields, Metadata, NewStatus, Plugin, RequestContext, Requests, Strategy,
        Subresource, TableColumns, Validation,
    },
    table::{
        age::human,
        fields::{condition, text, value_at},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    kind: "CertificateSigningRequest",
    metadata: Metadata { names: NameRule::PathSegment, ..Metadata::DEFAULT },
    requests: Requests { selectable_fields: &["spec.signerName"], ..Requests::DEFAULT },
    admission: &[Plugin::CertificateApproval, Plugin::CertificateSigning, Plugin::CertificateSubjectRestriction],
    strategy: Strategy {
        new_status: NewStatus::Empty,
        finish_create: identify,
        prepare_update: keep_request,
        finish_update: stamp_conditions,
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validates_subresources: true,
        validate: validation::validate_request,
        validate_subresource: validation::validate_update,
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        reset_fields: &[
            (Subresource::Main, &[&["spec"], &["status"]]),
            (Subresource::Approval, &[&["spec"], &["status", "certificate"]]),
            (Subresource::Status, &[&["spec"], &["status", "conditions"]]),
        ],
        unowned: &["/spec"],
        ..ManagedFields::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Age,
        Cell::TextOr("/spec/signerName", NONE),
        Cell::Text("/spec/username"),
        Cell::Computed(|request, _| requested_duration(request).into()),
        Cell::Computed(|request, _| status(request).into()),
    ]),
    ..Kind::DEFAULT
};

/// Keeps the specification, and for an approval the certificate that was issued. Upstream: the `PrepareForUpdate`
/// functions in `pkg/registry/certificates/certificates/strategy.go`.
fn keep_request(subresource: Subresource, old: &Value, new: &mut Value) {
    set(new, "spec", old.get("spec").cloned());
    if subresource == Subresource::Approval {
        set(&mut new["status"], "certificate", old["status"].get("certificate").cloned());
    }
}

/// Sets the identity of the creator: the certificate is for this user (`csrStrategy.PrepareForCreate`).
fn identify(request: &dyn RequestContext, object: &mut Value) {
    if let Value::Object(user) = request.user_info() {
        for (field, value) in user {
            object["spec"][field] = value;
        }
    }
}

/// Sets the times of the conditions (`populateConditionTimestamps`). Times that the client has set are kept.
fn stamp_conditions(environment: &dyn Environment, old: &Value, new: &mut Value) {
    let mut old_conditions = BTreeMap::new();
    for (_, existing) in entries(&old["status"]["conditions"]) {
        old_conditions.entry((text(existing, "/type"), text(existing, "/status"))).or_insert(existing);
    }
    for condition in new.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let before = old_conditions.get(&(text(condition, "/type"), text(condition, "/status"))).copied();
        for (field, before) in [("lastUpdateTime", None), ("lastTransitionTime", before)] {
            if condition[field].is_null() {
                condition[field] = before.map_or_else(|| environment.now().into(), |before| before[field].clone());
            }
        }
    }
}

/// Returns `spec.expirationSeconds` such as `24h`, or `<none>`.
fn requested_duration(object: &Value) -> String {
    value_at(object, "/spec/expirationSeconds").as_i64().map_or_else(|| NONE.to_owned(), human)
}

/// Returns `Pending`, `Approved` or `Denied`, followed by `,Failed` and `,Issued` where they apply.
fn status(object: &Value) -> String {
    let has = |kind: &str| condition(object, kind).is_some();
    let mut status = vec![["Denied", "Approved"].into_iter().find(|kind| has(kind)).unwrap_or("Pending")];
    status.extend(has("Failed").then_some("Failed"));
    status.extend((!text(object, "/status/certificate").is_empty()).then_some("Issued"));
    status.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Midnight;

    impl Environment for Midnight {
        fn now(&self) -> String {
            "00:00".to_owned()
        }

        fn uid(&mut self) -> String {
            unreachable!("conditions have no uid")
        }

        fn cluster_ip(&mut self) -> String {
            unreachable!("conditions have no address")
        }
    }

    /// Takes minutes if each condition is compared with all old ones.
    #[test]
    fn unchanged_conditions_keep_their_transition_time() {
        let with_conditions = |status: &str, time: Option<&str>| {
            let condition = |n: usize| json!({ "type": format!("t{n}"), "status": status, "lastTransitionTime": time });
            json!({ "status": { "conditions": (0..50_000).map(condition).collect::<Value>() } })
        };
        let old = with_conditions("True", Some("before"));
        for (status, time) in [("True", "before"), ("False", "00:00")] {
            let mut new = with_conditions(status, None);
            stamp_conditions(&Midnight, &old, &mut new);
            for (_, condition) in entries(&new["status"]["conditions"]) {
                assert_eq!(condition["lastTransitionTime"], time, "{condition}");
                assert_eq!(condition["lastUpdateTime"], "00:00", "{condition}");
            }
        }
    }
}
