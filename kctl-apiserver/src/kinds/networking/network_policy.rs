//! `NetworkPolicy` of `networking.k8s.io`.

pub(crate) mod validation;

use crate::{
    admit::defaults,
    registry::kind::{Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "networkpolicies",
    kind: "NetworkPolicy",
    generation: Generation::Counted,
    default: defaults::service::network_policy,
    validate: validation::policy,
    printer: Some(table::network::network_policy),
    ..Kind::DEFAULT
};
