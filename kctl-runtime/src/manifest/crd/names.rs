//! Checks the names in a CRD: DNS labels and domains, and names that must agree.
//!
//! Names of a kind become parts of URLs, of RBAC rules and of discovery, so API servers are strict:
//!
//! | Name | Form |
//! |---|---|
//! | `metadata.name` | `<plural>.<group>`, at most 253 characters |
//! | group | DNS domain with at least one dot; `k8s.io` and `kubernetes.io` need an approval annotation |
//! | plural, singular, short names, categories, version | DNS label in lower case that starts with a letter, at most 63 characters |
//! | kind, list kind | DNS label when written in lower case; the two differ |
//!
//! The rules come from apiextensions-apiserver (`pkg/apis/apiextensions/validation/validation.go`). A CRD that breaks
//! one is rejected as a whole at `kubectl apply`, long after `cargo build`.

use kctl_apimachinery::{
    url::Url,
    validation::{
        LABEL_LEN_MAX, SUBDOMAIN_LEN_MAX, is_dns1035_label, is_dns1123_subdomain, is_label_value, is_protected_group,
        is_qualified_name,
    },
};
use serde_json::Value;

use super::Problem;

/// Annotation that API groups of Kubernetes itself need.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Checks everything outside of the versions' schemas.
pub(super) fn check(crd: &Value, problems: &mut Vec<Problem>) {
    let spec = &crd["spec"];
    let text = |value: &'_ Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(spec, "group"), text(&spec["names"], "plural"));
    let name = text(&crd["metadata"], "name");
    if name != format!("{plural}.{group}") {
        problems.push(Problem::new("metadata.name", format!("`{name}` is not `{plural}.{group}`"), ""));
    }
    if let Some(what) = domain(&name) {
        problems.push(Problem::new("metadata.name", what, "write a shorter `plural` or `group`"));
    }
    if let Some(what) = domain(&group) {
        problems.push(Problem::new("group", what, "write for example `group = \"apps.example.com\"`"));
    } else if !group.contains('.') {
        let what = format!("`{group}` is not a domain name");
        problems.push(Problem::new("group", what, format!("write for example `group = \"{group}.example.com\"`")));
    }
    check_approval(crd, &group, problems);
    check_metadata(&crd["metadata"], problems);
    if !["Cluster", "Namespaced"].contains(&spec["scope"].as_str().unwrap_or_default()) {
        problems.push(Problem::new(
            "scope",
            "it is neither Cluster nor Namespaced",
            "write `namespaced` or leave it out",
        ));
    }
    check_resource(&spec["names"], problems);
    check_versions(spec, problems);
    check_conversion(&spec["conversion"], problems);
    if spec["preserveUnknownFields"] == true {
        problems.push(Problem::new(
            "preserveUnknownFields",
            "it can't be true",
            "write `#[kctl(preserve_unknown)]` on a type",
        ));
    }
}

/// Checks that a group of Kubernetes itself has the approval annotation (KEP-2337).
///
/// Its value is the URL of the pull request that approved the API, or `unapproved, …` with a reason. Other projects
/// should not use these domains at all.
fn check_approval(crd: &Value, group: &str, problems: &mut Vec<Problem>) {
    if !is_protected_group(group) {
        return;
    }
    let value = crd["metadata"]["annotations"][APPROVAL].as_str().unwrap_or_default();
    // Upstream accepts a string that Go parses as a URL with a scheme and a host.
    let is_url = value.split_once("://").is_some_and(|(scheme, host)| {
        !host.is_empty()
            && !host.starts_with('/')
            && scheme.chars().all(|c| c.is_ascii_alphanumeric())
            && !scheme.is_empty()
    });
    if value.starts_with("unapproved") || is_url {
        return;
    }
    let what = if value.is_empty() {
        format!("`{group}` belongs to Kubernetes, and the annotation `{APPROVAL}` is missing")
    } else {
        format!("`{value}` of the annotation `{APPROVAL}` is neither a URL nor a reason that starts with `unapproved`")
    };
    let help = format!(
        "write for example `group = \"apps.example.com\"`, or `annotation(\"{APPROVAL}\", \"…\")` with the URL of the API review"
    );
    problems.push(Problem::new("group", what, help));
}

/// Checks labels, and keys of annotations, which may have capital letters (`ValidateAnnotations` of apimachinery).
fn check_metadata(metadata: &Value, problems: &mut Vec<Problem>) {
    let help = "write letters, digits, `-`, `_` and `.`, at most 63";
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        if !is_qualified_name(key) {
            problems.push(Problem::new("metadata.labels", format!("`{key}` is not a key of a label"), help));
        }
        let value = value.as_str().unwrap_or_default();
        if !is_label_value(value) {
            let what = format!("`{value}` of `{key}` is not a value of a label");
            problems.push(Problem::new("metadata.labels", what, help));
        }
    }
    let annotations = metadata["annotations"].as_object();
    for key in annotations.into_iter().flatten().map(|(key, _)| key) {
        if !is_qualified_name(&key.to_lowercase()) {
            let what = format!("`{key}` is not a key of an annotation");
            problems.push(Problem::new("metadata.annotations", what, help));
        }
    }
}

/// Checks plural, singular, kind, list kind, short names and categories.
fn check_resource(names: &Value, problems: &mut Vec<Problem>) {
    let text = |key: &str| names[key].as_str().unwrap_or_default();
    let kind = text("kind");
    let list = if text("listKind").is_empty() { format!("{kind}List") } else { text("listKind").to_owned() };
    let singular = if text("singular").is_empty() { kind.to_lowercase() } else { text("singular").to_owned() };
    for (key, value) in [("plural", text("plural").to_owned()), ("singular", singular)] {
        if let Some(what) = label(&value) {
            problems.push(Problem::new(
                &format!("names.{key}"),
                what,
                format!("write a shorter or simpler `{key} = \"…\"`"),
            ));
        }
    }
    for (key, value) in [("kind", kind), ("listKind", list.as_str())] {
        if let Some(what) = label(&value.to_lowercase()) {
            problems.push(Problem::new(&format!("names.{key}"), what, "write a shorter or simpler `kind = \"…\"`"));
        }
    }
    if kind == list {
        problems.push(Problem::new("names.listKind", "it is the same as the kind", "write another list kind"));
    }
    for (key, option) in [("shortNames", "shortname"), ("categories", "category")] {
        for value in names[key].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if let Some(what) = label(value) {
                problems.push(Problem::new(
                    &format!("names.{key}"),
                    what,
                    format!("write a simpler `{option} = \"…\"`"),
                ));
            }
        }
    }
}

/// Checks names of versions, deprecation warnings, and that exactly one version is stored.
///
/// A version name such as `v1beta1` decides about the order in which clients prefer versions, but any DNS label is
/// allowed.
fn check_versions(spec: &Value, problems: &mut Vec<Problem>) {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = versions.iter().map(|version| version["name"].as_str().unwrap_or_default()).collect();
    for (index, (name, version)) in names.iter().zip(versions).enumerate() {
        if let Some(what) = label(name) {
            problems.push(Problem::new("versions", what, "write for example `version = \"v1\"`"));
        }
        if names[..index].contains(name) {
            problems.push(Problem::new("versions", format!("`{name}` occurs twice"), "give each version its own name"));
        }
        if let Some(warning) = version["deprecationWarning"].as_str() {
            let what = if version["deprecated"] != true {
                "a warning, but the version is not deprecated"
            } else if warning.is_empty() {
                "the warning is empty"
            } else if warning.len() > 256 {
                "the warning is longer than 256 bytes"
            } else if warning.chars().any(char::is_control) {
                "the warning has unprintable characters"
            } else {
                continue;
            };
            problems.push(Problem::new(&format!("versions.{name}"), what, "write `deprecated = \"use v2\"`"));
        }
    }
    let n_stored = versions.iter().filter(|version| version["storage"] == true).count();
    if n_stored != 1 {
        let what = format!("{n_stored} versions are the storage version");
        problems.push(Problem::new("versions", what, "write `storage = false` in all but one"));
    }
}

/// Checks that a conversion webhook is complete, and absent for the strategy `None`.
fn check_conversion(conversion: &Value, problems: &mut Vec<Problem>) {
    let present = |value: &Value| !value.is_null();
    let webhook = &conversion["webhook"];
    match conversion["strategy"].as_str() {
        Some("Webhook") => {
            if present(&webhook["clientConfig"]) {
                check_client(&webhook["clientConfig"], problems);
            } else {
                let help = "write `conversion(service = \"…\", namespace = \"…\")`";
                problems.push(Problem::new("conversion", "the webhook has no client configuration", help));
            }
            let reviews = webhook["conversionReviewVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
            let names: Vec<&str> = reviews.iter().filter_map(Value::as_str).collect();
            let is_known = names.iter().any(|name| ["v1", "v1beta1"].contains(name));
            if !is_known || names.iter().enumerate().any(|(i, name)| label(name).is_some() || names[..i].contains(name))
            {
                problems.push(Problem::new(
                    "conversion",
                    "none of `conversionReviewVersions` is supported by API servers",
                    "write `v1`",
                ));
            }
        }
        Some("None") | None => {
            if present(&webhook["clientConfig"]) || present(&webhook["conversionReviewVersions"]) {
                problems.push(Problem::new(
                    "conversion",
                    "a webhook, but the strategy is None",
                    "write the strategy Webhook",
                ));
            }
        }
        Some(other) => {
            problems.push(Problem::new("conversion", format!("unknown strategy `{other}`"), "write None or Webhook"));
        }
    }
}

/// Checks the URL or the Service of a conversion webhook.
///
/// A URL must use https and have neither user, query nor fragment. API servers accept a port without a host
/// (`https://:443`) and can never call it, so it is reported as well. A Service needs a name and a namespace; its port
/// defaults to 443 and its path to `/`.
fn check_client(config: &Value, problems: &mut Vec<Problem>) {
    let mut push = |what: &str, help: &str| problems.push(Problem::new("conversion", what, help));
    match (config["url"].as_str(), config["service"].is_object()) {
        (Some(_), true) | (None, false) => push("either a service or a url is needed", "write one of them"),
        (Some(url), false) => {
            let is_callable = |url: Url| url.webhook_problems().is_empty() && !url.host_and_port().0.is_empty();
            if !Url::parse(url).is_some_and(is_callable) || url.contains(['?', '#']) {
                push(
                    "the url is not `https://host/path`",
                    "write for example `url = \"https://webs.example.com/convert\"`",
                );
            }
        }
        (None, true) => {
            let service = &config["service"];
            for key in ["name", "namespace"] {
                if service[key].as_str().unwrap_or_default().is_empty() {
                    push(&format!("the {key} of the service is missing"), "write it");
                }
            }
            if !(1..=65535).contains(&service["port"].as_i64().unwrap_or(443)) {
                push("the port is not between 1 and 65535", "write for example `port = 443`");
            }
            let path = service["path"].as_str().unwrap_or("/");
            let parts: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
            let is_bad = |part: &&str| part.is_empty() || domain(part).is_some();
            if !path.starts_with('/') || parts.iter().any(is_bad) {
                push("the path is not one", "write for example `path = \"/convert\"`");
            }
        }
    }
}

/// Returns why a string is not a DNS label that starts with a letter (RFC 1035).
pub(super) fn label(text: &str) -> Option<String> {
    if text.len() > LABEL_LEN_MAX {
        return Some(format!("`{text}` is longer than {LABEL_LEN_MAX} characters"));
    }
    (!is_dns1035_label(text)).then(|| {
        format!(
            "`{text}` has characters other than lower-case letters, digits and `-`, or does not start with a letter"
        )
    })
}

/// Returns why a string is not a DNS domain (RFC 1123).
fn domain(text: &str) -> Option<String> {
    if text.len() > SUBDOMAIN_LEN_MAX {
        return Some(format!("`{text}` is longer than {SUBDOMAIN_LEN_MAX} characters"));
    }
    (!is_dns1123_subdomain(text)).then(|| format!("`{text}` is not a lower-case domain name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn protected_group_needs_an_approval_annotation() {
        for (group, value, expected) in [
            ("web.k8s.io", "", "`web.k8s.io` belongs to Kubernetes, and the annotation"),
            ("kubernetes.io", "soon", "`soon` of the annotation `api-approved.kubernetes.io` is neither"),
            ("web.k8s.io", "https://github.com/kubernetes/enhancements/pull/1111", ""),
            ("web.k8s.io", "unapproved, experimental-only", ""),
            ("webk8s.io", "", ""),
        ] {
            let mut problems = Vec::new();
            let crd = json!({ "metadata": { "annotations": { APPROVAL: value } } });
            check_approval(&crd, group, &mut problems);
            let [problem] = problems.as_slice() else {
                assert!(problems.is_empty() && expected.is_empty(), "{group} {value}: {problems:?}");
                continue;
            };
            assert!(!expected.is_empty() && problem.what.starts_with(expected), "{problem:?}");
            assert!(problem.help.contains("`annotation(\"api-approved.kubernetes.io\", "), "{problem:?}");
        }
    }

    #[test]
    fn invalid_labels_and_annotations_are_reported() {
        for (metadata, n_problems) in [
            (json!({ "labels": { "team": "a" }, "annotations": { "Example.com/A": "x y!" } }), 0),
            (json!({ "labels": { "bad label!": "x y z" } }), 2),
            (json!({ "labels": { "team": "x y z" } }), 1),
            (json!({ "annotations": { "bad key!": "" } }), 1),
            (json!({}), 0),
        ] {
            let mut problems = Vec::new();
            check_metadata(&metadata, &mut problems);
            assert_eq!(problems.len(), n_problems, "{metadata}: {problems:?}");
        }
    }

    #[test]
    fn conversion_url_needs_a_host() {
        for (url, is_valid) in [
            ("https://webs.example.com/convert", true),
            ("https://webs.example.com:9443", true),
            ("https://[2001:db8::1]:443/convert", true),
            ("https://:443", false),
            ("https:///convert", false),
            ("https://webs.example.com:port", false),
            ("http://webs.example.com", false),
            ("https://me@webs.example.com", false),
            ("https://webs.example.com?a=b", false),
            ("https://webs.example.com/#", false),
        ] {
            let mut problems = Vec::new();
            check_client(&json!({ "url": url }), &mut problems);
            assert_eq!(problems.is_empty(), is_valid, "{url}: {problems:?}");
        }
    }
}
