//! Rules of certificate signing requests (`pkg/apis/certificates/validation`).
//!
//! Certificates and requests are recognized by their PEM blocks. Their contents and signatures are
//! not verified, unlike in kube-apiserver, which parses the request and checks its signature.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::entries,
};

/// Shortest `expirationSeconds` of a request: ten minutes.
const EXPIRATION_SECONDS_MIN: i64 = 600;
/// Conditions that stay once they are there, and are always true.
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Validates a request (`validateCertificateSigningRequest`).
///
/// | field | rule |
/// |---|---|
/// | `spec.request` | base64 of a PEM block `CERTIFICATE REQUEST` |
/// | `spec.usages` | at least one, each once |
/// | `spec.signerName` | see `signer` |
/// | `spec.expirationSeconds` | at least 600, if set |
/// | `status.conditions` | see `conditions` |
/// | `status.certificate` | PEM certificates and nothing else, if set |
///
/// The error about a certificate does not show it: the value is `<certificate data>`.
pub(crate) fn request(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if !holds(&spec["request"], "CERTIFICATE REQUEST") {
        errors.invalid("spec.request", &spec["request"], "PEM block type must be CERTIFICATE REQUEST");
    }
    let usages: Vec<&str> = entries(&spec["usages"]).map(|(_, usage)| text(usage)).collect();
    if usages.is_empty() {
        errors.required("spec.usages", "");
    }
    for (index, usage) in usages.iter().enumerate() {
        let shown = Value::from(*usage);
        if usages[..index].contains(usage) {
            errors.duplicate(&format!("spec.usages[{index}]"), &shown.to_string());
        }
    }
    signer(text(&spec["signerName"]), errors);
    if spec["expirationSeconds"].as_i64().is_some_and(|seconds| seconds < EXPIRATION_SECONDS_MIN) {
        let detail = format!("may not specify a duration less than {EXPIRATION_SECONDS_MIN} seconds (10 minutes)");
        errors.invalid("spec.expirationSeconds", &spec["expirationSeconds"], &detail);
    }
    conditions(&object["status"]["conditions"], errors);
    if let Some(certificate) = object["status"]["certificate"].as_str().filter(|bytes| !bytes.is_empty())
        && let Err(why) = certificates(&STANDARD.decode(certificate).unwrap_or_default())
    {
        errors.invalid("status.certificate", &"<certificate data>".into(), &why);
    }
}

/// Validates that the bytes are PEM certificates and nothing else (`ValidateCertificate`). Only the outer ASN.1 sequence of each is read.
///
/// Text between the blocks is allowed; headers within a block are not.
fn certificates(bytes: &[u8]) -> Result<(), String> {
    const BEGIN: &str = "-----BEGIN ";
    let text = String::from_utf8_lossy(bytes);
    let mut n_blocks = 0;
    for block in text.split(BEGIN).skip(1) {
        let Some((kind, rest)) = block.split_once("-----") else { continue };
        let Some((body, _)) = rest.split_once(&format!("-----END {kind}-----")) else { continue };
        if kind != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {kind:?}"));
        }
        if body.contains(':') {
            return Err("no PEM block headers are permitted".into());
        }
        n_blocks += 1;
        let body: String = body.split_whitespace().collect();
        if !STANDARD.decode(body).is_ok_and(|der| is_sequence(&der)) {
            return Err("x509: malformed certificate".into());
        }
    }
    if n_blocks == 0 { Err("must contain at least one CERTIFICATE PEM block".into()) } else { Ok(()) }
}

/// Returns `true` if the bytes begin with a complete sequence of ASN.1.
///
/// Every certificate in DER begins with one. The length has at most four bytes, which is more than
/// any real certificate.
fn is_sequence(der: &[u8]) -> bool {
    /// Tag of a sequence in ASN.1.
    const SEQUENCE: u8 = 0x30;
    /// Bit of a length whose value is in the bytes after it; the other bits are their number.
    const LONG: u8 = 0x80;
    let [SEQUENCE, first, rest @ ..] = der else { return false };
    if first & LONG == 0 {
        return usize::from(*first) <= rest.len();
    }
    let n_bytes = usize::from(first & !LONG);
    if n_bytes > rest.len() || n_bytes > size_of::<u32>() {
        return false;
    }
    let (len, rest) = rest.split_at(n_bytes);
    len.iter().fold(0_usize, |len, byte| len << 8 | usize::from(*byte)) <= rest.len()
}

/// Returns `true` if the bytes are PEM with a block of this type.
fn holds(bytes: &Value, kind: &str) -> bool {
    let decoded = STANDARD.decode(text(bytes)).unwrap_or_default();
    String::from_utf8_lossy(&decoded).contains(&format!("-----BEGIN {kind}-----"))
}

/// Validates the name of a signer: a domain of at least two segments, a slash and a path, as in
/// `example.com/signer`.
///
/// `kubernetes.io/legacy-unknown` belongs to the beta version of the kind and is rejected.
fn signer(name: &str, errors: &mut Errors) {
    let at = "spec.signerName";
    if name.is_empty() {
        errors.required(at, "");
        return;
    }
    let shown = Value::from(name);
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid(at, &shown, detail);
        return;
    };
    labels(domain, NameRule::Label, at, errors);
    if !domain.contains('.') {
        errors.invalid(at, &domain.into(), "should be a domain with at least two segments separated by dots");
    }
    labels(path, NameRule::Subdomain, at, errors);
    if name == "kubernetes.io/legacy-unknown" {
        errors.invalid(at, &shown, "the legacy signerName is not allowed via this API version");
    }
}

/// Validates the parts of a name between dots.
fn labels(name: &str, rule: NameRule, at: &str, errors: &mut Errors) {
    for label in name.split('.') {
        if let Some(message) = rule.check(label) {
            errors.invalid(at, &name.into(), &format!("validating label {label:?}: {message}"));
        }
    }
}

/// Validates conditions: types are unique, and `Approved` and `Denied` exclude each other.
///
/// `Approved`, `Denied` and `Failed` have the status `True`: a request is not un-approved, it is
/// denied before approval.
fn conditions(conditions: &Value, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in entries(conditions) {
        let at = format!("status.conditions[{index}]");
        let (kind, status) = (text(&condition["type"]), text(&condition["status"]));
        if kind.is_empty() {
            errors.required(&format!("{at}.type"), "");
        }
        if status.is_empty() {
            errors.required(&format!("{at}.status"), "");
        } else if LASTING.contains(&kind) {
            errors.one_of(&format!("{at}.status"), &condition["status"], &["True"]);
        } else {
            errors.one_of(&format!("{at}.status"), &condition["status"], &["False", "True", "Unknown"]);
        }
        let other = if kind == "Approved" { "Denied" } else { "Approved" };
        if ["Approved", "Denied"].contains(&kind) && seen.contains(&other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.invalid("status.conditions", &kind.into(), detail);
        }
        if seen.contains(&kind) {
            errors.duplicate(&format!("{at}.type"), &Value::from(kind).to_string());
        }
        seen.push(kind);
    }
}

/// Validates what a write of a subresource may not change.
///
/// - The conditions `Approved`, `Denied` and `Failed` are never removed.
/// - Only the subresource `approval` adds `Approved` or `Denied`, so that RBAC can grant signing
///   and approving apart.
/// - A certificate, once issued, stays as it is.
pub(crate) fn fixed(subresource: &str, old: &Value, new: &Value, errors: &mut Errors) {
    let has = |object: &Value, kind: &str| entries(&object["status"]["conditions"]).any(|(_, one)| one["type"] == kind);
    let at = "status.conditions";
    for kind in LASTING.into_iter().filter(|kind| has(old, kind) && !has(new, kind)) {
        errors.forbidden(at, &format!("updates may not remove a condition of type {kind:?}"));
    }
    let by_approval = ["Approved", "Denied"].into_iter().filter(|_| subresource != "approval");
    for kind in by_approval.filter(|kind| has(new, kind) && !has(old, kind)) {
        errors.forbidden(at, &format!("updates may not add a condition of type {kind:?}"));
    }
    let (was, is) = (&old["status"]["certificate"], &new["status"]["certificate"]);
    if !was.is_null() && was != is {
        errors.forbidden("status.certificate", "updates may not modify existing certificate content");
    }
}
