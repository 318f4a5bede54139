//! Tests of connections through HTTP and SOCKS proxies, with the requests that their protocols
//! prescribe.

use super::*;

#[tokio::test]
async fn proxy_receives_a_connect_request() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = TestServer::start(100).await.config();
    config.proxy_url = Some(format!("http://{}", proxy.local_addr().unwrap()).parse().unwrap());
    let host = config.cluster_url.authority().unwrap().to_string();
    let by = with_limits(config, Limits::default()).unwrap().build();
    let request = tokio::spawn(async move { by.send(get("/version")).await.map(drop) });
    let (mut stream, _peer) = timeout(SOON, proxy.accept()).await.unwrap().unwrap();
    let mut head = vec![0; 1024];
    let n = stream.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..n]).into_owned();
    assert!(head.starts_with(&format!("CONNECT {host} HTTP/1.1")), "{head}");
    stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
    assert!(request.await.unwrap().is_err());
}

/// A SOCKS5 proxy (RFC 1928, RFC 1929) for one user, which reports its connections.
async fn socks(listener: TcpListener, name: &'static [u8], password: &'static [u8], to: std::net::SocketAddr) {
    while let Ok((mut stream, _peer)) = listener.accept().await {
        tokio::spawn(async move {
            let mut greeting = [0; 2];
            stream.read_exact(&mut greeting).await.unwrap();
            let mut methods = vec![0; greeting[1].into()];
            stream.read_exact(&mut methods).await.unwrap();
            assert!(greeting[0] == 5 && methods.contains(&2), "a user is offered: {methods:?}");
            stream.write_all(&[5, 2]).await.unwrap();
            let wanted =
                [&[1, u8::try_from(name.len()).unwrap()], name, &[u8::try_from(password.len()).unwrap()], password];
            let mut given = vec![0; wanted.concat().len()];
            stream.read_exact(&mut given).await.unwrap();
            let is_known = given == wanted.concat();
            stream.write_all(&[1, u8::from(!is_known)]).await.unwrap();
            if !is_known {
                return;
            }
            let mut request = [0; 10];
            stream.read_exact(&mut request).await.unwrap();
            assert_eq!(request[..4], [5, 1, 0, 1], "connect to an address of version 4");
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
            let mut server = tokio::net::TcpStream::connect(to).await.unwrap();
            let _ended = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
        });
    }
}

#[tokio::test]
async fn socks_proxy_gets_credentials_and_watches_share_it() {
    let (server, proxy) = (TestServer::start(100).await, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let (mut config, at) = (server.config(), proxy.local_addr().unwrap());
    let to = config.cluster_url.authority().unwrap().as_str().parse().unwrap();
    tokio::spawn(socks(proxy, b"me@corp", b"a:b", to));
    config.proxy_url = Some(format!("socks5h://me%40corp:a%3Ab@{at}").parse().unwrap());
    let by = with_limits(config.clone(), Limits::default()).unwrap().build();
    ask(&by, get("/version")).await;
    let _open = watches(&by, 3).await;
    assert_eq!(by_connection(&server), [1, 3]);
    config.proxy_url = Some(format!("socks5://me%40corp:a%3Ac@{at}").parse().unwrap());
    let by = with_limits(config.clone(), Limits::default()).unwrap().build();
    timeout(SOON, by.send(get("/version"))).await.expect("an answer").expect_err("a wrong password");
    config.proxy_url = Some(format!("socks5://me:{}@{at}", "a".repeat(256)).parse().unwrap());
    let error = with_limits(config, Limits::default()).err().unwrap().to_string();
    assert!(error.contains("255 bytes"), "{error}");
}
