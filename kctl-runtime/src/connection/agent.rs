//! The `User-Agent` of a client, which the API server writes into its audit log and metrics.
//!
//! Kubernetes uses the header in one more place: a write without `fieldManager` is recorded under the part before
//! the first `/` (apiserver, `endpoints/handlers/create.go`, `managerOrUserAgent`). kctl names its field managers
//! itself, so the header is for people.

use std::env::consts::{ARCH, OS};

use http::{HeaderValue, header::USER_AGENT};
use kube::Config;

/// Name and version of this library.
const KCTL: &str = concat!("kctl/", env!("CARGO_PKG_VERSION"));

/// Sets the `User-Agent` as clients in Go write it: `podset/0.1.0 (linux/amd64) kctl/0.1.0`.
///
/// Characters that cannot be in a header are left out. A configuration without a name gets
/// `kctl/… (linux/amd64)`.
///
/// ```
/// use kctl_runtime::connection;
///
/// let mut config = kube::Config::new("https://127.0.0.1:6443".parse()?);
/// connection::name(&mut config, "podset", "0.1.0");
/// let (header, agent) = &config.headers[0];
/// assert_eq!(header.as_str(), "user-agent");
/// assert!(agent.to_str()?.starts_with("podset/0.1.0 ("));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn name(config: &mut Config, program: &str, version: &str) {
    let plain = |text: &str| text.chars().filter(char::is_ascii_graphic).collect::<String>();
    set_user_agent(config, &format!("{}/{} {} {KCTL}", plain(program), plain(version), platform()));
}

/// Names a client that has no `User-Agent` after this library.
pub(super) fn set_default_user_agent(config: &mut Config) {
    if !config.headers.iter().any(|(name, _)| *name == USER_AGENT) {
        set_user_agent(config, &format!("{KCTL} {}", platform()));
    }
}

/// Replaces the header. An agent that is not a header value leaves the configuration without one.
fn set_user_agent(config: &mut Config, agent: &str) {
    config.headers.retain(|(name, _)| *name != USER_AGENT);
    if let Ok(value) = HeaderValue::from_str(agent) {
        config.headers.push((USER_AGENT, value));
    }
}

/// Returns operating system and architecture by Go's names, the ones that people search for in logs.
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
    fn user_agent_is_named_after_the_program() {
        let mut config = Config::new("http://127.0.0.1".parse().unwrap());
        set_default_user_agent(&mut config);
        assert_eq!(agent(&config), format!("{KCTL} {}", platform()));
        name(&mut config, "pod\nset", "0.1.0");
        let named = format!("podset/0.1.0 {} {KCTL}", platform());
        assert_eq!(agent(&config), named);
        set_default_user_agent(&mut config);
        assert_eq!(agent(&config), named, "a name that the user set is kept");
    }
}
