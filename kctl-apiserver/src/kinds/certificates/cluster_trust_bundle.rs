//! `ClusterTrustBundle` of `certificates.k8s.io`: CA certificates, which Pods mount to verify their peers.
//!
//! - A bundle of a signer is named after it: `example.com:one:` and a DNS subdomain, for the signer `example.com/one`.
//!   Its writer needs the permission to `attest` for the signer, which is immutable.
//! - The bundle is PEM and contains only CA certificates, each once. An update that keeps the bundle does not validate
//!   it again, because Go's parsers change.
//!
//! Upstream: `pkg/registry/certificates/clustertrustbundle/strategy.go` and
//! `pkg/apis/certificates/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    registry::kind::{Cell, Kind, Metadata, Requests, Strategy, TableColumns, Validation},
    table::labels::NONE,
    validation::signer,
    x509::{Certificate, pem},
};

pub(crate) static KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "clustertrustbundles",
    kind: "ClusterTrustBundle",
    metadata: Metadata { names: NameRule::PathSegment, ..Metadata::DEFAULT },
    requests: Requests { selectable_fields: &["spec.signerName"], ..Requests::DEFAULT },
    strategy: Strategy { allows_unconditional_update: false, ..Strategy::DEFAULT },
    validation: Validation { validate, validate_create, validate_update, ..Validation::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::TextOr("/spec/signerName", NONE)]),
    ..Kind::DEFAULT
};

/// Longest bundle, in bytes (`MaxTrustBundleSize`): 1 MiB.
const BUNDLE_LEN_MAX: usize = 1024 * 1024;

/// Validates the certificates of a new bundle (`ValidateClusterTrustBundle`).
fn validate_create(object: &Value, errors: &mut Errors) {
    trust_bundle(text(&object["spec"]["trustBundle"]), errors);
}

/// Validates an update of a bundle. A tag of the API makes the signer immutable.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    if old["spec"]["trustBundle"] != new["spec"]["trustBundle"] {
        trust_bundle(text(&new["spec"]["trustBundle"]), errors);
    }
}

/// Validates the signer, and that the name fits it (`ValidateClusterTrustBundleName`).
fn validate(object: &Value, errors: &mut Errors) {
    type Check = fn(NameRule, &str) -> Option<&'static str>;
    let (meta, signer_name) = (&object["metadata"], &object["spec"]["signerName"]);
    for (field, check) in [("name", NameRule::check as Check), ("generateName", NameRule::check_prefix)] {
        let name = Some(text(&meta[field])).filter(|name| !name.is_empty());
        if let Some(why) = name.and_then(|name| signer::problem_of_bundle_name(name, text(signer_name), check)) {
            errors.invalid(&format!("metadata.{field}"), &meta[field], &why);
        }
    }
    if !text(signer_name).is_empty() {
        signer::name(signer_name, "spec.signerName", errors);
    }
}

/// Validates the certificates (`validateTrustBundle`). Repeated certificates are reported only if all are valid.
fn trust_bundle(bundle: &str, errors: &mut Errors) {
    let path = "spec.trustBundle";
    if bundle.len() > BUNDLE_LEN_MAX {
        return errors.too_long(path, BUNDLE_LEN_MAX);
    }
    let before = errors.len();
    let mut invalid = |why: String| errors.invalid_as_such(path, &why);
    let mut anchors: Vec<Vec<u8>> = Vec::new();
    for (index, block) in pem::blocks(bundle).enumerate() {
        if block.label != "CERTIFICATE" {
            invalid(format!("entry {index} has bad block type: {}", block.label));
        } else if block.has_headers {
            invalid(format!("entry {index} has PEM block headers"));
        } else if let Some(certificate) = Certificate::read(&block.der) {
            if certificate.is_authority {
                anchors.push(block.der);
            } else {
                invalid(format!("entry {index} does not have the CA bit set"));
            }
        } else {
            invalid(format!("entry {index} does not parse as X.509"));
        }
    }
    if errors.len() > before {
        return;
    }
    let n_anchors = anchors.len();
    anchors.sort_unstable();
    anchors.dedup();
    if anchors.is_empty() {
        errors.invalid_as_such(path, "at least one trust anchor must be provided");
    } else if anchors.len() < n_anchors {
        errors.invalid_as_such(path, "duplicate trust anchor");
    }
}
