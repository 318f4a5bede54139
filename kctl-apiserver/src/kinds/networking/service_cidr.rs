//! `ServiceCIDR` of `networking.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::rules,
    registry::kind::Kind,
    table::{
        age::age,
        fields::{name, texts},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "servicecidrs",
    kind: "ServiceCIDR",
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    validate_create: Some(rules::served::ranges),
    validate_update: rules::served::ranges_stay,
    printer: Some(cells),
    ..Kind::DEFAULT
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(texts(object, "/spec/cidrs").join(",")), json!(age(object, now))]
}
