//! X.509 certificates and PKCS #10 requests, as far as kube-apiserver validates them. No chain is verified.
//!
//! Upstream: `crypto/x509` of Go, `ParseCertificate` and `ParseCertificateRequest`. This reader is less strict: it does
//! not decode names and extensions that no rule needs.

mod der;
pub(crate) mod pem;

use jiff::{
    Timestamp,
    civil::{Date, Time},
    tz::TimeZone,
};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use self::der::{Element, Reader, tag};

/// The object identifiers of algorithms, curves and fields, without tag and length.
mod oid {
    /// `1.2.840.113549.1.1.1`.
    pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    /// `1.2.840.10045.2.1`.
    pub(super) const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    /// `1.3.101.112`.
    pub(super) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
    /// `1.2.840.10045.3.1.7`.
    pub(super) const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    /// `1.3.132.0.34`.
    pub(super) const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
    /// `1.3.132.0.35`.
    pub(super) const P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];
    /// `1.2.840.10045.4.3`, before the number of the hash: 2 is SHA-256, 3 SHA-384, 4 SHA-512.
    pub(super) const ECDSA_WITH: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    /// `1.2.840.113549.1.1`, before the number of the hash: 11 is SHA-256, 12 SHA-384, 13 SHA-512.
    pub(super) const RSA_WITH: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    /// `organizationName`, `2.5.4.10`.
    pub(super) const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
    /// `basicConstraints`, `2.5.29.19`.
    pub(super) const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
    /// `subjectAltName`, `2.5.29.17`.
    pub(super) const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
}

/// A public key. Two are equal if their encodings are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PublicKey<'a> {
    algorithm: &'a [u8],
    /// The curve of an ECDSA key.
    curve: &'a [u8],
    bits: &'a [u8],
}

/// A kind of key.
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

impl<'a> PublicKey<'a> {
    /// Reads a `SubjectPublicKeyInfo`.
    fn read(element: Element<'a>) -> Option<Self> {
        let mut reader = element.reader();
        let mut algorithm = reader.expect(tag::SEQUENCE)?.reader();
        let name = algorithm.expect(tag::OBJECT_IDENTIFIER)?.content;
        let curve = algorithm.optional(tag::OBJECT_IDENTIFIER).map_or(&[][..], |curve| curve.content);
        let key = Self { algorithm: name, curve, bits: reader.bits()? };
        reader.is_at_end().then_some(key)
    }

    /// Returns the kind of the key.
    pub(crate) fn kind(&self) -> KeyKind {
        match self.algorithm {
            oid::ED25519 => KeyKind::Ed25519,
            oid::ECDSA if [oid::P256, oid::P384, oid::P521].contains(&self.curve) => KeyKind::Ecdsa,
            oid::ECDSA => KeyKind::EcdsaOnOtherCurve,
            oid::RSA => self.modulus().map_or(KeyKind::Other, |modulus| KeyKind::Rsa { n_bits: modulus.len() * 8 }),
            _ => KeyKind::Other,
        }
    }

    /// Returns the modulus of an RSA key, without its sign.
    fn modulus(&self) -> Option<&'a [u8]> {
        let modulus = Reader::only(self.bits, tag::SEQUENCE)?.reader().expect(tag::INTEGER)?.content;
        Some(modulus.strip_prefix(&[0]).unwrap_or(modulus))
    }

    /// Returns the algorithm that verifies a signature.
    fn verifier(&self, of_signature: &[u8]) -> Verifier {
        let hash = |with: &[u8]| of_signature.strip_prefix(with).filter(|hash| hash.len() == 1).map(|hash| hash[0]);
        match (self.algorithm, hash(oid::ECDSA_WITH), hash(oid::RSA_WITH)) {
            (oid::ED25519, ..) if of_signature == oid::ED25519 => Verifier::Known(&signature::ED25519),
            (oid::ECDSA, Some(hash), _) => match (self.curve, hash) {
                (oid::P256, 2) => Verifier::Known(&signature::ECDSA_P256_SHA256_ASN1),
                (oid::P256, 3) => Verifier::Known(&signature::ECDSA_P256_SHA384_ASN1),
                (oid::P384, 2) => Verifier::Known(&signature::ECDSA_P384_SHA256_ASN1),
                (oid::P384, 3) => Verifier::Known(&signature::ECDSA_P384_SHA384_ASN1),
                (_, 2..=4) => Verifier::Missing,
                _ => Verifier::None,
            },
            (oid::RSA, _, Some(11)) => Verifier::Known(&signature::RSA_PKCS1_2048_8192_SHA256),
            (oid::RSA, _, Some(12)) => Verifier::Known(&signature::RSA_PKCS1_2048_8192_SHA384),
            (oid::RSA, _, Some(13)) => Verifier::Known(&signature::RSA_PKCS1_2048_8192_SHA512),
            // With the padding PSS, whose parameters name the hash.
            (oid::RSA, _, Some(10)) => Verifier::Missing,
            _ => Verifier::None,
        }
    }
}

/// The algorithm that verifies a signature.
enum Verifier {
    Known(&'static dyn VerificationAlgorithm),
    /// Go has it, ring doesn't: the signature passes.
    Missing,
    /// The signature is not one of the key.
    None,
}

/// A certificate.
pub(crate) struct Certificate<'a> {
    pub(crate) key: PublicKey<'a>,
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
    /// The certificate may sign others (`basicConstraints`).
    pub(crate) is_authority: bool,
    pub(crate) dns_names: Vec<String>,
    pub(crate) email_addresses: Vec<String>,
}

impl<'a> Certificate<'a> {
    /// Reads a certificate. `None` if the bytes are not one.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let (signed, algorithm, _) = signed(der)?;
        let mut fields = signed.reader();
        // The version.
        fields.optional(tag::explicit(0));
        fields.expect(tag::INTEGER)?;
        // Both places name the same algorithm.
        fields.expect(tag::SEQUENCE).filter(|inner| inner.whole == algorithm.whole)?;
        // The issuer.
        fields.expect(tag::SEQUENCE)?;
        let mut validity = fields.expect(tag::SEQUENCE)?.reader();
        // The subject.
        fields.expect(tag::SEQUENCE)?;
        let mut certificate = Self {
            key: PublicKey::read(fields.expect(tag::SEQUENCE)?)?,
            not_before: time(validity.next()?)?,
            not_after: time(validity.next()?)?,
            is_authority: false,
            dns_names: Vec::new(),
            email_addresses: Vec::new(),
        };
        let extensions = fields.find(|field| field.tag == tag::explicit(3));
        if let Some(extensions) = extensions {
            for extension in Reader::only(extensions.content, tag::SEQUENCE)?.reader() {
                certificate.read_extension(extension)?;
            }
        }
        Some(certificate)
    }

    /// Reads one of the extensions. Those without a rule are skipped.
    fn read_extension(&mut self, extension: Element<'_>) -> Option<()> {
        /// Tags of the names in `subjectAltName`.
        const EMAIL: u8 = 0x81;
        const DNS: u8 = 0x82;
        let mut fields = extension.reader();
        let name = fields.expect(tag::OBJECT_IDENTIFIER)?.content;
        // Whether the extension is critical.
        fields.optional(tag::BOOLEAN);
        let value = fields.expect(tag::OCTET_STRING)?.content;
        match name {
            oid::BASIC_CONSTRAINTS => {
                let mut fields = Reader::only(value, tag::SEQUENCE)?.reader();
                self.is_authority = fields.optional(tag::BOOLEAN).is_some_and(|flag| flag.content == [0xff]);
            }
            oid::ALTERNATIVE_NAMES => {
                for name in Reader::only(value, tag::SEQUENCE)?.reader() {
                    let text = String::from_utf8_lossy(name.content).into_owned();
                    match name.tag {
                        EMAIL => self.email_addresses.push(text),
                        DNS => self.dns_names.push(text),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Some(())
    }
}

/// A certificate request (PKCS #10).
pub(crate) struct Request<'a> {
    pub(crate) key: PublicKey<'a>,
    subject: Element<'a>,
    /// The bytes that are signed.
    signed: &'a [u8],
    /// The object identifier of the signature's algorithm.
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads a request. `None` if the bytes are not one.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let (signed, algorithm, signature) = signed(der)?;
        let mut fields = signed.reader();
        fields.expect(tag::INTEGER)?;
        Some(Self {
            subject: fields.expect(tag::SEQUENCE)?,
            key: PublicKey::read(fields.expect(tag::SEQUENCE)?)?,
            signed: signed.whole,
            algorithm: algorithm.reader().expect(tag::OBJECT_IDENTIFIER)?.content,
            signature,
        })
    }

    /// Returns `true` if the key of the request has signed it (`CheckSignature`).
    ///
    /// Signatures with RSA-PSS, SHA-512 on a curve, or the curve P-521 pass: ring does not have them.
    pub(crate) fn is_signed(&self) -> bool {
        match self.key.verifier(self.algorithm) {
            Verifier::Known(algorithm) => {
                UnparsedPublicKey::new(algorithm, self.key.bits).verify(self.signed, self.signature).is_ok()
            }
            Verifier::Missing => true,
            Verifier::None => false,
        }
    }

    /// Returns the organizations of the subject.
    pub(crate) fn organizations(&self) -> Vec<String> {
        let sets = self.subject.reader().filter(|set| set.tag == tag::SET);
        let attributes = sets.flat_map(Element::reader).filter_map(|attribute| {
            let mut fields = attribute.reader();
            let name = fields.expect(tag::OBJECT_IDENTIFIER)?.content;
            let value = fields.next()?.content;
            (name == oid::ORGANIZATION).then(|| String::from_utf8_lossy(value).into_owned())
        });
        attributes.collect()
    }
}

/// Reads something with its signature: what is signed, the algorithm, and the signature.
fn signed(der: &[u8]) -> Option<(Element<'_>, Element<'_>, &[u8])> {
    let mut fields = Reader::only(der, tag::SEQUENCE)?.reader();
    let (signed, algorithm) = (fields.expect(tag::SEQUENCE)?, fields.expect(tag::SEQUENCE)?);
    let signature = fields.bits()?;
    fields.is_at_end().then_some((signed, algorithm, signature))
}

/// Reads a time in UTC, with seconds. Years with two digits are those from 1950 to 2049.
fn time(element: Element<'_>) -> Option<Timestamp> {
    let digits = std::str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
    let (year, rest) = match element.tag {
        tag::UTC_TIME => {
            let year: i16 = digits.get(..2)?.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, digits.get(2..)?)
        }
        tag::GENERALIZED_TIME => (digits.get(..4)?.parse().ok()?, digits.get(4..)?),
        _ => return None,
    };
    if rest.len() != "MMDDHHMMSS".len() {
        return None;
    }
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let date = Date::new(year, part(0)?, part(2)?).ok()?;
    let time = Time::new(part(4)?, part(6)?, part(8)?, 0).ok()?;
    Some(date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests;
