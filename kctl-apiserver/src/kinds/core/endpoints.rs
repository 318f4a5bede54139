//! `Endpoints` of the core group.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{defaults, rules},
    registry::kind::Kind,
    table::{
        age::age,
        fields::{int, joined_with_more, list, name, text},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    resource: "endpoints",
    kind: "Endpoints",
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    creates_on_update: true,
    storage_key: Some("services/endpoints"),
    default: defaults::service::endpoints,
    validate: rules::endpoints::endpoints,
    printer: Some(cells),
    ..Kind::DEFAULT
};

/// Upstream: `formatEndpoints`.
const ENDPOINTS_SHOWN_MAX: usize = 3;

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
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
