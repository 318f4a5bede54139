//! Tests of the errors of a client whose server has a wrong certificate or breaks the connection.

use std::net::SocketAddr;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer},
};

use super::*;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn ca_bundle(authority: &Authority) -> String {
    STANDARD.encode(authority.pem())
}

/// Answers everything with these bytes behind TLS, with a certificate of the authority.
async fn serve(authority: &Authority, params: CertificateParams, response: &'static str) -> SocketAddr {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
        .unwrap();
    let (listener, acceptor) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), TlsAcceptor::from(Arc::new(config)));
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let _read = stream.read(&mut [0; 4096]).await;
            let _written = stream.write_all(response.as_bytes()).await;
        }
    });
    address
}

async fn request(url: &str, trusted: &str) -> String {
    let client = Client::new(url.parse().unwrap(), trusted, "test", Arc::new(|_: &Uri| Ok(None))).unwrap();
    let response = client.call(&Bytes::from_static(b"{}"), Instant::now() + Duration::from_secs(10)).await;
    let text = match response {
        Ok(response) => format!("{:?}", response.body()),
        Err(error) => error.to_string(),
    };
    text.replace(url, "URL")
}

fn certificate_params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

#[tokio::test]
async fn wrong_certificate_is_rejected_with_the_reason() {
    let ours = authority();
    let (mut old, mut young, mut client) =
        (certificate_params(&["127.0.0.1"]), certificate_params(&["127.0.0.1"]), certificate_params(&["127.0.0.1"]));
    old.not_after = date_time_ymd(2021, 1, 1);
    young.not_before = date_time_ymd(3021, 1, 1);
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let (other, ours_trusted) = (ca_bundle(&authority()), ca_bundle(&ours));
    for (params, host, trusted, expected) in [
        (certificate_params(&["127.0.0.1"]), "127.0.0.1", &other, "BadSignature"),
        (certificate_params(&["localhost"]), "127.0.0.1", &ours_trusted, "not valid for name \"127.0.0.1\""),
        (
            certificate_params(&["a.example.com"]),
            "localhost",
            &ours_trusted,
            "only valid for DnsName(\"a.example.com\")",
        ),
        (certificate_params(&[]), "localhost", &ours_trusted, "not valid for name \"localhost\""),
        (client, "127.0.0.1", &ours_trusted, "client"),
        (old, "127.0.0.1", &ours_trusted, "certificate expired"),
        (young, "127.0.0.1", &ours_trusted, "certificate not valid yet"),
    ] {
        let address = serve(&ours, params, "").await;
        let found = request(&format!("https://{host}:{}/x", address.port()), trusted).await;
        assert!(found.starts_with("Post \"URL\": ") && found.contains(expected), "{expected}: {found}");
    }
}

#[tokio::test]
async fn broken_connection_is_an_error_with_its_sources() {
    let ours = authority();
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell";
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    for (response, expected) in [(whole, "b\"well\""), (short, "failed to read the response: "), ("", "Post \"URL\": ")]
    {
        let address = serve(&ours, certificate_params(&["127.0.0.1"]), response).await;
        let found = request(&format!("https://{address}/x"), &ca_bundle(&ours)).await;
        assert!(found.contains(expected), "{response}: {found}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let found = request(&format!("https://{address}/x"), &ca_bundle(&ours)).await;
    assert!(found.to_lowercase().contains("connection refused"), "{found}");
    let found = request("https://nobody.invalid/x", &ca_bundle(&ours)).await;
    assert!(found.contains("dns error"), "{found}");
}
