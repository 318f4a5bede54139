//! `PriorityClass` of `scheduling.k8s.io`.

use serde_json::Value;

use crate::{
    admit::{
        defaults,
        rules::{self, change::keeps},
    },
    field_errors::Errors,
    registry::kind::{Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "scheduling.k8s.io",
    resource: "priorityclasses",
    kind: "PriorityClass",
    generation: Generation::Fixed,
    default,
    filled_in: &["/value"],
    validate_create: Some(rules::policy::priority_class),
    validate_update,
    printer: Some(table::policy::priority_class),
    ..Kind::DEFAULT
};

fn default(object: &mut Value) {
    defaults::add(object, "preemptionPolicy", "PreemptLowerPriority");
    defaults::add(object, "value", 0);
}

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    if old["value"] != new["value"] {
        errors.forbidden("value", "may not be changed in an update.");
    }
    keeps("preemptionPolicy", &old["preemptionPolicy"], &new["preemptionPolicy"], errors);
}
