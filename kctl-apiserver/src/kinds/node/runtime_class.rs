//! `RuntimeClass` of `node.k8s.io`.

use serde_json::Value;

use crate::{
    admit::{rules, warnings},
    registry::kind::Kind,
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "node.k8s.io",
    resource: "runtimeclasses",
    kind: "RuntimeClass",
    finalizers_without_domain: true,
    creates_on_update: true,
    allows_unconditional_update: false,
    validate: rules::node::runtime_class,
    warn,
    printer: Some(table::policy::runtime_class),
    ..Kind::DEFAULT
};

fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let labels = object["scheduling"]["nodeSelector"].as_object().into_iter().flatten();
    let old = labels.filter_map(|(label, _)| warnings::old_label(label));
    warnings.extend(old.map(|why| format!("scheduling.nodeSelector: {why}")));
}
