//! The rules of `batch/v1 CronJob`. `InterpretStatus` returns the whole status.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `AggregateStatus` | the active Jobs of all clusters and the latest times | `aggregatestatus.go`, `aggregateCronJobStatus` |
//! | `InterpretDependency` | references of `spec.jobTemplate.spec.template` | `dependencies.go`, `getCronJobDependencies` |

use serde_json::Value;

use super::{Items, NativeError, Result, pod_template, workload::member_statuses};
use crate::{
    operation::DependentReference,
    typed::{Typed, time},
};

/// Returns the object with a new status.
///
/// - `active`: the lists of all clusters, one after the other; absent if all are empty.
/// - `lastScheduleTime` and `lastSuccessfulTime`: the latest of the reported times.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let cronjob = Typed::from_object("CronJob", &object).map_err(NativeError::object("CronJob"))?;
    let mut status = Typed::zero("CronJobStatus");
    let mut active = Vec::new();
    for member in member_statuses("CronJobStatus", items.unwrap_or_default()) {
        let (_cluster, member) = member?;
        active.extend_from_slice(member.list("/active"));
        for pointer in ["/lastScheduleTime", "/lastSuccessfulTime"] {
            let (latest, time) = (status.at_mut(pointer), member.at(pointer));
            if latest.is_null() || time::is_before(latest, time) {
                *latest = time.clone();
            }
        }
    }
    if !active.is_empty() {
        *status.at_mut("/active") = active.into();
    }
    Ok(cronjob.with_status(status, object))
}

/// Returns the objects that Pods of the job template refer to, in the namespace of the `CronJob`.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    let cronjob = Typed::from_object("CronJob", object).map_err(NativeError::object("CronJob"))?;
    Ok(pod_template::dependencies_of_pod_spec(
        cronjob.at("/spec/jobTemplate/spec/template/spec"),
        cronjob.text("/metadata/namespace"),
    ))
}
