//! Validation of signer names, certificate lifetimes and signer annotations. The kinds of `certificates.k8s.io` and
//! projected volumes share it.

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    names::NameRule,
};

/// Smallest value of `maxExpirationSeconds` (`MinMaxExpirationSeconds`): one hour. It is also the shortest lifetime of an
/// issued certificate.
pub(crate) const LIFETIME_MIN: i64 = 60 * 60;
/// Largest value of `maxExpirationSeconds` (`MaxMaxExpirationSeconds`): 91 days.
const LIFETIME_MAX: i64 = 91 * 24 * 60 * 60;
/// Largest value of `maxExpirationSeconds` for a signer of Kubernetes (`KubernetesMaxMaxExpirationSeconds`): one day.
const LIFETIME_MAX_OF_KUBERNETES: i64 = 24 * 60 * 60;

/// Longest domain of a signer, in bytes.
const DOMAIN_LEN_MAX: usize = 253;
/// Longest name of a signer, in bytes: a domain, a slash, and a label and a subdomain with a dot between them.
const SIGNER_LEN_MAX: usize = DOMAIN_LEN_MAX + 1 + 63 + 1 + 253;

/// Validates the name of a signer: a domain of at least two segments, a slash and a path, as in `example.com/signer`
/// (`ValidateSignerName` in `pkg/apis/core/validation/names.go`).
pub(crate) fn name(name: &Value, field_path: &str, errors: &mut Errors) {
    let (shown, name) = (name, text(name));
    if name.is_empty() {
        return errors.required(field_path, "");
    }
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(field_path, shown, detail);
    };
    if domain.len() > DOMAIN_LEN_MAX {
        errors.too_long(field_path, DOMAIN_LEN_MAX);
    }
    labels(domain, NameRule::Label, field_path, errors);
    if !domain.contains('.') {
        errors.invalid(field_path, &domain.into(), "should be a domain with at least two segments separated by dots");
    }
    labels(path, NameRule::Subdomain, field_path, errors);
    if name.len() > SIGNER_LEN_MAX {
        errors.too_long(field_path, SIGNER_LEN_MAX);
    }
}

/// Validates the parts of a name between dots.
fn labels(name: &str, rule: NameRule, path: &str, errors: &mut Errors) {
    for label in name.split('.') {
        if let Some(message) = rule.check(label) {
            errors.invalid(path, &name.into(), &format!("validating label {label:?}: {message}"));
        }
    }
}

/// Returns the longest lifetime that may be requested from a signer, in seconds.
pub(crate) fn lifetime_max(signer: &str) -> i64 {
    let domain = signer.split('/').next().unwrap_or_default();
    let is_of_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    if is_of_kubernetes { LIFETIME_MAX_OF_KUBERNETES } else { LIFETIME_MAX }
}

/// Returns why a `ClusterTrustBundle` of a signer can't have this name (`ValidateClusterTrustBundleName`). `signer` is
/// empty for a bundle without a signer. `check` validates the part of the name after the signer's prefix.
pub(crate) fn problem_of_bundle_name(
    name: &str,
    signer: &str,
    check: fn(NameRule, &str) -> Option<&'static str>,
) -> Option<String> {
    let required = if signer.is_empty() { String::new() } else { format!("{}:", signer.replace('/', ":")) };
    match name.strip_prefix(&required) {
        None => Some(format!("must begin with {required:?}, because the signer is {signer:?}")),
        Some(_) if signer.is_empty() && name.contains(':') => Some("must not contain ':' without a signer".into()),
        Some(rest) => check(NameRule::Subdomain, rest).map(str::to_owned),
    }
}

/// Validates annotations for the signer: keys have a domain (`ValidateUserAnnotations`).
pub(crate) fn annotations(annotations: &Value, path: &str, errors: &mut Errors) {
    /// Maximum size of all keys and values, in bytes (`TotalAnnotationSizeLimitB`).
    const BYTES_MAX: usize = 256 * 1024;
    for (key, _) in pairs(annotations) {
        let before = errors.len();
        errors.qualified_name_if_set(path, &key.to_lowercase());
        if key.is_empty() {
            errors.required(path, "");
        } else if errors.len() == before && !key.contains('/') {
            errors.invalid(path, &key.into(), "must be a domain-prefixed key (such as \"acme.io/foo\")");
        }
    }
    if pairs(annotations).map(|(key, value)| key.len() + text(value).len()).sum::<usize>() > BYTES_MAX {
        errors.too_long(path, BYTES_MAX);
    }
}
