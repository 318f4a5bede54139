//! A program that reaches its API server through a proxy: named by a flag or by a variable.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use crate::{
    place::Place,
    program::{Given, Program},
};

/// Answers CONNECT and nothing else. Returns its URL and the number of its tunnels.
async fn proxy() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let n_tunnels = Arc::new(AtomicUsize::new(0));
    let counted = n_tunnels.clone();
    tokio::spawn(async move {
        while let Ok((client, _peer)) = listener.accept().await {
            tokio::spawn(tunnel(client, counted.clone()));
        }
    });
    (url, n_tunnels)
}

async fn tunnel(client: TcpStream, counted: Arc<AtomicUsize>) -> std::io::Result<()> {
    let (mut client, mut head) = (BufReader::new(client), String::new());
    while !head.ends_with("\r\n\r\n") {
        assert!(client.read_line(&mut head).await? > 0, "{head}");
    }
    let to = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).expect("a CONNECT");
    let mut server = TcpStream::connect(to).await?;
    counted.fetch_add(1, Ordering::SeqCst);
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_is_reached_through_the_proxy_that_is_named() {
    let place = Place::embedded().await;
    for flag in [true, false] {
        let (url, n_tunnels) = proxy().await;
        let mut given = Given::default();
        if flag {
            given.args.push(format!("--proxy-url={url}"));
        } else {
            given.env.insert("HTTPS_PROXY".into(), url);
        }
        let program = Program::deployed(&place, "quickstart", given).await;
        assert!(n_tunnels.load(Ordering::SeqCst) > 0, "by a flag: {flag}");
        program.was_never_refused().await;
    }
}
