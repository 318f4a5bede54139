//! Problems for which clients reject a certificate that files provide: its validity period and its names.
//!
//! `webpki` reads them: its errors name the end of the period and the names, so no parser of certificates is needed.

use std::{path::Path, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio_rustls::rustls::{
    CertificateError, Error, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier, verify_server_name},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// A certificate that expires within this time is logged, while there is time to replace it.
const EXPIRES_SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A reason for which clients reject a certificate, now or soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CertificateProblem {
    /// The validity period has ended.
    Expired { not_after: Timestamp },
    /// The validity period ends within [`EXPIRES_SOON`].
    ExpiresSoon { not_after: Timestamp },
    /// The validity period has not begun.
    NotYetValid { not_before: Timestamp },
    /// Clients call a host that is not among the names.
    HostMissing { host: String, names: Vec<String> },
}

impl CertificateProblem {
    /// Logs the problem of the certificate in a file, with its remedy.
    pub(super) fn log(&self, file: &Path) {
        let file = file.display();
        let remedy = "replace the certificate and its key; the files are read again every 10s";
        match self {
            Self::Expired { not_after } => {
                tracing::warn!(%file, %not_after, remedy, "the webhook's certificate has expired");
            }
            Self::ExpiresSoon { not_after } => {
                tracing::warn!(%file, %not_after, remedy, "the webhook's certificate expires soon");
            }
            Self::NotYetValid { not_before } => {
                let remedy = "check the clock, or replace the certificate and its key";
                tracing::warn!(%file, %not_before, remedy, "the webhook's certificate is not valid yet");
            }
            Self::HostMissing { host, names } => {
                let (names, remedy) = (names.join(", "), "add the host to the certificate's subjectAltName");
                tracing::warn!(%file, host, names, remedy, "the webhook's certificate does not cover the host");
            }
        }
    }
}

/// Returns the problems of a certificate that clients call by these hosts.
pub(super) fn problems(certificate: &CertificateDer<'_>, hosts: &[String], now: Timestamp) -> Vec<CertificateProblem> {
    let validity = validity_problem(certificate, now).into_iter();
    validity.chain(hosts.iter().filter_map(|host| missing_host(certificate, host))).collect()
}

fn validity_problem(certificate: &CertificateDer<'_>, now: Timestamp) -> Option<CertificateProblem> {
    let seconds = u64::try_from(now.as_second()).ok()?;
    let at_present = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    if let Some(CertificateError::NotValidYetContext { not_before, .. }) = verification_error(certificate, at_present) {
        return Some(CertificateProblem::NotYetValid { not_before: timestamp(not_before)? });
    }
    // At the end of time each certificate has expired, and the error names the end of its period.
    let end_of_time = UnixTime::since_unix_epoch(Duration::MAX);
    let Some(CertificateError::ExpiredContext { not_after, .. }) = verification_error(certificate, end_of_time) else {
        return None;
    };
    let not_after = timestamp(not_after)?;
    let left = not_after.duration_since(now);
    if left.is_negative() {
        return Some(CertificateProblem::Expired { not_after });
    }
    (left < EXPIRES_SOON).then_some(CertificateProblem::ExpiresSoon { not_after })
}

/// Returns the time; `None` for the end of the year 9999, which means that a certificate does not expire.
fn timestamp(time: UnixTime) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(time.as_secs()).ok()?).ok()
}

/// Returns the error of a certificate at a time. `webpki` checks the validity period first.
fn verification_error(certificate: &CertificateDer<'_>, time: UnixTime) -> Option<CertificateError> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).ok()?;
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
    let any_name = ServerName::try_from("localhost").ok()?;
    match verifier.verify_server_cert(certificate, &[], &any_name, &[], time) {
        Err(Error::InvalidCertificate(error)) => Some(error),
        _ => None,
    }
}

/// Returns the problem of a host that is not among the names of a certificate.
fn missing_host(certificate: &CertificateDer<'_>, host: &str) -> Option<CertificateProblem> {
    let name = ServerName::try_from(host).ok()?;
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let names = match verify_server_name(&parsed, &name) {
        Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. })) => presented,
        Err(Error::InvalidCertificate(CertificateError::NotValidForName)) => Vec::new(),
        _ => return None,
    };
    let names = names.iter().map(|name| plain_name(name).to_owned()).collect();
    Some(CertificateProblem::HostMissing { host: host.to_owned(), names })
}

/// Returns a name without the type that `webpki` writes around it: `DnsName("a.b")` is `a.b`.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_type, inner)| inner.trim_end_matches(')'));
    inner.trim_matches('"')
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    const NOT_AFTER: &str = "2026-03-10T00:00:00Z";

    /// Returns a certificate that is valid from January 10 to March 10 of 2026.
    fn certificate() -> CertificateDer<'static> {
        let names = ["web.system.svc", "*.example.com", "192.0.2.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2026, 1, 10);
        params.not_after = date_time_ymd(2026, 3, 10);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn validity_problem_depends_on_the_time() {
        let (certificate, not_after) = (certificate(), time(NOT_AFTER));
        for (now, expected) in [
            (
                "2026-01-09T23:59:59Z",
                Some(CertificateProblem::NotYetValid { not_before: time("2026-01-10T00:00:00Z") }),
            ),
            ("2026-01-10T00:00:00Z", None),
            ("2026-03-03T00:00:00Z", None),
            ("2026-03-03T00:00:01Z", Some(CertificateProblem::ExpiresSoon { not_after })),
            (NOT_AFTER, Some(CertificateProblem::ExpiresSoon { not_after })),
            ("2026-03-10T00:00:01Z", Some(CertificateProblem::Expired { not_after })),
        ] {
            assert_eq!(validity_problem(&certificate, time(now)), expected, "{now}");
        }
    }

    #[test]
    fn host_outside_of_the_names_is_a_problem() {
        let (certificate, now) = (certificate(), time("2026-02-01T00:00:00Z"));
        for host in ["web.system.svc", "web.example.com", "192.0.2.1"] {
            let found = problems(&certificate, &[host.to_owned()], now);
            assert!(found.is_empty(), "{host}: {found:?}");
        }
        let names: Vec<_> = ["web.system.svc", "*.example.com", "192.0.2.1"].map(str::to_owned).into();
        for host in ["web.other.svc", "192.0.2.2", "::1"] {
            let (host, names) = (host.to_owned(), names.clone());
            let expected = CertificateProblem::HostMissing { host: host.clone(), names };
            assert_eq!(problems(&certificate, &[host], now), [expected]);
        }
    }
}
