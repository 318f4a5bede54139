//! The row of a Service in a table.
//!
//! Upstream: `printService` and `getServiceExternalIP` in `pkg/printers/internalversion/printers.go`.

use serde_json::Value;

use crate::{
    registry::kind::Cell,
    table::{
        age::UNKNOWN,
        fields::{first_text, int, list, text, text_or, texts},
        labels::NONE,
    },
};

/// The cells of a Service.
pub(crate) const CELLS: &[Cell] = &[
    Cell::Name,
    Cell::Text("/spec/type"),
    Cell::Computed(|service, _| or_none(first_text(service, &["/spec/clusterIPs/0", "/spec/clusterIP"])).into()),
    Cell::Computed(|service, _| external_addresses(service).into()),
    Cell::Computed(|service, _| ports(service).into()),
    Cell::Age,
    Cell::Labels("/spec/selector"),
];

/// Returns the ports as `80/TCP` or `80:30080/TCP`, joined by commas.
fn ports(service: &Value) -> String {
    or_none(&list(service, "/spec/ports").iter().map(port).collect::<Vec<_>>().join(",")).to_owned()
}

/// Returns one port with its protocol, and with the port of the nodes if it has one.
fn port(port: &Value) -> String {
    let protocol = text_or(port, "/protocol", "TCP");
    match (int(port, "/port"), int(port, "/nodePort")) {
        (number, 0) => format!("{number}/{protocol}"),
        (number, on_node) => format!("{number}:{on_node}/{protocol}"),
    }
}

/// Returns the external addresses: the load balancer's and then `externalIPs`, or the external name. A load balancer
/// without an address yet is `<pending>`; other types without addresses are `<none>`.
fn external_addresses(object: &Value) -> String {
    let mut external: Vec<_> = texts(object, "/spec/externalIPs").into_iter().map(str::to_owned).collect();
    match text_or(object, "/spec/type", "ClusterIP") {
        "ClusterIP" | "NodePort" => or_none(&external.join(",")).to_owned(),
        "LoadBalancer" => {
            let mut all = balancer_addresses(object);
            all.append(&mut external);
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(object, "/spec/externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// Returns the IPs or host names of a load balancer, sorted and without duplicates. Ingresses use it, too.
pub(crate) fn balancer_addresses(object: &Value) -> Vec<String> {
    let points = list(object, "/status/loadBalancer/ingress").iter();
    let mut addresses: Vec<_> = points
        .map(|point| first_text(point, &["/ip", "/hostname"]).to_owned())
        .filter(|text| !text.is_empty())
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

/// Returns the string, or `<none>` for an empty one.
fn or_none(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}
