//! `DeviceTaintRule` of `resource.k8s.io`: an administrator's taint on all devices that a selector matches.
//!
//! - The time of the taint records when its effect began: an update of only the effect sets it again.
//! - A controller, which is not part of this server, evicts Pods from tainted devices.
//!
//! Upstream: `pkg/registry/resource/devicetaintrule/strategy.go` and `pkg/apis/resource/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    kinds::resource::{defaults, validation::validate_taint},
    names::NameRule,
    registry::kind::{Cell, Environment, Kind, Metadata, Strategy, TableColumns, Validation},
    validation::{format, status},
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "devicetaintrules",
    kind: "DeviceTaintRule",
    metadata: Metadata::COUNTED,
    strategy: Strategy { set_times, kept_by_status: Kind::CLIENT_METADATA, ..Strategy::CONDITIONAL },
    validation: Validation {
        validate,
        validate_status: |_, new, errors| validate_status(new, errors),
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Text("/spec/taint/key"),
        Cell::Text("/spec/taint/value"),
        Cell::Text("/spec/taint/effect"),
        Cell::SinceOr("/spec/taint/timeAdded", ""),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Maximum number of conditions (`DeviceTaintRuleStatusMaxConditions`).
const CONDITIONS_MAX: usize = 8;

/// Sets the time of a taint that was sent without one, or whose effect has changed and whose time has not
/// (`PrepareForUpdate` in `pkg/registry/resource/devicetaintrule/strategy.go`).
fn set_times(environment: &dyn Environment, old: Option<&Value>, object: &mut Value) {
    let Some(taint) = object.pointer_mut("/spec/taint").filter(|taint| taint.is_object()) else { return };
    defaults::taint_time(environment, taint);
    if let Some(old) = old.map(|old| &old["spec"]["taint"])
        && old["effect"] != taint["effect"]
        && old["timeAdded"] == taint["timeAdded"]
    {
        taint["timeAdded"] = environment.now().into();
    }
}

/// Validates the taint, and the names in the selector that are set (`validateDeviceTaintRuleSpec`).
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let devices = spec.at("deviceSelector");
    devices.at("driver").when_present(format::validate_driver_name);
    devices.at("pool").when_present(format::validate_pool_name);
    devices.at("device").when_present(|device| device.name(NameRule::Label));
    validate_taint(&spec.at("taint"));
}

/// Validates the conditions (`ValidateDeviceTaintRuleStatusUpdate`).
fn validate_status(object: &Value, errors: &mut Errors) {
    let conditions = Field::new(&object["status"]["conditions"], "status.conditions", errors);
    conditions.check(status::validate_condition_list);
    conditions.max_items(CONDITIONS_MAX);
}
