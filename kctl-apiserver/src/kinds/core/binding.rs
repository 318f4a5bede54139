//! `Binding` of the core group.

use crate::registry::kind::{Kind, Quota, Review};

pub(crate) static KIND: Kind = Kind {
    resource: "bindings",
    kind: "Binding",
    review: Some(Review::Binding),
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
