//! `ResourceQuota` of the core group.
//!
//! It limits the total usage of a namespace. The admission plugin `ResourceQuota` rejects objects beyond it; a
//! controller writes `status.used`. Scopes are immutable, because they decide which objects have been counted.
//!
//! Upstream: `pkg/registry/core/resourcequota/strategy.go` and `pkg/apis/core/validation/validation.go`.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    registry::kind::{DeleteStrategy, Kind, Quota, TableColumns, Validation},
    table::{
        age::age,
        fields::{name, scalar, value_at},
    },
};

pub(crate) static KIND: Kind = Kind {
    resource: "resourcequotas",
    kind: "ResourceQuota",
    validation: Validation {
        validate: validation::validate_quota,
        validate_update: validation::validate_update,
        validate_status: |_, new, errors| validation::status(new, errors),
        ..Validation::DEFAULT
    },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::printer(cells),
    quota: QUOTA,
    ..Kind::DEFAULT
};

/// Quotas also count `ResourceQuota` objects, as `resourcequotas`. A quota whose `spec.hard` is not yet in its status
/// is recalculated.
const QUOTA: Quota = Quota {
    frees_usage: Some(|_, new, _| new["spec"]["hard"] != new["status"]["hard"]),
    ..super::counted_by_name!("resourcequotas")
};

/// Returns name, requests, limits and age (`printResourceQuota`). Each amount is `name: used/hard`. Names that begin
/// with `limits.` are in the column Limit, all others in Request.
fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let hard = value_at(object, "/status/hard").as_object().into_iter().flatten();
    let (limits, requests): (Vec<_>, Vec<_>) = hard.partition(|(resource, _)| resource.starts_with("limits."));
    let used = value_at(object, "/status/used");
    let column = |hard: Vec<(&String, &Value)>| {
        let part = |(resource, hard): (&String, &Value)| {
            let used = used.get(resource).and_then(scalar).unwrap_or_else(|| "0".to_owned());
            format!("{resource}: {used}/{}", scalar(hard).unwrap_or_default())
        };
        json!(hard.into_iter().map(part).collect::<Vec<_>>().join(", "))
    };
    vec![json!(name(object)), column(requests), column(limits), json!(age(object, now))]
}
