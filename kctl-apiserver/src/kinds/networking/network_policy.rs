//! `NetworkPolicy` of `networking.k8s.io`.

use crate::{
    admit::{defaults, rules},
    registry::kind::{Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "networkpolicies",
    kind: "NetworkPolicy",
    generation: Generation::Counted,
    default: defaults::service::network_policy,
    validate: rules::network::policy,
    printer: Some(table::network::network_policy),
    ..Kind::DEFAULT
};
