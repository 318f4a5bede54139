//! The certificate of a server: from files that are reloaded after a change, or self-signed.
//!
//! Both protocols are offered by ALPN, `h2` first. TLS 1.2 and 1.3 are accepted, without client certificates:
//! clients authenticate with a token.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::RwLock;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
};

use crate::manager::metrics::{Metrics, ReadCounter};

/// Interval at which files are read (controller-runtime, `pkg/certwatcher`). A mounted Secret changes by a
/// symbolic link, which not every way of watching files notices.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The source of a server's certificate.
///
/// ```
/// use kctl_runtime::manager::serve::Certificate;
///
/// // The mounted Secret of cert-manager.
/// let certificate = Certificate::Files {
///     certificate: "/tls/tls.crt".into(),
///     key: "/tls/tls.key".into(),
/// };
/// assert_ne!(certificate, Certificate::SelfSigned);
/// ```
///
/// controller-runtime makes the same choice: files from a directory, or a self-signed certificate without them.
/// Prometheus has to skip the verification of a self-signed one (`insecure_skip_verify`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certificate {
    /// A self-signed certificate, created at the start. The connection is encrypted, but clients cannot verify
    /// the server.
    SelfSigned,
    /// PEM files, for example of a mounted Secret. They are read again within 10 s after a change.
    ///
    /// A file that cannot be used is logged, and the last valid certificate remains in use.
    Files {
        /// The certificate, followed by the intermediate ones.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

/// The reason why a server has no certificate.
///
/// It is only returned at the start. Later faults of the files are logged and counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("the certificate of the metrics server: {}: {source}", file.display())]
    #[non_exhaustive]
    File {
        /// Path of the certificate or key.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file has no valid PEM content, or the key does not belong to the certificate.
    #[error("the certificate of the metrics server: {}: {problem}", file.display())]
    #[non_exhaustive]
    Content {
        /// Path of the certificate or key.
        file: PathBuf,
        /// The reason why the content can't be used.
        problem: String,
    },
    /// A self-signed certificate could not be created.
    #[error("the certificate of the metrics server could not be made: {0}")]
    Made(String),
}

/// Returns the newest certificate at each handshake.
///
/// Connections that exist keep the certificate of their handshake.
#[derive(Debug)]
struct Newest(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Newest {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

/// The TLS configuration of a server. Run [`refresh`](Self::refresh) to reload the certificate.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    certificate: Certificate,
    newest: Arc<Newest>,
    /// Both files at the last change, to notice the next one.
    read: Pem,
    /// Reads of the files, for the metrics.
    counted: Arc<ReadCounter>,
}

impl Tls {
    /// Reads or creates the certificate.
    ///
    /// # Errors
    /// A file cannot be read or does not fit. A program should not start then: its scraper would be locked out.
    pub(crate) fn new(certificate: Certificate) -> Result<Self, TlsError> {
        let counted = Arc::<ReadCounter>::default();
        let (read, key) = match &certificate {
            Certificate::SelfSigned => (Pem::default(), self_signed()?),
            Certificate::Files { certificate, key } => {
                let read = Pem::read(certificate, key)?;
                let parsed = read.parse(certificate, key);
                counted.count(&parsed);
                (read, parsed?)
            }
        };
        let newest = Arc::new(Newest(RwLock::new(Arc::new(key))));
        let made = |error: tokio_rustls::rustls::Error| TlsError::Made(error.to_string());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(made)?
            .with_no_client_auth()
            .with_cert_resolver(newest.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate, newest, read, counted })
    }

    /// Adds the reads of the files to the metrics.
    pub(crate) fn count_in(&self, metrics: &Metrics) {
        let counted = self.counted.clone();
        metrics.certificate_reads(move || counted.reads());
    }

    /// Reads the files at an interval. An unusable file keeps the last good certificate. Never returns.
    ///
    /// Both files are read together. If a Secret is replaced between the two reads, key and certificate do not match.
    /// The next read repairs that.
    pub(crate) async fn refresh(mut self) {
        let Certificate::Files { certificate, key } = self.certificate else { return std::future::pending().await };
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let changed = Pem::read(&certificate, &key).and_then(|fresh| {
                if fresh == self.read {
                    return Ok(None);
                }
                Ok(Some((fresh.parse(&certificate, &key)?, fresh)))
            });
            self.counted.count(&changed);
            match changed {
                Ok(None) => {}
                Ok(Some((parsed, fresh))) => {
                    *self.newest.0.write() = Arc::new(parsed);
                    self.read = fresh;
                    tracing::info!(file = %certificate.display(), "metrics server certificate reloaded");
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to reload the metrics server certificate; the last good one is still used");
                }
            }
        }
    }
}

fn bytes(file: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(file).map_err(|source| TlsError::File { file: file.into(), source })
}

/// The contents of both files.
#[derive(Default, PartialEq, Eq)]
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Pem {
    /// Reads the certificate, then the key.
    fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self { certificate: bytes(certificate)?, key: bytes(key)? })
    }

    /// Parses certificate and key, and checks that they belong together. An error names the file.
    fn parse(&self, file: &Path, key_file: &Path) -> Result<CertifiedKey, TlsError> {
        let wrong = |file: &Path, problem: String| TlsError::Content { file: file.into(), problem };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| wrong(file, error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong(file, "there is no certificate in it".into()));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| wrong(key_file, error.to_string()))?;
        let provider = ring::default_provider();
        CertifiedKey::from_der(chain, key, &provider).map_err(|error| wrong(key_file, error.to_string()))
    }
}

/// Creates a certificate for `localhost` and the loopback addresses.
fn self_signed() -> Result<CertifiedKey, TlsError> {
    let made = |error: &dyn std::fmt::Display| TlsError::Made(error.to_string());
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(names).map_err(|error| made(&error))?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    CertifiedKey::from_der(vec![cert.der().clone()], key, &ring::default_provider()).map_err(|error| made(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::metrics::Format;

    /// A folder with a certificate, which is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("kctl-tls-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn renew(&self) -> CertificateDer<'static> {
            let made = rcgen::generate_simple_self_signed(vec!["metrics".to_owned()]).unwrap();
            std::fs::write(self.file("tls.crt"), made.cert.pem()).unwrap();
            std::fs::write(self.file("tls.key"), made.signing_key.serialize_pem()).unwrap();
            made.cert.der().clone()
        }

        fn certificate(&self) -> Certificate {
            Certificate::Files { certificate: self.file("tls.crt"), key: self.file("tls.key") }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _gone = std::fs::remove_dir_all(&self.0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn replaced_certificate_is_used_within_ten_seconds() {
        let folder = Folder::new("replaced");
        let first = folder.renew();
        let tls = Tls::new(folder.certificate()).unwrap();
        let (newest, metrics) = (tls.newest.clone(), Metrics::default());
        tls.count_in(&metrics);
        let used = || newest.0.read().cert[0].clone();
        tokio::spawn(tls.refresh());
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert_eq!(used(), first);
        let second = folder.renew();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(used(), second);
        std::fs::write(folder.file("tls.crt"), "half a certif").unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(used(), second, "the last good certificate is kept");
        let third = folder.renew();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(used(), third);
        let text = metrics.text(Format::Prometheus);
        for sample in ["certwatcher_read_certificate_total 7", "certwatcher_read_certificate_errors_total 3"] {
            assert!(text.lines().any(|line| line == sample), "{sample} is in {text}");
        }
    }

    #[test]
    fn unusable_certificate_is_named_with_its_file() {
        let folder = Folder::new("unusable");
        let error =
            |certificate: Certificate| Tls::new(certificate).err().map(|error| error.to_string()).unwrap_or_default();
        let missing = error(folder.certificate());
        assert!(missing.contains("tls.crt: No such file"), "{missing}");
        folder.renew();
        let key = std::fs::read(folder.file("tls.key")).unwrap();
        folder.renew();
        std::fs::write(folder.file("tls.key"), key).unwrap();
        let foreign = error(folder.certificate());
        assert!(foreign.contains("tls.key: "), "the key belongs to another certificate: {foreign}");
        std::fs::write(folder.file("tls.crt"), "nothing").unwrap();
        let empty = error(folder.certificate());
        assert!(empty.contains("tls.crt: there is no certificate in it"), "{empty}");
    }
}
