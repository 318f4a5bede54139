//! Validation of signer names, certificate lifetimes and signer annotations. The kinds of `certificates.k8s.io` and
//! projected volumes share it.

use crate::{
    field::Field,
    field_errors::{pairs, text},
    names::{NameRule, check_qualified_name},
};

/// Smallest value of `maxExpirationSeconds` (`MinMaxExpirationSeconds`): one hour. It is also the shortest lifetime of
/// an issued certificate.
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
pub(crate) fn name(name: &Field<'_>) {
    if !name.require_value() {
        return;
    }
    let are = |rule: NameRule, parts: &str| parts.split('.').all(|part| rule.check(part).is_none());
    let detail = "must be a domain of at least two labels and a path, such as example.com/signer-name";
    let Some((domain, path)) = name.text().split_once('/').filter(|(_, path)| !path.contains('/')) else {
        return name.invalid(detail);
    };
    let is_valid = domain.contains('.') && are(NameRule::Label, domain) && are(NameRule::Subdomain, path);
    name.invalid_if(!is_valid, detail);
    name.max_bytes(if domain.len() > DOMAIN_LEN_MAX { DOMAIN_LEN_MAX } else { SIGNER_LEN_MAX });
}

/// Returns the longest lifetime that may be requested from a signer, in seconds.
pub(crate) fn lifetime_max(signer: &str) -> i64 {
    let domain = signer.split('/').next().unwrap_or_default();
    let is_kubernetes_signer = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    if is_kubernetes_signer { LIFETIME_MAX_OF_KUBERNETES } else { LIFETIME_MAX }
}

/// Returns why a `ClusterTrustBundle` of a signer can't have this name (`ValidateClusterTrustBundleName`). `signer` is
/// empty for a bundle without a signer. `check` validates the part of the name after the signer's prefix.
pub(crate) fn bundle_name_error(
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
pub(crate) fn validate_annotations(annotations: &Field<'_>) {
    /// Maximum size of all keys and values, in bytes (`TotalAnnotationSizeLimitB`).
    const BYTES_MAX: usize = 256 * 1024;
    for (key, _) in pairs(annotations) {
        if key.is_empty() {
            annotations.required();
        } else if !key.contains('/') || check_qualified_name(&key.to_lowercase()).is_some() {
            annotations.with(&key.into()).invalid("must be a domain-prefixed key (such as \"acme.io/foo\")");
        }
    }
    if pairs(annotations).map(|(key, value)| key.len() + text(value).len()).sum::<usize>() > BYTES_MAX {
        annotations.too_long(BYTES_MAX);
    }
}
