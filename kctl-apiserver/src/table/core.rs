//! The rows of the core group, without pods, services and volumes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{UNKNOWN, age, since_text};
use super::fields::{
    at, condition, entries, first_text, flag, int, joined_with_more, list, name, scalar, text, text_or,
};
use super::labels::{NONE, labels};
use super::workload::containers;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
/// Upstream: `formatEndpoints`.
const ENDPOINTS_SHOWN_MAX: usize = 3;

pub(crate) fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(age(object, now))]
}

pub(crate) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let n_keys = entries(object, "/data") + entries(object, "/binaryData");
    vec![json!(name(object)), json!(n_keys), json!(age(object, now))]
}

pub(crate) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/type")), json!(entries(object, "/data")), json!(age(object, now))]
}

pub(crate) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/status/phase")), json!(age(object, now))]
}

pub(crate) fn pod_template(object: &Value, _now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/template"));
    vec![json!(name(object)), names, images, json!(labels(at(object, "/template/metadata/labels")))]
}

pub(crate) fn component_status(object: &Value, _now: Timestamp) -> Vec<Value> {
    let healthy = list(object, "/conditions").iter().find(|condition| text(condition, "/type") == "Healthy");
    let status = match healthy.map(|condition| text(condition, "/status")) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    let told = |pointer: &str| json!(healthy.map_or("", |condition| text(condition, pointer)));
    vec![json!(name(object)), json!(status), told("/message"), told("/error")]
}

pub(crate) fn resource_quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut hard: Vec<_> = at(object, "/status/hard").as_object().into_iter().flatten().collect();
    hard.sort_by_key(|(resource, _)| *resource);
    let (limits, requests): (Vec<_>, Vec<_>) =
        hard.into_iter().partition(|(resource, _)| resource.starts_with("limits."));
    let used = at(object, "/status/used");
    let column = |hard: Vec<(&String, &Value)>| {
        let part = |(resource, hard): (&String, &Value)| {
            let used = used.get(resource).and_then(scalar).unwrap_or_else(|| "0".to_owned());
            format!("{resource}: {used}/{}", scalar(hard).unwrap_or_default())
        };
        json!(hard.into_iter().map(part).collect::<Vec<_>>().join(", "))
    };
    vec![json!(name(object)), column(requests), column(limits), json!(age(object, now))]
}

pub(crate) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let subsets = list(object, "/subsets");
    let shown = if subsets.is_empty() {
        NONE.to_owned()
    } else {
        let places: Vec<_> = subsets.iter().flat_map(places).collect();
        joined_with_more(&places, ",", ENDPOINTS_SHOWN_MAX)
    };
    vec![json!(name(object)), json!(shown), json!(age(object, now))]
}

/// Every port with every address that is ready, or the addresses alone if there is no port.
fn places(subset: &Value) -> Vec<String> {
    let addresses: Vec<_> = list(subset, "/addresses").iter().map(|address| text(address, "/ip")).collect();
    let ports = list(subset, "/ports");
    if ports.is_empty() {
        return addresses.into_iter().map(str::to_owned).collect();
    }
    let place = |port: i64, address: &str| {
        if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
    };
    ports.iter().flat_map(|port| addresses.iter().map(move |address| place(int(port, "/port"), address))).collect()
}

pub(crate) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut status = vec![match condition(object, "Ready").map(|ready| text(ready, "/status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }];
    if flag(object, "/spec/unschedulable") {
        status.push("SchedulingDisabled");
    }
    let mut kernel = text_or(object, "/status/nodeInfo/kernelVersion", UNKNOWN).to_owned();
    let architecture = text(object, "/status/nodeInfo/architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        json!(name(object)),
        json!(status.join(",")),
        json!(roles(object)),
        json!(age(object, now)),
        json!(text(object, "/status/nodeInfo/kubeletVersion")),
        json!(address(object, "InternalIP")),
        json!(address(object, "ExternalIP")),
        json!(text_or(object, "/status/nodeInfo/osImage", UNKNOWN)),
        json!(kernel),
        json!(text_or(object, "/status/nodeInfo/containerRuntimeVersion", UNKNOWN)),
    ]
}

fn roles(object: &Value) -> String {
    let labels = at(object, "/metadata/labels").as_object().into_iter().flatten();
    let mut roles: Vec<_> = labels
        .filter_map(|(key, value)| match key.as_str() {
            "kubernetes.io/role" => value.as_str(),
            key => key.strip_prefix(ROLE_PREFIX),
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}

fn address<'a>(object: &'a Value, kind: &str) -> &'a str {
    let address = list(object, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
    address.map_or(NONE, |address| text(address, "/address"))
}

/// Returns the cells of an event of the core group or of `events.k8s.io`, which name the fields differently.
pub(crate) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let first = first_text(object, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let last = match first_text(object, &["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp"]) {
        "" => first,
        last => last,
    };
    let count = ["/series/count", "/count", "/deprecatedCount"].map(|pointer| int(object, pointer));
    let count = count.into_iter().find(|count| *count != 0).unwrap_or(1);
    let kind = first_text(object, &["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    let about = first_text(object, &["/involvedObject/name", "/regarding/name"]);
    vec![
        json!(since_text(last, now)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(if about.is_empty() { kind } else { format!("{kind}/{about}") }),
        json!(first_text(object, &["/involvedObject/fieldPath", "/regarding/fieldPath"])),
        json!(source(object)),
        json!(first_text(object, &["/message", "/note"]).trim()),
        json!(since_text(first, now)),
        json!(count),
        json!(name(object)),
    ]
}

fn source(object: &Value) -> String {
    let component = first_text(
        object,
        &["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"],
    );
    match first_text(object, &["/source/host", "/deprecatedSource/host", "/reportingInstance"]) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}
