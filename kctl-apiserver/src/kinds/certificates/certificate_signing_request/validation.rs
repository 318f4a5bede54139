//! Rules of certificate signing requests (`pkg/apis/certificates/validation/validation.go`).
//!
//! The request must be signed with its own key. The issuer of a certificate is not verified.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    json_path::entries,
    registry::kind::Subresource,
    validation::signer,
    x509::{
        Certificate, Request,
        pem::{self, PemBlock},
    },
};

/// The signer of the beta version of the kind.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// Shortest `expirationSeconds` of a request: ten minutes.
const EXPIRATION_SECONDS_MIN: i64 = 600;
/// Conditions that are never removed, and whose status is always `True`.
const IMMUTABLE_CONDITIONS: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Validates a request (`validateCertificateSigningRequest`). The error about a certificate does not show it.
pub(crate) fn validate_request(object: &Value, errors: &mut Errors) {
    let object = Field::new(object, "", errors);
    let (spec, status) = (object.at("spec"), object.at("status"));
    let [request, usages, signer] = ["request", "usages", "signerName"].map(|name| spec.at(name));
    let detail = "must be the base64 of a PEM block CERTIFICATE REQUEST that its key has signed";
    request.invalid_if(!is_signed_request(&decode_base64(&request)), detail);
    usages.required_if(usages.is_empty());
    usages.unique(|usage| usage);
    if *signer == LEGACY_SIGNER {
        signer.invalid("the legacy signerName is not allowed via this API version");
    } else {
        signer.check(signer::name);
    }
    spec.at("expirationSeconds").at_least(EXPIRATION_SECONDS_MIN);
    validate_conditions(&status.at("conditions"));
    let certificate = status.at("certificate");
    let is_wrong = !certificate.is_empty() && !are_certificates(&decode_base64(&certificate));
    certificate.invalid_without_value_if(is_wrong, "must be the base64 of PEM blocks CERTIFICATE without headers");
}

/// Decodes base64 to a string; empty if it is invalid.
fn decode_base64(base64: &Field<'_>) -> String {
    String::from_utf8_lossy(&STANDARD.decode(base64.text()).unwrap_or_default()).into_owned()
}

/// Returns `true` for PEM certificates and nothing else (`validateCertificate`).
///
/// Text between the blocks is allowed; headers within a block are not.
fn are_certificates(text: &str) -> bool {
    let is_certificate =
        |block: PemBlock| block.label == "CERTIFICATE" && !block.has_headers && Certificate::read(&block.der).is_some();
    pem::blocks(text).next().is_some() && pem::blocks(text).all(is_certificate)
}

/// Returns `true` for a PEM request that its key has signed (`validateCSR`). Only the first block is read.
fn is_signed_request(text: &str) -> bool {
    let block = pem::blocks(text).next().filter(|block| block.label == "CERTIFICATE REQUEST");
    block.is_some_and(|block| Request::read(&block.der).is_some_and(|request| request.is_signed()))
}

/// Validates conditions. An approval cannot be withdrawn, and a request can only be denied before it is approved.
fn validate_conditions(conditions: &Field<'_>) {
    for condition in conditions.items() {
        let (kind, status) = (condition.at("type"), condition.at("status"));
        kind.required_if(kind.is_empty());
        let is_lasting = IMMUTABLE_CONDITIONS.contains(&kind.text());
        status.required_one_of(if is_lasting { &["True"] } else { &["False", "True", "Unknown"] });
    }
    let has = |kind: &str| conditions.items().any(|condition| condition["type"] == kind);
    conditions.invalid_if(has("Approved") && has("Denied"), "Approved and Denied are mutually exclusive");
    conditions.unique_at("type");
}

/// Validates the fields that a write of a subresource must not change. Only the subresource `approval` adds `Approved`
/// or `Denied`, so that RBAC can grant signing and approving separately.
pub(crate) fn validate_update(subresource: Subresource, old: &Value, new: &Value, errors: &mut Errors) {
    let (status, was) = (Field::new(&new["status"], "status", errors), &old["status"]);
    let (conditions, certificate) = (status.at("conditions"), status.at("certificate"));
    let has =
        |status: &Value, kind: &str| entries(&status["conditions"]).any(|(_, condition)| condition["type"] == kind);
    let is_removed = IMMUTABLE_CONDITIONS.iter().any(|kind| has(was, kind) && !has(&status, kind));
    conditions.forbidden_if(is_removed, "updates may not remove Approved, Denied or Failed");
    let is_added = ["Approved", "Denied"].iter().any(|kind| !has(was, kind) && has(&status, kind));
    let detail = "only the subresource approval may add Approved or Denied";
    conditions.forbidden_if(is_added && subresource != Subresource::Approval, detail);
    let is_changed = !was["certificate"].is_null() && was["certificate"] != *certificate;
    certificate.forbidden_if(is_changed, "updates may not modify existing certificate content");
}
