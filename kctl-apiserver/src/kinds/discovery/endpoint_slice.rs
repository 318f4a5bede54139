//! `EndpointSlice` of `discovery.k8s.io`.

use serde_json::Value;

use crate::{
    admit::{defaults, rules},
    json_path::set,
    registry::kind::{Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "discovery.k8s.io",
    resource: "endpointslices",
    kind: "EndpointSlice",
    generation: Generation::Counted,
    counted_metadata: &["labels"],
    drop_unstored: drop_old_topology,
    default: defaults::service::endpoint_slice,
    filled_in: &["/endpoints", "/ports"],
    validate_create: Some(rules::endpoints::new_slice),
    validate_update: |old, new, errors| rules::endpoints::slice(new, old, errors),
    warn,
    printer: Some(table::network::endpoint_slice),
    ..Kind::DEFAULT
};

/// Drops the topology of versions before `discovery.k8s.io/v1` (`dropTopologyOnV1`).
fn drop_old_topology(slice: &mut Value) {
    for endpoint in slice["endpoints"].as_array_mut().into_iter().flatten() {
        set(endpoint, "deprecatedTopology", None);
    }
}

fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    if old.is_none() && object["addressType"] == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
}
