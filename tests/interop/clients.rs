//! Clients with TLS libraries other than Go's and Rust's trust the embedded API server by its kubeconfig.

use std::process::{Command, Output};

use base64::{Engine, prelude::BASE64_STANDARD};
use kctl_apiserver::{ApiServer, ServeOptions};

use crate::go::Folder;

/// Requests a namespace with the administrator's certificate. Python 3.13 and later set `VERIFY_X509_STRICT` by
/// default.
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

/// Returns the base64-decoded value of a kubeconfig field.
fn decode_field(kubeconfig: &str, field: &str) -> Vec<u8> {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(field)).expect("the field is there");
    BASE64_STANDARD.decode(line.trim_start_matches(':').trim()).expect("it is base64")
}

/// A server that listens on all addresses, as for containers, and the certificates of its kubeconfig as files.
struct Served {
    folder: Folder,
    url: String,
}

impl Served {
    async fn start(name: &str) -> Self {
        let folder = Folder::new(name);
        let server = ApiServer::on_system_time();
        let options = ServeOptions::default().address(std::net::Ipv4Addr::UNSPECIFIED.into());
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
            std::fs::write(folder.0.join(file), decode_field(&kubeconfig, field)).expect("the file is written");
        }
        Self { folder, url }
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let output = Command::new(program).args(arguments).current_dir(&self.folder.0).output();
        output.unwrap_or_else(|error| panic!("{program}: {error}"))
    }

    /// Runs a program in the folder of the files, and checks that its output contains `expected`.
    fn assert_prints(&self, program: &str, arguments: &[&str], expected: &str) {
        let output = self.run(program, arguments);
        let (printed, problem) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(printed.contains(expected), "{program}: {printed}{problem}");
    }
}

/// fabric8 (Java) treats every other form of a key as RSA.
#[tokio::test(flavor = "multi_thread")]
async fn kubeconfig_key_is_in_a_form_java_reads() {
    let served = Served::start("clients-key").await;
    let key = std::fs::read_to_string(served.folder.0.join("key.pem")).expect("the key is there");
    assert!(key.starts_with("-----BEGIN EC PRIVATE KEY-----"), "the form of the key");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs curl: cargo xtask interop"]
async fn curl_trusts_the_kubeconfig() {
    let served = Served::start("clients-curl").await;
    let (host, port) = served.url.trim_start_matches("https://").rsplit_once(':').expect("the URL has a port");
    let status =
        ["-sS", "--cacert", "ca.pem", "--cert", "client.pem", "--key", "key.pem", "-o", "body", "-w", "%{http_code}"];
    let namespace = format!("{}/api/v1/namespaces/default", served.url);
    served.assert_prints("curl", &[&status[..], &[&namespace]].concat(), "200");
    let resolve = format!("api.example.com:{port}:{host}");
    let named = format!("https://api.example.com:{port}/api/v1/namespaces/default");
    served.assert_prints("curl", &[&status[..], &["--resolve", &resolve, &named]].concat(), "200");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs openssl: cargo xtask interop"]
async fn openssl_trusts_the_kubeconfig() {
    let served = Served::start("clients-openssl").await;
    let connect = served.url.trim_start_matches("https://");
    let output = served.run(
        "openssl",
        &["s_client", "-x509_strict", "-brief", "-verify_return_error", "-CAfile", "ca.pem", "-connect", connect],
    );
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("Verification: OK"), "openssl: {printed}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Python: cargo xtask interop"]
async fn python_trusts_the_kubeconfig() {
    let served = Served::start("clients-python").await;
    served.assert_prints("python3", &["-c", PYTHON, &served.url], "200");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Python client `kubernetes`: cargo xtask interop"]
async fn kubernetes_of_pypi_trusts_the_kubeconfig() {
    Served::start("clients-pypi").await.assert_prints("python3", &["-c", PYTHON_CLIENT], "200");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node.js: cargo xtask interop"]
async fn node_trusts_the_kubeconfig() {
    let served = Served::start("clients-node").await;
    served.assert_prints("node", &["-e", NODE, &served.url], "200");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Java: cargo xtask interop"]
async fn java_trusts_the_kubeconfig() {
    let served = Served::start("clients-java").await;
    std::fs::write(served.folder.0.join("Trust.java"), JAVA).expect("the program is written");
    served.assert_prints("java", &["Trust.java", &served.url], "200");
}
