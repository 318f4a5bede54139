//! The row of a Service.
//! Upstream: `printService` and `getServiceExternalIP` in `pkg/printers/internalversion/printers.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{
    age::{UNKNOWN, age},
    fields::{first_text, int, list, name, text, text_or, texts, value_at},
    labels::{NONE, selector},
};

/// Returns the columns of a Service.
///
/// | column | content |
/// |---|---|
/// | Cluster-IP | first cluster IP, `None` for a headless Service, or `<none>` |
/// | External-IP | see `external_addresses` |
/// | Port(s) | `port/protocol` or `port:nodePort/protocol`, joined by commas |
/// | Selector | only with `-o wide` |
pub(crate) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<_> = list(object, "/spec/ports").iter().map(port).collect();
    let address = first_text(object, &["/spec/clusterIPs/0", "/spec/clusterIP"]);
    vec![
        json!(name(object)),
        json!(text(object, "/spec/type")),
        json!(or_none(address)),
        json!(external_addresses(object)),
        json!(or_none(&ports.join(","))),
        json!(age(object, now)),
        json!(selector(value_at(object, "/spec/selector"))),
    ]
}

/// Returns one port, as `80/TCP` or `80:30080/TCP`.
fn port(port: &Value) -> String {
    let protocol = text_or(port, "/protocol", "TCP");
    match (int(port, "/port"), int(port, "/nodePort")) {
        (number, 0) => format!("{number}/{protocol}"),
        (number, on_node) => format!("{number}:{on_node}/{protocol}"),
    }
}

/// Returns the external addresses: those of the load balancer and then `externalIPs`, or the external name. A load
/// balancer without an address yet is `<pending>`; other types without addresses are `<none>`.
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
