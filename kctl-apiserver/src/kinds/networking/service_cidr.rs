//! `ServiceCIDR` of `networking.k8s.io`.

use crate::{
    admit::rules,
    registry::kind::{Kind, UpdateOrder},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "servicecidrs",
    kind: "ServiceCIDR",
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    validate: rules::served::ranges,
    validate_update: rules::served::ranges_stay,
    update_order: UpdateOrder::Instead,
    printer: Some(table::network::service_cidr),
    ..Kind::DEFAULT
};
