//! `VolumeAttributesClass` of `storage.k8s.io`.

use serde_json::Value;

use crate::{
    admit::rules,
    field_errors::Errors,
    kinds::storage::protect,
    registry::kind::{DeleteAnswer, Kind},
    table,
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
    printer: Some(table::storage::volume_attributes_class),
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    for field in ["driverName", "parameters"].into_iter().filter(|field| old[*field] != new[*field]) {
        errors.forbidden(field, &format!("updates to {field} are forbidden."));
    }
}
