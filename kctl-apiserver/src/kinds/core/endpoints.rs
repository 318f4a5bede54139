//! `Endpoints` of the core group.
//!
//! The kind is deprecated in favour of `EndpointSlice`: each response has a warning.
//!
//! Upstream: `pkg/registry/core/endpoint/strategy.go` and `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::{fill, items},
    field::Field,
    field_errors::Errors,
    names::NameRule,
    registry::kind::{Cell, Defaults, Kind, Requests, Strategy, TableColumns, Validation},
    table::{
        fields::{self, SHOWN_MAX, int, joined_with_more, list},
        labels::NONE,
    },
    validation::address,
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

/// Returns the first endpoints; `<none>` without subsets.
fn endpoints(object: &Value) -> String {
    let subsets = list(object, "/subsets");
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let endpoints: Vec<_> = subsets.iter().flat_map(addresses_and_ports).collect();
    joined_with_more(&endpoints, ",", SHOWN_MAX)
}

/// Returns each port with each ready address, or only the addresses if the subset has no ports.
fn addresses_and_ports(subset: &Value) -> Vec<String> {
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
/// An address may not be unspecified, loopback or link-local: traffic to it would reach the node that sends it, or its
/// metadata service. Names of ports need not be unique.
fn validate(object: &Value, errors: &mut Errors) {
    for subset in Field::new(&object["subsets"], "subsets", errors).items() {
        let [ready, not_ready, ports] = ["addresses", "notReadyAddresses", "ports"].map(|name| subset.at(name));
        let has_none = ready.is_empty() && not_ready.is_empty();
        subset.required_with_if(has_none, "must have `addresses` or `notReadyAddresses`");
        for address in ready.items().chain(not_ready.items()) {
            let ip = address.at("ip");
            ip.check(address::validate_legacy_ip);
            ip.check(address::validate_endpoint_ip);
            address.at("hostname").name_if_set(NameRule::Label);
            address.at("nodeName").when_present(|node| node.name(NameRule::Subdomain));
        }
        let has_several = ports.items().count() > 1;
        for port in ports.items() {
            let number = Value::from(port["port"].as_i64().unwrap_or(0));
            port.at_with("port", &number).in_range(1, 65_535);
            port.at("name").required_if(has_several && port.at("name").is_empty());
            validate_port(&port);
        }
    }
}

/// Validates name and application protocol of a port of `Endpoints` or of an `EndpointSlice`.
pub(crate) fn validate_port(port: &Field<'_>) {
    port.at("name").name_if_set(NameRule::Label);
    port.at("appProtocol").when_present(Field::qualified_name);
}

/// Fills in the protocol `TCP` of each port.
fn default(object: &mut Value) {
    for subset in items(object, "subsets") {
        items(subset, "ports").for_each(|port| fill(port, "protocol", "TCP"));
    }
}
