//! Validates the `clientConfig` and the review versions of webhooks, for admission and for conversion
//! (`k8s.io/apiserver/pkg/util/webhook/validation.go`).
//!
//! `CustomResourceDefinition` and the webhook configurations share the form, so they share the rules. The host's
//! reachability is checked only at the call. The validity of the CA bundle has rules by kind.

use std::collections::BTreeSet;

use kctl_apimachinery::url::Url;

use crate::{field::Field, names::NameRule};

/// Versions of reviews that the server supports.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Validates the versions of reviews of a webhook: at least one version, each once, and at least one that the server
/// supports. Unknown versions are valid in addition to a known one, so that a configuration works on older and newer
/// servers.
pub(crate) fn review_versions(versions: &Field<'_>) {
    if !versions.require_value() {
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        let is_new = seen.insert(version.text());
        version.invalid_if(!is_new, "must be unique");
        version.name(NameRule::Label1035);
    }
    let is_supported = versions.items().any(|version| REVIEW_VERSIONS.contains(&version.text()));
    versions.invalid_if(!is_supported, format_args!("must include one of {}", REVIEW_VERSIONS.join(", ")));
}

/// Validates `clientConfig`: exactly one of `url` and `service`.
///
/// Neither or both is `FieldValueRequired` at the configuration, and ends the validation. A service
/// needs namespace and name; port and path are optional.
pub(crate) fn client_config(config: &Field<'_>) {
    let (url, service) = (config.at("url"), config.at("service"));
    if url.is_string() == service.is_object() {
        return config.required_with("exactly one of url or service is required");
    }
    if url.is_string() {
        return webhook_url(&url);
    }
    // Upstream passes the two in the wrong order, so a missing name is reported at `namespace`.
    for (field, required) in [("namespace", "name"), ("name", "namespace")] {
        service.at(required).required_if(service.at(field).is_empty());
    }
    service.at("port").in_range(1, 65_535);
    service_path(&service.at("path"));
}

/// Validates `url`: HTTPS with a host, and without user information, fragment or query (`ValidateWebhookURL`). As
/// upstream, a string that is not a URL is `FieldValueRequired`, and all other errors are `FieldValueInvalid`.
fn webhook_url(url: &Field<'_>) {
    let Some(parsed) = Url::parse(url.text()) else {
        return url.required_with("must be a URL such as https://host/path");
    };
    for (part, why) in parsed.webhook_problems() {
        url.with(&part.into()).invalid(why);
    }
}

/// Validates `service.path`: segments that are DNS-1123 subdomains (`ValidateWebhookService`). One trailing slash is
/// allowed.
fn service_path(path: &Field<'_>) {
    let text = path.text();
    if text.is_empty() || text == "/" {
        return;
    }
    let segments = text.strip_prefix('/').map(|inner| inner.strip_suffix('/').unwrap_or(inner).split('/'));
    // An empty segment is invalid, too.
    let is_valid = segments.is_some_and(|mut all| all.all(|segment| NameRule::Subdomain.check(segment).is_none()));
    path.invalid_if(!is_valid, "must be a path of DNS subdomains, such as /admit");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::field_errors::Errors;

    #[test]
    fn path_may_end_with_one_slash() {
        let n_errors = |path: &str| {
            let config = json!({ "service": { "namespace": "n", "name": "s", "path": path } });
            Errors::collect(|errors| client_config(&Field::new(&config, "clientConfig", errors))).len()
        };
        for (path, expected) in [("", 0), ("/", 0), ("/a", 0), ("/a/", 0), ("//", 1), ("/a//", 1), ("/a//b", 1)] {
            assert_eq!(n_errors(path), expected, "{path}");
        }
    }
}
