//! The server's certificate: from files that may change while it runs, from memory, or created at
//! the start.

mod problem;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData,
};
use tokio_rustls::rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use self::problem::{CertificateProblem, problems};
use crate::{error_chain::error_chain, private_file};

/// Interval at which the files are read: the kubelet takes about a minute to update a mounted
/// Secret.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// The source of the certificate.
///
/// | variant | authority that callers trust | use it for |
/// |---|---|---|
/// | `SelfSigned` | new at each start | tests and local programs |
/// | `Persisted` | kept in a folder | a local program that restarts |
/// | `Files` | `ca.crt`, or the system's roots | a mounted Secret, for example of cert-manager |
/// | `Provided` | whatever the program registers | certificates that the program rotates itself |
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Certificate {
    /// Created at the start for these DNS names and addresses, by an authority that lives as long
    /// as the server.
    SelfSigned(Vec<String>),
    /// Created at the start, by an authority that a folder keeps: a configuration that trusts it
    /// remains valid after a restart.
    Persisted {
        /// The DNS names and addresses of the certificate.
        names: Vec<String>,
        /// The folder, which must exist. The authority and its key are in `webhook-authority.pem`,
        /// readable by the owner only.
        folder: PathBuf,
    },
    /// PEM files, read every ten seconds. A broken file is logged, and the previous certificate remains in use. A
    /// certificate that has expired, or expires within seven days, is logged as well.
    Files {
        /// The certificate, followed by its chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
        /// The authority that clients have to trust; without it they use the roots of their system. Unlike the other
        /// files it is read only at the start, for [`Server::authority`](super::Server::authority).
        authority: Option<PathBuf>,
    },
    /// Set with [`Served::set`] while the server runs. Until then handshakes fail.
    Provided(Arc<Served>),
}

impl Certificate {
    /// Returns the files of a TLS Secret in a folder: `tls.crt`, `tls.key` and, if it exists,
    /// `ca.crt`.
    ///
    /// ```
    /// use std::path::{Path, PathBuf};
    /// use kctl_webhook::server::Certificate;
    ///
    /// let Certificate::Files { certificate, authority, .. } = Certificate::in_folder(Path::new("/no/such/folder")) else {
    ///     unreachable!()
    /// };
    /// assert_eq!(certificate, PathBuf::from("/no/such/folder/tls.crt"));
    /// assert_eq!(authority, None);
    /// ```
    pub fn in_folder(folder: &Path) -> Self {
        let authority = Some(folder.join("ca.crt")).filter(|file| file.exists());
        Self::Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key"), authority }
    }
}

/// The reason why no certificate can be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file can't be read: correct its path or its mode.
    #[error("certificate file {} can't be read", path.display())]
    #[non_exhaustive]
    FileUnreadable {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The files are not a certificate with its key: write PEM, and the key that belongs to the
    /// certificate.
    #[error("{} is not a certificate in PEM with its key in {}", certificate.display(), key.display())]
    #[non_exhaustive]
    FilesInvalid {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of its key.
        key: PathBuf,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file of the authority has no certificate: write the certificates that clients have to trust, as PEM.
    #[error("{}: contains no PEM certificate", path.display())]
    #[non_exhaustive]
    AuthorityInvalid {
        /// The file.
        path: PathBuf,
    },
    /// No certificate could be created, for example for an invalid DNS name.
    #[error("no certificate can be made for {}", names.join(", "))]
    #[non_exhaustive]
    NotMade {
        /// The DNS names and addresses of the certificate.
        names: Vec<String>,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

pub(super) struct Identity {
    /// The authority that clients have to trust, as PEM.
    pub(super) authority: Option<String>,
    pub(super) current: Arc<Served>,
    files: Option<Files>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// The hosts that clients use to call the server.
    hosts: Vec<String>,
    /// The problems of the served certificate that are logged already.
    logged: Mutex<Vec<CertificateProblem>>,
}

/// The certificate of the next TLS handshake. Open connections keep the one that they started with.
///
/// ```
/// use kctl_webhook::server::{Pair, Served};
///
/// let served = Served::default();
/// assert!(!served.is_set());
/// let broken = Pair { certificate: "no PEM".into(), key: String::new() };
/// assert!(served.set(broken).is_err());
/// assert_eq!(served.reads(), (1, 1));
/// ```
#[derive(Debug, Default)]
pub struct Served {
    current: RwLock<Option<(Pair, Arc<CertifiedKey>)>>,
    n_reads: AtomicU64,
    n_errors: AtomicU64,
}

impl Served {
    /// Serves this certificate from the next handshake on. Returns `true` if it differs from the
    /// previous one.
    ///
    /// # Errors
    /// The pair is not a certificate with its key. The previous certificate remains in use.
    pub fn set(&self, pair: Pair) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        let set = self.put(pair);
        if set.is_ok() {
            self.n_reads.fetch_add(1, Ordering::Relaxed);
        } else {
            self.count_failure();
        }
        set
    }

    /// Returns how often a certificate was read or set, and how many of these attempts failed.
    pub fn reads(&self) -> (u64, u64) {
        // `n_errors` is loaded first, so that it never exceeds `n_reads`.
        let n_errors = self.n_errors.load(Ordering::Relaxed);
        (self.n_reads.load(Ordering::Relaxed), n_errors)
    }

    /// Counts a read that gave no certificate.
    fn count_failure(&self) {
        self.n_reads.fetch_add(1, Ordering::Relaxed);
        self.n_errors.fetch_add(1, Ordering::Relaxed);
    }

    fn put(&self, pair: Pair) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        if self.current.read().as_ref().is_some_and(|(served, _)| *served == pair) {
            return Ok(false);
        }
        let certified = pair.to_certified_key()?;
        *self.current.write() = Some((pair, certified));
        Ok(true)
    }

    /// Returns the certificate without its chain.
    fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.current.read().as_ref().and_then(|(_, certified)| certified.cert.first().cloned())
    }

    /// Returns `true` if there is a certificate. Without one each handshake fails.
    pub fn is_set(&self) -> bool {
        self.current.read().is_some()
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().as_ref().map(|(_, certified)| certified.clone())
    }
}

impl Identity {
    /// Loads or creates the certificate. Problems of one in files are logged.
    pub(super) fn new(certificate: &Certificate, hosts: &[String]) -> Result<Self, CertificateError> {
        match certificate {
            Certificate::SelfSigned(names) => Self::from_authority(names, SelfSignedAuthority::new),
            Certificate::Persisted { names, folder } => {
                Self::from_authority(names, || SelfSignedAuthority::in_folder(folder))
            }
            Certificate::Files { certificate, key, authority } => {
                let (certificate, key, hosts) = (certificate.clone(), key.clone(), hosts.to_vec());
                let files = Files { certificate, key, hosts, logged: Mutex::default() };
                let current = Arc::new(Served::default());
                files.read_into(&current)?;
                files.log_problems(&current, Timestamp::now());
                let authority = authority.as_deref().map(authority_of_file).transpose()?;
                Ok(Self { authority, current, files: Some(files) })
            }
            Certificate::Provided(served) => Ok(Self { authority: None, current: served.clone(), files: None }),
        }
    }

    fn from_authority(
        names: &[String],
        authority: impl FnOnce() -> Result<SelfSignedAuthority, Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<Self, CertificateError> {
        let not_made = |source| CertificateError::NotMade { names: names.to_vec(), source };
        let authority = authority().map_err(not_made)?;
        let current = Arc::new(Served::default());
        current.put(authority.sign(names).map_err(not_made)?).map_err(not_made)?;
        Ok(Self { authority: Some(authority.certificate), current, files: None })
    }

    pub(super) fn tls(&self) -> Result<Arc<ServerConfig>, tokio_rustls::rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Reads the files at an interval, as long as it is polled. A broken file is logged and not
    /// used.
    pub(super) async fn reload(&self) {
        let Some(files) = &self.files else { return std::future::pending().await };
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            match files.read_into(&self.current) {
                Ok(true) => {
                    tracing::info!(file = %files.certificate.display(), "the webhook uses a new certificate");
                    files.logged.lock().clear();
                }
                Ok(false) => {}
                Err(error) => {
                    let error = error_chain(&error);
                    tracing::error!(error, "failed to load the webhook's certificate; the previous one is still used");
                }
            }
            files.log_problems(&self.current, Timestamp::now());
        }
    }
}

impl Files {
    /// Serves the content of the files. Returns `true` if it differs from before.
    fn read_into(&self, served: &Served) -> Result<bool, CertificateError> {
        let Self { certificate, key, .. } = self;
        let read = || Ok(Pair { certificate: text(certificate)?, key: text(key)? });
        let pair = read().inspect_err(|_| served.count_failure())?;
        let invalid =
            |source| CertificateError::FilesInvalid { certificate: certificate.clone(), key: key.clone(), source };
        served.set(pair).map_err(invalid)
    }

    /// Logs the problems of the served certificate. Each is logged once for a certificate.
    fn log_problems(&self, served: &Served, now: Timestamp) {
        let Some(certificate) = served.certificate() else { return };
        let found = problems(&certificate, &self.hosts, now);
        let mut logged = self.logged.lock();
        for problem in found.iter().filter(|problem| !logged.contains(problem)) {
            problem.log(&self.certificate);
        }
        *logged = found;
    }
}

/// A certificate with its chain and its private key, as PEM.
///
/// `Debug` prints neither.
///
/// ```
/// use kctl_webhook::server::Pair;
///
/// let pair = Pair { certificate: "-----BEGIN CERTIFICATE-----".into(), key: "secret".into() };
/// assert_eq!(format!("{pair:?}"), "Pair { .. }");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate, followed by the intermediate certificates up to the authority.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

impl Pair {
    fn to_certified_key(&self) -> Result<Arc<CertifiedKey>, Box<dyn std::error::Error + Send + Sync>> {
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

/// Reads the certificates of an authority. Registered as `caBundle`, anything else fails each call of the webhook.
fn authority_of_file(path: &Path) -> Result<String, CertificateError> {
    let pem = text(path)?;
    if CertificateDer::pem_slice_iter(pem.as_bytes()).any(|read| read.is_ok()) {
        return Ok(pem);
    }
    Err(CertificateError::AuthorityInvalid { path: path.to_owned() })
}

/// Returns `true` if a private key belongs to a certificate, which contains the public key in the same encoding.
pub(crate) fn has_key(certificate: &CertificateDer<'_>, key: &KeyPair) -> bool {
    let public = key.subject_public_key_info();
    certificate.windows(public.len()).any(|part| part == public)
}

/// Returns the parameters of a server's certificate that an authority signs.
///
/// # Errors
/// One of the names can't be in a certificate.
pub(crate) fn serving_params(names: &[String]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "kctl-webhook");
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// Name of the file with an authority and its key.
const AUTHORITY_FILE: &str = "webhook-authority.pem";

/// An authority that signs the certificate of one start.
struct SelfSignedAuthority {
    /// The certificate that clients have to trust, as PEM.
    certificate: String,
    key: KeyPair,
}

impl SelfSignedAuthority {
    /// Returns the parameters of the authority; the same ones rebuild it from its key.
    fn params() -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kctl-webhook-authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params
    }

    /// Creates an authority with a new key.
    fn new() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let key = KeyPair::generate()?;
        let certificate = Self::params().self_signed(&key)?.pem();
        Ok(Self { certificate, key })
    }

    /// Reads the authority of a folder, or creates it.
    fn in_folder(folder: &Path) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let path = folder.join(AUTHORITY_FILE);
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        if let Some(text) = private_file::read(&path).map_err(failed)? {
            return Self::parse(&text).map_err(|error| {
                let file = path.display();
                let help =
                    "restore a copy, or remove the file for a new authority, which all configurations must then trust";
                format!("{file}: this is not the authority that kctl has written: {error}; {help}").into()
            });
        }
        let made = Self::new()?;
        let text = format!("{}{}", made.certificate, made.key.serialize_pem());
        private_file::write(&path, &text).map_err(failed)?;
        Ok(made)
    }

    fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let (certificate, _key) = text.split_once("-----BEGIN PRIVATE KEY-----").ok_or("there is no key in it")?;
        let key = KeyPair::from_pem(&text[certificate.len()..])?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes())?;
        if !has_key(&der, &key) {
            return Err("the key does not belong to the certificate".into());
        }
        Ok(Self { certificate: certificate.to_owned(), key })
    }

    fn sign(&self, names: &[String]) -> Result<Pair, Box<dyn std::error::Error + Send + Sync>> {
        let key = KeyPair::generate()?;
        let certificate = serving_params(names)?.signed_by(&key, &Issuer::new(Self::params(), &self.key))?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_authority_signs_every_start_unless_broken() {
        let folder = std::env::temp_dir().join(format!("kctl-webhook-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let names = vec!["localhost".to_owned()];
        let start = |names: &[String]| {
            Identity::new(&Certificate::Persisted { names: names.to_vec(), folder: folder.clone() }, &[])
        };
        let first = start(&names).unwrap();
        let second = start(&["127.0.0.1".to_owned()]).unwrap();
        assert!(first.authority.is_some() && first.authority == second.authority);
        let file = folder.join(AUTHORITY_FILE);
        let foreign = KeyPair::generate().unwrap().serialize_pem();
        for text in ["", "nonsense", &format!("{}{foreign}", first.authority.unwrap())] {
            fs::write(&file, text).unwrap();
            let error = start(&names).err().unwrap();
            let error = std::error::Error::source(&error).unwrap().to_string();
            assert!(error.contains(AUTHORITY_FILE) && error.contains("remove the file"), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    fn write(folder: &Path) -> Vec<u8> {
        write_for(folder, "localhost")
    }

    fn write_for(folder: &Path, name: &str) -> Vec<u8> {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
        fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        made.cert.der().to_vec()
    }

    fn served(identity: &Identity) -> Vec<u8> {
        identity.current.current.read().as_ref().unwrap().1.cert[0].to_vec()
    }

    #[tokio::test(start_paused = true)]
    async fn changed_certificate_is_served_unless_broken() {
        let folder = std::env::temp_dir().join(format!("kctl-certificate-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let first = write(&folder);
        let identity = Arc::new(Identity::new(&Certificate::in_folder(&folder), &[]).unwrap());
        assert_eq!((served(&identity), &identity.authority), (first.clone(), &None));

        let reloading = identity.clone();
        let reload = tokio::spawn(async move { reloading.reload().await });
        // Moves the clock between two reloads.
        tokio::time::sleep(RELOAD_INTERVAL / 2).await;
        fs::write(folder.join("tls.key"), "half").unwrap();
        tokio::time::sleep(RELOAD_INTERVAL * 2).await;
        assert_eq!(served(&identity), first);

        let second = write(&folder);
        tokio::time::sleep(RELOAD_INTERVAL * 2).await;
        assert_eq!(served(&identity), second);
        assert_eq!(identity.current.reads(), (1 + 4, 2), "the start, and four reads, two of half a key");
        fs::write(folder.join("ca.crt"), "no PEM").unwrap();
        let error = Identity::new(&Certificate::in_folder(&folder), &[]).err().unwrap().to_string();
        assert!(error.ends_with("ca.crt: contains no PEM certificate"), "{error}");
        fs::remove_file(folder.join("tls.crt")).unwrap();
        tokio::time::sleep(RELOAD_INTERVAL).await;
        assert_eq!(identity.current.reads(), (6, 3));
        reload.abort();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn problems_are_logged_until_the_certificate_changes() {
        let folder = std::env::temp_dir().join(format!("kctl-certificate-problems-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        write(&folder);
        let host = "web.system.svc".to_owned();
        let identity = Arc::new(Identity::new(&Certificate::in_folder(&folder), std::slice::from_ref(&host)).unwrap());
        let logged = || identity.files.as_ref().unwrap().logged.lock().clone();
        let problem = CertificateProblem::HostMissing { host, names: vec!["localhost".into()] };
        assert_eq!(logged(), [problem]);

        let reloading = identity.clone();
        let reload = tokio::spawn(async move { reloading.reload().await });
        write_for(&folder, "web.system.svc");
        tokio::time::sleep(RELOAD_INTERVAL * 2).await;
        assert!(logged().is_empty());
        reload.abort();
        fs::remove_dir_all(&folder).unwrap();
    }
}
