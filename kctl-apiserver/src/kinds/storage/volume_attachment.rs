//! `VolumeAttachment` of `storage.k8s.io`: the intent to attach a volume to a node.
//!
//! A controller creates one for each volume and node; the driver's attacher reports success or failure in the status.
//! The spec is immutable, by a tag of the API.
//!
//! Upstream: `pkg/registry/storage/volumeattachment/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    kinds::core::persistent_volume::validation::inline_volume,
    names::NameRule,
    registry::kind::{Cell, DeleteStrategy, Kind, Strategy, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattachments",
    kind: "VolumeAttachment",
    strategy: Strategy { kept_by_status: Kind::CLIENT_METADATA, ..Strategy::CONDITIONAL },
    validation: Validation {
        validate,
        validate_status: |_, new, errors| validate_status(new, errors),
        ..Validation::DEFAULT
    },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Text("/spec/attacher"),
        Cell::Text("/spec/source/persistentVolumeName"),
        Cell::Text("/spec/nodeName"),
        Cell::Flag("/status/attached"),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Maximum length of the message of a driver, in bytes (`maxVolumeErrorMessageSize`).
const ERROR_LEN_MAX: usize = 1024;

/// Validates an attachment (`ValidateVolumeAttachment`).
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    validate_source(&spec.at("source"));
    spec.at("nodeName").name(NameRule::Subdomain);
}

/// Validates the attached volume: the name of a `PersistentVolume`, or an inline specification.
fn validate_source(source: &Field<'_>) {
    let (inline, name) = (source.at("inlineVolumeSpec"), source.at("persistentVolumeName"));
    let (has_inline, has_name) = (!inline.is_null(), !name.is_null());
    let detail = "exactly one of inlineVolumeSpec and persistentVolumeName must be set";
    source.required_with_if(!has_inline && !has_name, detail);
    source.forbidden_if(has_inline && has_name, "must have only one of inlineVolumeSpec and persistentVolumeName");
    if has_name {
        name.required_if(name.is_empty() && !has_inline);
        name.name(NameRule::Subdomain);
    } else if has_inline {
        inline_volume(&inline);
    }
}

/// Validates the errors that a driver reports.
fn validate_status(object: &Value, errors: &mut Errors) {
    let status = Field::new(&object["status"], "status", errors);
    for error in [status.at("attachError"), status.at("detachError")] {
        error.at("message").max_bytes(ERROR_LEN_MAX);
        error.at("errorCode").not_negative();
    }
}
