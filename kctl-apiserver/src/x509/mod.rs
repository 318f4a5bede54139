//! X.509 certificates and PKCS #10 requests, to the extent that kube-apiserver validates them.
//!
//! No chain is verified.
//!
//! The crate `x509-parser` reads them. This module adds checks of Go's `ParseCertificate` and `ParseCertificateRequest`
//! (`crypto/x509`) that the crate leaves to its callers. Some input that Go rejects is still accepted: names with
//! malformed attributes, unknown curves and points that are not on their curve. So are malformed IP addresses and URIs
//! in `subjectAltName`.

pub(crate) mod pem;

use jiff::Timestamp;
use x509_parser::{
    certificate::X509Certificate,
    certification_request::X509CertificationRequest,
    error::X509Error,
    extensions::{GeneralName, ParsedExtension},
    oid_registry::{
        OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ECDSA_WITH_SHA256,
        OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519,
    },
    prelude::FromDer,
    public_key,
    x509::{SubjectPublicKeyInfo, X509Version},
};

/// The algorithm of a public key, as far as signers have rules for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Ed25519,
    /// On the curve P-256, P-384 or P-521.
    Ecdsa,
    EcdsaOnOtherCurve,
    Rsa {
        /// The size of the modulus, a multiple of 8.
        n_bits: usize,
    },
    Other,
}

/// A public key. Two are equal if their encodings are.
#[derive(PartialEq)]
pub(crate) struct PublicKey<'a>(SubjectPublicKeyInfo<'a>);

impl PublicKey<'_> {
    /// Returns the algorithm, which decides if a signer accepts the key.
    pub(crate) fn kind(&self) -> KeyKind {
        let algorithm = &self.0.algorithm;
        match self.0.parsed() {
            // `RSAPublicKey::key_size` always drops the first byte as a sign byte, even if it is not one.
            Ok(public_key::PublicKey::RSA(key)) => {
                KeyKind::Rsa { n_bits: key.modulus.strip_prefix(&[0]).unwrap_or(key.modulus).len() * 8 }
            }
            Ok(public_key::PublicKey::EC(_)) => {
                let curve = algorithm.parameters().and_then(|curve| curve.as_oid().ok());
                let supported = [OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521];
                if curve.is_some_and(|curve| supported.contains(&curve)) {
                    KeyKind::Ecdsa
                } else {
                    KeyKind::EcdsaOnOtherCurve
                }
            }
            _ if *algorithm.oid() == OID_SIG_ED25519 => KeyKind::Ed25519,
            _ => KeyKind::Other,
        }
    }
}

/// The parts of a certificate that validation compares.
pub(crate) struct Certificate<'a> {
    pub(crate) key: PublicKey<'a>,
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
    /// `true` if the certificate may sign others (`basicConstraints`).
    pub(crate) is_authority: bool,
    pub(crate) dns_names: Vec<String>,
    pub(crate) email_addresses: Vec<String>,
}

impl<'a> Certificate<'a> {
    /// Parses a certificate; `None` if the bytes are not a certificate.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(der).ok()?;
        let is_negative = parsed.raw_serial().first().is_none_or(|first| first & 0x80 != 0);
        let names_two_algorithms = parsed.signature != parsed.signature_algorithm;
        if !rest.is_empty() || parsed.version.0 > X509Version::V3.0 || is_negative || names_two_algorithms {
            return None;
        }
        // `extensions_map` fails if an extension is repeated.
        parsed.extensions_map().ok()?;
        let time = |seconds| Timestamp::from_second(seconds).ok();
        let mut certificate = Self {
            not_before: time(parsed.validity.not_before.timestamp())?,
            not_after: time(parsed.validity.not_after.timestamp())?,
            is_authority: false,
            dns_names: Vec::new(),
            email_addresses: Vec::new(),
            key: PublicKey(parsed.tbs_certificate.subject_pki.clone()),
        };
        for extension in parsed.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::BasicConstraints(constraints) => certificate.is_authority = constraints.ca,
                ParsedExtension::SubjectAlternativeName(names) => {
                    names.general_names.iter().try_for_each(|name| certificate.add_name(name))?;
                }
                ParsedExtension::ParseError { .. } => return None,
                _ => {}
            }
        }
        Some(certificate)
    }

    /// Adds an alternative name. `None` if the name is malformed or not ASCII.
    fn add_name(&mut self, name: &GeneralName<'_>) -> Option<()> {
        let (names, name) = match name {
            GeneralName::RFC822Name(name) => (&mut self.email_addresses, name),
            GeneralName::DNSName(name) => (&mut self.dns_names, name),
            GeneralName::Invalid(..) => return None,
            _ => return Some(()),
        };
        names.push(name.is_ascii().then(|| (*name).to_owned())?);
        Some(())
    }
}

/// A certificate request (PKCS #10).
pub(crate) struct Request<'a> {
    pub(crate) key: PublicKey<'a>,
    parsed: X509CertificationRequest<'a>,
}

impl<'a> Request<'a> {
    /// Parses a request; `None` if the bytes are not a certificate request.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let (rest, parsed) = X509CertificationRequest::from_der(der).ok()?;
        let key = PublicKey(parsed.certification_request_info.subject_pki.clone());
        rest.is_empty().then_some(Self { key, parsed })
    }

    /// Returns `true` if the key of the request has signed it (`CheckSignature`). ECDSA signatures that `ring` can't
    /// verify are accepted without a check: those with SHA-512, or on other curves than P-256 and P-384. RSA keys under
    /// 2048 bits and ECDSA with SHA-1 are rejected, although Go accepts them.
    pub(crate) fn is_signed(&self) -> bool {
        let ecdsa_algorithms = [OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512];
        match self.parsed.verify_signature() {
            Err(X509Error::SignatureUnsupportedAlgorithm) => {
                *self.key.0.algorithm.oid() == OID_KEY_TYPE_EC_PUBLIC_KEY
                    && ecdsa_algorithms.contains(self.parsed.signature_algorithm.oid())
            }
            verdict => verdict.is_ok(),
        }
    }

    /// Returns the organizations of the subject.
    pub(crate) fn organizations(&self) -> Vec<String> {
        let subject = &self.parsed.certification_request_info.subject;
        subject.iter_organization().map(|name| String::from_utf8_lossy(name.as_slice()).into_owned()).collect()
    }
}

#[cfg(test)]
mod tests;
