//! Validation of `EndpointSlice`s (`pkg/apis/discovery/validation/validation.go`).
//!
//! Tags of the API validate the address type: it is required, one of an enum, and immutable.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    kinds::core::endpoints::validate_port,
    names::NameRule,
    validation::address,
};

/// Maximum number of endpoints of a slice (`maxEndpoints`).
const ENDPOINTS_MAX: usize = 1_000;

/// Maximum number of ports of a slice (`maxPorts`).
const PORTS_MAX: usize = 20_000;

/// Maximum number of zones, and of nodes, that the hints of one endpoint may name.
const HINTS_MAX: usize = 8;

/// Validates a new `EndpointSlice`, as if an update had added all endpoints to an empty slice.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    validate(object, &Value::Null, errors);
}

/// Validates a slice. Endpoints are validated only if they differ from the endpoints of `old`: endpoints that were
/// stored before a rule existed do not block updates of labels. The items of a list that is too long are not validated.
pub(crate) fn validate(object: &Value, old: &Value, errors: &mut Errors) {
    let slice = Field::new(object, "", errors);
    let (kind, ports, endpoints) = (slice.at("addressType"), slice.at("ports"), slice.at("endpoints"));
    ports.max_items(PORTS_MAX);
    ports.unique_at("name");
    ports.items().for_each(|port| validate_port(&port));
    if old["endpoints"] == *endpoints {
        return;
    }
    endpoints.max_items(ENDPOINTS_MAX);
    for endpoint in endpoints.items() {
        validate_addresses(&endpoint.at("addresses"), kind.text());
        for (name, rule) in [("nodeName", NameRule::Subdomain), ("hostname", NameRule::Label)] {
            endpoint.at(name).when_present(|field| field.name(rule));
        }
        validate_hints(&endpoint.at("hints"));
    }
}

/// Validates the zones and nodes whose traffic an endpoint should get. If a list is too long, neither it nor the list
/// after it is validated further.
fn validate_hints(hints: &Field<'_>) {
    for name in ["forZones", "forNodes"] {
        let list = hints.at(name);
        if list.items().count() > HINTS_MAX {
            return list.max_items(HINTS_MAX);
        }
        list.unique_at("name");
        for hint in list.items().map(|hint| hint.at("name")) {
            if name == "forNodes" {
                hint.name(NameRule::Subdomain);
            } else {
                hint.label_value();
            }
        }
    }
}

/// Validates the addresses of an endpoint. An address of the other family is reported at the list, without an index.
/// With an unknown type nothing is validated.
fn validate_addresses(list: &Field<'_>, kind: &str) {
    // The addresses of a list that is too long are validated, too (`validateEndpoints`).
    for (index, value) in entries(list) {
        let item = list.index(index);
        let (address, parsed) = (item.with(value), address::parse(text(value)));
        match kind {
            "FQDN" => address.name(NameRule::Subdomain),
            "IPv4" | "IPv6" => {
                let is_other = parsed.is_some_and(|parsed| parsed.is_ipv4() != (kind == "IPv4"));
                list.with(value).invalid_if(is_other, format_args!("must have only {kind} addresses"));
                address.check(address::validate_endpoint_ip);
            }
            _ => {}
        }
    }
}
