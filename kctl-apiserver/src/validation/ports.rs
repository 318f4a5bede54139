//! Validation of ports: those of containers, of their hosts, and references by name or number.
//!
//! A host port of 0, or an absent one, means no host port. With `hostNetwork` the defaulting has
//! set each host port to the container port before validation. Names of ports matter to Services
//! and probes, which refer to them instead of the number.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    validation::entries,
};

/// Maximum length of a port name, in bytes.
///
/// From RFC 6335, the names of the IANA service registry.
const NAME_LEN_MAX: usize = 15;
/// The rule for port names.
const NAME_RULE: &str = "must be at most 15 lowercase letters, digits and single hyphens, with at least one letter and \
                         without a hyphen at either end";

/// Validates the ports of a container: unique names (`FieldValueDuplicate`), a container port, and numbers of
/// 1 to 65,535. A host port of 0 is unset.
///
/// Upstream: `validateContainerPorts`. Names are optional. A name with errors is not remembered, so
/// that a second invalid one of the same name is not also a duplicate. Protocol and host IP were
/// validated by `declared`.
pub(crate) fn of_container(ports: &Value, path: &str, errors: &mut Errors) {
    let mut names = Vec::new();
    for (index, port) in entries(ports) {
        let path = format!("{path}[{index}]");
        let name = text(&port["name"]);
        if !name.is_empty() {
            if !is_name(name) {
                errors.invalid(&format!("{path}.name"), &port["name"], NAME_RULE);
            } else if names.contains(&name) {
                errors.duplicate(&format!("{path}.name"));
            } else {
                names.push(name);
            }
        }
        if number(port, "containerPort") == 0 {
            errors.required(&format!("{path}.containerPort"), "");
        } else {
            errors.in_range(&format!("{path}.containerPort"), &port["containerPort"], 1, 65_535);
        }
        if number(port, "hostPort") != 0 {
            errors.in_range(&format!("{path}.hostPort"), &port["hostPort"], 1, 65_535);
        }
    }
}

/// Returns a port number; an absent one is 0.
///
/// Go's zero value: rules cannot distinguish 0 from an absent number.
fn number(port: &Value, field: &str) -> i64 {
    port[field].as_i64().unwrap_or(0)
}

/// Reports a combination of protocol, host IP and host port that occurs again (`FieldValueDuplicate`).
///
/// `containers` are pairs of index in the list and container; `path` is the field path of the list. A key
/// without a host IP differs from any with an explicit address, so `0.0.0.0` and an absent address do not conflict.
pub(crate) fn host_ports(containers: &[(usize, &Value)], path: &str, errors: &mut Errors) {
    let mut taken = Vec::new();
    for (index, container) in containers {
        for (nth, port) in entries(&container["ports"]) {
            let host = number(port, "hostPort");
            if host == 0 {
                continue;
            }
            let key = format!("{}/{}/{host}", text(&port["protocol"]), text(&port["hostIP"]));
            if taken.contains(&key) {
                errors.duplicate(&format!("{path}[{index}].ports[{nth}].hostPort"));
            }
            taken.push(key);
        }
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

/// Validates that host ports equal container ports with `hostNetwork` (`FieldValueInvalid`).
///
/// A template may lack host ports, because defaulting sets them only in Pods.
pub(crate) fn on_host(spec: &Value, path: &str, host_ports: HostPorts, errors: &mut Errors) {
    if spec["hostNetwork"] != true {
        return;
    }
    for (index, container) in entries(&spec["containers"]) {
        for (nth, port) in entries(&container["ports"]) {
            let (host, own) = (number(port, "hostPort"), number(port, "containerPort"));
            if (host_ports == HostPorts::Required || host != 0) && host != own {
                let path = format!("{path}.containers[{index}].ports[{nth}].hostPort");
                errors.invalid(&path, &host.into(), "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

/// Validates a port given by number (1 to 65,535) or by name (`FieldValueInvalid`).
///
/// Upstream: `ValidatePortNumOrName`. A string with digits only is a name without a letter, hence
/// invalid.
pub(crate) fn number_or_name(port: &Value, path: &str, errors: &mut Errors) {
    match port {
        Value::String(name) if !is_name(name) => errors.invalid(path, port, NAME_RULE),
        Value::String(_) => {}
        port => errors.in_range(path, port, 1, 65_535),
    }
}

/// Returns `true` for a valid port name (`IsValidPortName`), see [`NAME_RULE`].
///
/// A name needs a letter, so that it cannot look like a number.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= NAME_LEN_MAX
        && name.bytes().all(is_allowed)
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-')
}
