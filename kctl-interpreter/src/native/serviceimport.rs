//! The rule of `multicluster.x-k8s.io/v1alpha1 ServiceImport`, the kind of the multi-cluster
//! services API: `InterpretDependency`, as `getServiceImportDependencies` in Karmada's
//! `dependencies.go`. `InterpretStatus` returns the whole status.

use serde_json::{Value, json};

use super::{NativeError, Result};
use crate::{operation::DependentReference, typed::Typed};

/// Returns the Service `derived-<name>` that Karmada creates for the import, and all `EndpointSlice`s
/// with its label `kubernetes.io/service-name`.
///
/// The slices are a reference by label selector, because their names are generated.
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
