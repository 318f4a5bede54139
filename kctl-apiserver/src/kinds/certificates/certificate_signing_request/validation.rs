//! Rules of certificate signing requests (`pkg/apis/certificates/validation/validation.go`).
//!
//! The request must be signed with its own key. The issuer of a certificate is not verified.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    validation::{entries, signer},
    x509::{Certificate, Request, pem},
};

/// The signer of the beta version of the kind.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// Shortest `expirationSeconds` of a request: ten minutes.
const EXPIRATION_SECONDS_MIN: i64 = 600;
/// Conditions that are never removed, and whose status is always `True`.
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Validates a request (`validateCertificateSigningRequest`).
///
/// | field | rule |
/// |---|---|
/// | `spec.request` | base64 of a PEM block `CERTIFICATE REQUEST`, signed by its key |
/// | `spec.usages` | at least one, each once |
/// | `spec.signerName` | see `signer` |
/// | `spec.expirationSeconds` | at least 600, if set |
/// | `status.conditions` | see `conditions` |
/// | `status.certificate` | PEM certificates and nothing else, if set |
///
/// The error about a certificate does not show it.
pub(crate) fn request(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if let Err(why) = signed_request(&STANDARD.decode(text(&spec["request"])).unwrap_or_default()) {
        errors.invalid("spec.request", &spec["request"], why);
    }
    let usages: Vec<&str> = entries(&spec["usages"]).map(|(_, usage)| text(usage)).collect();
    if usages.is_empty() {
        errors.required("spec.usages", "");
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages[..index].contains(usage) {
            errors.duplicate(&format!("spec.usages[{index}]"));
        }
    }
    if spec["signerName"] == LEGACY_SIGNER {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.invalid("spec.signerName", &spec["signerName"], detail);
    } else {
        signer::name(&spec["signerName"], "spec.signerName", errors);
    }
    if spec["expirationSeconds"].as_i64().is_some_and(|seconds| seconds < EXPIRATION_SECONDS_MIN) {
        let detail = format!("may not specify a duration less than {EXPIRATION_SECONDS_MIN} seconds (10 minutes)");
        errors.invalid("spec.expirationSeconds", &spec["expirationSeconds"], &detail);
    }
    conditions(&object["status"]["conditions"], errors);
    if let Some(certificate) = object["status"]["certificate"].as_str().filter(|bytes| !bytes.is_empty())
        && let Err(why) = certificates(&STANDARD.decode(certificate).unwrap_or_default())
    {
        errors.invalid_as_such("status.certificate", &why);
    }
}

/// Returns why the bytes are not PEM certificates and nothing else (`validateCertificate`).
///
/// Text between the blocks is allowed; headers within a block are not.
fn certificates(bytes: &[u8]) -> Result<(), String> {
    let mut n_blocks = 0;
    for block in pem::blocks(&String::from_utf8_lossy(bytes)) {
        if block.label != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".into());
        }
        n_blocks += 1;
        if Certificate::read(&block.der).is_none() {
            return Err("x509: malformed certificate".into());
        }
    }
    if n_blocks == 0 { Err("must contain at least one CERTIFICATE PEM block".into()) } else { Ok(()) }
}

/// Returns why the bytes are not a PEM request that its key has signed (`validateCSR`). Only the first block is read.
fn signed_request(bytes: &[u8]) -> Result<(), &'static str> {
    let block =
        pem::blocks(&String::from_utf8_lossy(bytes)).next().filter(|block| block.label == "CERTIFICATE REQUEST");
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let request = Request::read(&block.der).ok_or("x509: malformed certificate request")?;
    if request.is_signed() { Ok(()) } else { Err("x509: the signature is not one of the requested key") }
}

/// Validates conditions: types are unique, and `Approved` and `Denied` exclude each other.
///
/// `Approved`, `Denied` and `Failed` have the status `True`: an approval cannot be withdrawn, and a request can only be
/// denied before it is approved.
fn conditions(conditions: &Value, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in entries(conditions) {
        let path = format!("status.conditions[{index}]");
        let (kind, status) = (text(&condition["type"]), text(&condition["status"]));
        if kind.is_empty() {
            errors.required(&format!("{path}.type"), "");
        }
        if status.is_empty() {
            errors.required(&format!("{path}.status"), "");
        } else if LASTING.contains(&kind) {
            errors.one_of(&format!("{path}.status"), &condition["status"], &["True"]);
        } else {
            errors.one_of(&format!("{path}.status"), &condition["status"], &["False", "True", "Unknown"]);
        }
        let other = if kind == "Approved" { "Denied" } else { "Approved" };
        if ["Approved", "Denied"].contains(&kind) && seen.contains(&other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.invalid("status.conditions", &kind.into(), detail);
        }
        if seen.contains(&kind) {
            errors.duplicate(&format!("{path}.type"));
        }
        seen.push(kind);
    }
}

/// Validates the fields that a write of a subresource must not change.
///
/// - The conditions `Approved`, `Denied` and `Failed` are never removed.
/// - Only the subresource `approval` adds `Approved` or `Denied`, so that RBAC can grant signing and approving
///   separately.
/// - A certificate is immutable once it is issued.
pub(crate) fn fixed(subresource: &str, old: &Value, new: &Value, errors: &mut Errors) {
    let has = |object: &Value, kind: &str| {
        entries(&object["status"]["conditions"]).any(|(_, condition)| condition["type"] == kind)
    };
    let path = "status.conditions";
    for kind in LASTING.into_iter().filter(|kind| has(old, kind) && !has(new, kind)) {
        errors.forbidden(path, &format!("updates may not remove a condition of type {kind:?}"));
    }
    let by_approval = ["Approved", "Denied"].into_iter().filter(|_| subresource != "approval");
    for kind in by_approval.filter(|kind| has(new, kind) && !has(old, kind)) {
        errors.forbidden(path, &format!("updates may not add a condition of type {kind:?}"));
    }
    let (was, is) = (&old["status"]["certificate"], &new["status"]["certificate"]);
    if !was.is_null() && was != is {
        errors.forbidden("status.certificate", "updates may not modify existing certificate content");
    }
}
