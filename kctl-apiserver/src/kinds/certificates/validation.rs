//! Rules that kinds of `certificates.k8s.io` share.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
};

/// Longest domain of a signer, in bytes.
const DOMAIN_LEN_MAX: usize = 253;
/// Longest name of a signer, in bytes: a domain, a slash, and a label and a subdomain with a dot between them.
const SIGNER_LEN_MAX: usize = DOMAIN_LEN_MAX + 1 + 63 + 1 + 253;

/// Validates the name of a signer at `spec.signerName`: a domain of at least two segments, a slash and a path, as in
/// `example.com/signer` (`ValidateSignerName` in `pkg/apis/core/validation/names.go`).
pub(crate) fn signer(name: &Value, errors: &mut Errors) {
    let (shown, name, at) = (name, text(name), "spec.signerName");
    if name.is_empty() {
        return errors.required(at, "");
    }
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(at, shown, detail);
    };
    if domain.len() > DOMAIN_LEN_MAX {
        errors.too_long(at, DOMAIN_LEN_MAX);
    }
    labels(domain, NameRule::Label, at, errors);
    if !domain.contains('.') {
        errors.invalid(at, &domain.into(), "should be a domain with at least two segments separated by dots");
    }
    labels(path, NameRule::Subdomain, at, errors);
    if name.len() > SIGNER_LEN_MAX {
        errors.too_long(at, SIGNER_LEN_MAX);
    }
}

/// Validates the parts of a name between dots.
fn labels(name: &str, rule: NameRule, at: &str, errors: &mut Errors) {
    for label in name.split('.') {
        if let Some(message) = rule.check(label) {
            errors.invalid(at, &name.into(), &format!("validating label {label:?}: {message}"));
        }
    }
}
