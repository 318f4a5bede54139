//! What a client calls itself: the API server's audit log and its metrics of deprecated versions name it.

use std::env::consts::{ARCH, OS};

use http::{HeaderValue, header::USER_AGENT};
use kube::Config;

/// This library.
const KCTL: &str = concat!("kctl/", env!("CARGO_PKG_VERSION"));

/// Has the client of a configuration call itself so, as clients in Go do: `podset/0.1.0 (linux/amd64) kctl/0.1.0`. What cannot
/// stand in a header is left out of the name.
pub fn name(config: &mut Config, program: &str, version: &str) {
    let plain = |text: &str| text.chars().filter(char::is_ascii_graphic).collect::<String>();
    set(config, &format!("{}/{} {} {KCTL}", plain(program), plain(version), platform()));
}

/// A client that nobody has named is one of this library.
pub(super) fn name_if_unnamed(config: &mut Config) {
    if !config.headers.iter().any(|(name, _)| *name == USER_AGENT) {
        set(config, &format!("{KCTL} {}", platform()));
    }
}

fn set(config: &mut Config, agent: &str) {
    config.headers.retain(|(name, _)| *name != USER_AGENT);
    if let Ok(value) = HeaderValue::from_str(agent) {
        config.headers.push((USER_AGENT, value));
    }
}

/// In the words of Go, since that is what logs are searched for.
fn platform() -> String {
    let arch = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    let os = if OS == "macos" { "darwin" } else { OS };
    format!("({os}/{arch})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(config: &Config) -> &str {
        let named: Vec<_> = config.headers.iter().filter(|(name, _)| *name == USER_AGENT).collect();
        assert_eq!(named.len(), 1, "{named:?}");
        named[0].1.to_str().unwrap()
    }

    #[test]
    fn a_client_is_named_after_its_program() {
        let mut config = Config::new("http://127.0.0.1".parse().unwrap());
        name_if_unnamed(&mut config);
        assert_eq!(agent(&config), format!("{KCTL} {}", platform()));
        name(&mut config, "pod\nset", "0.1.0");
        let named = format!("podset/0.1.0 {} {KCTL}", platform());
        assert_eq!(agent(&config), named);
        name_if_unnamed(&mut config);
        assert_eq!(agent(&config), named, "a name that was given stays");
    }
}
