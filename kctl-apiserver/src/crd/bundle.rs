//! Validates the `caBundle` of a conversion webhook.
//!
//! Upstream: `ValidateCABundle` of `apiserver/pkg/util/webhook`, `ParseCertsPEM` of `client-go/util/cert`.
//!
//! A bundle that can not be loaded does not make a CRD invalid on create: it is stored, and not
//! established. An update that breaks a valid bundle is rejected (`definition_rules`).

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

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
/// Blocks other than `CERTIFICATE` are skipped, as upstream. The first malformed certificate ends
/// the search. The three messages are upstream's, apart from details of Go's X.509 parser.
fn why_not(pem: &str) -> Option<&'static str> {
    let (mut rest, mut n_blocks, mut n_certificates) = (pem, 0, 0);
    while let Some((name, body, after)) = block(rest) {
        rest = after;
        n_blocks += 1;
        if name != "CERTIFICATE" {
            continue;
        }
        let lines: String = body.split_whitespace().collect();
        if !STANDARD.decode(lines).is_ok_and(|der| is_whole(&der)) {
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

/// Returns the label and the body of the first PEM block, and the rest of the input.
///
/// `None` at the end of the input, and for a block without its end line. Strings between blocks are
/// ignored, so comments and human-readable dumps of certificates are fine.
fn block(pem: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = pem.split_once("-----BEGIN ")?.1.split_once("-----")?;
    let (body, after) = rest.split_once(&format!("-----END {name}-----"))?;
    Some((name, body, after))
}

/// Returns `true` if DER is one sequence that spans all bytes. The certificate inside is not parsed.
///
/// DER encodes lengths in one byte below 128, else in up to four bytes here. This finds truncated
/// and garbled certificates; a full parser would be a dependency for a message only.
fn is_whole(der: &[u8]) -> bool {
    let (Some(0x30), Some(first)) = (der.first(), der.get(1)) else { return false };
    let n_more = if *first < 0x80 { 0 } else { usize::from(*first & 0x7f) };
    let Some(more) = der.get(2..2 + n_more).filter(|more| more.len() <= 4) else { return false };
    let long = more.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
    der.len() == 2 + n_more + if n_more == 0 { usize::from(*first) } else { long }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_are_judged_as_by_the_real_server() {
        let block = |name: &str, body: &str| format!("-----BEGIN {name}-----\n{body}\n-----END {name}-----\n");
        let checks = [
            ("abc".to_owned(), Some("unable to parse bytes as PEM block")),
            (block("X", "AAAA"), Some("no valid certificate authority data seen")),
            (block("CERTIFICATE", "AAAA"), Some("failed to parse certificate: x509: malformed certificate")),
            // An empty sequence passes for a certificate here.
            (block("CERTIFICATE", "MAA="), None),
            (format!("junk\n{}more", block("X", "AAAA") + &block("CERTIFICATE", "MAA=")), None),
        ];
        for (pem, expected) in checks {
            assert_eq!(why_not(&pem), expected, "{pem}");
        }
    }
}
