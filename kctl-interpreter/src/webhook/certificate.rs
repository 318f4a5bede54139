//! The server's certificate: from files that may change while it runs, or made at the start.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::RwLock;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// How often the files are looked at: Kubernetes itself takes a minute to bring a changed Secret into a pod.
const RELOAD_EVERY: Duration = Duration::from_secs(10);

/// Where the certificate comes from.
#[derive(Clone, Debug)]
pub enum Certificate {
    /// Made at the start, with an authority that is valid for this start only; for these DNS names and addresses.
    SelfMade(Vec<String>),
    /// PEM files, read again when they change.
    Files {
        /// The certificate and the chain behind it.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
        /// The authority that clients are told to trust; without it they use the roots of their system.
        authority: Option<PathBuf>,
    },
}

impl Certificate {
    /// The files of a TLS Secret in a folder: `tls.crt`, `tls.key` and, where there is one, `ca.crt`.
    pub fn in_folder(folder: &Path) -> Self {
        let authority = Some(folder.join("ca.crt")).filter(|file| file.exists());
        Self::Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key"), authority }
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file can't be read: correct its path or its mode.
    #[error("certificate file {} can't be read", path.display())]
    FileUnreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The files are not a certificate with its key: write PEM, and the key that belongs to the certificate.
    #[error("{} is no certificate in PEM with its key in {}", certificate.display(), key.display())]
    FilesInvalid {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of its key.
        key: PathBuf,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No certificate could be made.
    #[error("no certificate can be made for {}", names.join(", "))]
    NotMade {
        /// The names that it was to be for.
        names: Vec<String>,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A certificate in use.
pub(super) struct Identity {
    /// What clients are told to trust, as PEM.
    pub(super) authority: Option<String>,
    pub(super) current: Arc<Current>,
    files: Option<Files>,
}

/// The files, and what stood in them.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    known: Pair,
}

/// The certificate that the next handshake gets.
#[derive(Debug)]
pub(super) struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

impl Identity {
    pub(super) fn new(certificate: &Certificate) -> Result<Self, CertificateError> {
        match certificate {
            Certificate::SelfMade(names) => {
                let (authority, key) =
                    self_made(names).map_err(|source| CertificateError::NotMade { names: names.clone(), source })?;
                Ok(Self { authority: Some(authority), current: Arc::new(Current(RwLock::new(key))), files: None })
            }
            Certificate::Files { certificate, key, authority } => {
                let (known, pair) = Pair::read(certificate, key)?;
                let authority = authority.as_deref().map(text).transpose()?;
                let files = Files { certificate: certificate.clone(), key: key.clone(), known };
                Ok(Self { authority, current: Arc::new(Current(RwLock::new(pair))), files: Some(files) })
            }
        }
    }

    pub(super) fn tls(&self) -> Result<Arc<ServerConfig>, tokio_rustls::rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Reads the files again whenever they change, as long as it is polled. What is broken is said and not used.
    pub(super) async fn reload(&self) {
        let Some(Files { certificate, key, known }) = &self.files else { return std::future::pending().await };
        let mut known = known.clone();
        loop {
            tokio::time::sleep(RELOAD_EVERY).await;
            match Pair::read(certificate, key) {
                Ok((text, pair)) if known != text => {
                    *self.current.0.write() = pair;
                    known = text;
                    tracing::info!(file = %certificate.display(), "the webhook has a new certificate");
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "the webhook keeps its certificate"),
            }
        }
    }
}

/// What stood in the two files.
#[derive(Clone, PartialEq, Eq)]
struct Pair {
    certificate: String,
    key: String,
}

impl Pair {
    fn read(certificate: &Path, key: &Path) -> Result<(Self, Arc<CertifiedKey>), CertificateError> {
        let pair = Self { certificate: text(certificate)?, key: text(key)? };
        let invalid = |source| CertificateError::FilesInvalid {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            source,
        };
        let certified = pair.certified().map_err(invalid)?;
        Ok((pair, certified))
    }

    fn certified(&self) -> Result<Arc<CertifiedKey>, Box<dyn std::error::Error + Send + Sync>> {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        if chain.is_empty() {
            return Err("there is no CERTIFICATE section".into());
        }
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        Ok(Arc::new(CertifiedKey::from_der(chain, key, &ring::default_provider())?))
    }
}

fn text(path: &Path) -> Result<String, CertificateError> {
    fs::read_to_string(path).map_err(|source| CertificateError::FileUnreadable { path: path.to_owned(), source })
}

/// The authority as PEM, and a certificate that it has signed.
fn self_made(names: &[String]) -> Result<(String, Arc<CertifiedKey>), Box<dyn std::error::Error + Send + Sync>> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "kctl-interpreter-authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "kctl-interpreter");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &authority)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let certified = CertifiedKey::from_der(vec![certificate.der().clone()], key, &ring::default_provider())?;
    Ok((authority.pem(), Arc::new(certified)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path) -> Vec<u8> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
        fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        made.cert.der().to_vec()
    }

    fn served(identity: &Identity) -> Vec<u8> {
        identity.current.0.read().cert[0].to_vec()
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_certificate_is_served_and_a_broken_one_is_not() {
        let folder = std::env::temp_dir().join(format!("kctl-certificate-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let first = write(&folder);
        let identity = Arc::new(Identity::new(&Certificate::in_folder(&folder)).unwrap());
        assert_eq!((served(&identity), &identity.authority), (first.clone(), &None));

        let reloading = identity.clone();
        let reload = tokio::spawn(async move { reloading.reload().await });
        fs::write(folder.join("tls.key"), "half").unwrap();
        tokio::time::sleep(RELOAD_EVERY * 2).await;
        assert_eq!(served(&identity), first);

        let second = write(&folder);
        tokio::time::sleep(RELOAD_EVERY * 2).await;
        assert_eq!(served(&identity), second);
        reload.abort();
        fs::remove_dir_all(&folder).unwrap();
    }
}
