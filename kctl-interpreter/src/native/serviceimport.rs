//! `ServiceImport`s of the multi-cluster services API.

use serde_json::{Value, json};

use super::{NativeError, Result};
use crate::{operation::DependentReference, typed::Typed};

/// Returns the service that Karmada derives from the import, and its endpoints.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    let import = Typed::from_object("ServiceImport", object).map_err(NativeError::object("ServiceImport"))?;
    let namespace = import.text("/metadata/namespace").to_owned();
    let name = format!("derived-{}", import.text("/metadata/name"));
    let selector = json!({ "matchLabels": { "kubernetes.io/service-name": name } });
    let service = DependentReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        namespace: namespace.clone(),
        name,
        label_selector: None,
    };
    let slices = DependentReference {
        api_version: "discovery.k8s.io/v1".to_owned(),
        kind: "EndpointSlice".to_owned(),
        namespace,
        name: String::new(),
        label_selector: Some(selector),
    };
    Ok(vec![service, slices])
}
