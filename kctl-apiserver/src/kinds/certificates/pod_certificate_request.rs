//! `PodCertificateRequest` of `certificates.k8s.io`: a kubelet asks a signer for the certificate of a Pod.
//!
//! - The spec is immutable. It names the Pod, its service account and its node by name and uid. Only the admission
//!   plugin `NodeRestriction` looks them up, which is not part of this server.
//! - The signer writes the status once, with one of the conditions `Issued`, `Denied` and `Failed`. It has to be
//!   allowed to `sign` for the signer.
//! - kube-controller-manager deletes requests after some minutes; this server keeps them.
//!
//! Upstream: `pkg/registry/certificates/podcertificaterequest/strategy.go` and
//! `pkg/apis/certificates/validation/validation.go`.

mod validation;

use serde_json::Value;

use crate::{
    defaulting::{add, part},
    field::Field,
    registry::kind::{Cell, Defaults, Kind, Requests, Strategy, Subresource, TableColumns, Validation},
    table::fields::{list, text},
};

pub(crate) static KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "podcertificaterequests",
    kind: "PodCertificateRequest",
    requests: Requests {
        selectable_fields: &["spec.signerName", "spec.podName", "spec.nodeName"],
        ..Requests::DEFAULT
    },
    defaults: Defaults { set: |object| add(part(object, "spec"), "maxExpirationSeconds", 86_400), ..Defaults::DEFAULT },
    strategy: Strategy { kept_by_status: Kind::CLIENT_METADATA, ..Strategy::CONDITIONAL },
    validation: Validation {
        validate_create: validation::validate_request,
        validate_update: |old, new, errors| Field::new(&new["spec"], "spec", errors).immutable(&old["spec"]),
        validate_status_at: validation::status,
        signer,
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Text("/spec/podName"),
        Cell::Text("/spec/serviceAccountName"),
        Cell::Text("/spec/nodeName"),
        Cell::Text("/spec/signerName"),
        Cell::Computed(|request, _| state(request).into()),
        Cell::Labels("/spec/unverifiedUserAnnotations"),
    ]),
    ..Kind::DEFAULT
};

/// Returns the signer for which a change of the status needs the permission to `sign`
/// (`StatusStrategy.ValidateUpdate`).
fn signer<'a>(subresource: Subresource, old: &'a Value, new: &Value) -> Option<&'a str> {
    (subresource.is_status() && old["status"] != new["status"]).then(|| text(old, "/spec/signerName"))
}

/// Returns the last of the final conditions, or `Pending`.
fn state(object: &Value) -> &str {
    let is_final = |kind: &&str| validation::FINAL.contains(kind);
    let conditions = list(object, "/status/conditions").iter().rev();
    conditions.map(|condition| text(condition, "/type")).find(is_final).unwrap_or("Pending")
}
