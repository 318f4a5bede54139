//! Value parsers for names in manifests: names that an API server would reject are usage errors.

use kctl_apimachinery::validation::{
    LABEL_LEN_MAX, is_dns1035_label, is_dns1123_label, is_dns1123_subdomain, is_label_value, is_qualified_name,
};
use kctl_runtime::{manifest::Manifest, reconcile};

/// Parses the name of a namespace: a DNS label.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    if is_dns1123_label(text) {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a valid namespace name: write at most {LABEL_LEN_MAX} of `a-z`, `0-9` and `-`, for example `web`"
    ))
}

/// Parses the name of the service account and the roles.
pub(super) fn name(text: &str) -> Result<String, String> {
    if text.len() <= LABEL_LEN_MAX && is_dns1123_subdomain(text) {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a valid name: write at most {LABEL_LEN_MAX} of `a-z`, `0-9`, `-` and `.`, for example `web`"
    ))
}

/// Checks the names of Services, which are stricter than those of other objects. Metrics and webhooks have one each.
///
/// # Errors
/// The name has a dot, begins with a digit, or is too long with its suffix.
pub(super) fn check_services(manifests: &[Manifest]) -> reconcile::Result<()> {
    let services = manifests.iter().filter(|manifest| manifest.object["kind"] == "Service");
    let mut names = services.filter_map(|service| service.object["metadata"]["name"].as_str());
    match names.find(|name| !is_dns1035_label(name)) {
        None => Ok(()),
        Some(name) => Err(format!(
            "`{name}` is not a valid name of a Service: set --name to at most {} of `a-z`, `0-9` and `-`, a letter first",
            LABEL_LEN_MAX - "-metrics".len()
        )
        .into()),
    }
}

/// Parses an image reference; only what can't be one is rejected.
pub(super) fn image(text: &str) -> Result<String, String> {
    let (named, _digest) = text.split_once('@').unwrap_or((text, ""));
    // A port is before the last slash, and a tag has no colon.
    let last = named.rsplit('/').next().unwrap_or_default();
    if text.is_empty() || text.contains(char::is_whitespace) || last.matches(':').count() > 1 {
        return Err(format!("`{text}` is not an image reference: write for example `example.com/web:1`"));
    }
    Ok(text.into())
}

/// Parses a label, `key=value`.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, value)| is_qualified_name(key) && is_label_value(value));
    let (key, value) = parts.ok_or_else(|| {
        format!(
            "`{text}` is not a label: write `key=value`, each at most {LABEL_LEN_MAX} of letters, digits, `-`, `_` and `.`"
        )
    })?;
    Ok((key.into(), value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_kubernetes_names_and_images_are_rejected() {
        let (long, too_long) = ("a".repeat(63), "a".repeat(64));
        for (text, is_namespace, is_name) in [
            ("web", true, true),
            ("kube-system", true, true),
            ("web.v1", false, true),
            (&long, true, true),
            (&too_long, false, false),
            ("", false, false),
            ("Web", false, false),
            ("a b", false, false),
            ("-a", false, false),
            ("a-", false, false),
            ("a..b", false, false),
            ("a_b", false, false),
        ] {
            assert_eq!((namespace(text).is_ok(), name(text).is_ok()), (is_namespace, is_name), "{text:?}");
        }
        for text in ["", "a b", "a:b:c", "example.com/a:b:c@sha256:0"] {
            assert!(image(text).is_err(), "{text:?}");
        }
        for text in ["a/b:1@sha256:0", "localhost:5000/a:1", "a@sha256:0"] {
            assert!(image(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn service_names_are_dns_1035_labels() {
        let (long, too_long) = ("a".repeat(55), "a".repeat(56));
        for (name, is_valid) in [("web", true), (&long, true), (&too_long, false), ("web.v1", false), ("1a", false)] {
            let service = serde_json::json!({ "kind": "Service", "metadata": { "name": format!("{name}-metrics") } });
            let account = serde_json::json!({ "kind": "ServiceAccount", "metadata": { "name": name } });
            let manifest = |object| Manifest::new("a.yaml".into(), object).unwrap();
            assert!(check_services(&[manifest(account.clone())]).is_ok(), "{name}");
            assert_eq!(check_services(&[manifest(account), manifest(service)]).is_ok(), is_valid, "{name}");
        }
    }

    #[test]
    fn labels_match_kubernetes() {
        for text in ["a=b", "a=", "example.com/A_b.c=D-e", "rbac.authorization.k8s.io/aggregate-to-view=true"] {
            assert!(label(text).is_ok(), "{text}");
        }
        for text in ["a", "=b", "a b=c", "a=b c", "/a=b", "Ex.com/a=b", "a/b/c=d", "a=b=c", "a=-b"] {
            assert!(label(text).unwrap_err().contains("is not a label: write `key=value`"), "{text}");
        }
    }
}
