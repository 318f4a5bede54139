//! `ServiceAccount`s.

use serde_json::Value;

use super::{NativeError, Result, nested};

/// Keeps the secrets that the cluster added, so that its controller does not make them again and again.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    for field in ["secrets", "imagePullSecrets"] {
        let mut merged = nested::slice(&desired, &[field])?.unwrap_or_default().to_vec();
        let mut names = merged.iter().map(|secret| name(field, secret)).collect::<Result<Vec<_>>>()?;
        for secret in nested::slice(observed, &[field])?.unwrap_or_default() {
            let name = name(field, secret)?;
            if !names.contains(&name) {
                names.push(name);
                merged.push(secret.clone());
            }
        }
        let merged = if merged.is_empty() { Value::Null } else { merged.into() };
        nested::set(&mut desired, &[field], merged)?;
    }
    Ok(desired)
}

/// Returns the name of a reference. Without one, two references cannot be told apart.
pub(super) fn name(field: &str, secret: &Value) -> Result<String> {
    let name = secret.get("name").and_then(Value::as_str);
    name.map(str::to_owned).ok_or_else(|| NativeError::FieldOfOtherType {
        path: format!(".{field}[].name"),
        value: secret.to_string(),
        found: "secret reference without a name",
        expected: "string",
    })
}
