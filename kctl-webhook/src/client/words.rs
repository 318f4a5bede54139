//! Errors of a connection in the words of Go's client: those that people know and search for.

use std::{error::Error, io, time::Duration};

use http::Uri;
use jiff::Timestamp;
use tokio_rustls::rustls::{self, CertificateError, pki_types::ServerName};

/// Returns the reason why a request has no response.
pub(super) fn of_request(error: &(dyn Error + 'static), to: &Uri) -> String {
    for cause in causes(error) {
        if let Some(error) = cause.downcast_ref() {
            return of_tls(error);
        }
        if cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
            return "EOF".into();
        }
        if cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return format!("net/http: HTTP/1.x transport connection broken: malformed HTTP response: {cause}");
        }
        if let Some(error) = cause.downcast_ref::<io::Error>().and_then(|error| of_socket(error, to)) {
            return error;
        }
    }
    // The outermost error is hyper-util's own and has no details.
    chained(error.source().unwrap_or(error))
}

/// Returns the reason why a response did not end.
pub(super) fn of_body(error: &(dyn Error + 'static)) -> String {
    let is_short = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
            || cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
    };
    if causes(error).any(is_short) { "unexpected EOF".into() } else { chained(error) }
}

/// Returns an error and its sources. `io::Error` shows the source of its inner error as its own, so
/// the inner error is visited too.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = carried.map(|error| error as &(dyn Error + 'static)).or_else(|| error.source());
        Some(error)
    })
}

fn of_socket(error: &io::Error, to: &Uri) -> Option<String> {
    let host = to.host().unwrap_or_default();
    let text = error.to_string();
    Some(match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {host}:{}: connect: connection refused", to.port_u16().unwrap_or(443))
        }
        io::ErrorKind::UnexpectedEof => "EOF".into(),
        io::ErrorKind::ConnectionReset => "read: connection reset by peer".into(),
        _ if text.contains("failed to lookup address") => format!("dial tcp: lookup {host}: no such host"),
        _ => return None,
    })
}

fn of_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            format!("tls: failed to verify certificate: x509: {}", of_certificate(error))
        }
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
            "tls: first record does not look like a TLS handshake".into()
        }
        error => format!("tls: {error}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    let time = |since_epoch: Duration| {
        let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
    };
    let untimely = |now: Duration, which: &str, bound: Duration| {
        let (now, bound) = (time(now), time(bound));
        format!("certificate has expired or is not yet valid: current time {now} is {which} {bound}")
    };
    match error {
        // The signature is bad if another authority of the same name signed the certificate.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".into()
        }
        // The certificate is that of an authority that is not trusted.
        CertificateError::Other(other) if other.0.to_string() == crate::trust::IS_AUTHORITY => {
            "certificate signed by unknown authority".into()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            untimely(since_epoch(*time), "after", since_epoch(*not_after))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            untimely(since_epoch(*time), "before", since_epoch(*not_before))
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".into()
        }
        CertificateError::NotValidForNameContext { expected, presented } => of_names(expected, presented),
        error => error.to_string(),
    }
}

fn since_epoch(time: rustls::pki_types::UnixTime) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// Returns Go's `x509.HostnameError`. A certificate without any name is an old one with only a
/// common name.
fn of_names(expected: &ServerName<'_>, presented: &[String]) -> String {
    let names = |prefix: &str| -> Vec<&str> {
        let matching = presented.iter().filter_map(|name| name.strip_prefix(prefix)?.strip_suffix(')'));
        matching.map(|name| name.trim_matches('"')).collect()
    };
    let (server_name, is_address) = (expected.to_str(), matches!(expected, ServerName::IpAddress(_)));
    let names = names(if is_address { "IpAddress(" } else { "DnsName(" });
    match (names.is_empty(), is_address) {
        (true, true) => {
            format!("cannot validate certificate for {server_name} because it doesn't contain any IP SANs")
        }
        (true, false) if presented.is_empty() => {
            "certificate relies on legacy Common Name field, use SANs instead".into()
        }
        (true, false) => format!("certificate is not valid for any names, but wanted to match {server_name}"),
        (false, _) => format!("certificate is valid for {}, not {server_name}", names.join(", ")),
    }
}

/// Joins an error with its sources.
fn chained(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, sync::Arc};

    use base64::{Engine, engine::general_purpose::STANDARD};
    use bytes::Bytes;
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        time::Instant,
    };
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer},
    };

    use super::*;
    use crate::client::Client;

    type Authority = CertifiedIssuer<'static, KeyPair>;

    fn authority() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    fn trusted(authority: &Authority) -> String {
        STANDARD.encode(authority.pem())
    }

    /// Answers everything with these bytes behind TLS, with a certificate of the authority.
    async fn serve(authority: &Authority, params: CertificateParams, answer: &'static str) -> SocketAddr {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, authority).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        let (listener, acceptor) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), TlsAcceptor::from(Arc::new(config)));
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(socket).await else { continue };
                let _read = stream.read(&mut [0; 4096]).await;
                let _written = stream.write_all(answer.as_bytes()).await;
            }
        });
        address
    }

    async fn request(url: &str, trusted: &str) -> String {
        let client = Client::new(url.parse().unwrap(), trusted, "test", Arc::new(|_: &Uri| Ok(None))).unwrap();
        let answer = client.ask(&Bytes::from_static(b"{}"), Instant::now() + Duration::from_secs(10)).await;
        let text = match answer {
            Ok(answer) => format!("{:?}", answer.body()),
            Err(error) => error.to_string(),
        };
        text.replace(url, "URL")
    }

    fn named(names: &[&str]) -> CertificateParams {
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    /// The messages were recorded from kube-apiserver 1.36.
    #[tokio::test]
    async fn certificate_errors_have_go_messages() {
        let ours = authority();
        let (mut old, mut young, mut client) = (named(&["127.0.0.1"]), named(&["127.0.0.1"]), named(&["127.0.0.1"]));
        old.not_after = date_time_ymd(2021, 1, 1);
        young.not_before = date_time_ymd(3021, 1, 1);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (other, ours_trusted) = (trusted(&authority()), trusted(&ours));
        for (params, host, trusted, expected) in [
            (named(&["127.0.0.1"]), "127.0.0.1", &other, "certificate signed by unknown authority"),
            (
                named(&["localhost"]),
                "127.0.0.1",
                &ours_trusted,
                "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
            ),
            (
                named(&["10.0.0.1", "10.0.0.2", "localhost"]),
                "127.0.0.1",
                &ours_trusted,
                "certificate is valid for 10.0.0.1, 10.0.0.2, not 127.0.0.1",
            ),
            (
                named(&["a.example.com", "b.example.com"]),
                "localhost",
                &ours_trusted,
                "certificate is valid for a.example.com, b.example.com, not localhost",
            ),
            (
                named(&["10.0.0.1"]),
                "localhost",
                &ours_trusted,
                "certificate is not valid for any names, but wanted to match localhost",
            ),
            (
                named(&[]),
                "localhost",
                &ours_trusted,
                "certificate relies on legacy Common Name field, use SANs instead",
            ),
            (client, "127.0.0.1", &ours_trusted, "certificate specifies an incompatible key usage"),
            (old, "127.0.0.1", &ours_trusted, "is after 2021-01-01T00:00:00Z"),
            (young, "127.0.0.1", &ours_trusted, "is before 3021-01-01T00:00:00Z"),
        ] {
            let address = serve(&ours, params, "").await;
            let found = request(&format!("https://{host}:{}/x", address.port()), trusted).await;
            let prefix = "Post \"URL\": tls: failed to verify certificate: x509: ";
            assert!(found.starts_with(prefix) && found.ends_with(expected), "{expected}: {found}");
            assert_eq!(found.contains("has expired or is not yet valid: current time 2"), expected.starts_with("is "));
        }
    }

    #[tokio::test]
    async fn connection_errors_have_go_messages() {
        let ours = authority();
        for (answer, expected) in [
            ("", "Post \"URL\": EOF"),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
                "unexpected error when reading response body. Please retry. Original error: unexpected EOF",
            ),
            ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell", "b\"well\""),
        ] {
            let address = serve(&ours, named(&["127.0.0.1"]), answer).await;
            assert_eq!(request(&format!("https://{address}/x"), &trusted(&ours)).await, expected, "{answer}");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let deaf = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _read = socket.read(&mut [0; 16]).await;
            socket.write_all(b"SSH-2.0-Server\r\n").await.unwrap();
        });
        let found = request(&format!("https://{address}/x"), &trusted(&ours)).await;
        assert_eq!(found, "Post \"URL\": tls: first record does not look like a TLS handshake");
        deaf.await.unwrap();
        let found = request(&format!("https://{address}/x"), &trusted(&ours)).await;
        assert_eq!(found, format!("Post \"URL\": dial tcp {address}: connect: connection refused"));
        let found = request("https://nobody.invalid/x", &trusted(&ours)).await;
        assert_eq!(found, "Post \"URL\": dial tcp: lookup nobody.invalid: no such host");
    }
}
