//! Rules of the certificate requests of Pods (`pkg/apis/certificates/validation/validation.go`).

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kctl_apimachinery::time;
use serde_json::{Value, json};

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{entries, signer, status},
    x509::{Certificate, KeyKind, Request, pem},
};

/// Conditions that end a request. They exclude each other, and their status is always `True`.
pub(super) const FINAL: [&str; 3] = ["Issued", "Denied", "Failed"];

/// Longest uid, in bytes.
const UID_LEN_MAX: usize = 128;
/// Longest request of PKCS #10, in bytes (`MaxStubPKCS10RequestSize`).
const REQUEST_LEN_MAX: usize = 10 * 1024;
/// Longest chain of certificates, in bytes (`MaxCertificateChainSize`).
const CHAIN_LEN_MAX: usize = 100 * 1024;
/// Longest distance between `notBefore` and the clock of the server.
const SKEW_MAX: SignedDuration = SignedDuration::from_mins(5);
/// Shortest time between the limits of a certificate and the time at which a kubelet refreshes it.
const REFRESH_MARGIN: SignedDuration = SignedDuration::from_mins(10);

const AT_REQUEST: &str = "spec.stubPKCS10Request";
const AT_CHAIN: &str = "status.certificateChain";

/// Validates a new request (`ValidatePodCertificateRequestCreate`).
pub(super) fn request(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    signer::name(&spec["signerName"], "spec.signerName", errors);
    signer::annotations(&spec["unverifiedUserAnnotations"], "spec.unverifiedUserAnnotations", errors);
    for (name, uid) in [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")] {
        let path = format!("spec.{uid}");
        errors.name(&format!("spec.{name}"), &text(&spec[name]).into(), NameRule::Subdomain);
        match text(&spec[uid]) {
            "" => errors.invalid(&path, &"".into(), "must not be empty"),
            uid if uid.len() > UID_LEN_MAX => errors.too_long(&path, UID_LEN_MAX),
            _ => {}
        }
    }
    let most = signer::lifetime_max(text(&spec["signerName"]));
    errors.in_range("spec.maxExpirationSeconds", &spec["maxExpirationSeconds"], signer::LIFETIME_MIN, most);
    signed_request(text(&spec["stubPKCS10Request"]), errors);
}

/// Validates the request for a certificate: its key, which has to have signed it (`validateStubPKCS10Request`).
fn signed_request(base64: &str, errors: &mut Errors) {
    let der = STANDARD.decode(base64).unwrap_or_default();
    let hidden = |errors: &mut Errors, why: &str| errors.invalid_as_such(AT_REQUEST, why);
    if der.is_empty() {
        errors.invalid_as_such("spec", "stubPKCS10Request must be set");
    } else if der.len() > REQUEST_LEN_MAX {
        errors.too_long(AT_REQUEST, REQUEST_LEN_MAX);
    } else if let Some(request) = Request::read(&der) {
        match request.key.kind() {
            KeyKind::Rsa { n_bits } if ![3072, 4096].contains(&n_bits) => {
                hidden(errors, &format!("{n_bits}-bit modulus: RSA keys must have modulus size 3072 or 4096"));
            }
            KeyKind::EcdsaOnOtherCurve => hidden(errors, "elliptic public keys must use curve P256, P384, or P521"),
            KeyKind::Other => hidden(errors, "unknown public key type; supported types are Ed25519, ECDSA, and RSA"),
            KeyKind::Rsa { .. } | KeyKind::Ecdsa | KeyKind::Ed25519 if request.is_signed() => {}
            KeyKind::Rsa { .. } | KeyKind::Ecdsa | KeyKind::Ed25519 => hidden(errors, "invalid signature"),
        }
    } else {
        hidden(errors, "must be a valid PKCS#10 CSR");
    }
}

/// Validates a change of the status (`ValidatePodCertificateRequestStatusUpdate`). Each step runs only if those before it
/// have found no error.
pub(super) fn status(now: Timestamp, old: &Value, new: &Value, errors: &mut Errors) {
    let before = errors.len();
    conditions(&new["status"]["conditions"], "status.conditions", errors);
    if errors.len() > before {
        return;
    }
    let held = |object: &Value| {
        entries(&object["status"]["conditions"]).map(|(_, condition)| text(&condition["type"]).to_owned()).next()
    };
    let is_same = fields(&old["status"]) == fields(&new["status"]);
    let wrong = match (held(old), held(new).as_deref()) {
        (Some(_), _) if !is_same => "immutable after PodCertificateRequest is issued, denied, or failed",
        (None, None) if !is_same => "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"",
        (None, Some("Issued")) => return issued(now, new, errors),
        (None, Some(_)) if fields(&new["status"]).keys().any(|field| field != "conditions") => {
            "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
        }
        _ => return,
    };
    errors.invalid_as_such("status", wrong);
}

/// Returns the fields of a status. An absent status has none.
fn fields(status: &Value) -> serde_json::Map<String, Value> {
    status.as_object().cloned().unwrap_or_default()
}

/// Validates conditions: at most one, of a known type, with the status `True`. Upstream's paths of these errors have a
/// dot before the index.
fn conditions(conditions: &Value, path: &str, errors: &mut Errors) {
    let mut n_known = 0;
    for (index, condition) in entries(conditions) {
        let (at_type, at_status) = (format!("{path}.[{index}].type"), format!("{path}.[{index}].status"));
        if !FINAL.contains(&text(&condition["type"])) {
            errors.always_one_of(&at_type, &condition["type"], &FINAL);
            continue;
        }
        n_known += 1;
        if n_known > 1 {
            let detail = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.invalid(&at_type, &condition["type"], detail);
        }
        errors.always_one_of(&at_status, &condition["status"], &["True"]);
    }
    status::conditions(conditions, path, errors);
}

/// Validates an issued certificate. The first error is the only one, as each rule depends on those before it.
fn issued(now: Timestamp, object: &Value, errors: &mut Errors) {
    let chain = text(&object["status"]["certificateChain"]);
    if chain.len() > CHAIN_LEN_MAX {
        return errors.too_long(AT_CHAIN, CHAIN_LEN_MAX);
    }
    let mut blocks = pem::blocks(chain);
    let Some(leaf) = blocks.next() else {
        return errors.invalid(
            AT_CHAIN,
            &chain.into(),
            "issued certificate chain must contain at least one certificate",
        );
    };
    let Some(certificate) = Certificate::read(&leaf.der).filter(|_| leaf.label == "CERTIFICATE") else {
        return errors.invalid(AT_CHAIN, &chain.into(), "leaf certificate does not parse as valid X.509");
    };
    let before = errors.len();
    alternative_names(&certificate, errors);
    let request = STANDARD.decode(text(&object["spec"]["stubPKCS10Request"])).unwrap_or_default();
    match Request::read(&request) {
        None => return errors.invalid_as_such(AT_REQUEST, "must be a valid PKCS#10 CSR"),
        Some(request) if request.key != certificate.key => {
            let detail = "leaf certificate was not issued to the requested public key";
            return errors.invalid(AT_CHAIN, &chain.into(), detail);
        }
        Some(_) => {}
    }
    let Some(times) = Times::read(&object["status"], errors).filter(|_| errors.len() == before) else { return };
    check_times(now, object, &times, &certificate, errors);
    let is_other = |block: pem::Block| block.label != "CERTIFICATE" || Certificate::read(&block.der).is_none();
    if errors.len() == before && blocks.any(is_other) {
        errors.invalid(AT_CHAIN, &chain.into(), "issued certificate chain must consist entirely of certificates");
    }
}

/// The times in the status of an issued certificate.
struct Times {
    not_before: Timestamp,
    not_after: Timestamp,
    refresh: Timestamp,
}

impl Times {
    /// Reads the times, all of which are required.
    fn read(status: &Value, errors: &mut Errors) -> Option<Self> {
        let mut time = |field: &str| {
            let time = time::parse(text(&status[field]));
            if time.is_none() {
                errors
                    .required(&format!("status.{field}"), "must be present and consistent with the issued certificate");
            }
            time
        };
        let [not_before, not_after, refresh] = ["notBefore", "notAfter", "beginRefreshAt"].map(&mut time);
        Some(Self { not_before: not_before?, not_after: not_after?, refresh: refresh? })
    }
}

/// Validates the times in the status against the certificate. The first error is the only one.
fn check_times(now: Timestamp, object: &Value, times: &Times, certificate: &Certificate<'_>, errors: &mut Errors) {
    let Times { not_before, not_after, refresh } = *times;
    let wrong = |field: &str, detail: &str, errors: &mut Errors| {
        errors.invalid(&format!("status.{field}"), &object["status"][field], detail);
    };
    let lifetime = certificate.not_after.duration_since(certificate.not_before);
    let most = object["spec"]["maxExpirationSeconds"].as_i64().unwrap_or_default();
    if not_before != certificate.not_before {
        wrong("notBefore", "must be set to the NotBefore time encoded in the leaf certificate", errors);
    } else if not_before.duration_since(now).abs() >= SKEW_MAX {
        wrong("notBefore", "must be set to within 5 minutes of kube-apiserver's current time", errors);
    } else if not_after != certificate.not_after {
        wrong("notAfter", "must be set to the NotAfter time encoded in the leaf certificate", errors);
    } else if lifetime.as_secs() < signer::LIFETIME_MIN {
        errors.invalid(AT_CHAIN, &json!(lifetime.as_secs()), "leaf certificate lifetime must be >= 1 hour");
    } else if lifetime.as_secs() > most {
        let detail = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})");
        errors.invalid(AT_CHAIN, &json!(lifetime.as_secs()), &detail);
    } else if refresh.duration_since(not_before) < REFRESH_MARGIN {
        wrong("beginRefreshAt", "must be at least 10 minutes after status.notBefore", errors);
    } else if not_after.duration_since(refresh) < REFRESH_MARGIN {
        wrong("beginRefreshAt", "must be at least 10 minutes before status.notAfter", errors);
    }
}

/// Validates the names in `subjectAltName`. An e-mail address needs a part before and after its last `@`.
fn alternative_names(certificate: &Certificate<'_>, errors: &mut Errors) {
    let is_wrong =
        |name: &&String| name.is_empty() || name.contains("..") || name.starts_with('.') || name.ends_with('.');
    for name in certificate.dns_names.iter().filter(is_wrong) {
        errors.invalid(AT_CHAIN, &name.as_str().into(), "DNS name has an empty label");
    }
    let is_address =
        |address: &str| address.rsplit_once('@').is_some_and(|(user, domain)| !user.is_empty() && !domain.is_empty());
    for address in certificate.email_addresses.iter().filter(|address| !is_address(address)) {
        errors.invalid(AT_CHAIN, &address.as_str().into(), "invalid e-mail address");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by openssl with the key of the certificate.
    const REQUEST: &str = "MIG6MGICAQAwADBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABH8bAMXkd13ypA1XkR3vMdZ7AtPiG8usjsGQd61EOQlMztrJxBUCTSaYdQp+Gz/OMPft8X8YoQoy26wTEZxbKe+gADAKBggqhkjOPQQDAgNIADBFAiEAutjQlbLjpy4axC1vosWWIzPVIUmL3IzFv0getzz29agCIENPZl+LtVPUS119HHAwxQ+d3wkkFNAKOTtQ5ZGq10Yq";
    const LEAF: &str = include_str!("../../../x509/leaf.pem");

    /// Checks the errors of a status with a certificate that is valid on 2020-01-01, written at this time.
    #[track_caller]
    fn check(now: &str, change: Value, expected: &[&str]) {
        let old = json!({ "spec": { "stubPKCS10Request": REQUEST, "maxExpirationSeconds": 86400 } });
        let mut new = old.clone();
        new["status"] = json!({
            "conditions": [{ "type": "Issued", "status": "True", "reason": "R", "lastTransitionTime": now }],
            "certificateChain": LEAF,
            "notBefore": "2020-01-01T00:00:00Z",
            "beginRefreshAt": "2020-01-01T12:00:00Z",
            "notAfter": "2020-01-02T00:00:00Z",
        });
        if let Value::Object(change) = change {
            for (pointer, value) in change {
                *new.pointer_mut(&pointer).unwrap() = value;
            }
        }
        let mut errors = Errors::default();
        status(now.parse().unwrap(), &old, &new, &mut errors);
        let found: Vec<String> = errors.into_iter().map(|cause| cause.field).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn certificate_is_issued_near_its_start_time() {
        check("2020-01-01T00:00:00Z", Value::Null, &[]);
        check("2020-01-01T00:04:59Z", Value::Null, &[]);
        check("2019-12-31T23:55:01Z", Value::Null, &[]);
        check("2020-01-01T00:05:00Z", Value::Null, &["status.notBefore"]);
        check("2019-12-31T23:55:00Z", Value::Null, &["status.notBefore"]);
    }

    #[test]
    fn refresh_keeps_ten_minutes_from_both_limits() {
        let check = |refresh: &str, expected: &[&str]| {
            check("2020-01-01T00:00:00Z", json!({ "/status/beginRefreshAt": refresh }), expected);
        };
        check("2020-01-01T00:10:00Z", &[]);
        check("2020-01-01T00:09:59Z", &["status.beginRefreshAt"]);
        check("2020-01-01T23:50:00Z", &[]);
        check("2020-01-01T23:50:01Z", &["status.beginRefreshAt"]);
    }

    #[test]
    fn lifetime_is_at_most_the_requested_one() {
        let now = "2020-01-01T00:00:00Z";
        check(now, json!({ "/spec/maxExpirationSeconds": 86_399 }), &[AT_CHAIN]);
        check(now, json!({ "/status/certificateChain": format!("{LEAF}{LEAF}") }), &[]);
        let other = LEAF.replace("CERTIFICATE", "OTHER");
        check(now, json!({ "/status/certificateChain": format!("{LEAF}{other}") }), &[AT_CHAIN]);
    }
}
