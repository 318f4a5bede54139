//! The certificates of a server: an authority and its administrator, which a folder keeps, and the server's own.

use std::{net::IpAddr, path::Path, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
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

use crate::store::private::{read_kept, write_private};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The file of a folder with the authority, the administrator, and the keys of both, in one: they belong together.
const FILE: &str = "identity.pem";
/// Authority and administrator are valid for so long, which is what kubeadm gives its authorities: ten years.
const VALID: SignedDuration = SignedDuration::from_hours(24 * 3_650);
/// At the start, certificates that run out within this time are replaced.
const LEFT_MIN: SignedDuration = SignedDuration::from_hours(24 * 30);

/// An authority and the administrator whose certificate it has signed.
struct Kept {
    authority: CertificateDer<'static>,
    authority_key: KeyPair,
    admin: CertificateDer<'static>,
    admin_key: KeyPair,
}

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

fn authority_params() -> CertificateParams {
    let mut params = named("kctl-apiserver", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

impl Kept {
    fn new(now: Timestamp) -> Result<Self, Failure> {
        let until = now.checked_add(VALID)?.to_zoned(TimeZone::UTC).date();
        let until = date_time_ymd(until.year().into(), until.month().unsigned_abs(), until.day().unsigned_abs());
        let authority_key = KeyPair::generate()?;
        let mut params = authority_params();
        params.not_after = until;
        let authority = params.self_signed(&authority_key)?;

        let mut params = named("kubernetes-admin", Some("system:masters"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = until;
        let admin_key = KeyPair::generate()?;
        let admin = params.signed_by(&admin_key, &Issuer::from_params(&authority_params(), &authority_key))?;
        Ok(Self { authority: authority.into(), authority_key, admin: admin.into(), admin_key })
    }

    /// Those of a folder; new ones where there are none, and where they run out.
    fn in_folder(folder: &Path, now: Timestamp) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let file = path.display();
        let broken = |why: Failure| {
            format!(
                "{file}: these are not the certificates that kctl has written: {why}; put back a copy, or remove the file for \
                 new ones, with which every kubeconfig has to be written anew"
            )
        };
        if let Some(text) = read_kept(&path).map_err(|error| format!("{file}: {error}"))? {
            let kept = Self::parse(&text).map_err(broken)?;
            if kept.is_valid_at(now.checked_add(LEFT_MIN)?).map_err(broken)? {
                return Ok(kept);
            }
            tracing::warn!(%file, "the certificates run out and are replaced: every kubeconfig has to be written anew");
        }
        let made = Self::new(now)?;
        write_private(&path, &made.text()).map_err(|error| format!("{file}: {error}; make the folder writable"))?;
        Ok(made)
    }

    /// The parts as PEM.
    fn text(&self) -> String {
        let (authority_key, admin_key) = (self.authority_key.serialize_pem(), self.admin_key.serialize_pem());
        format!("{}{authority_key}{}{admin_key}", pem(&self.authority), pem(&self.admin))
    }

    fn parse(text: &str) -> Result<Self, Failure> {
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
            // A certificate has its public key as it is.
            let public = key.subject_public_key_info();
            if !certificate.windows(public.len()).any(|part| part == public) {
                return Err(format!("the key of the {whose} is not that of the certificate").into());
            }
        }
        Ok(Self { authority, authority_key, admin, admin_key })
    }

    /// Whether both certificates are valid then.
    ///
    /// # Errors
    /// The authority has not signed the administrator's certificate.
    fn is_valid_at(&self, time: Timestamp) -> Result<bool, Failure> {
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

/// A certificate in PEM, whose lines have 64 characters.
fn pem(certificate: &CertificateDer<'_>) -> String {
    let text = BASE64_STANDARD.encode(certificate);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.extend([line, "\n"]);
        rest = after;
    }
    pem + "-----END CERTIFICATE-----\n"
}

/// Clients whose certificate is one of the authority's, and those without.
fn clients(authority: &CertificateDer<'static>) -> Result<Arc<dyn ClientCertVerifier>, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone())?;
    let provider = Arc::new(ring::default_provider());
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated().build()?)
}

impl Identity {
    /// The identity that a folder keeps, or one for this start only. The server's own certificate is new at each start.
    pub(super) fn new(address: IpAddr, folder: Option<&Path>) -> Result<Self, Failure> {
        let now = Timestamp::now();
        let kept = folder.map_or_else(|| Kept::new(now), |folder| Kept::in_folder(folder, now))?;
        let mut params = named("kctl-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![SanType::DnsName("localhost".try_into()?), SanType::IpAddress(address)];
        let server_key = KeyPair::generate()?;
        let server = params.signed_by(&server_key, &Issuer::new(authority_params(), &kept.authority_key))?;
        Ok(Self {
            authority_pem: pem(&kept.authority),
            authority: kept.authority,
            server: (server.der().clone(), server_key.serialize_der()),
            admin_pem: pem(&kept.admin),
            admin_key_pem: kept.admin_key.serialize_pem(),
            admin: kept.admin,
        })
    }

    /// Whether these are the administrator's certificates.
    pub(super) fn is_admin(&self, certificates: &[CertificateDer<'_>]) -> bool {
        certificates.first().is_some_and(|certificate| certificate.as_ref() == self.admin.as_ref())
    }

    /// The digest of the administrator's certificate, as reviews name it: SHA-256 in hexadecimal letters.
    pub(super) fn admin_digest(&self) -> String {
        let digest = ::ring::digest::digest(&::ring::digest::SHA256, self.admin.as_ref());
        digest.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    pub(super) fn tls(&self) -> Result<Arc<ServerConfig>, Failure> {
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
    use std::{fs, path::PathBuf};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("kctl-identity-{name}-{}", std::process::id()));
        let _absent = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn certificates_are_kept_until_they_run_out() {
        let folder = folder("kept");
        let start = Timestamp::now();
        let first = Kept::in_folder(&folder, start).unwrap();
        for (days, is_kept) in [(0, true), (365, true), (3_619, true), (3_622, false)] {
            let now = start + SignedDuration::from_hours(24 * days);
            let again = Kept::in_folder(&folder, now).unwrap();
            assert_eq!(again.authority == first.authority, is_kept, "after {days} days");
            assert_eq!(again.text() == first.text(), is_kept, "after {days} days");
            assert!(again.is_valid_at(now).unwrap(), "after {days} days");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_is_broken_is_told_and_left_as_it_is() {
        let folder = folder("broken");
        let (own, other) = (Kept::new(Timestamp::now()).unwrap(), Kept::new(Timestamp::now()).unwrap());
        let whole = own.text();
        for (text, why) in [
            (String::new(), "two certificates and two keys"),
            ("nonsense".into(), "two certificates and two keys"),
            (whole[..whole.len() / 2].to_owned(), "a block of PEM in it is not whole"),
            (whole.replace(&own.authority_key.serialize_pem(), ""), "two certificates and two keys"),
            (
                whole.replace(&own.authority_key.serialize_pem(), &other.authority_key.serialize_pem()),
                "the key of the authority is not",
            ),
            (
                whole.replace(&own.admin_key.serialize_pem(), &other.admin_key.serialize_pem()),
                "the key of the administrator is not",
            ),
            (
                whole
                    .replace(&own.admin_key.serialize_pem(), &other.admin_key.serialize_pem())
                    .replace(&pem(&own.admin), &pem(&other.admin)),
                "certificate",
            ),
        ] {
            fs::write(folder.join(FILE), &text).unwrap();
            let error = Kept::in_folder(&folder, Timestamp::now()).err().unwrap().to_string();
            assert!(
                error.contains(why) && error.contains("identity.pem: ") && error.contains("remove the file"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(folder.join(FILE)).unwrap(), text);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
