//! Errors that `kctl apiserver` reports at its start.

use std::{
    net::TcpListener,
    process::{Command, Output},
};

fn apiserver(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kctl")).arg("apiserver").args(arguments).output().unwrap()
}

#[test]
fn address_in_use_is_named_with_the_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let in_use = format!("port {port} of 127.0.0.1: in use; stop what uses it, or choose another: 0 is any free port");
    // 192.0.2.0/24 is reserved for documentation (RFC 5737), so this machine does not have the address.
    let foreign = "port 0 of 192.0.2.1: this machine does not have the address; choose one that it has".to_owned();
    for (arguments, expected) in [(["--port", &port], in_use), (["--bind", "192.0.2.1"], foreign)] {
        let output = apiserver(&arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.lines().last(), Some(&*format!("kctl: {expected}")), "{stderr}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn invalid_certificate_name_is_wrong_usage() {
    let output = apiserver(&["--tls-san", "???"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("'???' for '--tls-san <NAME>': not an IP address or a DNS name"), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
}
