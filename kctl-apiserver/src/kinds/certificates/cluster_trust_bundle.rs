//! `ClusterTrustBundle` of `certificates.k8s.io`: CA certificates, which Pods mount to verify their peers.
//!
//! - A bundle of a signer is named after it: `example.com:one:` and a DNS subdomain, for the signer `example.com/one`.
//!   Its writer needs the permission to `attest` for the signer, which is immutable.
//! - The bundle is PEM and contains only CA certificates, each once. An update that keeps the bundle does not validate
//!   it again, because Go's parsers change.
//!
//! Upstream: `pkg/registry/certificates/clustertrustbundle/strategy.go` and
//! `pkg/apis/certificates/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    names::NameRule,
    registry::kind::{Cell, Kind, Metadata, Plugin, Requests, Strategy, TableColumns, Validation},
    table::labels::NONE,
    validation::signer,
    x509::{
        Certificate,
        pem::{self, PemBlock},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "clustertrustbundles",
    kind: "ClusterTrustBundle",
    metadata: Metadata { names: NameRule::PathSegment, ..Metadata::DEFAULT },
    requests: Requests { selectable_fields: &["spec.signerName"], ..Requests::DEFAULT },
    admission: &[Plugin::ClusterTrustBundleAttest],
    strategy: Strategy::CONDITIONAL,
    validation: Validation { validate, validate_create, validate_update, ..Validation::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::TextOr("/spec/signerName", NONE)]),
    ..Kind::DEFAULT
};

/// Longest bundle, in bytes (`MaxTrustBundleSize`): 1 MiB.
const BUNDLE_LEN_MAX: usize = 1024 * 1024;

/// Validates the certificates of a new bundle (`ValidateClusterTrustBundle`).
fn validate_create(object: &Value, errors: &mut Errors) {
    validate_trust_bundle(&Field::new(&object["spec"]["trustBundle"], "spec.trustBundle", errors));
}

/// Validates an update of a bundle. A tag of the API makes the signer immutable.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    if old["spec"]["trustBundle"] != new["spec"]["trustBundle"] {
        validate_trust_bundle(&Field::new(&new["spec"]["trustBundle"], "spec.trustBundle", errors));
    }
}

/// Validates the signer, and that the name fits it (`ValidateClusterTrustBundleName`).
fn validate(object: &Value, errors: &mut Errors) {
    type Check = fn(NameRule, &str) -> Option<&'static str>;
    let bundle = Field::new(object, "", errors);
    let signer = bundle.at("spec").at("signerName");
    for (field, check) in [("name", NameRule::check as Check), ("generateName", NameRule::check_prefix)] {
        let name = bundle.at("metadata").at(field);
        let given = Some(name.text()).filter(|name| !name.is_empty());
        if let Some(why) = given.and_then(|name| signer::bundle_name_error(name, signer.text(), check)) {
            name.invalid(why);
        }
    }
    if !signer.is_empty() {
        signer.check(signer::name);
    }
}

/// Validates the certificates (`validateTrustBundle`).
fn validate_trust_bundle(bundle: &Field<'_>) {
    if bundle.text().len() > BUNDLE_LEN_MAX {
        return bundle.max_bytes(BUNDLE_LEN_MAX);
    }
    let mut anchors = BTreeSet::new();
    let is_anchor = |block: &PemBlock| {
        let is_plain = block.label == "CERTIFICATE" && !block.has_headers;
        is_plain && Certificate::read(&block.der).is_some_and(|certificate| certificate.is_authority)
    };
    let are_anchors = pem::blocks(bundle.text()).all(|block| is_anchor(&block) && anchors.insert(block.der));
    let detail = "must be CA certificates as PEM blocks CERTIFICATE without headers, at least one, without duplicates";
    bundle.invalid_without_value_if(!are_anchors || anchors.is_empty(), detail);
}
