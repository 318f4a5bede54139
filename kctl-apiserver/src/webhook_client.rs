//! Validates the `clientConfig` of webhooks, for admission and for conversion
//! (`k8s.io/apiserver/pkg/util/webhook/validation.go`).
//!
//! `CustomResourceDefinition` and the webhook configurations share the form, so they share the rules. The host's
//! reachability is checked only at the call. The validity of the CA bundle has rules by kind.

use kctl_apimachinery::url::Url;
use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
};

/// Validates the `clientConfig` of a webhook and returns the field errors.
///
/// `path` is the field path of the configuration, such as `webhooks[0].clientConfig`.
pub(crate) fn validate(config: &Value, path: &str) -> Errors {
    Errors::collect(|errors| client_config(config, path, errors))
}

/// Validates `clientConfig`: exactly one of `url` and `service`. `field_path` is the field path of the config.
///
/// Neither or both is `FieldValueRequired` at the configuration, and ends the validation. A service
/// needs namespace and name; port and path are optional.
pub(crate) fn client_config(config: &Value, field_path: &str, errors: &mut Errors) {
    let (url, service) = (&config["url"], &config["service"]);
    if url.is_string() == service.is_object() {
        errors.required(field_path, "exactly one of url or service is required");
        return;
    }
    if let Some(url) = url.as_str() {
        webhook_url(url, &format!("{field_path}.url"), errors);
        return;
    }
    let field_path = format!("{field_path}.service");
    // Upstream passes the two in the wrong order, so a missing name is reported at `namespace`.
    for (field, required) in [("namespace", "name"), ("name", "namespace")] {
        if text(&service[field]).is_empty() {
            errors.required(&format!("{field_path}.{required}"), "");
        }
    }
    if service["port"].as_i64().is_some_and(|port| !(1..=65_535).contains(&port)) {
        errors.invalid(&format!("{field_path}.port"), &service["port"], "must be between 1 and 65535, inclusive");
    }
    if let Some(path) = service["path"].as_str() {
        service_path(path, &format!("{field_path}.path"), errors);
    }
}

/// Validates `url`: HTTPS with a host, and without user information, fragment or query (`ValidateWebhookURL`). As
/// upstream, a string that is not a URL is `FieldValueRequired`, and all other errors are `FieldValueInvalid`.
fn webhook_url(url: &str, path: &str, errors: &mut Errors) {
    let Some(parsed) = Url::parse(url) else { return errors.required(path, "must be a URL such as https://host/path") };
    for (part, why) in parsed.webhook_problems() {
        errors.invalid(path, &part.into(), why);
    }
}

/// Validates `service.path`: segments that are DNS-1123 subdomains (`ValidateWebhookService`). One trailing slash is
/// allowed. Each empty or invalid segment is an error.
fn service_path(path: &str, field_path: &str, errors: &mut Errors) {
    if path == "/" || path.is_empty() {
        return;
    }
    if !path.starts_with('/') {
        errors.invalid(field_path, &path.into(), "must start with a '/'");
    }
    let inner = path.get(1..).unwrap_or_default();
    for (index, segment) in inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate() {
        // An empty segment is invalid, too.
        if let Some(failure) = NameRule::Subdomain.check(segment) {
            errors.invalid(field_path, &path.into(), &format!("segment[{index}]: {failure}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn path_may_end_with_one_slash() {
        let n_errors = |path: &str| {
            let config = json!({ "service": { "namespace": "n", "name": "s", "path": path } });
            validate(&config, "clientConfig").len()
        };
        for (path, expected) in [("", 0), ("/", 0), ("/a", 0), ("/a/", 0), ("//", 1), ("/a//", 1), ("/a//b", 1)] {
            assert_eq!(n_errors(path), expected, "{path}");
        }
    }
}
