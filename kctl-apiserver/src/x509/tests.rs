//! Tests with certificates and requests that openssl created.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::*;

const P256: &str = "MIG6MGICAQAwADBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABH8bAMXkd13ypA1XkR3vMdZ7AtPiG8usjsGQd61EOQlMztrJxBUCTSaYdQp+Gz/OMPft8X8YoQoy26wTEZxbKe+gADAKBggqhkjOPQQDAgNIADBFAiEAutjQlbLjpy4axC1vosWWIzPVIUmL3IzFv0getzz29agCIENPZl+LtVPUS119HHAwxQ+d3wkkFNAKOTtQ5ZGq10Yq";
const P224: &str = "MIGnMFcCAQAwADBOMBAGByqGSM49AgEGBSuBBAAhAzoABOSlvcr6vMxSEg8GDg1pD0XnzRLGcfMRmKv+QG6DccvueH5eBKEJnItQ8EUvhtAdYxjU0b2bjOrZoAAwCgYIKoZIzj0EAwIDQAAwPQIdALah4ASHSlpd2SrclZdnurRxawnVafMdRoBLYUkCHASQSyDCZL1G352Oxuu6SLhLeJq2DqaMGDKnfVM=";
const ED25519: &str = "MH8wMwIBADAAMCowBQYDK2VwAyEA92vNNI2IIP5mUzhMlTWubsXnsixZTYBxXqR/8gn+tWWgADAFBgMrZXADQQBu8sRNvZ+llvcNOLaZBHrhy/dEdWuI5Ihh18TthTd8wdFPLCoZF9wPp8W7eeX8Q0LZBZdiVxZPyKbbcdBib3kO";
const ADMINISTRATOR_REQUEST: &str = "MIHxMIGZAgEAMDcxDTALBgNVBAoMBHRlYW0xFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMQ0wCwYDVQQDDARqYW5lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfxsAxeR3XfKkDVeRHe8x1nsC0+Iby6yOwZB3rUQ5CUzO2snEFQJNJph1Cn4bP84w9+3xfxihCjLbrBMRnFsp76AAMAoGCCqGSM49BAMCA0cAMEQCIH8tLyT64tjlNv81YUUp5qj46zXJ31ahjSsyjfuh6I22AiBiVU0U/pSfFCXCofw5EUCbjeSnCsqL5p5ilgDsQ/+/PQ==";
const LEAF: &str = include_str!("leaf.pem");

fn der(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).unwrap()
}

/// Checks that a request has a key of this kind and is signed by it.
fn check_signed(request: &str, kind: KeyKind) {
    let der = der(request);
    let request = Request::read(&der).unwrap();
    assert_eq!((request.key.kind(), request.is_signed()), (kind, true));
}

#[test]
fn request_is_signed_by_its_key() {
    check_signed(P256, KeyKind::Ecdsa);
    check_signed(ED25519, KeyKind::Ed25519);
    check_signed(P224, KeyKind::EcdsaOnOtherCurve);
    for request in [P256, ED25519] {
        let mut forged = der(request);
        // The last byte of the signature.
        *forged.last_mut().unwrap() ^= 1;
        assert!(!Request::read(&forged).unwrap().is_signed());
    }
}

#[test]
fn truncated_or_extended_request_is_rejected() {
    let whole = der(P256);
    for len in 0..whole.len() {
        assert!(Request::read(&whole[..len]).is_none(), "{len}");
    }
    assert!(Request::read(&[whole.as_slice(), &[0]].concat()).is_none());
    assert!(Certificate::read(&whole).is_none());
}

#[test]
fn subject_has_organizations() {
    assert_eq!(Request::read(&der(ADMINISTRATOR_REQUEST)).unwrap().organizations(), ["team", "system:masters"]);
    assert!(Request::read(&der(P256)).unwrap().organizations().is_empty());
}

#[test]
fn certificate_has_key_times_and_names() {
    let block = pem::blocks(LEAF).next().unwrap();
    let leaf = Certificate::read(&block.der).unwrap();
    let request = der(P256);
    assert!(leaf.key == Request::read(&request).unwrap().key);
    assert_eq!(leaf.not_before.to_string(), "2020-01-01T00:00:00Z");
    assert_eq!(leaf.not_after.to_string(), "2020-01-02T00:00:00Z");
    assert_eq!((leaf.dns_names, leaf.email_addresses), (vec!["a.example.com".into()], vec!["a@example.com".into()]));
    assert!(!leaf.is_authority);
}

#[test]
fn certificate_that_go_rejects_is_rejected() {
    let whole = pem::blocks(LEAF).next().unwrap().der;
    let find = |bytes: &[u8]| whole.windows(bytes.len()).position(|window| window == bytes).unwrap();
    // The version and the serial number are after `[0]` and before the algorithm.
    let version = find(&[0xa0, 3, 2, 1, 2]) + 4;
    let changes = [
        ("version 4", version, 3),
        ("negative serial number", version + 3, 0x81),
        ("two signature algorithms", version + 15, 3),
        ("name that is not ASCII", find(b"a.example.com"), 0xff),
        ("alternative names that are a set", find(&[0x55, 0x1d, 0x11]) + 5, 0x31),
    ];
    for (change, offset, byte) in changes {
        let mut changed = whole.clone();
        changed[offset] = byte;
        assert!(Certificate::read(&changed).is_none(), "{change}");
    }
    assert!(Certificate::read(&whole).is_some());
}
