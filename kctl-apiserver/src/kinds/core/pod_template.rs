//! `PodTemplate` of the core group: a Pod template as an object.
//!
//! The template is at `template`, not below a spec.
//!
//! Upstream: `pkg/registry/core/podtemplate/strategy.go` and `pkg/apis/core/validation/validation.go`.

use crate::{
    defaulting,
    field::Field,
    registry::kind::{Cell, Defaults, DeleteStrategy, Kind, Metadata, Plugin, TableColumns, Validation},
    validation::{self, warnings},
};

pub(crate) static KIND: Kind = Kind {
    resource: "podtemplates",
    kind: "PodTemplate",
    metadata: Metadata::COUNTED,
    admission: &[Plugin::PodSecurityForTemplates("/template")],
    defaults: Defaults { set: |object| defaulting::pod::template(object, "template"), ..Defaults::DEFAULT },
    validation: Validation {
        validate: |object, errors| {
            validation::pod::validate_template(&Field::new(&object["template"], "template", errors));
        },
        warn: |_, object, warnings| warnings::template(&object["template"], "template.", warnings),
        warns_once_per_generation: true,
        ..Validation::DEFAULT
    },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Containers("/template"),
        Cell::Images("/template"),
        Cell::Labels("/template/metadata/labels"),
    ]),
    ..Kind::DEFAULT
};
