//! Finds formats in the schemas of CRDs that the API server does not check.

use std::collections::BTreeSet;

use kctl_apimachinery::formats::is_known;
use serde_json::{Map, Value};

/// Returns the formats in the schemas of a CRD that are not validated, sorted and without duplicates.
pub(crate) fn unrecognized_formats(definition: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        collect_unrecognized(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

/// Collects the unknown formats of a schema.
fn collect_unrecognized(schema: &Value, found: &mut BTreeSet<String>) {
    if let Some(format) = schema["format"].as_str().filter(|format| !format.is_empty()) {
        let is_known = match schema["type"].as_str().unwrap_or_default() {
            "" | "string" => is_known(format),
            "integer" => ["int32", "int64"].contains(&format),
            "number" => ["float", "double"].contains(&format),
            _ => false,
        };
        if !is_known {
            found.insert(format.to_owned());
        }
    }
    for key in ["items", "not", "additionalProperties"] {
        if schema[key].is_object() {
            collect_unrecognized(&schema[key], found);
        }
    }
    let alternatives = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    for below in alternatives.chain(schema["properties"].as_object().into_iter().flat_map(Map::values)) {
        collect_unrecognized(below, found);
    }
}
