//! `Namespace` of the core group.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{defaults, rules},
    json_path::set,
    names::{NameRule, check_label_value},
    registry::kind::{DeleteAnswer, Environment, Kind, Undecoded},
    selector,
    table::{
        age::age,
        fields::{name, text},
    },
};

pub(crate) static KIND: Kind = Kind {
    resource: "namespaces",
    kind: "Namespace",
    names: NameRule::Label,
    selectable_fields: selector::OF_NAMESPACES,
    delete_answer: DeleteAnswer::UndocumentedObject,
    is_marked_first: true,
    prepare_create,
    set_generated_name,
    prepare_update,
    reset_fields: &[("finalize", &[&["status"]])],
    default: defaults::api::namespace,
    defaults_metadata: true,
    later_defaults: &[("/spec/finalizers", Undecoded::Absent)],
    filled_in: &["/spec"],
    validate: rules::node::namespace,
    validates_subresources: true,
    printer: Some(cells),
    ..Kind::DEFAULT
};

/// The label that repeats the name, for selectors.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Adds the finalizer of the namespace controller, which deletes the content first.
fn prepare_create(_: &mut dyn Environment, object: &mut Value) {
    object["status"] = json!({ "phase": "Active" });
    let own = Value::from("kubernetes");
    match &mut object["spec"]["finalizers"] {
        Value::Array(list) if list.contains(&own) => {}
        Value::Array(list) => list.push(own),
        none => *none = json!([own]),
    }
    let name = object["metadata"]["name"].clone();
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        object["metadata"]["labels"][NAME_LABEL] = name;
    }
}

/// Sets the label with the name. An invalid name is not repeated: kube-apiserver labels after validation, so that only the name
/// is reported.
fn set_generated_name(_: &Value, object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if check_label_value(name.as_str().unwrap_or_default()).is_empty() {
        object["metadata"]["labels"][NAME_LABEL] = name;
    }
}

/// Keeps `spec.finalizers`, which have a subresource of their own.
fn prepare_update(subresource: &str, old: &Value, new: &mut Value) {
    if subresource.is_empty() {
        set(&mut new["spec"], "finalizers", old["spec"].get("finalizers").cloned());
    }
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(text(object, "/status/phase")), json!(age(object, now))]
}
