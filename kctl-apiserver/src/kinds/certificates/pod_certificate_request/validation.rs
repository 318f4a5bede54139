//! Rules of the certificate requests of Pods (`pkg/apis/certificates/validation/validation.go`).

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kctl_apimachinery::time;
use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    names::NameRule,
    validation::{signer, status},
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

/// Validates a new request (`ValidatePodCertificateRequestCreate`).
pub(super) fn validate_request(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let signer = spec.at("signerName");
    signer.check(signer::name);
    spec.at("unverifiedUserAnnotations").check(signer::validate_annotations);
    for (name, uid) in [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")] {
        let uid = spec.at(uid);
        spec.at(name).name(NameRule::Subdomain);
        uid.invalid_if(uid.is_empty(), "must not be empty");
        uid.max_bytes(UID_LEN_MAX);
    }
    spec.at("maxExpirationSeconds").in_range(signer::LIFETIME_MIN, signer::lifetime_max(signer.text()));
    validate_signed_request(&spec);
}

/// Validates the request for a certificate: its key, which has to have signed it (`validateStubPKCS10Request`).
fn validate_signed_request(spec: &Field<'_>) {
    let sent = spec.at("stubPKCS10Request");
    let der = STANDARD.decode(sent.text()).unwrap_or_default();
    if der.is_empty() {
        return spec.invalid_without_value("stubPKCS10Request must be set");
    }
    if der.len() > REQUEST_LEN_MAX {
        return sent.too_long(REQUEST_LEN_MAX);
    }
    let Some(request) = Request::read(&der) else { return sent.invalid_without_value("must be a valid PKCS#10 CSR") };
    let is_supported = match request.key.kind() {
        KeyKind::Rsa { n_bits } => [3072, 4096].contains(&n_bits),
        KeyKind::EcdsaOnOtherCurve | KeyKind::Other => false,
        KeyKind::Ecdsa | KeyKind::Ed25519 => true,
    };
    if !is_supported {
        sent.invalid_without_value("the key must be RSA of 3072 or 4096 bits, ECDSA on P256, P384 or P521, or Ed25519");
    } else if !request.is_signed() {
        sent.invalid_without_value("invalid signature");
    }
}

/// Validates a change of the status (`ValidatePodCertificateRequestStatusUpdate`). Each step runs only if those before
/// it have found no error.
pub(super) fn status(now: Timestamp, old: &Value, new: &Value, errors: &mut Errors) {
    let object = Field::new(new, "", errors);
    let status = object.at("status");
    if !status.at("conditions").passes(validate_conditions) {
        return;
    }
    let held = |status: &Value| status["conditions"][0]["type"].as_str().map(str::to_owned);
    let is_changed = fields(&old["status"]) != fields(&status);
    let wrong = match (held(&old["status"]), held(&status).as_deref()) {
        (Some(_), _) if is_changed => "immutable after PodCertificateRequest is issued, denied, or failed",
        (None, None) if is_changed => "immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"",
        (None, Some("Issued")) => return validate_issued(now, &object),
        (None, Some(_)) if fields(&status).keys().any(|field| field != "conditions") => {
            "must have only conditions when denying or failing the PodCertificateRequest"
        }
        _ => return,
    };
    status.invalid_without_value(wrong);
}

/// Returns the fields of a status. An absent status has none.
fn fields(status: &Value) -> serde_json::Map<String, Value> {
    status.as_object().cloned().unwrap_or_default()
}

/// Validates conditions: at most one, of a known type, with the status `True`. Upstream's paths of these errors have a
/// dot before the index.
fn validate_conditions(conditions: &Field<'_>) {
    let first = entries(conditions).position(|(_, condition)| FINAL.contains(&text(&condition["type"])));
    for (index, condition) in entries(conditions) {
        let condition = conditions.at_with(&format!("[{index}]"), condition);
        let (kind, status) = (condition.at("type"), condition.at("status"));
        kind.always_one_of(&FINAL);
        if FINAL.contains(&kind.text()) {
            let detail = "there may be only one condition of the types Issued, Denied and Failed";
            kind.invalid_if(first != Some(index), detail);
            status.always_one_of(&["True"]);
        }
    }
    status::validate_condition_list(conditions);
}

/// Validates an issued certificate. The first error is the only one, as each rule depends on those before it.
fn validate_issued(now: Timestamp, object: &Field<'_>) {
    let (chain, sent) = (object.at("status").at("certificateChain"), object.at("spec").at("stubPKCS10Request"));
    if chain.text().len() > CHAIN_LEN_MAX {
        return chain.max_bytes(CHAIN_LEN_MAX);
    }
    let mut blocks = pem::blocks(chain.text());
    let leaf = blocks.next().filter(|leaf| leaf.label == "CERTIFICATE");
    let Some(certificate) = leaf.as_ref().and_then(|leaf| Certificate::read(&leaf.der)) else {
        return chain.invalid("must begin with the issued certificate, a valid X.509 one");
    };
    let has_names = are_names_valid(&certificate);
    chain.invalid_if(!has_names, "has an invalid DNS name or e-mail address as subjectAltName");
    let request = STANDARD.decode(sent.text()).unwrap_or_default();
    let Some(request) = Request::read(&request) else {
        return sent.invalid_without_value("must be a valid PKCS#10 CSR");
    };
    if request.key != certificate.key {
        return chain.invalid("leaf certificate was not issued to the requested public key");
    }
    let Some(times) = Times::read(&object.at("status")).filter(|_| has_names) else { return };
    let is_other = |block: pem::PemBlock| block.label != "CERTIFICATE" || Certificate::read(&block.der).is_none();
    if check_times(now, object, &times, &certificate) && blocks.any(is_other) {
        chain.invalid("must consist entirely of certificates");
    }
}

/// The times in the status of an issued certificate.
struct Times {
    not_before: Timestamp,
    not_after: Timestamp,
    refresh: Timestamp,
}

impl Times {
    /// Reads the times, which are all required.
    fn read(status: &Field<'_>) -> Option<Self> {
        let [not_before, not_after, refresh] = ["notBefore", "notAfter", "beginRefreshAt"].map(|name| {
            let time = time::parse(text(&status[name]));
            status.at(name).required_with_if(time.is_none(), "must be set with the certificate");
            time
        });
        Some(Self { not_before: not_before?, not_after: not_after?, refresh: refresh? })
    }
}

/// Validates the times in the status against the certificate, and returns `true` if they are valid. The first error is
/// the only one.
fn check_times(now: Timestamp, object: &Field<'_>, times: &Times, certificate: &Certificate<'_>) -> bool {
    let Times { not_before, not_after, refresh } = *times;
    let status = object.at("status");
    let lifetime = certificate.not_after.duration_since(certificate.not_before).as_secs();
    let most = object["spec"]["maxExpirationSeconds"].as_i64().unwrap_or_default();
    let is_start = not_before == certificate.not_before && not_before.duration_since(now).abs() < SKEW_MAX;
    let (before, after) = (refresh.duration_since(not_before), not_after.duration_since(refresh));
    let has_margin = before.min(after) >= REFRESH_MARGIN;
    let detail_of_chain = format!("leaf certificate lifetime must be from 1 hour to {most} seconds");
    let rules = [
        ("notBefore", is_start, "must equal the time in the leaf certificate, within 5 minutes of now"),
        ("notAfter", not_after == certificate.not_after, "must equal the time in the leaf certificate"),
        ("certificateChain", (signer::LIFETIME_MIN..=most).contains(&lifetime), &detail_of_chain),
        ("beginRefreshAt", has_margin, "must be at least 10 minutes after notBefore and before notAfter"),
    ];
    let wrong = rules.into_iter().find(|(_, is_valid, _)| !is_valid);
    if let Some((name, _, detail)) = wrong {
        status.at(name).invalid(detail);
    }
    wrong.is_none()
}

/// Returns `true` if all names in `subjectAltName` are valid. A DNS name has no empty label. An e-mail address needs a
/// part before and after its last `@`.
fn are_names_valid(certificate: &Certificate<'_>) -> bool {
    let has_labels = |name: &String| !name.split('.').any(str::is_empty);
    let is_address = |address: &String| {
        address.rsplit_once('@').is_some_and(|(user, domain)| !user.is_empty() && !domain.is_empty())
    };
    certificate.dns_names.iter().all(has_labels) && certificate.email_addresses.iter().all(is_address)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        check(now, json!({ "/spec/maxExpirationSeconds": 86_399 }), &["status.certificateChain"]);
        check(now, json!({ "/status/certificateChain": format!("{LEAF}{LEAF}") }), &[]);
        let other = LEAF.replace("CERTIFICATE", "OTHER");
        check(now, json!({ "/status/certificateChain": format!("{LEAF}{other}") }), &["status.certificateChain"]);
    }
}
