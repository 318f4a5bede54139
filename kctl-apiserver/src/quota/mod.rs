//! `ResourceQuotas`: computes the usage after a write, or the error if a quota is exceeded.
//!
//! Usage is kept in the status of each quota, as upstream. A write adds to it (`charge`) under the lock of the server.
//! The controller counts again (`recount_status`) after a change that frees something. The two may differ for a moment.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go` (`CheckRequest`), and
//! `pkg/controller/resourcequota`.

mod usage;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub(crate) use self::usage::Counter;
use crate::amounts::{self, Amounts};

/// A write that is charged.
pub(crate) struct QuotaChange<'a> {
    /// The evaluator of the object's kind.
    pub(crate) counter: &'a Counter,
    /// The stored object; `None` for a create.
    pub(crate) old: Option<&'a Value>,
    /// The object after the write.
    pub(crate) new: &'a Value,
    /// `true` for a write of the status, which is charged and never rejected.
    pub(crate) is_status: bool,
    /// The time: a Pod that is being deleted no longer counts once its grace period is over.
    pub(crate) now: Timestamp,
}

/// Returns the usage of a quota after a write, or `None` if the quota does not count the object. Only an increase is
/// charged: an update that lowers the usage waits for the quota controller to count again. The quota counts only
/// resources that are in `status.hard`, which its controller copies from `spec.hard`. Until then they are not limited,
/// as upstream (`CheckRequest`).
///
/// # Errors
/// Fails if the quota is exceeded, if `status.used` lacks a resource of `status.hard`, or if the object lacks a value
/// that the quota counts.
pub(crate) fn charge(quota: &Value, change: &QuotaChange<'_>) -> Result<Option<Amounts>, String> {
    let QuotaChange { counter, old, new, is_status, now } = change;
    let (hard, used) = (amounts::read(&quota["status"]["hard"]), amounts::read(&quota["status"]["used"]));
    let counted: BTreeSet<&str> = hard.keys().map(String::as_str).filter(|name| counter.counts(name)).collect();
    if counted.is_empty() || !counter.is_in_scopes(quota, new) {
        return Ok(None);
    }
    let name = quota["metadata"]["name"].as_str().unwrap_or_default();
    (counter.quota.missing)(&counted, new).map_or(Ok(()), |why| Err(format!("quota {name:?}: {why}")))?;
    if let Some(resource) = counted.iter().find(|resource| !used.contains_key(**resource)) {
        return Err(format!("quota {name:?}: status.used has no {resource} yet, try again"));
    }
    let mut more = counter.usage(new, *now);
    if let Some(old) = old.filter(|old| counter.is_in_scopes(quota, old)) {
        let before = counter.usage(old, *now);
        for (name, amount) in &mut more {
            *amount = before.get(name).map_or(*amount, |before| amount.minus(*before));
        }
    }
    more.retain(|name, amount| amount.signum() > 0 && hard.contains_key(name));
    if more.is_empty() {
        return Ok(None);
    }
    let mut after = used.clone();
    amounts::add(&mut after, &more);
    let exceeded = more.iter().find(|(resource, _)| after[*resource] > hard[*resource]).filter(|_| !is_status);
    let Some((resource, added)) = exceeded else { return Ok(Some(after)) };
    let (used, hard) = (used[resource], hard[resource]);
    Err(format!("exceeded quota {name:?}: {resource} would grow by {added}, {used} of {hard} are used"))
}

/// Returns the amounts as the status of a quota holds them. Amounts have their canonical form, such as `500m` or `1Gi`.
pub(crate) fn amounts_json(amounts: &Amounts) -> Value {
    amounts.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect::<Map<_, _>>().into()
}

/// Returns the status that a quota should have, or `None` if it has that already. `objects` are all objects of its
/// namespace with their counters. A resource of `spec.hard` that a counter supports is counted from zero; others keep
/// their last usage.
pub(crate) fn recount_status<'a>(
    quota: &Value,
    objects: impl Iterator<Item = (&'a Counter, Vec<std::sync::Arc<Value>>)>,
    now: Timestamp,
) -> Option<Value> {
    let hard = amounts::read(&quota["spec"]["hard"]);
    // Resources that no evaluator counts keep their last usage.
    let mut used = amounts::read(&quota["status"]["used"]);
    used.retain(|name, _| hard.contains_key(name));
    for (counter, objects) in objects {
        let names = || hard.keys().filter(|name| counter.counts(name));
        if names().next().is_none() {
            continue;
        }
        let mut sum: Amounts = names().map(|name| (name.clone(), amounts::Quantity::default())).collect();
        for object in objects.iter().filter(|object| counter.is_in_scopes(quota, object)) {
            let mut usage = counter.usage(object, now);
            usage.retain(|name, _| sum.contains_key(name));
            amounts::add(&mut sum, &usage);
        }
        used.extend(sum);
    }
    let status = json!({ "hard": amounts_json(&hard), "used": amounts_json(&used) });
    (status != quota["status"]).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(hard: &Value, used: &Value) -> Value {
        json!({ "metadata": { "name": "q" }, "spec": { "hard": hard }, "status": { "hard": hard, "used": used } })
    }

    #[track_caller]
    fn check(quota: &Value, old: Option<&Value>, new: &Value, expected: Result<Option<&str>, ()>) {
        let pods =
            crate::kinds::built_in().registry.any_version(&crate::kinds::core::pod::KIND.group_resource()).unwrap();
        let counter = Counter::for_resource(&pods).unwrap();
        let change = QuotaChange { counter: &counter, old, new, is_status: false, now: Timestamp::UNIX_EPOCH };
        let found = charge(quota, &change).map(|after| after.map(|after| amounts_json(&after).to_string()));
        assert_eq!(found.map_err(drop), expected.map(|after| after.map(str::to_owned)));
    }

    #[test]
    fn quota_can_be_filled_but_not_exceeded() {
        let pod = json!({ "spec": { "containers": [{ "name": "c" }] } });
        let hard = json!({ "pods": "2" });
        check(&quota(&hard, &json!({ "pods": "0" })), None, &pod, Ok(Some(r#"{"pods":"1"}"#)));
        check(&quota(&hard, &json!({ "pods": "1" })), None, &pod, Ok(Some(r#"{"pods":"2"}"#)));
        check(&quota(&hard, &json!({ "pods": "2" })), None, &pod, Err(()));
    }

    #[test]
    fn only_resources_in_the_status_are_limited() {
        let pod = json!({ "spec": { "containers": [{ "name": "c" }] } });
        let new = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "0" } } });
        check(&new, None, &pod, Ok(None));
        check(&quota(&json!({ "pods": "2" }), &json!({})), None, &pod, Err(()));
    }

    #[test]
    fn only_what_a_change_adds_is_charged() {
        let pod = |cpu: &str| json!({ "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }] } });
        let quota = quota(&json!({ "requests.cpu": "2" }), &json!({ "requests.cpu": "1500m" }));
        check(&quota, Some(&pod("1")), &pod("1500m"), Ok(Some(r#"{"requests.cpu":"2"}"#)));
        check(&quota, Some(&pod("1")), &pod("1"), Ok(None));
        check(&quota, Some(&pod("1")), &pod("500m"), Ok(None));
        check(&quota, Some(&pod("1")), &pod("1501m"), Err(()));
    }
}
