//! Validates the `caBundle` of a conversion webhook.
//!
//! Upstream: `ValidateCABundle` of `apiserver/pkg/util/webhook`, `ParseCertsPEM` of `client-go/util/cert`.
//!
//! A bundle that cannot be loaded does not make a CRD invalid on create: it is stored, and not
//! established. An update that breaks a valid bundle is rejected (`definition_rules`).

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::x509::{Certificate, pem};

/// Returns why the CA bundle of a CRD cannot be loaded; `None` if it is valid or absent.
///
/// The field holds PEM in base64. An empty bundle means the roots of the machine, so it is valid. A
/// value that is not base64 counts as absent.
pub(super) fn problem(definition: &Value) -> Option<&'static str> {
    let conversion = &definition["spec"]["conversion"];
    let bundle = conversion["webhook"]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(bundle).ok().filter(|pem| !pem.is_empty())?;
    why_not(&String::from_utf8_lossy(&pem))
}

/// Returns the error of `ParseCertsPEM` for a PEM bundle.
///
/// Blocks other than `CERTIFICATE` are skipped, as in upstream. The first malformed certificate ends
/// the search. The three messages are upstream's, apart from details of Go's X.509 parser.
fn why_not(bundle: &str) -> Option<&'static str> {
    let (mut n_blocks, mut n_certificates) = (0, 0);
    for block in pem::blocks(bundle) {
        n_blocks += 1;
        if block.label != "CERTIFICATE" || block.has_headers {
            continue;
        }
        if Certificate::read(&block.der).is_none() {
            return Some("failed to parse certificate: x509: malformed certificate");
        }
        n_certificates += 1;
    }
    match (n_blocks, n_certificates) {
        (0, _) => Some("unable to parse bytes as PEM block"),
        (_, 0) => Some("no valid certificate authority data seen"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = include_str!("../x509/leaf.pem");

    #[test]
    fn bundles_are_judged_as_by_the_real_server() {
        let block = |name: &str, body: &str| format!("-----BEGIN {name}-----\n{body}\n-----END {name}-----\n");
        let checks = [
            ("abc".to_owned(), Some("unable to parse bytes as PEM block")),
            (block("X", "AAAA"), Some("no valid certificate authority data seen")),
            (block("CERTIFICATE", "AAAA"), Some("failed to parse certificate: x509: malformed certificate")),
            (block("CERTIFICATE", "MAA="), Some("failed to parse certificate: x509: malformed certificate")),
            (CERTIFICATE.to_owned(), None),
            (format!("junk\n{}more", block("X", "AAAA") + CERTIFICATE), None),
        ];
        for (pem, expected) in checks {
            assert_eq!(why_not(&pem), expected, "{pem}");
        }
    }
}
