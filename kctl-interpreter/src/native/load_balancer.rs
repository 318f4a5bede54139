//! Addresses of load balancers, joined over clusters, for Services and Ingresses.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashSet},
};

use serde_json::Value;

use super::{Result, workload::member_statuses};
use crate::{operation::AggregatedStatusItem, typed::Typed};

/// Returns the entries of `status.loadBalancer.ingress` over all clusters, as one sorted list.
///
/// Entries with equal hostname, IP and mode become one, with the ports of all of them. `status` is
/// the Go type of the reported statuses, `ServiceStatus` or `IngressStatus`.
pub(super) fn merge_ingress(status: &'static str, items: &[AggregatedStatusItem]) -> Result<Value> {
    let mut addresses: BTreeMap<Address, Vec<Value>> = BTreeMap::new();
    for member in member_statuses(status, items) {
        let (_cluster, member) = member?;
        for ingress in member.list("/loadBalancer/ingress") {
            let ports = addresses.entry(Address { ingress: ingress.clone() }).or_default();
            ports.extend(ingress["ports"].as_array().into_iter().flatten().cloned());
        }
    }
    let joined = addresses.into_iter().map(|(Address { mut ingress }, mut ports)| {
        let mut seen = HashSet::new();
        ports.retain(|port| seen.insert(port.clone()));
        ports.sort_by(by_port);
        ingress["ports"] = if ports.is_empty() { Value::Null } else { ports.into() };
        ingress
    });
    Ok(joined.collect())
}

/// Returns `true` if `status.loadBalancer.ingress` has an entry with a hostname or an IP address
/// that is not empty.
pub(super) fn has_address(typed: &Typed) -> bool {
    let filled = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    typed
        .list("/status/loadBalancer/ingress")
        .iter()
        .any(|ingress| filled(&ingress["hostname"]) || filled(&ingress["ip"]))
}

/// An entry of `status.loadBalancer.ingress` as a map key. Ports are ignored.
///
/// Entries are ordered by hostname, then IP, then mode; those without a hostname or a mode come
/// last.
struct Address {
    ingress: Value,
}

impl Address {
    /// Returns the parts that identify an entry. The flags before hostname and mode put empty ones last.
    fn key(&self) -> (bool, &str, &str, bool, &str) {
        let text = |field: &str| self.ingress.get(field).and_then(Value::as_str);
        let (hostname, mode) = (text("hostname").unwrap_or_default(), text("ipMode"));
        (hostname.is_empty(), hostname, text("ip").unwrap_or_default(), mode.is_none(), mode.unwrap_or_default())
    }
}

impl Ord for Address {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Address {}

/// Orders ports by number, protocol and error. A port without one of them comes before those with
/// it.
fn by_port(left: &Value, right: &Value) -> Ordering {
    let key = |port: &Value| {
        let text = |field: &str| port[field].as_str().map(str::to_owned);
        (port["port"].as_i64(), text("protocol"), text("error"))
    };
    key(left).cmp(&key(right))
}
