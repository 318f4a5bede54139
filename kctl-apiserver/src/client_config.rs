//! Resolves the `clientConfig` of an admission or conversion webhook to a call, and decodes the reply.

use std::time::Duration;

use serde_json::Value;

use crate::{
    decode,
    kinds::core::service,
    state::State,
    store::Store,
    webhook_round::{WebhookCall, WebhookReply},
};

/// Returns the call of the webhook that a `clientConfig` names, without a review (`ClientManager.HookClient` of
/// `k8s.io/apiserver/pkg/util/webhook/client.go`). `seconds` is the timeout. A Service that a handler in this process
/// serves needs no object of kind Service. Clients name a webhook either by `url` or by `service`. A Service is called
/// at its cluster IP, with its DNS name in TLS: `NAME.NAMESPACE.svc` has to be in the certificate.
///
/// # Errors
/// Fails if the Service does not exist or does not have the port.
pub(crate) fn resolve(state: &State, config: &Value, seconds: u64) -> Result<WebhookCall, String> {
    let trusted = config["caBundle"].as_str().unwrap_or_default().to_owned();
    let timeout = Duration::from_secs(seconds);
    let ask = |url, dial| WebhookCall { url, dial, trusted, review: Value::Null, timeout };
    if let Some(url) = config["url"].as_str() {
        return Ok(ask(format!("{url}?timeout={seconds}s"), None));
    }
    let service = &config["service"];
    let text = |field: &str| service[field].as_str().unwrap_or_default();
    let port = service["port"].as_u64().unwrap_or(443);
    let host = format!("{}.{}.svc", text("name"), text("namespace"));
    let path = text("path").trim_start_matches('/');
    let url = format!("https://{host}:{port}/{path}?timeout={seconds}s");
    if state.core.transport.is_in_process(&url) {
        return Ok(ask(url, None));
    }
    let address =
        service_address(&state.store, text("namespace"), text("name"), port).map_err(|why| format!("{url}: {why}"))?;
    Ok(ask(url, Some(address)))
}

/// Returns the address of a Service (`ResolveCluster` of `k8s.io/apiserver/pkg/util/proxy`). This process has nothing
/// like kube-proxy: the cluster IP has to be reachable from this machine.
fn service_address(store: &Store, namespace: &str, name: &str, port: u64) -> Result<String, String> {
    let found = store.object(&service::KIND, namespace, name);
    let service = found.ok_or_else(|| format!("service {name:?} not found"))?;
    let spec = &service["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    if text("type") == "ExternalName" {
        return Ok(format!("{}:{port}", text("externalName")));
    }
    if spec["ports"].as_array().into_iter().flatten().all(|served| served["port"].as_u64() != Some(port)) {
        return Err(format!("no service port {port} found for service {name:?}"));
    }
    match text("clusterIP") {
        "" | "None" => Err(format!("no endpoints available for service {name:?}")),
        address => Ok(format!("{address}:{port}")),
    }
}

/// Returns the document in the response of a webhook (`rest.Result`). The reply may be JSON or YAML.
///
/// # Errors
/// Fails if the call failed, or if the document is of another type.
pub(crate) fn decode_reply(reply: &WebhookReply, api_version: &str, kind: &str) -> Result<Value, String> {
    let bytes = reply.outcome.as_ref().map_err(Clone::clone)?;
    let text = String::from_utf8_lossy(bytes);
    let body: Value = serde_json::from_slice(bytes)
        .or_else(|_| serde_saphyr::from_str(&text))
        .map_err(|error| format!("invalid JSON: {error}"))?;
    if !body.is_object() {
        return Err(decode::type_error("body", "an object", &body));
    }
    let field_of = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    let (found_version, found_kind) = (field_of("apiVersion"), field_of("kind"));
    if (found_version.as_str(), found_kind.as_str()) == (api_version, kind) {
        return Ok(body);
    }
    Err(format!("must be a {kind} of {api_version}, found {found_kind:?} of {found_version:?}"))
}
