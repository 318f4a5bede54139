//! `ComponentStatus` of the core group.
//!
//! It reports the health of scheduler, controller manager and etcd.
//!
//! Upstream: `pkg/registry/core/componentstatus/rest.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    registry::kind::{Kind, Quota, Requests, TableColumns},
    table::fields::{list, name, text},
};

pub(crate) static KIND: Kind = Kind {
    resource: "componentstatuses",
    kind: "ComponentStatus",
    requests: Requests { deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"), ..Requests::DEFAULT },
    table: TableColumns::printer(cells),
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};

/// Returns name, health, message and error (`printComponentStatus`).
fn cells(object: &Value, _now: Timestamp) -> Vec<Value> {
    let healthy = list(object, "/conditions").iter().find(|condition| text(condition, "/type") == "Healthy");
    let status = match healthy.map(|condition| text(condition, "/status")) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    let field = |pointer: &str| json!(healthy.map_or("", |condition| text(condition, pointer)));
    vec![json!(name(object)), json!(status), field("/message"), field("/error")]
}
