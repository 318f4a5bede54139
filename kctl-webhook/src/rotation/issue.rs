//! Creates authorities and the certificates that they sign.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};

use super::RotationError;
use crate::server::{has_key, serving_params};

/// Certificates are valid since yesterday, because clocks differ and days begin at different times.
const BACKDATED: SignedDuration = SignedDuration::from_hours(24);

/// A new authority: its certificate and its private key.
pub(super) struct IssuedAuthority {
    pub(super) certificate: String,
    /// The private key as PEM (PKCS #8).
    pub(super) key: String,
}

/// Creates an authority. Its name contains the id, which distinguishes two of them.
pub(super) fn authority(id: &str, now: Timestamp, until: Timestamp) -> Result<IssuedAuthority, RotationError> {
    let key = KeyPair::generate()?;
    let made = CertifiedIssuer::self_signed(authority_params(id, now, until)?, key)?;
    Ok(IssuedAuthority { certificate: made.pem(), key: made.key().serialize_pem() })
}

/// Creates a certificate for these names. Returns it and its key.
pub(super) fn certificate(
    id: &str,
    authority_key: &str,
    names: &[String],
    now: Timestamp,
    until: Timestamp,
) -> Result<(String, String), RotationError> {
    // A signed certificate contains only the name and the key of its authority, so the dates here have no effect.
    let issuer = Issuer::new(authority_params(id, now, until)?, KeyPair::from_pem(authority_key)?);
    let mut params = serving_params(names)?;
    validity(&mut params, now, until)?;
    let key = KeyPair::generate()?;
    let made = params.signed_by(&key, &issuer)?;
    Ok((made.pem(), key.serialize_pem()))
}

/// Returns `true` if a private key belongs to a certificate. Both are PEM.
pub(super) fn is_key_of(certificate: &str, key: &str) -> bool {
    let (certificate, key) = (CertificateDer::from_pem_slice(certificate.as_bytes()), KeyPair::from_pem(key));
    certificate.is_ok_and(|certificate| key.is_ok_and(|key| has_key(&certificate, &key)))
}

/// Returns the parameters of an authority, from which signing derives the issuer.
///
/// `Constrained(0)` forbids intermediate authorities: it signs server certificates and nothing else.
fn authority_params(id: &str, now: Timestamp, until: Timestamp) -> Result<CertificateParams, RotationError> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("kctl-webhook-authority-{id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    validity(&mut params, now, until)?;
    Ok(params)
}

/// Sets the validity in whole days, from the day before to the day after.
fn validity(params: &mut CertificateParams, now: Timestamp, until: Timestamp) -> Result<(), RotationError> {
    let day = |time: Result<Timestamp, jiff::Error>| -> Result<_, RotationError> {
        let date = time?.to_zoned(TimeZone::UTC).date();
        let part = |number: i8| u8::try_from(number).unwrap_or(1);
        Ok(date_time_ymd(date.year().into(), part(date.month()), part(date.day())))
    };
    params.not_before = day(now.checked_sub(BACKDATED))?;
    params.not_after = day(until.checked_add(BACKDATED))?;
    Ok(())
}
