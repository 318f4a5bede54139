//! Discovery: the resource of a kind, and its scope.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::{Client, core::GroupVersionKind};

use super::WatchError;
use crate::{
    object::Kind,
    transport::{self, ApiError, Operation},
};

pub(super) struct ServedKind {
    pub(super) kind: Kind,
    pub(super) namespaced: bool,
}

/// Requests the resources of the group and version, and returns the one with this kind. Subresources are skipped,
/// because they have kinds too: `pods/eviction` is an Eviction.
pub(super) async fn find(client: &Client, requested: &GroupVersionKind) -> Result<ServedKind, WatchError> {
    let GroupVersionKind { group, version, kind } = requested;
    let mut found = Kind { group: group.clone(), version: version.clone(), kind: kind.clone(), plural: String::new() };
    let operation = Operation::from(format!("discover {}", found.api_version()));
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let unknown = || WatchError::UnknownKind { kind: kind.clone(), api_version: requested.api_version() };
    let body = match transport::get(client, &operation, &format!("{root}/{}", found.api_version())).await {
        Err(error) if error.is_not_found() => return Err(unknown()),
        body => body?,
    };
    let unreadable = |error: serde_json::Error| ApiError::Unreadable { operation, cause: error.to_string() };
    let APIResourceList { resources, .. } = serde_json::from_str(&body).map_err(unreadable)?;
    let mut named = resources.into_iter().filter(|resource| resource.kind == *kind && !resource.name.contains('/'));
    let resource = named.next().ok_or_else(unknown)?;
    found.plural = resource.name;
    Ok(ServedKind { kind: found, namespaced: resource.namespaced })
}
