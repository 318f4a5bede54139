//! `RuntimeClass` of `node.k8s.io`: names a container runtime handler that Pods can choose.
//!
//! `overhead` and `scheduling` are added to each Pod that names the class. `handler` is immutable, by a tag of the
//! API.
//!
//! Upstream: `pkg/registry/node/runtimeclass/strategy.go` and `pkg/apis/node/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    registry::kind::{Cell, Kind, Metadata, Strategy, TableColumns, Validation},
    validation::{affinity, resources, warnings},
};

pub(crate) static KIND: Kind = Kind {
    group: "node.k8s.io",
    resource: "runtimeclasses",
    kind: "RuntimeClass",
    metadata: Metadata { finalizers_without_domain: true, ..Metadata::DEFAULT },
    strategy: Strategy { creates_on_update: true, ..Strategy::CONDITIONAL },
    validation: Validation { validate, warn, ..Validation::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Text("/handler"), Cell::Age]),
    ..Kind::DEFAULT
};

/// Warns about beta names of node labels in `scheduling.nodeSelector`, which newer nodes do not have.
fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let labels = object["scheduling"]["nodeSelector"].as_object().into_iter().flatten();
    let old = labels.filter_map(|(label, _)| warnings::old_label(label));
    warnings.extend(old.map(|why| format!("scheduling.nodeSelector: {why}")));
}

/// Validates overhead and scheduling (`ValidateRuntimeClass`). Tolerations are unique by key, operator, value and
/// effect; their seconds are not compared.
fn validate(object: &Value, errors: &mut Errors) {
    resources::validate_overhead(&Field::new(&object["overhead"]["podFixed"], "overhead", errors));
    let scheduling = Field::new(&object["scheduling"], "scheduling", errors);
    scheduling.at("nodeSelector").labels();
    let tolerations = scheduling.at("tolerations");
    tolerations.check(affinity::validate_tolerations);
    tolerations.unique_by(|toleration| ["key", "operator", "value", "effect"].map(|name| text(&toleration[name])));
}
