//! `VolumeAttachment` of `storage.k8s.io`: the intent to attach a volume to a node.
//!
//! A controller creates one for each volume and node; the driver's attacher reports success or
//! failure in the status.
//!
//! - The spec is immutable, by a rule that the schema declares.
//! - A write of `status` leaves spec and metadata as they are.
//! - An update needs a `resourceVersion`. A delete returns the object.
//!
//! Upstream: `pkg/registry/storage/volumeattachment/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    kinds::core::persistent_volume::validation::inline_volume,
    names::NameRule,
    registry::kind::{Cell, DeleteAnswer, DeleteStrategy, Kind, Strategy, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattachments",
    kind: "VolumeAttachment",
    strategy: Strategy {
        allows_unconditional_update: false,
        kept_by_status: Kind::CLIENT_METADATA,
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validate,
        validate_status: |_, new, errors| validate_status(new, errors),
        ..Validation::DEFAULT
    },
    delete: DeleteStrategy { answer: DeleteAnswer::Object, ..DeleteStrategy::DEFAULT },
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

/// Validates an attachment (`ValidateVolumeAttachment`): its source, and the names of node and
/// volume.
fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    source(&spec["source"], errors);
    errors.name("spec.nodeName", &text(&spec["nodeName"]).into(), NameRule::Subdomain);
    let volume = &spec["source"]["persistentVolumeName"];
    if !volume.is_null() {
        errors.name("spec.source.persistentVolumeName", volume, NameRule::Subdomain);
    }
}

/// Validates the attached volume: the name of a `PersistentVolume`, or an inline specification.
///
/// Setting both fields is `FieldValueForbidden`, setting neither is `FieldValueRequired`, at `spec.source`.
fn source(source: &Value, errors: &mut Errors) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let (inline, name) = (&source["inlineVolumeSpec"], &source["persistentVolumeName"]);
    match (inline.is_null(), name.is_null()) {
        (true, true) => errors.required("spec.source", ONE),
        (false, false) => errors.forbidden("spec.source", ONE),
        (true, false) => {
            if text(name).is_empty() {
                errors.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName");
            }
        }
        (false, true) => inline_volume(inline, "spec.source.inlineVolumeSpec", errors),
    }
}

/// Validates the errors that a driver reports.
///
/// A message has at most 1,024 bytes.
fn validate_status(object: &Value, errors: &mut Errors) {
    for part in ["attachError", "detachError"] {
        let (error, path) = (&object["status"][part], format!("status.{part}"));
        if text(&error["message"]).len() > ERROR_LEN_MAX {
            errors.too_long(&format!("{path}.message"), ERROR_LEN_MAX);
        }
        errors.not_negative(&format!("{path}.errorCode"), &error["errorCode"]);
    }
}
