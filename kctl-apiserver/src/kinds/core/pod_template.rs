//! `PodTemplate` of the core group.

use crate::{
    admit::{defaults, rules, warnings},
    registry::kind::{DeleteAnswer, Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    resource: "podtemplates",
    kind: "PodTemplate",
    generation: Generation::Counted,
    delete_answer: DeleteAnswer::Object,
    default: |object| defaults::pod::template(object, "template"),
    validate: |object, errors| rules::pod::template(&object["template"], "template", errors),
    warn: |_, object, warnings| warnings::template(&object["template"], "template.", warnings),
    warns_once_per_generation: true,
    printer: Some(table::core::pod_template),
    pod_template: Some("/template"),
    ..Kind::DEFAULT
};
