//! Releases the Lease of a holder that has not renewed it in time, without acquiring it.

use http::Method;
use k8s_openapi::jiff::Timestamp;
use kctl_apimachinery::url;
use kube::Client;
use serde_json::Value;

use super::{ElectionConfig, Holders, Record};
use crate::{
    transport::{self, RequestBody},
    writer::{ApiError, Operation},
};

/// Releases a Lease if its record still is `expired`, as read by `holders`, and returns `true` if it did.
///
/// Only for Leases under which no work is done: the former holder may be at work, and acquires the Lease again.
///
/// # Errors
/// A request fails. A conflict means that the Lease has changed since it was read.
pub(in crate::manager) async fn release_expired(
    client: &Client,
    config: &ElectionConfig,
    holders: Holders,
    expired: &Record,
    wall: Timestamp,
) -> Result<bool, ApiError> {
    let ElectionConfig { namespace, name, identity, .. } = config;
    let path =
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}", url::escape(namespace), url::escape(name));
    let operation = Operation::from(format!("get the lease {namespace}/{name}"));
    let response = transport::send(client, &operation, Method::GET, &path, None).await?;
    let unreadable = |cause: serde_json::Error| ApiError::Unreadable { operation, cause: cause.to_string() };
    let lease: Value = serde_json::from_str(&response).map_err(unreadable)?;
    if holders.record(identity, &lease) != *expired {
        return Ok(false);
    }
    let released = Record::for_release(expired, wall).update(config, &lease).to_string().into_bytes();
    let operation = Operation::from(format!("update the lease {namespace}/{name}"));
    transport::send(client, &operation, Method::PUT, &path, Some(RequestBody::json(released))).await?;
    Ok(true)
}
