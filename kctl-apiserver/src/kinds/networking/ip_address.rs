//! `IPAddress` of `networking.k8s.io`.

use crate::{admit::rules, names::NameRule, registry::kind::Kind, table};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ipaddresses",
    kind: "IPAddress",
    names: NameRule::Address,
    validate: rules::served::owned_address,
    printer: Some(table::network::ip_address),
    ..Kind::DEFAULT
};
