//! `RuntimeClass` of `node.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{rules, warnings},
    registry::kind::Kind,
    table::{
        age::age,
        fields::{name, text},
    },
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
    printer: Some(cells),
    ..Kind::DEFAULT
};

fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let labels = object["scheduling"]["nodeSelector"].as_object().into_iter().flatten();
    let old = labels.filter_map(|(label, _)| warnings::old_label(label));
    warnings.extend(old.map(|why| format!("scheduling.nodeSelector: {why}")));
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/handler")), json!(age(object, now))]
}
