//! Image references: parses the `image` of a container and returns its default `imagePullPolicy`.
//!
//! Behaviour: `ParseImageName` of `pkg/util/parsers`, and what `github.com/distribution/reference` takes for a name.
//!
//! The policy depends only on the tag and the digest: an image that they pin is pulled only if the node does not have
//! it.

use std::sync::LazyLock;

use regex::Regex;

/// Maximum length of a name without its host, in bytes (`RepositoryNameTotalLengthMax`).
const NAME_LEN_MAX: usize = 255;
/// Number of hexadecimal digits of an image ID, which is rejected as a name.
const IDENTIFIER_LEN: usize = 64;
/// The registry of images whose names have no host.
const DEFAULT_HOST: &str = "docker.io";

/// Matches a whole reference with a host. The groups are the name without the host, the tag and the digest.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    let label = "[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]";
    let host = format!(r"(?:(?:{label})(?:\.(?:{label}))*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let part = "[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*";
    let digest = "sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}";
    let whole = format!(r"^{host}/({part}(?:/{part})*)(?::([0-9A-Za-z_][0-9A-Za-z_.-]{{0,127}}))?(?:@({digest}))?$");
    Regex::new(&whole).expect("the pattern is valid")
});

/// Returns the default of `imagePullPolicy`.
pub(crate) fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) { "Always" } else { "IfNotPresent" }
}

/// Returns `true` for an image with the tag `latest`, or with neither a tag nor a digest. An invalid reference has no
/// tag, so it is not `latest`.
pub(crate) fn is_latest(image: &str) -> bool {
    if image.len() == IDENTIFIER_LEN && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return false;
    }
    let whole = with_host(image);
    let Some(read) = REFERENCE.captures(&whole) else { return false };
    match (read.get(2), read.get(3)) {
        _ if read[1].len() > NAME_LEN_MAX => false,
        (Some(tag), _) => tag.as_str() == "latest",
        (None, digest) => digest.is_none(),
    }
}

/// Returns the reference, with the default host if it has no host (`splitDockerDomain`). The first part is a host if it
/// has a dot, a port or an upper-case letter, or is `localhost`.
fn with_host(image: &str) -> String {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" || host.to_lowercase() != host => {
            image.into()
        }
        Some(_) => format!("{DEFAULT_HOST}/{image}"),
        None => format!("{DEFAULT_HOST}/library/{image}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_version_are_pulled_always() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for image in ["i", "i:latest", "a.b:5000/c/d", "localhost/i", "A/i", "i__j", "[::1]:5000/i"] {
            assert!(is_latest(image), "{image}");
        }
        assert!(is_latest(&format!("i:latest@{digest}")));
        for image in ["i:v1", "a.b:5000/c/d:1", &format!("i@{digest}"), &format!("i:v1@{digest}")] {
            assert!(!is_latest(image), "{image}");
        }
    }

    #[test]
    fn invalid_image_reference_is_not_latest() {
        let identifier = "a".repeat(IDENTIFIER_LEN);
        let names = ["", " i", "-a", "http://x", "/abs", "I", "i:", "i@", "i@sha256:ab", "a..b", "a/", &identifier];
        for image in names {
            assert!(!is_latest(image), "{image}");
        }
        assert!(is_latest(&"x".repeat(247)));
        assert!(!is_latest(&"x".repeat(248)));
    }
}
