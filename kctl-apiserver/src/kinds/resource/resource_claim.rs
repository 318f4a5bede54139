//! `ResourceClaim` of `resource.k8s.io`.

pub(crate) mod status;

use crate::{
    admit::rules,
    registry::kind::{DeleteAnswer, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaims",
    kind: "ResourceClaim",
    delete_answer: DeleteAnswer::Object,
    prepare_update: |_, old, new| status::forget_returned(old, new),
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default: super::defaults::claim,
    filled_in: &["/spec/devices/requests"],
    validate_create: Some(rules::claim::claim),
    validate_status: status::status,
    printer: Some(table::policy::resource_claim),
    ..Kind::DEFAULT
};
