//! The certificates of a server: a certificate authority and an administrator, which the folder of `--data` keeps,
//! and the server's own certificate.
//!
//! The keys are ECDSA on P-256. The server's own certificate is new at each start: its names may have changed, and
//! clients check only the authority. A folder without the file, or with certificates that expire soon, gets new
//! certificates; all earlier kubeconfigs are then invalid.

use std::{path::Path, sync::Arc};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use kctl_webhook::private_file;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType, date_time_ymd,
};
use tokio_rustls::rustls::{
    CertificateError, Error as TlsError, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};

use super::{names::CertificateNames, sec1};
use crate::{request::ADMINISTRATORS, x509::pem::block};

/// Any error, with its message for the user.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The file with the certificates of authority and administrator and both keys. One file, because they belong together.
const FILE: &str = "identity.pem";
/// The validity of all certificates: ten years, as kubeadm's authorities have.
const VALID: SignedDuration = SignedDuration::from_hours(24 * 3_650);
/// Certificates that expire within this time are replaced at the start. The check runs only at the start. A server that
/// runs for more than a month keeps its certificates.
const LEFT_MIN: SignedDuration = SignedDuration::from_hours(24 * 30);

/// A certificate authority, and an administrator whose certificate it has signed. The file contains these fields in
/// order: certificate and key of the authority, then of the administrator.
struct StoredIdentity {
    /// The certificate of the authority, signed by itself.
    authority: CertificateDer<'static>,
    /// Signs the administrator once, and the server at each start.
    authority_key: KeyPair,
    /// The administrator's certificate, with the user as its common name and `system:masters` as its organization.
    admin: CertificateDer<'static>,
    /// The key that kubeconfigs contain.
    admin_key: KeyPair,
}

/// The certificates and keys of a running server.
pub(super) struct Identity {
    /// The certificate of the authority, for kubeconfigs and `kube-root-ca.crt`.
    pub(super) authority_pem: String,
    /// The server's certificate and its private key in DER.
    server: (CertificateDer<'static>, Vec<u8>),
    /// The certificate in DER, against which TLS verifies clients.
    authority: CertificateDer<'static>,
    /// The administrator's client certificate, for kubeconfigs.
    pub(super) admin_pem: String,
    /// The administrator's key, in SEC 1 if possible; see `sec1.rs`.
    pub(super) admin_key_pem: String,
    /// The administrator's certificate in DER; the one of a client is compared byte by byte.
    admin: CertificateDer<'static>,
}

/// Returns parameters of a certificate with a subject. kube-apiserver reads the common name of a client as the user,
/// and the organizations as groups.
fn certificate_params(common: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name = name;
    params
}

/// The subject of the authority. It differs from the subjects that the authority signs: OpenSSL considers a certificate
/// with equal issuer and subject self-signed.
const AUTHORITY: &str = "kctl-apiserver-ca";
/// The subject of authorities that earlier versions stored.
const AUTHORITY_BEFORE: &str = "kctl-apiserver";
/// The subject of the server's certificate.
const SERVER: &str = "kctl-apiserver-serving";

/// Returns the parameters of an authority as RFC 5280 requires and `openssl verify -x509_strict` checks. rcgen adds
/// the subject key identifier.
fn authority_params(name: &str) -> CertificateParams {
    let mut params = certificate_params(name, None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// Returns the parameters of a signed certificate. It has an authority key identifier, which Python requires since
/// 3.13.
fn signed_params(name: &str, organization: Option<&str>, purpose: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = certificate_params(name, organization);
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params
}

/// Returns the time at which certificates expire that are created now.
fn end(now: Timestamp) -> Result<Timestamp, BoxError> {
    Ok(now.checked_add(VALID)?)
}

/// Sets the validity: from one day before `now`, because clocks differ, until `until`. Both ends are truncated to the
/// day in UTC, because rcgen takes a date.
fn valid(params: &mut CertificateParams, now: Timestamp, until: Timestamp) -> Result<(), BoxError> {
    let day = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    params.not_before = day(now.checked_sub(SignedDuration::from_hours(24))?);
    params.not_after = day(until);
    Ok(())
}

impl StoredIdentity {
    /// Creates an authority and an administrator.
    fn new(now: Timestamp) -> Result<Self, BoxError> {
        let until = end(now)?;
        let authority_key = KeyPair::generate()?;
        let mut params = authority_params(AUTHORITY);
        valid(&mut params, now, until)?;
        let authority = params.self_signed(&authority_key)?;

        let admin = "kubernetes-admin";
        let mut params = signed_params(admin, Some(ADMINISTRATORS), ExtendedKeyUsagePurpose::ClientAuth);
        valid(&mut params, now, until)?;
        let admin_key = KeyPair::generate()?;
        let admin = params.signed_by(&admin_key, &Issuer::from_params(&authority_params(AUTHORITY), &authority_key))?;
        Ok(Self { authority: authority.into(), authority_key, admin: admin.into(), admin_key })
    }

    /// Returns the authority and the administrator of a folder. Creates them if the folder has none, or if they expire
    /// within [`LEFT_MIN`]. A damaged file is an error, and is not replaced: it may be the only copy of a key that
    /// kubeconfigs rely on. The message names the possible fixes.
    fn in_folder(folder: &Path, now: Timestamp) -> Result<Self, BoxError> {
        let path = folder.join(FILE);
        let file = path.display();
        let broken = |why: BoxError| {
            format!(
                "{file}: these are not the certificates that kctl has written: {why}; restore a copy, or remove the file for \
                 new ones, with which every kubeconfig has to be written again"
            )
        };
        if let Some(text) = private_file::read(&path).map_err(|error| format!("{file}: {error}"))? {
            let stored = Self::parse(&text).map_err(broken)?;
            if stored.is_valid_at(now.checked_add(LEFT_MIN)?).map_err(broken)? {
                return Ok(stored);
            }
            tracing::warn!(%file, "the certificates expire soon and are replaced: write every kubeconfig again");
        }
        let made = Self::new(now)?;
        private_file::write(&path, &made.text())
            .map_err(|error| format!("{file}: {error}; {}", private_file::remedy(&error)))?;
        Ok(made)
    }

    /// Returns all certificates and keys as PEM.
    fn text(&self) -> String {
        let (authority_key, admin_key) = (self.authority_key.serialize_pem(), self.admin_key.serialize_pem());
        format!("{}{authority_key}{}{admin_key}", pem(&self.authority), pem(&self.admin))
    }

    /// Parses the file, and checks that each key belongs to its certificate.
    fn parse(text: &str) -> Result<Self, BoxError> {
        let cut = |_| "a block of PEM in it is not whole";
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        let keys: Result<Vec<_>, _> = PrivatePkcs8KeyDer::pem_slice_iter(text.as_bytes()).collect();
        let (certificates, keys) = (certificates.map_err(cut)?, keys.map_err(cut)?);
        let (Ok([authority, admin]), Ok([authority_key, admin_key])) =
            (<[_; 2]>::try_from(certificates), <[_; 2]>::try_from(keys))
        else {
            return Err("two certificates and two keys in PKCS #8 belong there".into());
        };
        let (authority_key, admin_key) = (KeyPair::try_from(&authority_key)?, KeyPair::try_from(&admin_key)?);
        for (whose, certificate, key) in
            [("authority", &authority, &authority_key), ("administrator", &admin, &admin_key)]
        {
            // The DER of a certificate contains the DER of its public key.
            let public = key.subject_public_key_info();
            if !certificate.windows(public.len()).any(|part| part == public) {
                return Err(format!("the key of the {whose} does not belong to its certificate").into());
            }
        }
        Ok(Self { authority, authority_key, admin, admin_key })
    }

    /// Returns the subject of the authority, which is the issuer of the certificates that it signs. Authorities of
    /// earlier versions remain valid until they expire, so their name has to be known.
    fn authority_name(&self) -> &'static str {
        let has = |name: &str| self.authority.windows(name.len()).any(|part| part == name.as_bytes());
        if has(AUTHORITY) { AUTHORITY } else { AUTHORITY_BEFORE }
    }

    /// Returns `true` if both certificates are valid at a time.
    ///
    /// # Errors
    /// Fails if the authority has not signed the administrator's certificate.
    fn is_valid_at(&self, time: Timestamp) -> Result<bool, BoxError> {
        let since_epoch = std::time::Duration::from_secs(time.as_second().try_into()?);
        let clients = clients(&self.authority)?;
        match clients.verify_client_cert(&self.admin, &[], UnixTime::since_unix_epoch(since_epoch)) {
            Ok(_) => Ok(true),
            Err(TlsError::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns a certificate as PEM.
fn pem(certificate: &CertificateDer<'_>) -> String {
    block("CERTIFICATE", certificate)
}

/// Returns a verifier that accepts clients with a certificate of the authority, and clients without a certificate. A
/// certificate of another authority fails the handshake. Expired ones fail too.
fn clients(authority: &CertificateDer<'static>) -> Result<Arc<dyn ClientCertVerifier>, BoxError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone())?;
    let provider = Arc::new(ring::default_provider());
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated().build()?)
}

impl Identity {
    /// Returns the identity of a folder, or one for this start only. The server's own certificate is new at each start.
    /// An invalid name is rejected before the certificate is created, so that the message names it. A wildcard may be
    /// the first label: `*.example.com`.
    ///
    /// # Errors
    /// Fails if the files of the folder can't be used, or if a name is not valid in a certificate.
    pub(super) fn new(names: &CertificateNames, folder: Option<&Path>) -> Result<Self, BoxError> {
        let now = Timestamp::now();
        let stored =
            folder.map_or_else(|| StoredIdentity::new(now), |folder| StoredIdentity::in_folder(folder, now))?;
        let mut params = signed_params(SERVER, None, ExtendedKeyUsagePurpose::ServerAuth);
        valid(&mut params, now, end(now)?)?;
        for name in &names.dns {
            let named = || format!("{name:?} can't be a name in a certificate: write a DNS name or an address");
            let dns = name.as_str().try_into().map_err(|_| named())?;
            if name.is_empty() || name.contains([':', '/', ' ', '*']) && !name.starts_with("*.") {
                return Err(named().into());
            }
            params.subject_alt_names.push(SanType::DnsName(dns));
        }
        params.subject_alt_names.extend(names.addresses.iter().map(|address| SanType::IpAddress(*address)));
        let server_key = KeyPair::generate()?;
        let issuer = Issuer::new(authority_params(stored.authority_name()), &stored.authority_key);
        let server = params.signed_by(&server_key, &issuer)?;
        Ok(Self {
            authority_pem: pem(&stored.authority),
            authority: stored.authority,
            server: (server.der().clone(), server_key.serialize_der()),
            admin_pem: pem(&stored.admin),
            admin_key_pem: sec1::pem(&stored.admin_key.serialize_der())
                .unwrap_or_else(|| stored.admin_key.serialize_pem()),
            admin: stored.admin,
        })
    }

    /// Returns `true` if the first certificate is the administrator's. The first certificate of a chain belongs to the
    /// client.
    pub(super) fn is_admin(&self, certificates: &[CertificateDer<'_>]) -> bool {
        certificates.first().is_some_and(|certificate| certificate.as_ref() == self.admin.as_ref())
    }

    /// Returns the SHA-256 of the administrator's certificate in hexadecimal, which reviews show as `credential-id`.
    pub(super) fn admin_digest(&self) -> String {
        let digest = ::ring::digest::digest(&::ring::digest::SHA256, self.admin.as_ref());
        digest.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Returns the configuration of TLS: HTTP/2 and HTTP/1.1, with optional client certificates.
    pub(super) fn tls(&self) -> Result<Arc<ServerConfig>, BoxError> {
        let provider = Arc::new(ring::default_provider());
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.server.1.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients(&self.authority)?)
            .with_single_cert(vec![self.server.0.clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio_rustls::rustls::{
        client::{WebPkiServerVerifier, danger::ServerCertVerifier},
        pki_types::ServerName,
    };

    use super::*;
    use crate::test_folder::TestFolder;

    /// Tests a folder of an earlier version, whose authority had the name of the server.
    #[test]
    fn older_authority_keeps_its_subject() {
        let folder = TestFolder::new("identity-before");
        let mut stored = StoredIdentity::new(Timestamp::now()).unwrap();
        assert_eq!(stored.authority_name(), AUTHORITY);
        let mut params = authority_params(AUTHORITY_BEFORE);
        valid(&mut params, Timestamp::now(), end(Timestamp::now()).unwrap()).unwrap();
        stored.authority = params.self_signed(&stored.authority_key).unwrap().into();
        let mut params = certificate_params("kubernetes-admin", Some("system:masters"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let issuer = Issuer::new(authority_params(AUTHORITY_BEFORE), &stored.authority_key);
        stored.admin = params.signed_by(&stored.admin_key, &issuer).unwrap().into();
        fs::write(folder.join(FILE), stored.text()).unwrap();

        let names = CertificateNames::for_address(std::net::Ipv4Addr::LOCALHOST.into(), &[]);
        let identity = Identity::new(&names, Some(&folder)).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(stored.authority.clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let now = UnixTime::now();
        let verify = |name: &str| {
            verifier.verify_server_cert(
                &identity.server.0,
                &[],
                &ServerName::try_from(name).unwrap().to_owned(),
                &[],
                now,
            )
        };
        assert!(verify("localhost").is_ok() && verify("127.0.0.1").is_ok());
        assert!(verify("example.com").is_err());
    }

    #[test]
    fn certificates_are_kept_until_they_run_out() {
        let folder = TestFolder::new("identity-kept");
        let start = Timestamp::now();
        let first = StoredIdentity::in_folder(&folder, start).unwrap();
        for (days, is_kept) in [(0, true), (365, true), (3_619, true), (3_622, false)] {
            let now = start + SignedDuration::from_hours(24 * days);
            let restarted = StoredIdentity::in_folder(&folder, now).unwrap();
            assert_eq!(restarted.authority == first.authority, is_kept, "after {days} days");
            assert_eq!(restarted.text() == first.text(), is_kept, "after {days} days");
            assert!(restarted.is_valid_at(now).unwrap(), "after {days} days");
        }
    }

    #[test]
    fn broken_identity_file_is_reported_and_kept() {
        let folder = TestFolder::new("identity-broken");
        let (own, other) =
            (StoredIdentity::new(Timestamp::now()).unwrap(), StoredIdentity::new(Timestamp::now()).unwrap());
        let whole = own.text();
        for (text, why) in [
            (String::new(), "two certificates and two keys"),
            ("nonsense".into(), "two certificates and two keys"),
            (whole[..whole.len() / 2].to_owned(), "a block of PEM in it is not whole"),
            (whole.replace(&own.authority_key.serialize_pem(), ""), "two certificates and two keys"),
            (
                whole.replace(&own.authority_key.serialize_pem(), &other.authority_key.serialize_pem()),
                "the key of the authority does not",
            ),
            (
                whole.replace(&own.admin_key.serialize_pem(), &other.admin_key.serialize_pem()),
                "the key of the administrator does not",
            ),
            (
                whole
                    .replace(&own.admin_key.serialize_pem(), &other.admin_key.serialize_pem())
                    .replace(&pem(&own.admin), &pem(&other.admin)),
                "certificate",
            ),
        ] {
            fs::write(folder.join(FILE), &text).unwrap();
            let error = StoredIdentity::in_folder(&folder, Timestamp::now()).err().unwrap().to_string();
            assert!(
                error.contains(why) && error.contains("identity.pem: ") && error.contains("remove the file"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(folder.join(FILE)).unwrap(), text);
        }
    }
}
