//! `APIService` of `apiregistration.k8s.io`.

use crate::{
    admit::{defaults, rules},
    registry::kind::Kind,
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "apiregistration.k8s.io",
    resource: "apiservices",
    kind: "APIService",
    finalizers_without_domain: true,
    allows_unconditional_update: false,
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default: defaults::api::api_service,
    validate: rules::served::version,
    validate_status: |_, new, errors| rules::served::status(new, errors),
    printer: Some(table::policy::api_service),
    ..Kind::DEFAULT
};
