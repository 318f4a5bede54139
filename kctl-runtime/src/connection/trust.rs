//! Verifies servers as Go does: a serving certificate that is among the authorities of a kubeconfig is trusted.
//!
//! `webpki` requires an authority above each certificate. Go accepts one that is in the pool itself
//! (`crypto/x509`, `Certificate.Verify`), and still checks name, time and purpose. Test servers write their
//! own certificate as `certificate-authority-data`.

use std::sync::Arc;

use kube::Config;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// The message of `webpki` for a certificate that could sign others and passes all earlier checks.
///
/// rustls passes this error on as a boxed one, without a variant to match. A test pins the message.
const IS_AUTHORITY: &str = "CaUsedAsEndEntity";

/// Installs the verifier if the configuration has authorities and verifies certificates.
///
/// Without authorities the system's roots count, and `insecure-skip-tls-verify` accepts everything: both keep the
/// setup that kube made.
pub(super) fn with_serving_certificates(config: &Config, mut tls: ClientConfig) -> ClientConfig {
    let roots = config.root_cert.as_ref().filter(|_| !config.accept_invalid_certs);
    let trust = roots.and_then(|roots| Trust::new(roots.iter().map(|der| CertificateDer::from(der.clone()))));
    if let Some(trust) = trust {
        tls.dangerous().set_certificate_verifier(Arc::new(trust));
    }
    tls
}

/// A verifier with the certificates that are trusted as they are.
#[derive(Debug)]
struct Trust {
    /// The certificates of `certificate-authority-data`, compared byte for byte.
    trusted: Vec<CertificateDer<'static>>,
    /// The verifier that is tried first.
    chains: Arc<WebPkiServerVerifier>,
}

impl Trust {
    /// Returns `None` if one is not a certificate, which the client reports by itself.
    fn new(certificates: impl Iterator<Item = CertificateDer<'static>>) -> Option<Self> {
        let certificates: Vec<_> = certificates.collect();
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).ok()?;
        }
        let provider = Arc::new(ring::default_provider());
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
        Some(Self { trusted: certificates, chains })
    }

    /// Returns `true` for a known certificate if the error only says that no authority has signed it.
    ///
    /// `webpki` checks the validity period and the purpose before that.
    fn is_known(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        let is_unsigned = match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => true,
            Error::InvalidCertificate(CertificateError::Other(other)) => other.0.to_string() == IS_AUTHORITY,
            _ => false,
        };
        is_unsigned && self.trusted.iter().any(|trusted| trusted == certificate)
    }
}

impl ServerCertVerifier for Trust {
    /// Accepts what `webpki` accepts, and known certificates that only lack an issuer.
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
            Err(error) if self.is_known(end_entity, &error) => {
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
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// Returns a certificate for `api.example.com` until the end of a year, signed by an authority that the client does
    /// not trust.
    fn serving(year: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let mut params = CertificateParams::new(["api.example.com".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "api");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone()
    }

    #[test]
    fn serving_certificate_as_ca_is_trusted_by_name() {
        let (own, other, old) = (serving(2030), serving(2030), serving(2025));
        // This is a day in 2026.
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_hours(24 * 20_600));
        for (root, shown, name, problem) in [
            (&own, &own, "api.example.com", None),
            (&own, &own, "other.example.com", Some("not valid for name")),
            (&other, &own, "api.example.com", Some("UnknownIssuer")),
            (&old, &old, "api.example.com", Some("expired")),
        ] {
            let trust = Trust::new(std::iter::once(root.clone())).unwrap();
            let name = ServerName::try_from(name).unwrap();
            let found = trust.verify_server_cert(shown, &[], &name, &[], now).err().map(|error| error.to_string());
            let fits = match problem {
                Some(problem) => found.as_ref().is_some_and(|found| found.contains(problem)),
                None => found.is_none(),
            };
            assert!(fits, "{found:?}, not {problem:?}");
        }
    }
}
