//! `HorizontalPodAutoscaler` of `autoscaling`: scales a workload by metrics.

mod defaults;
mod table;
pub(crate) mod validation;

use serde_json::Value;

use crate::{autoscaling, registry::kind::Kind, validation::status::Numbers};

pub(crate) static KIND: Kind = Kind {
    group: "autoscaling",
    resource: "horizontalpodautoscalers",
    kind: "HorizontalPodAutoscaler",
    default,
    validate: validation::autoscaler,
    validate_status: |old, new, errors| crate::validation::status::numbers(&STATUS, old, new, errors),
    printer: Some(table::cells),
    is_autoscaler: true,
    ..Kind::DEFAULT
};

const STATUS: Numbers = Numbers { counts: &["currentReplicas", "desiredReplicas"], orders: &[] };

/// Sets the defaults of the object's version.
fn default(object: &mut Value) {
    if object["apiVersion"] == autoscaling::FIRST {
        defaults::v1(object);
    } else {
        defaults::v2(object);
    }
}
