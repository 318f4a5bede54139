//! TLS clients that are slow, stop half way or send no HTTP: the server closes each connection in time, and none delays
//! another client.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use kctl_apiserver::{ApiServer, Listening, ServeOptions};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        self,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

use super::{GROWTH_KB_MAX, REQUESTS_DEFAULT, Rng, number, resident_kb};

/// Number of requests of the other test for each sender of this one.
const REQUESTS_A_SENDER: u64 = 25;
/// Number of concurrent senders.
const AT_A_TIME: u64 = 40;
/// Longest time for which the server may keep a connection: the timeouts of head and body, and a margin.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(180);
/// Time limit of an ordinary request in simulated time.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

const POST: &str =
    "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n";
const TEXTS: &[(&str, &str)] = &[
    ("", ""),
    ("GET / HT", ""),
    ("GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept", ""),
    ("GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", ""),
    ("GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", ""),
    ("GET /\0 HTTP/9.9\r\n\r\n", ""),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", ""),
    (POST, "Content-Length: 1000\r\n\r\n{\"metadata\":{\"name\":"),
    (POST, "Content-Length: 99999999999999999999\r\n\r\n{}"),
    (POST, "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{\"a\":1}"),
    (POST, "Content-Length: 30\r\n\r\n{\"metadata\":{\"name\":\"slow-one\"}}"),
    (POST, "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"met\r\n"),
    (POST, "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
    (POST, "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}"),
    (POST, "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\u{8b}\0\0"),
    (POST, "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"),
];

/// Returns a TLS connector with the administrator's client certificate.
fn connector(listening: &Listening) -> TlsConnector {
    let kubeconfig: Value = serde_saphyr::from_str(&listening.kubeconfig()).unwrap();
    let pem = |at: &str| STANDARD.decode(kubeconfig.pointer(at).and_then(Value::as_str).unwrap()).unwrap();
    let user = |name: &str| pem(&format!("/users/0/user/client-{name}-data"));
    let mut roots = rustls::RootCertStore::empty();
    let authority = pem("/clusters/0/cluster/certificate-authority-data");
    roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(&user("certificate")).unwrap()],
            PrivateKeyDer::from_pem_slice(&user("key")).unwrap(),
        );
    TlsConnector::from(Arc::new(config.unwrap()))
}

async fn connect(address: &str, tls: &TlsConnector) -> TlsStream<TcpStream> {
    let socket = TcpStream::connect(address).await.unwrap();
    tls.connect(ServerName::try_from("127.0.0.1").unwrap(), socket).await.unwrap()
}

/// Sends a request in pieces with pauses. Then waits until the server closes the connection, or closes it first.
async fn send(address: &str, tls: &TlsConnector, seed: u64) {
    let mut rng = Rng::new(seed);
    let (head, rest) = TEXTS[rng.index(TEXTS.len())];
    let mut bytes = format!("{head}{rest}").into_bytes();
    if rng.index(4) == 0 && !bytes.is_empty() {
        let at = rng.index(bytes.len());
        bytes[at] = u8::try_from(rng.index(256)).unwrap();
    }
    if rng.index(10) == 0 {
        bytes.splice(0..0, "x-filler: ".bytes().chain(std::iter::repeat_n(b'a', 600_000)));
    }
    let breaks_off = rng.index(4) == 0;
    let piece_len = 1 + rng.index(bytes.len().max(1));
    let mut pauses = || Duration::from_millis(rng.number() % 9_000);
    if seed.is_multiple_of(8) {
        // This client does not even speak TLS.
        let mut socket = TcpStream::connect(address).await.unwrap();
        let _rejected = socket.write_all(&bytes).await;
        let _ended = socket.read_to_end(&mut Vec::new()).await;
        return;
    }
    let mut stream = connect(address, tls).await;
    for piece in bytes.chunks(piece_len.max(bytes.len() / 8)) {
        // The server may have closed the connection after it rejected the request.
        if stream.write_all(piece).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        sleep(pauses()).await;
    }
    if !breaks_off {
        let _answered_or_cut = stream.read_to_end(&mut Vec::new()).await;
    }
}

/// Returns the status line of an ordinary request.
async fn read_status_line(address: &str, tls: &TlsConnector) -> String {
    let mut stream = connect(address, tls).await;
    let request = b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut response = Vec::new();
    let _without_a_last_word = stream.read_to_end(&mut response).await;
    String::from_utf8_lossy(&response).lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn slow_tls_clients_are_disconnected_without_delaying_others() {
    let n_senders = number("FUZZ_REQUESTS", REQUESTS_DEFAULT) / REQUESTS_A_SENDER;
    let seed = number("FUZZ_SEED", 1);
    let listening = ApiServer::new().listen(ServeOptions::default()).await.unwrap();
    let (address, tls) = (listening.url().replace("https://", ""), connector(&listening));
    let serving = tokio::spawn(listening.serve());
    let mut first_kb = 0;
    for batch in 0..n_senders.div_ceil(AT_A_TIME) {
        let senders = (0..AT_A_TIME).map(|index| {
            let seed = seed.wrapping_mul(1_000_003).wrapping_add(batch * AT_A_TIME + index);
            let sent = timeout(DISCONNECT_TIMEOUT, send(&address, &tls, seed));
            async move { sent.await.unwrap_or_else(|_| panic!("the sender of seed {seed} is never dropped")) }
        });
        let ordinary = async {
            sleep(Duration::from_secs(1)).await;
            let response = timeout(RESPONSE_TIMEOUT, read_status_line(&address, &tls)).await;
            assert_eq!(response.expect("an ordinary client is held up"), "HTTP/1.1 200 OK");
        };
        futures::join!(futures::future::join_all(senders), ordinary);
        if batch == 1 {
            first_kb = resident_kb();
        }
    }
    eprintln!("{n_senders} senders: {first_kb} kB resident after the second batch, {} kB at the end", resident_kb());
    assert!(resident_kb() <= first_kb + GROWTH_KB_MAX, "memory grows: from {first_kb} to {} kB", resident_kb());
    serving.abort();
}
