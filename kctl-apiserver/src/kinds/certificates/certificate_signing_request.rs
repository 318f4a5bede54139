//! `CertificateSigningRequest` of `certificates.k8s.io`.

pub(crate) mod validation;

use serde_json::Value;

use crate::{
    json_path::set,
    names::NameRule,
    registry::kind::{Kind, NewStatus},
    selector, table,
};

pub(crate) static KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    kind: "CertificateSigningRequest",
    names: NameRule::PathSegment,
    selectable_fields: selector::OF_REQUESTS,
    new_status: NewStatus::Empty,
    prepare_update: keep_request,
    reset_fields: &[
        ("", &[&["spec"], &["status"]]),
        ("approval", &[&["spec"], &["status", "certificate"]]),
        ("status", &[&["spec"], &["status", "conditions"]]),
    ],
    unowned: &["/spec"],
    validate: validation::request,
    validate_subresource: validation::fixed,
    validates_subresources: true,
    printer: Some(table::policy::certificate_signing_request),
    ..Kind::DEFAULT
};

/// Keeps the specification, and for an approval the certificate that was issued.
fn keep_request(subresource: &str, old: &Value, new: &mut Value) {
    set(new, "spec", old.get("spec").cloned());
    if subresource == "approval" {
        set(&mut new["status"], "certificate", old["status"].get("certificate").cloned());
    }
}
