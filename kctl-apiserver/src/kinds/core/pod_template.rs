//! `PodTemplate` of the core group: a Pod template as an object.
//!
//! The server adds the defaults of the template and validates it as that of a workload.
//!
//! The kind has a generation, and a delete returns the object. The template is at `template`, not
//! below a spec.
//!
//! Upstream: `pkg/registry/core/podtemplate/strategy.go` and `pkg/apis/core/validation/validation.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting,
    registry::kind::{DeleteAnswer, Generation, Kind},
    table::{
        fields::{name, value_at},
        labels::labels,
        workload::containers,
    },
    validation::{self, warnings},
};

pub(crate) static KIND: Kind = Kind {
    resource: "podtemplates",
    kind: "PodTemplate",
    generation: Generation::Counted,
    delete_answer: DeleteAnswer::Object,
    default: |object| defaulting::pod::template(object, "template"),
    validate: |object, errors| validation::pod::template(&object["template"], "template", errors),
    warn: |_, object, warnings| warnings::template(&object["template"], "template.", warnings),
    warns_once_per_generation: true,
    printer: Some(cells),
    pod_template: Some("/template"),
    ..Kind::DEFAULT
};

/// Returns name, containers, images and labels of the template (`printPodTemplate`). The kind has
/// no column Age.
fn cells(object: &Value, _now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(value_at(object, "/template"));
    vec![json!(name(object)), names, images, json!(labels(value_at(object, "/template/metadata/labels")))]
}
