//! `PriorityClass` of `scheduling.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{
        defaults,
        rules::{self, change::keeps},
    },
    field_errors::Errors,
    registry::kind::{Generation, Kind},
    table::{
        age::age,
        fields::{flag, int, name, text_or},
    },
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
    printer: Some(cells),
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

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(int(object, "/value")),
        json!(flag(object, "/globalDefault")),
        json!(age(object, now)),
        json!(text_or(object, "/preemptionPolicy", "PreemptLowerPriority")),
    ]
}
