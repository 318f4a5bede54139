//! `DeviceClass` of `resource.k8s.io`.

use crate::{
    admit::rules,
    names::NameRule,
    registry::kind::{DeleteAnswer, Generation, Kind},
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "deviceclasses",
    kind: "DeviceClass",
    names: NameRule::SubdomainOnceWhole,
    generation: Generation::Counted,
    delete_answer: DeleteAnswer::Object,
    validate: rules::device::class,
    printer: Some(crate::table::fields::name_and_age),
    ..Kind::DEFAULT
};
