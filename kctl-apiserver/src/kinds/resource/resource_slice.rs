//! `ResourceSlice` of `resource.k8s.io`: the devices of a pool that a driver publishes.
//!
//! Pool, driver and node are immutable. `spec.nodeName` and `spec.driver` are selectable: a kubelet watches only the
//! slices of its node.
//!
//! Upstream: `pkg/registry/resource/resourceslice/strategy.go` and `pkg/apis/resource/validation/validation.go`.

mod request_policy;
pub(crate) mod validation;

use serde_json::Value;

use crate::{
    defaulting::items,
    field::Field,
    field_errors::{Errors, text},
    kinds::resource::defaults,
    registry::kind::{Cell, DeleteStrategy, Environment, Kind, Metadata, Requests, Strategy, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceslices",
    kind: "ResourceSlice",
    metadata: Metadata::COUNTED,
    requests: Requests { selectable_fields: &["spec.driver", "spec.nodeName"], ..Requests::DEFAULT },
    strategy: Strategy { set_times: set_taint_times, ..Strategy::DEFAULT },
    validation: Validation { validate: validation::validate_slice, validate_update, warn, ..Validation::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Text("/spec/nodeName"),
        Cell::Text("/spec/driver"),
        Cell::Text("/spec/pool/name"),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Sets the times of taints that were sent without one.
fn set_taint_times(environment: &dyn Environment, _: Option<&Value>, object: &mut Value) {
    let devices = object.get_mut("spec").into_iter().flat_map(|spec| items(spec, "devices"));
    let taints = devices.flat_map(|device| items(device, "taints")).filter(|taint| taint.is_object());
    taints.for_each(|taint| defaults::taint_time(environment, taint));
}

/// Validates that name of the pool, driver and node are unchanged (`ValidateResourceSliceUpdate`). An absent string and
/// an empty one are the same for pool and driver; `nodeName` is a pointer in Go.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (spec, was) = (Field::new(&new["spec"], "spec", errors), &old["spec"]);
    let (pool, driver) = (spec.at("pool").at("name"), spec.at("driver"));
    pool.invalid_if(pool.text() != text(&was["pool"]["name"]), "field is immutable");
    driver.invalid_if(driver.text() != text(&was["driver"]), "field is immutable");
    spec.at("nodeName").immutable(&was["nodeName"]);
}

/// Warns about upper-case letters in the name of a driver, which are valid but discouraged.
fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let driver = text(&object["spec"]["driver"]);
    if driver.to_lowercase() != driver {
        warnings.push(format!("spec.driver: must be in lower case, found {driver:?}"));
    }
}
