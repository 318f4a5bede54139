//! `VolumeAttributesClass` of `storage.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::rules,
    field_errors::Errors,
    kinds::storage::protect,
    registry::kind::{DeleteAnswer, Kind},
    table::{
        age::age,
        fields::{name, text},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattributesclasses",
    kind: "VolumeAttributesClass",
    delete_answer: DeleteAnswer::Object,
    complete_by_plugins: |object| protect("vac", object),
    filled_in: &["/metadata/finalizers"],
    validate: rules::attached::attributes,
    validate_update,
    printer: Some(cells),
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["driverName", "parameters"].into_iter().filter(|field| old[*field] != new[*field]) {
        errors.forbidden(field, &format!("updates to {field} are forbidden."));
    }
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/driverName")), json!(age(object, now))]
}
