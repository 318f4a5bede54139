//! Value parsers for names in manifests: names that an API server would reject are usage errors.

use kctl_apimachinery::validation::{
    LABEL_LEN_MAX, is_dns1035_label, is_dns1123_label, is_dns1123_subdomain, is_label_value, is_qualified_name,
};
#[cfg(feature = "webhook")]
use kctl_apimachinery::{url::Url, validation::SUBDOMAIN_LEN_MAX};
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

/// Parses the name of a Secret: a DNS subdomain, which may be longer than the name of the program.
#[cfg(feature = "webhook")]
pub(super) fn secret(text: &str) -> Result<String, String> {
    if is_dns1123_subdomain(text) {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a valid name of a Secret: write at most {SUBDOMAIN_LEN_MAX} of `a-z`, `0-9`, `-` and `.`, for example \
         `web-webhook-tls`"
    ))
}

/// Parses the name of a Service. A host name such as `web.system.svc` would be taken for the name of the webhook
/// configurations as well, which then don't exist.
#[cfg(feature = "webhook")]
pub(super) fn service(text: &str) -> Result<String, String> {
    if is_dns1035_label(text) {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a valid name of a Service: write at most {LABEL_LEN_MAX} of `a-z`, `0-9` and `-`, a letter first, without \
         its namespace, for example `web`"
    ))
}

/// Parses the URL of webhooks, to which their paths are appended. It has to be one that API servers accept.
#[cfg(feature = "webhook")]
pub(super) fn webhook_url(text: &str) -> Result<String, String> {
    let explain = |why: &str| format!("{why}; write for example `https://web.example.com:9443`");
    let url = Url::parse(text).ok_or_else(|| explain("not a URL"))?;
    if let Some((_part, why)) = url.webhook_problems().first() {
        return Err(explain(why));
    }
    if url.host_and_port().0.is_empty() {
        return Err(explain("host must be specified"));
    }
    // A path after an empty query or fragment would become part of it.
    if text.contains(['?', '#']) {
        return Err(explain("query parameters and fragments are not permitted in the URL"));
    }
    Ok(text.into())
}

/// Checks the names of Services, which have stricter rules than other names. Metrics and webhooks have one each.
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

/// Checks the name of a chart. Helm makes the names of the chart's Services from it, and a Service has no dot in its name.
///
/// # Errors
/// The name is not a DNS label.
pub(super) fn check_chart(name: &str) -> reconcile::Result<()> {
    if is_dns1123_label(name) {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a valid name of a chart: set --name to at most {LABEL_LEN_MAX} of `a-z`, `0-9` and `-`, because its Services \
         are named after it"
    )
    .into())
}

/// Parses an image reference; only what can't be one is rejected.
pub(super) fn image(text: &str) -> Result<String, String> {
    let (named, _digest) = text.split_once('@').unwrap_or((text, ""));
    // A port is before the last slash, and a tag has no colon.
    let last = named.rsplit('/').next().unwrap_or_default();
    let is_incomplete = |part: &str| part.is_empty() || part.starts_with(':') || part.ends_with(':');
    if text.split(['/', '@']).any(is_incomplete) || text.contains(char::is_whitespace) || last.matches(':').count() > 1
    {
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
        for text in ["", "a b", "a:b:c", "example.com/a:b:c@sha256:0", "a:", ":1", "a@", "@sha256:0", "a//b", "a/"] {
            assert!(image(text).is_err(), "{text:?}");
        }
        for text in ["a/b:1@sha256:0", "localhost:5000/a:1", "a@sha256:0"] {
            assert!(image(text).is_ok(), "{text:?}");
        }
    }

    #[cfg(feature = "webhook")]
    #[test]
    fn webhook_urls_match_api_servers() {
        for text in ["https://a", "https://a.example.com:9443/path/", "https://192.0.2.1:9443", "https://[::1]:9443"] {
            assert_eq!(webhook_url(text).as_deref(), Ok(text));
        }
        for (text, part) in [
            ("", "'https' is the only allowed URL scheme"),
            ("http://a", "'https' is the only allowed URL scheme"),
            ("a.example.com", "'https' is the only allowed URL scheme"),
            ("https://", "host must be specified"),
            ("https://:9443", "host must be specified"),
            ("https://me@a", "user information is not permitted"),
            ("https://a?b=c", "query parameters are not permitted"),
            ("https://a#b", "fragments are not permitted"),
            ("https://a?", "query parameters and fragments"),
            ("https://a:port", "not a URL"),
        ] {
            let error = webhook_url(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[cfg(feature = "webhook")]
    #[test]
    fn secret_names_are_dns_subdomains() {
        let (long, too_long) = ("a".repeat(SUBDOMAIN_LEN_MAX), "a".repeat(SUBDOMAIN_LEN_MAX + 1));
        let cases = [("web-webhook-tls", true), (&long, true), (&too_long, false), ("", false), ("Bad_Name!", false)];
        for (text, is_valid) in cases {
            assert_eq!(secret(text).is_ok(), is_valid, "{text}");
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
    fn chart_names_are_dns_labels() {
        for name in ["web", "9web", &"a".repeat(63)] {
            assert!(check_chart(name).is_ok(), "{name}");
        }
        let error = check_chart("web.v1").unwrap_err().to_string();
        assert!(error.starts_with("`web.v1` is not a valid name of a chart: set --name to at most 63 of "), "{error}");
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
