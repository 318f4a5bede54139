//! `EndpointSlice` of `discovery.k8s.io`: some of the endpoints of a Service.
//!
//! The generation counts changes of labels as well. The label `kubernetes.io/service-name` names the Service.
//! `addressType` is immutable, by a tag of the API.
//!
//! Upstream: `pkg/registry/discovery/endpointslice/strategy.go` and `pkg/apis/discovery/validation/validation.go`.

pub(crate) mod validation;

use serde_json::Value;

use crate::{
    defaulting::{add, items},
    json_path::set,
    registry::kind::{Cell, Defaults, Kind, ManagedFields, Metadata, Strategy, TableColumns, Validation},
    table::{
        fields::{SHOWN_MAX, joined_with_more, list, text, texts, value_at},
        labels::UNSET,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "discovery.k8s.io",
    resource: "endpointslices",
    kind: "EndpointSlice",
    metadata: Metadata { counted: &["labels"], ..Metadata::COUNTED },
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { drop_unstored: drop_old_topology, ..Strategy::DEFAULT },
    validation: Validation {
        validate_create: validation::validate_create,
        validate_update: |old, new, errors| validation::validate(new, old, errors),
        warn,
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields { filled_in: &["/endpoints", "/ports"], ..ManagedFields::DEFAULT },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Text("/addressType"),
        Cell::Computed(|slice, _| join_or_unset(&list(slice, "/ports").iter().map(port).collect::<Vec<_>>()).into()),
        Cell::Computed(|slice, _| join_or_unset(&addresses(slice)).into()),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Drops the topology of versions before `discovery.k8s.io/v1` (`dropTopologyOnV1`).
fn drop_old_topology(slice: &mut Value) {
    for endpoint in slice["endpoints"].as_array_mut().into_iter().flatten() {
        set(endpoint, "deprecatedTopology", None);
    }
}

/// Warns about a new slice of type `FQDN`; existing ones are not warned about again.
fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    if old.is_none() && object["addressType"] == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
}

/// Returns the number of a port, or its name if it has no number.
fn port(port: &Value) -> String {
    value_at(port, "/port").as_i64().map_or_else(|| text(port, "/name").to_owned(), |number| number.to_string())
}

/// Returns the addresses of all endpoints.
fn addresses(slice: &Value) -> Vec<String> {
    list(slice, "/endpoints").iter().flat_map(|endpoint| texts(endpoint, "/addresses")).map(str::to_owned).collect()
}

/// Joins the first `SHOWN_MAX` items and counts the rest, as in `a,b,c + 2 more...`; `<unset>` without items.
fn join_or_unset(items: &[String]) -> String {
    let joined = joined_with_more(items, ",", SHOWN_MAX);
    if joined.is_empty() { UNSET.to_owned() } else { joined }
}

/// Fills in the defaults of each port (`SetDefaults_EndpointPort` in `pkg/apis/discovery/v1/defaults.go`).
fn default(object: &mut Value) {
    for port in items(object, "ports") {
        add(port, "name", "");
        add(port, "protocol", "TCP");
    }
}
