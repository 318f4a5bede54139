//! Secrets.

use serde_json::Value;

use super::{Result, nested};

/// The type of secrets that the cluster fills with a token of its own.
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// Keeps the token that the cluster made.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    if is_token(&desired)
        && let Some(data) = nested::string_map(observed, &["data"])?
    {
        nested::set(&mut desired, &["data"], Value::Object(data.clone()))?;
    }
    Ok(desired)
}

/// Tells whether a secret holds a token of a service account.
pub(super) fn is_token(secret: &Value) -> bool {
    secret.get("type").and_then(Value::as_str) == Some(SERVICE_ACCOUNT_TOKEN)
}
