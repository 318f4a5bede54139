//! `IPAddress` of `networking.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::rules,
    kinds::networking::with_group,
    names::NameRule,
    registry::kind::Kind,
    table::{
        age::age,
        fields::{at, name, text},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ipaddresses",
    kind: "IPAddress",
    names: NameRule::Address,
    validate: rules::served::owned_address,
    printer: Some(cells),
    ..Kind::DEFAULT
};

/// The real server gives the age too, though the kind has no such column.
fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let parent = at(object, "/spec/parentRef");
    if parent.is_null() {
        return vec![json!(name(object)), json!(NONE), json!(age(object, now))];
    }
    let resource = with_group(text(parent, "/resource"), text(parent, "/group"));
    let (namespace, of) = (text(parent, "/namespace"), text(parent, "/name"));
    let shown = if namespace.is_empty() { format!("{resource}/{of}") } else { format!("{resource}/{namespace}/{of}") };
    vec![json!(name(object)), json!(shown), json!(age(object, now))]
}
