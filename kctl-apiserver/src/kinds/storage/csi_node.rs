//! `CSINode` of `storage.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{defaults, rules},
    field_errors::Errors,
    registry::kind::{DeleteAnswer, Kind},
    table::{
        age::age,
        fields::{list, name},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csinodes",
    kind: "CSINode",
    allows_unconditional_update: false,
    delete_answer: DeleteAnswer::Object,
    null_when_empty: Some("/spec/drivers"),
    default: defaults::api::csi_node,
    validate: rules::attached::node,
    validate_update,
    printer: Some(cells),
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    rules::attached::drivers_stay(&old["spec"]["drivers"], &new["spec"]["drivers"], errors);
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(list(object, "/spec/drivers").len()), json!(age(object, now))]
}
