//! `Endpoints` of the core group.

use crate::{
    admit::{defaults, rules},
    registry::kind::Kind,
    table,
};

pub(crate) static KIND: Kind = Kind {
    resource: "endpoints",
    kind: "Endpoints",
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    creates_on_update: true,
    storage_key: Some("services/endpoints"),
    default: defaults::service::endpoints,
    validate: rules::endpoints::endpoints,
    printer: Some(table::core::endpoints),
    ..Kind::DEFAULT
};
