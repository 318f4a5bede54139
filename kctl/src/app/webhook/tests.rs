//! Tests of served webhooks: their configuration, readiness and shutdown.

use super::*;

#[cfg(feature = "dev")]
mod drain;
#[cfg(feature = "karmada")]
mod interpreters;
#[cfg(feature = "dev")]
mod readiness;

#[test]
fn functions_that_block_the_end_are_named() {
    let functions = |n: usize| (1..=n).map(|i| format!("`f{i}` (src/main.rs:{i}) for Pod a/b")).collect::<Vec<_>>();
    let error = |n: usize| still_running(&functions(n)).to_string();
    let one = "1 webhook function is cut off: it blocks its thread and its request has ended: `f1` (src/main.rs:1) for Pod a/b";
    assert_eq!(error(1), one);
    let three = error(3);
    assert!(
        three.starts_with("3 webhook functions are cut off: they block")
            && three.ends_with("b, `f3` (src/main.rs:3) for Pod a/b"),
        "{three}"
    );
    let many = error(5);
    assert!(many.ends_with("`f3` (src/main.rs:3) for Pod a/b and 2 more"), "{many}");
}

#[test]
fn webhook_address_may_lack_its_host() {
    for (text, address) in [(":9443", "[::]:9443"), ("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:9443", "[::1]:9443")] {
        assert_eq!(parse_address(text), Ok(address.parse().unwrap()), "{text}");
    }
    for text in ["", "9443", ":", ":70000", "localhost:9443", "127.0.0.1"] {
        let error = parse_address(text).unwrap_err();
        assert!(
            error.starts_with("not an IP address with a port; write for example `127.0.0.1:9443`"),
            "{text}: {error}"
        );
    }
}

#[test]
fn unregistered_address_comes_with_the_option() {
    let usual = ServeOptions::default;
    assert!(usual().registration_hint().contains("add --write-webhook-config FILE"));
    for registered in [
        ServeOptions { is_registered: true, ..usual() },
        ServeOptions { write_webhook_config: Some("webhook.yaml".into()), ..usual() },
        ServeOptions { webhook_cert_dir: Some("certificates".into()), ..usual() },
        ServeOptions { webhook_secret: Some("web-webhook-tls".into()), ..usual() },
    ] {
        assert_eq!(registered.registration_hint(), "");
    }
}

#[tokio::test]
async fn webhook_port_in_use_names_its_flag() {
    let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut options = ServerOptions::default();
    options.address = taken.local_addr().unwrap();
    let (address, port) = (options.address, options.address.port());
    let error = not_started(Server::listen(Routes::default(), options).await.err().unwrap()).to_string();
    let expected =
        format!("--webhook-bind-address={address}: port {port} is in use; stop what uses it, or choose another port");
    assert_eq!(error, expected);
}

#[cfg(feature = "dev")]
#[tokio::test]
async fn unusable_webhook_files_are_named_with_their_flags() {
    let (nowhere, missing) = (Some("/nonexistent/file".into()), Some("/nonexistent".into()));
    let folder = ServeOptions { webhook_cert_dir: missing, ..ServeOptions::default() };
    let file = ServeOptions { write_webhook_config: nowhere, ..ServeOptions::default() };
    for (options, expected) in [
        (folder, "--webhook-cert-dir: certificate file /nonexistent/tls.crt can't be read"),
        (file, "--write-webhook-config: /nonexistent/file: "),
    ] {
        let error = readiness::app().webhook(&options).await.err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn configuration_is_not_written_through_a_dangling_link() {
    let folder = std::env::temp_dir().join(format!("kctl-webhook-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, target) = (folder.join("config.yaml"), folder.join("elsewhere.yaml"));
    std::os::unix::fs::symlink(&target, &file).unwrap();
    assert!(write(&file, "kind: A\n").is_err() && !target.exists());
    std::fs::remove_file(&file).unwrap();
    for yaml in ["kind: A\n", "kind: B\n"] {
        write(&file, yaml).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{WRITTEN_BY}{yaml}"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(unix)]
#[test]
fn configuration_is_replaced_as_a_whole() {
    let folder = std::env::temp_dir().join(format!("kctl-webhook-replaced-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, reader) = (folder.join("config.yaml"), folder.join("reader.yaml"));
    write(&file, "kind: A\n").unwrap();
    // The same file under a second name, like one that is open.
    std::fs::hard_link(&file, &reader).unwrap();
    write(&file, "kind: B\n").unwrap();
    for (path, yaml) in [(&reader, "kind: A\n"), (&file, "kind: B\n")] {
        assert_eq!(std::fs::read_to_string(path).unwrap(), format!("{WRITTEN_BY}{yaml}"));
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "the temporary file is gone");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(feature = "karmada")]
pub(super) use interpreters::app;
