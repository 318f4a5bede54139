//! Validates the `caBundle` of a conversion webhook.
//!
//! Upstream: `ValidateCABundle` of `apiserver/pkg/util/webhook`, `ParseCertsPEM` of `client-go/util/cert`.
//!
//! A bundle that cannot be loaded does not make a CRD invalid on create: it is stored, and not
//! established. An update that breaks a valid bundle is rejected (`definition_rules`).

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::x509::{Certificate, pem};

/// Returns `true` if `caBundle` of a CRD is set and is not a valid PEM bundle.
///
/// The field holds PEM in base64. An empty bundle means the roots of the machine, so it is valid. A
/// value that is not base64 counts as absent.
pub(super) fn is_broken(definition: &Value) -> bool {
    let conversion = &definition["spec"]["conversion"];
    let bundle = conversion["webhook"]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(bundle).ok().filter(|pem| !pem.is_empty());
    pem.is_some_and(|pem| !has_valid_certificates(&String::from_utf8_lossy(&pem)))
}

/// Returns `true` if a PEM bundle has a certificate, and no malformed one. Other blocks are skipped, as in upstream.
fn has_valid_certificates(bundle: &str) -> bool {
    let is_certificate = |block: &pem::PemBlock| block.label == "CERTIFICATE" && !block.has_headers;
    let mut certificates = pem::blocks(bundle).filter(is_certificate).peekable();
    certificates.peek().is_some() && certificates.all(|block| Certificate::read(&block.der).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = include_str!("../x509/leaf.pem");

    #[test]
    fn bundle_needs_a_certificate_and_no_malformed_one() {
        let block = |name: &str, body: &str| format!("-----BEGIN {name}-----\n{body}\n-----END {name}-----\n");
        let checks = [
            ("abc".to_owned(), false),
            (block("X", "AAAA"), false),
            (block("CERTIFICATE", "AAAA"), false),
            (block("CERTIFICATE", "MAA="), false),
            (CERTIFICATE.to_owned() + &block("CERTIFICATE", "AAAA"), false),
            (CERTIFICATE.to_owned(), true),
            (format!("junk\n{}more", block("X", "AAAA") + CERTIFICATE), true),
        ];
        for (pem, expected) in checks {
            assert_eq!(has_valid_certificates(&pem), expected, "{pem}");
        }
    }
}
