//! `HorizontalPodAutoscaler` of `autoscaling`: scales a workload by metrics.
//!
//! The kind is served in versions 1 and 2. It is stored in version 2 and converted when version 1 is requested; see
//! `conversion.rs` of the group.
//!
//! Upstream: `pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go` and
//! `pkg/apis/autoscaling/validation/validation.go`.

mod defaults;
mod table;
pub(crate) mod validation;

use serde_json::Value;

use super::conversion;
use crate::{
    registry::kind::{Defaults, Kind, Metadata, StorageVersion, TableColumns, Validation},
    validation::status::Numbers,
};

pub(crate) static KIND: Kind = Kind {
    group: "autoscaling",
    resource: "horizontalpodautoscalers",
    kind: "HorizontalPodAutoscaler",
    metadata: Metadata::COUNTED,
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    validation: Validation {
        validate: validation::validate_autoscaler,
        validate_status: |old, new, errors| crate::validation::status::validate_numbers(&STATUS, old, new, errors),
        ..Validation::DEFAULT
    },
    table: TableColumns::printer(table::cells),
    storage: Some(&STORAGE),
    ..Kind::DEFAULT
};

/// Version 2 has all fields, so that objects are stored and validated in it.
const STORAGE: StorageVersion = StorageVersion {
    api_version: conversion::V2,
    convert: conversion::convert,
    normalize: conversion::normalize,
    differ: conversion::differ,
};

/// Counts of the status that may not be negative (`ValidateHorizontalPodAutoscalerStatusUpdate`).
const STATUS: Numbers = Numbers { counts: &["currentReplicas", "desiredReplicas"], subsets: &[] };

/// Sets the defaults of the object's version. They differ: only version 2 has `metrics` and
/// `behavior`.
fn default(object: &mut Value) {
    if object["apiVersion"] == conversion::V1 {
        defaults::v1(object);
    } else {
        defaults::v2(object);
    }
}
