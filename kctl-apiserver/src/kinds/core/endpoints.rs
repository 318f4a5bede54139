//! `Endpoints` of the core group.
//!
//! The kind is deprecated in favour of `EndpointSlice`: each response has a warning. A `PUT`
//! creates a missing object.
//!
//! Upstream: `pkg/registry/core/endpoint/strategy.go` and `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::{fill, items},
    field_errors::{Errors, text},
    names::NameRule,
    registry::kind::{Cell, Defaults, Kind, Requests, Strategy, TableColumns, Validation},
    table::{
        fields::{self, int, joined_with_more, list},
        labels::NONE,
    },
    validation::{address, entries},
};

pub(crate) static KIND: Kind = Kind {
    resource: "endpoints",
    kind: "Endpoints",
    requests: Requests {
        deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ..Requests::DEFAULT
    },
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { creates_on_update: true, ..Strategy::DEFAULT },
    validation: Validation { validate, ..Validation::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Computed(|object, _| endpoints(object).into()), Cell::Age]),
    ..Kind::DEFAULT
};

/// Maximum number of addresses that the column Endpoints shows (`formatEndpoints`). The rest is
/// counted, as in `10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more...`.
const ENDPOINTS_SHOWN_MAX: usize = 3;

/// Returns the first endpoints; `<none>` without subsets.
fn endpoints(object: &Value) -> String {
    let subsets = list(object, "/subsets");
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let places: Vec<_> = subsets.iter().flat_map(places).collect();
    joined_with_more(&places, ",", ENDPOINTS_SHOWN_MAX)
}

/// Returns each port with each ready address, or only the addresses if the subset has no ports.
///
/// IPv6 addresses are in brackets if a port follows.
fn places(subset: &Value) -> Vec<String> {
    let addresses: Vec<_> = list(subset, "/addresses").iter().map(|address| fields::text(address, "/ip")).collect();
    let ports = list(subset, "/ports");
    if ports.is_empty() {
        return addresses.into_iter().map(str::to_owned).collect();
    }
    let endpoint = |port: i64, address: &str| {
        if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
    };
    ports.iter().flat_map(|port| addresses.iter().map(move |address| endpoint(int(port, "/port"), address))).collect()
}

/// Validates `Endpoints` (`ValidateEndpoints`).
///
/// Each subset has at least one address, ready or not. The name of a port is required if its subset
/// has several ports. An address may not be unspecified, loopback or link-local: traffic to it would
/// reach the node that sends it, or its metadata service.
///
/// Numbers of ports are 1 to 65,535 (`FieldValueInvalid`). Names of ports are DNS labels and need
/// not be unique.
fn validate(object: &Value, errors: &mut Errors) {
    for (index, subset) in entries(&object["subsets"]) {
        let path = format!("subsets[{index}]");
        let is_empty = |list: &str| entries(&subset[list]).next().is_none();
        if is_empty("addresses") && is_empty("notReadyAddresses") {
            errors.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for list in ["addresses", "notReadyAddresses"] {
            for (nth, item) in entries(&subset[list]) {
                let path = format!("{path}.{list}[{nth}]");
                address::legacy(&item["ip"], &format!("{path}.ip"), errors);
                names(item, &path, errors);
                address::endpoint(&item["ip"], &format!("{path}.ip"), errors);
            }
        }
        let n_ports = entries(&subset["ports"]).count();
        for (nth, port) in entries(&subset["ports"]) {
            let path = format!("{path}.ports[{nth}]");
            if n_ports > 1 && text(&port["name"]).is_empty() {
                errors.required(&format!("{path}.name"), "");
            }
            let number = port["port"].as_i64().unwrap_or(0);
            validate_port(port, &path, Some(number), errors);
        }
    }
}

/// Validates host name and node of an address, if they are set.
fn names(endpoint: &Value, path: &str, errors: &mut Errors) {
    if !text(&endpoint["hostname"]).is_empty() {
        errors.name(&format!("{path}.hostname"), &endpoint["hostname"], NameRule::Label);
    }
    if !endpoint["nodeName"].is_null() {
        errors.name(&format!("{path}.nodeName"), &endpoint["nodeName"], NameRule::Subdomain);
    }
}

/// Validates a port of `Endpoints` or of an `EndpointSlice`: name, number and application protocol.
///
/// `number` is the port of `Endpoints`, which is required. It is `None` for a slice, whose port may
/// be absent.
pub(crate) fn validate_port(port: &Value, path: &str, number: Option<i64>, errors: &mut Errors) {
    if !text(&port["name"]).is_empty() {
        errors.name(&format!("{path}.name"), &port["name"], NameRule::Label);
    }
    if let Some(number) = number {
        errors.in_range(&format!("{path}.port"), &number.into(), 1, 65_535);
    }
    if port["appProtocol"].is_string() {
        errors.qualified_name(&format!("{path}.appProtocol"), text(&port["appProtocol"]));
    }
}

/// Fills in the protocol `TCP` of each port.
fn default(object: &mut Value) {
    for subset in items(object, "subsets") {
        items(subset, "ports").for_each(|port| fill(port, "protocol", "TCP"));
    }
}
