//! `CertificateSigningRequest` of `certificates.k8s.io`: asks a signer to sign a client's certificate request.
//!
//! - The spec is immutable: an update through any path keeps the stored one without an error.
//! - `approval` writes the conditions; `status` writes the certificate, and conditions other than approvals.
//! - The creator does not own the fields of the spec: upstream resets them in each write (`GetResetFields`).
//! - `spec.signerName` is selectable, so that a signer can watch only its own requests.
//!
//! Upstream: `pkg/registry/certificates/certificates/strategy.go` and `pkg/apis/certificates/validation/validation.go`.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    json_path::set,
    names::NameRule,
    registry::kind::{
        Environment, Kind, ManagedFields, Metadata, NewStatus, Requester, Requests, Strategy, TableColumns, Validation,
    },
    table::{
        age::{age, human},
        fields::{condition, name, text, text_or, value_at},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    kind: "CertificateSigningRequest",
    metadata: Metadata { names: NameRule::PathSegment, ..Metadata::DEFAULT },
    requests: Requests { selectable_fields: &["spec.signerName"], ..Requests::DEFAULT },
    strategy: Strategy {
        new_status: NewStatus::Empty,
        finish_create: identify,
        prepare_update: keep_request,
        finish_update: stamp_conditions,
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validates_subresources: true,
        validate: validation::request,
        validate_subresource: validation::fixed,
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        reset_fields: &[
            ("", &[&["spec"], &["status"]]),
            ("approval", &[&["spec"], &["status", "certificate"]]),
            ("status", &[&["spec"], &["status", "conditions"]]),
        ],
        unowned: &["/spec"],
        ..ManagedFields::DEFAULT
    },
    table: TableColumns::printer(cells),
    ..Kind::DEFAULT
};

/// Keeps the specification, and for an approval the certificate that was issued. Upstream: the `PrepareForUpdate`
/// functions in `pkg/registry/certificates/certificates/strategy.go`.
fn keep_request(subresource: &str, old: &Value, new: &mut Value) {
    set(new, "spec", old.get("spec").cloned());
    if subresource == "approval" {
        set(&mut new["status"], "certificate", old["status"].get("certificate").cloned());
    }
}

/// Sets the identity of the creator: the certificate is for this user (`csrStrategy.PrepareForCreate`).
fn identify(requester: &dyn Requester, object: &mut Value) {
    if let Value::Object(user) = requester.user_info() {
        for (field, value) in user {
            object["spec"][field] = value;
        }
    }
}

/// Sets the times of the conditions (`populateConditionTimestamps`). Times that the client has set stay.
fn stamp_conditions(environment: &dyn Environment, old: &Value, new: &mut Value) {
    let conditions = old["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in new.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let before = conditions
            .iter()
            .find(|existing| existing["type"] == condition["type"] && existing["status"] == condition["status"]);
        let times = [("lastUpdateTime", None), ("lastTransitionTime", before)];
        for (field, before) in times {
            if condition[field].is_null() {
                condition[field] = before.map_or_else(|| environment.now().into(), |before| before[field].clone());
            }
        }
    }
}

/// Returns the columns of `printCertificateSigningRequest`.
///
/// | column | content |
/// |---|---|
/// | `SignerName` | `spec.signerName`, or `<none>` |
/// | Requestor | `spec.username`: the user that created the object |
/// | `RequestedDuration` | `spec.expirationSeconds`, such as `24h`, or `<none>` |
/// | Condition | `Pending`, `Approved` or `Denied`, followed by `,Failed` and `,Issued` where they apply |
///
/// `Denied` takes precedence over `Approved`, though validation prevents both.
fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
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
    let requested = value_at(object, "/spec/expirationSeconds").as_i64().map_or_else(|| NONE.to_owned(), human);
    vec![
        json!(name(object)),
        json!(age(object, now)),
        json!(text_or(object, "/spec/signerName", NONE)),
        json!(text(object, "/spec/username")),
        json!(requested),
        json!(status),
    ]
}
