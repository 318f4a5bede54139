//! `ResourceClaim` of `resource.k8s.io`.

use crate::{
    admit::{
        defaults,
        rules::{self, change::keeps},
    },
    registry::kind::{DeleteAnswer, Kind, UpdateOrder},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaims",
    kind: "ResourceClaim",
    delete_answer: DeleteAnswer::Object,
    prepare_update: |_, old, new| rules::forget_returned(old, new),
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default: defaults::device::claim,
    filled_in: &["/spec/devices/requests"],
    validate: rules::claim::claim,
    validate_update: |old, new, errors| keeps("spec", &old["spec"], &new["spec"], errors),
    update_order: UpdateOrder::Instead,
    validate_status: rules::claim_status::status,
    printer: Some(table::policy::resource_claim),
    ..Kind::DEFAULT
};
