//! The rule of `v1 ServiceAccount`: `Retain`, as `RetainServiceAccountFields` in Karmada's
//! `pkg/util/lifted/retain.go`. `InterpretStatus` returns the whole status, which a `ServiceAccount`
//! does not have.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{NativeError, Result, nested};

/// Adds references of the observed object to `secrets` and `imagePullSecrets` of the desired one,
/// unless a reference with that name exists.
///
/// Without them the token controller of the cluster would create a new token Secret after each
/// write. A list that is empty in both objects becomes `null`.
///
/// # Errors
/// A reference has no name.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    for field in ["secrets", "imagePullSecrets"] {
        let mut merged = nested::slice(&desired, &[field])?.unwrap_or_default().to_vec();
        let mut names = merged.iter().map(|secret| name(field, secret)).collect::<Result<BTreeSet<_>>>()?;
        for secret in nested::slice(observed, &[field])?.unwrap_or_default() {
            if names.insert(name(field, secret)?) {
                merged.push(secret.clone());
            }
        }
        let merged = if merged.is_empty() { Value::Null } else { merged.into() };
        nested::set(&mut desired, &[field], merged)?;
    }
    Ok(desired)
}

/// Returns the name of a reference. A reference without one is an error, because names decide which
/// references are equal.
pub(super) fn name(field: &str, secret: &Value) -> Result<String> {
    let name = secret.get("name").and_then(Value::as_str);
    name.map(str::to_owned).ok_or_else(|| NativeError::FieldOfOtherType {
        path: format!(".{field}[].name"),
        value: secret.to_string(),
        found: "secret reference without a name",
        expected: "string",
    })
}
