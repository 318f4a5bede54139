//! `ControllerSpec` → manifests: pure functions of the declaration, sorted and byte-stable.

mod descriptions;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

pub(crate) use descriptions::without_built_in_descriptions;

use crate::spec::ControllerSpec;

/// The definitions of all custom resources that the controllers reconcile, by name.
pub fn crds(specs: &[ControllerSpec]) -> Vec<CustomResourceDefinition> {
    let named = specs.iter().filter_map(|spec| spec.crd.clone()).map(|crd| (crd.metadata.name.clone(), crd));
    named.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// Objects as one YAML stream.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn yaml(objects: &[Value]) -> Result<String, serde_saphyr::SerializeError> {
    let mut stream = String::new();
    for object in objects {
        stream += "---\n";
        stream += &serde_saphyr::to_string(object)?;
    }
    Ok(stream)
}
