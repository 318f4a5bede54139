//! The row of a Service.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{
    age::{UNKNOWN, age},
    fields::{at, first_text, int, list, name, text, text_or, texts},
    labels::{NONE, labels},
};

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
        json!(labels(at(object, "/spec/selector"))),
    ]
}

fn port(port: &Value) -> String {
    let protocol = text_or(port, "/protocol", "TCP");
    match (int(port, "/port"), int(port, "/nodePort")) {
        (number, 0) => format!("{number}/{protocol}"),
        (number, on_node) => format!("{number}:{on_node}/{protocol}"),
    }
}

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

fn or_none(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}
