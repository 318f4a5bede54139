//! `ServiceCIDR` of `networking.k8s.io`.

use crate::{admit::rules, registry::kind::Kind, table};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "servicecidrs",
    kind: "ServiceCIDR",
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    validate_create: Some(rules::served::ranges),
    validate_update: rules::served::ranges_stay,
    printer: Some(table::network::service_cidr),
    ..Kind::DEFAULT
};
