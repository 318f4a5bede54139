//! The certificates of one start: an authority, the server, the administrator.

use std::{net::IpAddr, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Certificates and keys.
pub(super) struct Identity {
    pub(super) authority_pem: String,
    server: (CertificateDer<'static>, Vec<u8>),
    authority: CertificateDer<'static>,
    pub(super) admin_pem: String,
    pub(super) admin_key_pem: String,
    admin: CertificateDer<'static>,
}

fn named(common: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name = name;
    params
}

impl Identity {
    pub(super) fn new(address: IpAddr) -> Result<Self, Failure> {
        let mut params = named("kctl-apiserver", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let mut params = named("kctl-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![SanType::DnsName("localhost".try_into()?), SanType::IpAddress(address)];
        let server_key = KeyPair::generate()?;
        let server = params.signed_by(&server_key, &authority)?;

        let mut params = named("kubernetes-admin", Some("system:masters"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let admin_key = KeyPair::generate()?;
        let admin = params.signed_by(&admin_key, &authority)?;
        Ok(Self {
            authority_pem: authority.pem(),
            authority: authority.der().clone(),
            server: (server.der().clone(), server_key.serialize_der()),
            admin_pem: admin.pem(),
            admin_key_pem: admin_key.serialize_pem(),
            admin: admin.der().clone(),
        })
    }

    /// Whether these are the administrator's certificates.
    pub(super) fn is_admin(&self, certificates: &[CertificateDer<'_>]) -> bool {
        certificates.first().is_some_and(|certificate| certificate.as_ref() == self.admin.as_ref())
    }

    pub(super) fn tls(&self) -> Result<Arc<ServerConfig>, Failure> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone())?;
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.server.1.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![self.server.0.clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
