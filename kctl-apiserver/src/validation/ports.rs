//! Validation of ports: ports of containers and hosts, and references by name or number.
//!
//! A host port of 0, or an absent one, means no host port. With `hostNetwork` the defaulting has
//! set each host port to the container port before validation. Names of ports matter to Services
//! and probes, which refer to them instead of the number.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::Field;

/// Maximum length of a port name, in bytes (RFC 6335, the names of the IANA service registry).
const NAME_LEN_MAX: usize = 15;
/// The rule for port names.
const NAME_RULE: &str = "must be at most 15 lowercase letters, digits and single hyphens, with at least one letter and \
                         without a hyphen at either end";

/// Validates the ports of a container (`validateContainerPorts`). Names are optional. A name with errors is not
/// remembered, so that a second invalid one of the same name is not also a duplicate. `declared` has validated protocol
/// and host IP.
pub(crate) fn validate_ports(ports: &Field<'_>) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let (name, own) = (port.at("name"), port.at("containerPort"));
        if !name.is_empty() {
            if !is_name(name.text()) {
                name.invalid(NAME_RULE);
            } else if !names.insert(name.text()) {
                name.duplicate();
            }
        }
        match number(&own) {
            0 => own.required(),
            _ => own.in_range(1, 65_535),
        }
        port.at("hostPort").in_range(0, 65_535);
    }
}

/// Returns a port number; an absent one is 0, as in Go.
fn number(port: &Value) -> i64 {
    port.as_i64().unwrap_or(0)
}

/// Reports a combination of protocol, host IP and host port that occurs again. `0.0.0.0` and an absent address do not
/// conflict.
pub(crate) fn validate_host_ports<'a>(containers: impl Iterator<Item = Field<'a>>) {
    let mut taken = BTreeSet::new();
    for port in containers.flat_map(|container| container.at("ports").items()) {
        let host = port.at("hostPort");
        let key = (port.at("protocol").text(), port.at("hostIP").text(), number(&host));
        host.duplicate_if(number(&host) != 0 && !taken.insert(key));
    }
}

/// Host ports of a Pod with `hostNetwork`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostPorts {
    /// In a Pod, whose defaults set them.
    Required,
    /// In a template.
    Optional,
}

/// Validates that host ports equal container ports with `hostNetwork`. A template may lack host ports, because
/// defaulting sets them only in Pods.
pub(crate) fn validate_ports_on_host(spec: &Field<'_>, host_ports: HostPorts) {
    if spec["hostNetwork"] != true {
        return;
    }
    for port in spec.at("containers").items().flat_map(|container| container.at("ports").items()) {
        let host = port.at("hostPort");
        let is_set = host_ports == HostPorts::Required || number(&host) != 0;
        let is_other = number(&host) != number(&port["containerPort"]);
        host.invalid_if(is_set && is_other, "must match `containerPort` when `hostNetwork` is true");
    }
}

/// Validates a port given by number or by name (`ValidatePortNumOrName`). A string with digits only is a name without a
/// letter, hence invalid.
pub(crate) fn number_or_name(port: &Field<'_>) {
    match port.as_str() {
        Some(name) => port.invalid_if(!is_name(name), NAME_RULE),
        None => port.in_range(1, 65_535),
    }
}

/// Returns `true` for a valid port name (`IsValidPortName`). It needs a letter, so that it cannot look like a number.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= NAME_LEN_MAX
        && name.bytes().all(is_allowed)
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-')
}
