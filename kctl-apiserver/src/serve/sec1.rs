//! Private keys in SEC 1 form, `BEGIN EC PRIVATE KEY`, as kubeadm writes them.
//!
//! Some clients detect the algorithm by this line: fabric8 (Java) reads a PKCS #8 key as RSA.
//!
//! The conversion copies bytes and needs no parser: ring writes each P-256 key with the same
//! lengths at the same offsets. A key of any other form is left in PKCS #8.

use crate::x509::pem::block;

/// The beginning of a P-256 key in PKCS #8 as ring writes it, up to the private number. It has version, algorithm and
/// curve, and the start of the `ECPrivateKey` of RFC 5915 without a curve. The bytes `0x81, 0x87` are the length of
/// everything after them, 135 bytes.
const PKCS8_START: [u8; 36] = [
    0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
    0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x6d, 0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, 0x20,
];
/// The beginning of an `ECPrivateKey` that names its curve, which is 12 bytes longer. A sequence of 119 bytes, version
/// 1, and the number as an octet string of 32 bytes.
const SEC1_START: [u8; 7] = [0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];
/// The curve, P-256: `[0] { OBJECT IDENTIFIER 1.2.840.10045.3.1.7 }`.
const CURVE: [u8; 12] = [0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// The length of the private number in bytes.
const NUMBER_LEN: usize = 32;

/// Returns a key of P-256 in PEM; `None` for any other key.
pub(super) fn pem(pkcs8: &[u8]) -> Option<String> {
    let (number, public) = pkcs8.strip_prefix(&PKCS8_START)?.split_at_checked(NUMBER_LEN)?;
    // [1] { BIT STRING }, and nothing behind it.
    let is_public = public.len() == 70 && public.starts_with(&[0xa1, 0x44, 0x03, 0x42, 0x00]);
    is_public.then(|| block("EC PRIVATE KEY", &[&SEC1_START, number, &CURVE, public].concat()))
}

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ED25519};
    use tokio_rustls::rustls::{
        crypto::ring::sign::any_ecdsa_type,
        pki_types::{PrivateKeyDer, PrivateSec1KeyDer, pem::PemObject},
    };

    use super::*;

    #[test]
    fn key_keeps_its_number_and_its_public_key() {
        let key = KeyPair::generate().unwrap();
        let pem = pem(&key.serialize_der()).unwrap();
        assert!(pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{pem}");
        let read = PrivateSec1KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let signing = any_ecdsa_type(&PrivateKeyDer::from(read)).unwrap();
        let public = signing.public_key().unwrap();
        assert!(public.ends_with(key.public_key_raw()));
    }

    #[test]
    fn other_keys_are_left_to_pkcs8() {
        assert_eq!(pem(&KeyPair::generate_for(&PKCS_ED25519).unwrap().serialize_der()), None);
    }
}
