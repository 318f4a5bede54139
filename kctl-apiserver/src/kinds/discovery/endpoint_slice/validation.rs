//! Validation of `EndpointSlice`s (`pkg/apis/discovery/validation/validation.go`).
//!
//! The address type is validated by tags of the schema (`data/validation.json`): it is required,
//! one of an enum, and immutable.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    kinds::core::endpoints::validate_port,
    names::{NameRule, check_label_value},
    validation::{address, entries},
};

/// Maximum number of zones, and of nodes, that the hints of one endpoint may name.
const HINTS_MAX: usize = 8;

/// Validates a new `EndpointSlice`.
///
/// All addresses are validated, as if an update had added all endpoints to an empty slice.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    validate(object, &Value::Null, errors);
}

/// Validates a slice. Addresses are validated only if the endpoints differ from those of `old`.
///
/// An endpoint that was stored before a rule existed therefore does not block updates of labels.
/// Ports have unique names; one port may have the empty name.
pub(crate) fn validate(object: &Value, old: &Value, errors: &mut Errors) {
    let kind = &object["addressType"];
    let mut seen = Vec::new();
    for (index, port) in entries(&object["ports"]) {
        let (path, name) = (format!("ports[{index}]"), text(&port["name"]));
        if seen.contains(&name) {
            errors.duplicate(&format!("{path}.name"));
        }
        seen.push(name);
        validate_port(port, &path, None, errors);
    }
    for (index, endpoint) in entries(&object["endpoints"]) {
        let path = format!("endpoints[{index}]");
        if old["endpoints"] != object["endpoints"] {
            addresses(&endpoint["addresses"], text(kind), &format!("{path}.addresses"), errors);
        }
        if !endpoint["nodeName"].is_null() {
            errors.name(&format!("{path}.nodeName"), &endpoint["nodeName"], NameRule::Subdomain);
        }
        if !endpoint["hostname"].is_null() {
            errors.name(&format!("{path}.hostname"), &endpoint["hostname"], NameRule::Label);
        }
        hints(&endpoint["hints"], &format!("{path}.hints"), errors);
    }
}

/// Validates the zones and nodes whose traffic an endpoint should get.
///
/// Names are unique within each list. A zone is the value of a label, and a node has a subdomain as name. If a list is
/// too long, neither it nor the list after it is validated further.
fn hints(hints: &Value, path: &str, errors: &mut Errors) {
    for list in ["forZones", "forNodes"] {
        let (all, path) = (&hints[list], format!("{path}.{list}"));
        let n_hints = entries(all).count();
        if n_hints > HINTS_MAX {
            return errors.too_many(&path, n_hints, HINTS_MAX);
        }
        for (index, hint) in entries(all) {
            let (name, path) = (&hint["name"], format!("{path}[{index}].name"));
            if entries(all).take(index).any(|(_, other)| other["name"] == *name) {
                errors.duplicate(&path);
            }
            if list == "forNodes" {
                errors.name(&path, name, NameRule::Subdomain);
            } else if let Some(message) = check_label_value(text(name)) {
                errors.invalid(&path, name, message);
            }
        }
    }
}

/// Validates the addresses of an endpoint, which are of the slice's address type.
///
/// An address of the other family is reported at the list, without an index. With an unknown type
/// nothing is validated.
fn addresses(list: &Value, kind: &str, path: &str, errors: &mut Errors) {
    for (index, item) in entries(list) {
        let item_path = format!("{path}[{index}]");
        if kind == "FQDN" {
            errors.name(&item_path, item, NameRule::Subdomain);
            continue;
        }
        let Some(parsed) = address::parse(text(item)).filter(|_| ["IPv4", "IPv6"].contains(&kind)) else {
            if kind == "IPv4" || kind == "IPv6" {
                address::legacy(item, &item_path, errors);
            }
            continue;
        };
        if parsed.is_ipv4() != (kind == "IPv4") {
            errors.invalid(path, item, &format!("must be an {kind} address"));
        }
        address::endpoint(item, &item_path, errors);
    }
}
