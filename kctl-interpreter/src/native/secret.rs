//! The rule of `v1 Secret`: `Retain`, as `retainSecretServiceAccountToken` in Karmada's
//! `retain.go`. `InterpretStatus` returns the whole status, which a Secret does not have.

use serde_json::Value;

use super::{Result, nested};

/// The type of Secrets whose data the token controller of each cluster fills in.
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// Copies `data` from the observed object if the desired one is a service account token. Other
/// Secrets keep the desired data.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    if is_token(&desired)
        && let Some(data) = nested::string_map(observed, &["data"])?
    {
        nested::set(&mut desired, &["data"], Value::Object(data.clone()))?;
    }
    Ok(desired)
}

/// Returns `true` if the Secret has the type `kubernetes.io/service-account-token`.
pub(super) fn is_token(secret: &Value) -> bool {
    secret.get("type").and_then(Value::as_str) == Some(SERVICE_ACCOUNT_TOKEN)
}
