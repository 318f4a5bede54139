//! `ResourceClaimTemplate` of `resource.k8s.io`.

use crate::{
    admit::rules::{self, change::keeps},
    registry::kind::{DeleteAnswer, Kind},
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaimtemplates",
    kind: "ResourceClaimTemplate",
    delete_answer: DeleteAnswer::Object,
    default: super::defaults::claim_template,
    filled_in: &["/spec/spec/devices/requests"],
    validate_create: Some(rules::claim::template),
    validate_update: |old, new, errors| keeps("spec", &old["spec"], &new["spec"], errors),
    printer: Some(crate::table::fields::name_and_age),
    ..Kind::DEFAULT
};
