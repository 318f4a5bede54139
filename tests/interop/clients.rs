//! Clients with other TLS libraries than Go's and Rust's trust the embedded API server by the kubeconfig that it writes.

use std::{
    path::Path,
    process::{Command, Output},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use kctl_apiserver::{ApiServer, ServeOptions};

use crate::go::Folder;

/// Asks for a namespace as the administrator; the flag is what Python sets by itself since 3.13.
const PYTHON: &str = "
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile='ca.pem')
context.verify_flags |= ssl.VERIFY_X509_STRICT
context.load_cert_chain('client.pem', 'key.pem')
print(urllib.request.urlopen(sys.argv[1] + '/api/v1/namespaces/default', context=context).status)
";
const PYTHON_CLIENT: &str = "
from kubernetes import client, config
config.load_kube_config('kubeconfig')
print(200 if client.CoreV1Api().read_namespace('default').metadata.name == 'default' else 0)
";
const NODE: &str = "
const https = require('https'), fs = require('fs');
const options = { ca: fs.readFileSync('ca.pem'), cert: fs.readFileSync('client.pem'), key: fs.readFileSync('key.pem') };
https.get(process.argv[1] + '/api/v1/namespaces/default', options, (answer) => { console.log(answer.statusCode); process.exit(0); })
    .on('error', (error) => { console.log(error.message); process.exit(1); });
";
const JAVA: &str = r#"
import java.io.*; import java.net.*; import java.security.*; import java.security.cert.*; import javax.net.ssl.*;
public class Trust {
    public static void main(String[] arguments) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream pem = new FileInputStream("ca.pem")) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        HttpsURLConnection connection = (HttpsURLConnection) new URL(arguments[0] + "/version").openConnection();
        connection.setSSLSocketFactory(context.getSocketFactory());
        System.out.println(connection.getResponseCode());
    }
}
"#;

/// What `sections` of a kubeconfig holds in base64.
fn decoded(kubeconfig: &str, field: &str) -> Vec<u8> {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(field)).expect("the field is there");
    BASE64_STANDARD.decode(line.trim_start_matches(':').trim()).expect("it is base64")
}

/// Runs a program in a folder. `None`, with a message, where this machine does not have it.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).current_dir(folder).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}

fn assert_says(program: &str, output: Option<Output>, expected: &str) {
    let Some(output) = output else { return };
    let (said, problem) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(expected), "{program}: {said}{problem}");
}

/// A server on every address of the machine, as one that containers reach.
#[tokio::test(flavor = "multi_thread")]
async fn clients_with_openssl_and_java_trust_the_kubeconfig() {
    let folder = Folder::new("clients");
    let server = ApiServer::on_system_time();
    let options = ServeOptions { address: std::net::Ipv4Addr::UNSPECIFIED.into(), port: 0 };
    let listening = server.listen_as(options, &["api.example.com".to_owned()]).await.expect("a port is free");
    let url = listening.url();
    listening.write_kubeconfig(&folder.0.join("kubeconfig")).expect("the kubeconfig is written");
    let kubeconfig = listening.kubeconfig();
    tokio::spawn(listening.serve());
    for (file, field) in [
        ("ca.pem", "certificate-authority-data"),
        ("client.pem", "client-certificate-data"),
        ("key.pem", "client-key-data"),
    ] {
        std::fs::write(folder.0.join(file), decoded(&kubeconfig, field)).expect("the file is written");
    }
    // fabric8 (Java) takes any other key for one of RSA.
    let key = std::fs::read_to_string(folder.0.join("key.pem")).expect("the key is there");
    assert!(key.starts_with("-----BEGIN EC PRIVATE KEY-----"), "the form of the key");

    let place = folder.0.clone();
    let asked = tokio::task::spawn_blocking(move || ask_all(&place, &url));
    asked.await.expect("all clients are answered");
}

fn ask_all(folder: &Path, url: &str) {
    let (host, port) = url.trim_start_matches("https://").rsplit_once(':').expect("the URL has a port");
    let status =
        ["-sS", "--cacert", "ca.pem", "--cert", "client.pem", "--key", "key.pem", "-o", "body", "-w", "%{http_code}"];
    let namespace = format!("{url}/api/v1/namespaces/default");
    assert_says("curl", run(folder, "curl", &[&status[..], &[&namespace]].concat()), "200");
    let resolve = format!("api.example.com:{port}:{host}");
    let named = format!("https://api.example.com:{port}/api/v1/namespaces/default");
    assert_says("curl", run(folder, "curl", &[&status[..], &["--resolve", &resolve, &named]].concat()), "200");
    let connect = format!("{host}:{port}");
    let openssl =
        ["s_client", "-x509_strict", "-brief", "-verify_return_error", "-CAfile", "ca.pem", "-connect", &connect];
    if let Some(output) = run(folder, "openssl", &openssl) {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("Verification: OK"), "openssl: {said}");
    }
    assert_says("python3", run(folder, "python3", &["-c", PYTHON, url]), "200");
    match run(folder, "python3", &["-c", "import kubernetes"]) {
        Some(output) if output.status.success() => {
            assert_says("kubernetes of PyPI", run(folder, "python3", &["-c", PYTHON_CLIENT]), "200");
        }
        _ => eprintln!("skipped: the Python client `kubernetes` is not installed"),
    }
    assert_says("node", run(folder, "node", &["-e", NODE, url]), "200");
    std::fs::write(folder.join("Trust.java"), JAVA).expect("the program is written");
    assert_says("java", run(folder, "java", &["Trust.java", url]), "200");
}
