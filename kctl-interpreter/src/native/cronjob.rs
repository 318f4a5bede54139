//! `CronJob`s.

use serde_json::Value;

use super::{Items, NativeError, Result, pod_template, workload::members};
use crate::{
    operation::DependentReference,
    typed::{Typed, time},
};

/// Joins the running jobs of all clusters, and takes the latest of the times.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let mut cronjob = Typed::from_object("CronJob", &object).map_err(NativeError::object("CronJob"))?;
    let mut status = Typed::zero("CronJobStatus");
    let mut active = Vec::new();
    for member in members("CronJobStatus", items.unwrap_or_default()) {
        let (_cluster, member) = member?;
        active.extend_from_slice(member.list("/active"));
        for pointer in ["/lastScheduleTime", "/lastSuccessfulTime"] {
            let (latest, time) = (status.at_mut(pointer), member.at(pointer));
            if latest.is_null() || time::before(latest, time) {
                *latest = time.clone();
            }
        }
    }
    if !active.is_empty() {
        *status.at_mut("/active") = active.into();
    }
    if cronjob.has("/status", &status) {
        return Ok(object);
    }
    *cronjob.at_mut("/status") = status.into_value();
    Ok(cronjob.into_object())
}

pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    let cronjob = Typed::from_object("CronJob", object).map_err(NativeError::object("CronJob"))?;
    Ok(pod_template::referenced(
        cronjob.at("/spec/jobTemplate/spec/template/spec"),
        cronjob.text("/metadata/namespace"),
    ))
}
