//! The rows of services, `networking.k8s.io` and `discovery.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{UNKNOWN, age};
use super::fields::{annotation, at, first_text, int, joined_with_more, list, name, text, text_or, texts};
use super::labels::{NONE, labels, selector};

const UNSET: &str = "<unset>";
/// Upstream: `formatHosts`, `formatDiscoveryPorts` and `formatDiscoveryEndpoints`.
const SHOWN_MAX: usize = 3;

pub(crate) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<_> = list(object, "/spec/ports").iter().map(service_port).collect();
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

fn service_port(port: &Value) -> String {
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

fn balancer_addresses(object: &Value) -> Vec<String> {
    let points = list(object, "/status/loadBalancer/ingress").iter();
    let mut addresses: Vec<_> = points
        .map(|point| first_text(point, &["/ip", "/hostname"]).to_owned())
        .filter(|text| !text.is_empty())
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

pub(crate) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = if list(object, "/spec/tls").is_empty() { "80" } else { "80, 443" };
    vec![
        json!(name(object)),
        json!(text_or(object, "/spec/ingressClassName", NONE)),
        json!(hosts(object)),
        json!(balancer_addresses(object).join(",")),
        json!(ports),
        json!(age(object, now)),
    ]
}

/// What is left out is counted in rules, and rules without a host count too.
fn hosts(object: &Value) -> String {
    let rules = list(object, "/spec/rules");
    let mut shown: Vec<&str> = Vec::new();
    let mut is_cut = false;
    for rule in rules {
        is_cut |= shown.len() == SHOWN_MAX;
        let host = text(rule, "/host");
        if !is_cut && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), is_cut) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN_MAX),
    }
}

pub(crate) fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let is_default = annotation(object, "ingressclass.kubernetes.io/is-default-class") == "true";
    let name = if is_default { format!("{} (default)", name(object)) } else { name(object).to_owned() };
    let parameters = at(object, "/spec/parameters");
    let shown = if parameters.is_object() {
        format!(
            "{}/{}",
            with_group(text(parameters, "/kind"), text(parameters, "/apiGroup")),
            text(parameters, "/name")
        )
    } else {
        NONE.to_owned()
    };
    vec![json!(name), json!(text(object, "/spec/controller")), json!(shown), json!(age(object, now))]
}

pub(crate) fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(selector(at(object, "/spec/podSelector"))), json!(age(object, now))]
}

/// The real server gives the age too, though the kind has no such column.
pub(crate) fn ip_address(object: &Value, now: Timestamp) -> Vec<Value> {
    let parent = at(object, "/spec/parentRef");
    if parent.is_null() {
        return vec![json!(name(object)), json!(NONE), json!(age(object, now))];
    }
    let resource = with_group(text(parent, "/resource"), text(parent, "/group"));
    let (namespace, of) = (text(parent, "/namespace"), text(parent, "/name"));
    let shown = if namespace.is_empty() { format!("{resource}/{of}") } else { format!("{resource}/{namespace}/{of}") };
    vec![json!(name(object)), json!(shown), json!(age(object, now))]
}

pub(crate) fn service_cidr(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(texts(object, "/spec/cidrs").join(",")), json!(age(object, now))]
}

pub(crate) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let port = |port: &Value| {
        at(port, "/port").as_i64().map_or_else(|| text(port, "/name").to_owned(), |number| number.to_string())
    };
    let ports: Vec<_> = list(object, "/ports").iter().map(port).collect();
    let addresses: Vec<_> = list(object, "/endpoints")
        .iter()
        .flat_map(|endpoint| texts(endpoint, "/addresses"))
        .map(str::to_owned)
        .collect();
    vec![
        json!(name(object)),
        json!(text(object, "/addressType")),
        json!(cut_or_unset(&ports)),
        json!(cut_or_unset(&addresses)),
        json!(age(object, now)),
    ]
}

fn cut_or_unset(items: &[String]) -> String {
    let joined = joined_with_more(items, ",", SHOWN_MAX);
    if joined.is_empty() { UNSET.to_owned() } else { joined }
}

fn with_group(kind: &str, group: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}
