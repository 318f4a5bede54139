//! Verifies the certificate of a server against given authorities, as Go's TLS does.
//!
//! `webpki` requires each certificate to be issued by a trusted CA. Go accepts a certificate that is itself among the
//! authorities (`Certificate.Verify` in `crypto/x509/verify.go`), and still checks name, time and purpose.

use std::sync::Arc;

use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// Error of `webpki` for a certificate that may sign others and passed all earlier checks, including the validity period.
///
/// rustls passes this error on as a boxed one, without a variant to match. A test pins the message.
const CA_USED_AS_END_ENTITY: &str = "CaUsedAsEndEntity";

/// Verifies certificates by authorities.
///
/// It also trusts a certificate listed as an authority itself, if its only error is the missing issuer. That covers a
/// certificate of `openssl req -x509`. It also covers a serving certificate in `caBundle` or
/// `certificate-authority-data` without its authority, as controller-runtime's envtest and other test servers write it.
#[derive(Debug)]
pub struct Trust {
    /// The authorities, compared byte for byte.
    authorities: Vec<CertificateDer<'static>>,
    /// The verifier that is tried first.
    chains: Arc<WebPkiServerVerifier>,
}

impl Trust {
    /// Creates a verifier.
    ///
    /// # Errors
    /// The list of authorities is empty, or one of them is not a certificate.
    pub fn new(authorities: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &authorities {
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { authorities, chains: chains.map_err(|error| error.to_string())? })
    }

    /// Returns `true` for a certificate listed as an authority itself, if its only error is the missing issuer.
    ///
    /// `webpki` reports that last: validity period and purpose were checked before. The name has
    /// not been checked.
    fn is_listed_and_only_lacks_issuer(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        let is_unsigned = match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => true,
            Error::InvalidCertificate(CertificateError::Other(other)) => other.0.to_string() == CA_USED_AS_END_ENTITY,
            _ => false,
        };
        is_unsigned && self.authorities.iter().any(|authority| authority == certificate)
    }
}

impl ServerCertVerifier for Trust {
    /// Accepts what `webpki` accepts, and authorities that only lack an issuer.
    ///
    /// The name is checked here again, because `webpki` stops at the missing issuer before it compares names.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if self.is_listed_and_only_lacks_issuer(end_entity, &error) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
    };
    use tokio_rustls::rustls::crypto::ring;

    use super::*;

    /// Returns a certificate as `openssl req -x509` creates it, valid until the end of a year.
    fn own(name: &str, year: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    /// Returns a certificate for `hook.example.com` by an authority that no bundle contains, valid
    /// until the end of a year.
    fn signed(year: i32, purpose: ExtendedKeyUsagePurpose) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let mut params = CertificateParams::new(["hook.example.com".to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone()
    }

    #[test]
    fn serving_certificate_in_the_bundle_is_trusted() {
        let leaf = |year| signed(year, ExtendedKeyUsagePurpose::ServerAuth);
        let (certificate, other, old) = (leaf(2030), leaf(2030), leaf(2025));
        let client = signed(2030, ExtendedKeyUsagePurpose::ClientAuth);
        assert_eq!(verified(certificate.clone(), &certificate, "hook.example.com"), Ok(()));
        check_rejected(&[
            (&certificate, &certificate, "other.example.com", "not valid for name"),
            (&other, &certificate, "hook.example.com", "UnknownIssuer"),
            (&old, &old, "hook.example.com", "expired"),
            (&client, &client, "hook.example.com", "does not allow extended key usage"),
        ]);
    }

    /// Checks for each case of authority, presented certificate and name that the problem is reported.
    fn check_rejected(cases: &[(&CertificateDer<'static>, &CertificateDer<'static>, &str, &str)]) {
        for (authority, presented, name, problem) in cases {
            let error = verified((*authority).clone(), presented, name).unwrap_err();
            assert!(error.contains(*problem), "{error}");
        }
    }

    fn verified(authority: CertificateDer<'static>, presented: &CertificateDer<'_>, name: &str) -> Result<(), String> {
        let trust = Trust::new(vec![authority], Arc::new(ring::default_provider())).unwrap();
        let (name, now) = (ServerName::try_from(name).unwrap(), UnixTime::since_unix_epoch(NOW));
        trust.verify_server_cert(presented, &[], &name, &[], now).map(drop).map_err(|error| error.to_string())
    }

    /// In 2026.
    const NOW: std::time::Duration = std::time::Duration::from_hours(24 * 20_600);

    #[test]
    fn self_signed_certificate_requires_valid_name_and_time() {
        let (certificate, other, old) =
            (own("hook.example.com", 2030), own("hook.example.com", 2030), own("hook.example.com", 2025));
        assert_eq!(verified(certificate.clone(), &certificate, "hook.example.com"), Ok(()));
        check_rejected(&[
            (&certificate, &certificate, "other.example.com", "not valid for name"),
            (&other, &certificate, "hook.example.com", "CaUsedAsEndEntity"),
            (&old, &old, "hook.example.com", "expired"),
        ]);
    }
}
