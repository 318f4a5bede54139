//! `ResourceQuota` of the core group.

pub(crate) mod validation;

use serde_json::json;

use crate::{
    admit::{defaults, rules},
    registry::kind::{DeleteAnswer, Kind, Quota},
    table,
};

pub(crate) static KIND: Kind = Kind {
    resource: "resourcequotas",
    kind: "ResourceQuota",
    delete_answer: DeleteAnswer::Object,
    default: |object| defaults::add(object, "status", json!({})),
    validate: validation::quota,
    validate_update: |old, new, errors| {
        rules::change::scopes_stay(&old["spec"]["scopes"], &new["spec"]["scopes"], errors);
    },
    validate_status: |_, new, errors| validation::status(new, errors),
    printer: Some(table::core::resource_quota),
    quota: QUOTA,
    ..Kind::DEFAULT
};

const QUOTA: Quota = Quota {
    frees_usage: Some(|_, new, _| new["spec"]["hard"] != new["status"]["hard"]),
    ..super::counted_by_name!("resourcequotas")
};
