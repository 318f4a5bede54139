//! What a delete makes of an object: reads the object and what is asked for, hands on its last or its next state.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    clock,
    controllers::definitions,
    deletion::{FOREGROUND, Grace, ORPHAN, Propagation},
    kinds::Resource,
    status::GroupResource,
    store::{DEFINITIONS, Key, State},
    verbs::strategy,
};

/// What becomes of an object (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`, `Delete`).
#[derive(Debug, PartialEq)]
pub(in crate::verbs) enum Ending {
    /// It is on its way already: nothing changes.
    Pending,
    /// It is there until what holds it lets it go.
    Kept(Value),
    /// It ends gracefully, in no time: this is its last state.
    Ended(Value),
    /// It goes as it is; `changes` when something that held it was taken away for that.
    Gone { changes: bool },
}

impl Ending {
    pub(in crate::verbs) fn of(
        state: &State,
        resource: &Resource,
        object: &Value,
        propagation: Propagation,
        grace: Grace,
    ) -> Self {
        let is_marked = object["metadata"]["deletionTimestamp"].is_string();
        if resource.of == *DEFINITIONS && !is_marked {
            return Self::Kept(definitions::mark(state, object));
        }
        let mut new = object.clone();
        if is(resource, "namespaces") && !is_marked {
            mark_namespace(&mut new, propagation, state.clock.now());
            return Self::Kept(new);
        }
        if is(resource, "namespaces") && has_any(&object["spec"]["finalizers"]) {
            return Self::Pending;
        }
        let seconds = match graceful(resource, &mut new, grace, state.clock.now()) {
            Graceful::Pending => return Self::Pending,
            Graceful::No => None,
            Graceful::For(seconds) => Some(seconds),
        };
        let changes = set_finalizers(&mut new, wanted(resource, object, propagation));
        match seconds {
            _ if has_any(&new["metadata"]["finalizers"]) => {
                if seconds.is_none() {
                    mark(&mut new, state.clock.now());
                }
                Self::Kept(new)
            }
            Some(0) => Self::Ended(new),
            Some(_) => Self::Kept(new),
            None => Self::Gone { changes },
        }
    }
}

/// Removes an object, or marks it as being deleted when something holds it. Returns its last state and whether it is
/// gone.
pub(crate) fn remove_object(
    state: &mut State,
    resource: &Resource,
    key: &Key,
    object: &Arc<Value>,
    propagation: Propagation,
    grace: Grace,
) -> (Arc<Value>, bool) {
    let ending = Ending::of(state, resource, object, propagation, grace);
    carry_out(state, resource, key, object, ending)
}

/// The same of what has been found out already.
pub(in crate::verbs) fn carry_out(
    state: &mut State,
    resource: &Resource,
    key: &Key,
    object: &Arc<Value>,
    ending: Ending,
) -> (Arc<Value>, bool) {
    let mut last = match ending {
        Ending::Pending => return (object.clone(), false),
        Ending::Kept(new) if new == **object => return (object.clone(), false),
        Ending::Kept(new) => return (state.put(&resource.of, key.clone(), new), false),
        // Watchers see how it ends.
        Ending::Ended(new) => Value::clone(&state.put(&resource.of, key.clone(), new)),
        Ending::Gone { .. } => Value::clone(object),
    };
    state.remove(&resource.of, key);
    if strategy::answers_deleted(resource) || is(resource, "namespaces") {
        last["metadata"]["resourceVersion"] = state.revision.to_string().into();
    }
    remove_companion(state, &resource.of, key);
    (last.into(), true)
}

/// With a service go the endpoints of its name (`REST.afterDelete` of `pkg/registry/core/service/storage`).
pub(in crate::verbs) fn remove_companion(state: &mut State, of: &GroupResource, key: &Key) {
    if !of.group.is_empty() || of.resource != "services" {
        return;
    }
    let of = GroupResource::new("", "endpoints");
    if let (Some(resource), Some(endpoints)) = (state.registry.any_version(&of), state.get(&of, key)) {
        remove_object(state, &resource, key, &endpoints, Propagation::Default, Grace::Default);
    }
}

fn is(resource: &Resource, name: &str) -> bool {
    resource.of.group.is_empty() && resource.of.resource == name
}

fn has_any(list: &Value) -> bool {
    list.as_array().is_some_and(|all| !all.is_empty())
}

/// How an object ends.
enum Graceful {
    No,
    /// It does so already, and not later than is asked for.
    Pending,
    For(i64),
}

/// Lets a pod end gracefully, which may take less time than before but not more (upstream,
/// `k8s.io/apiserver/pkg/registry/rest/delete.go`, `BeforeDelete`).
fn graceful(resource: &Resource, pod: &mut Value, grace: Grace, now: Timestamp) -> Graceful {
    if !is(resource, "pods") {
        return Graceful::No;
    }
    let meta = &pod["metadata"];
    let due: Option<Timestamp> = meta["deletionTimestamp"].as_str().and_then(|text| text.parse().ok());
    let Some(due) = due else {
        let seconds = seconds_of_pod(pod, grace);
        set_due(pod, after(now, seconds), seconds);
        count(pod);
        return Graceful::For(seconds);
    };
    let left = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    match grace {
        _ if left == 0 => Graceful::No,
        Grace::Seconds(seconds) if seconds < left => {
            let sooner = after(due, seconds - left);
            if sooner < now {
                // What is over is not graceful any more; a kubelet still has the last word.
                set_due(pod, now, seconds.min(1));
            } else {
                set_due(pod, sooner, seconds);
            }
            Graceful::For(seconds)
        }
        _ => Graceful::Pending,
    }
}

fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
}

fn set_due(object: &mut Value, due: Timestamp, seconds: i64) {
    object["metadata"]["deletionTimestamp"] = clock::seconds(due).into();
    object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
}

/// Whoever looks at generations sees that an object is being deleted.
fn count(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|generation| *generation > 0) {
        object["metadata"]["generation"] = (generation + 1).into();
    }
}

/// How long a pod may go on: only one that a kubelet may be running ends gracefully.
pub(super) fn seconds_of_pod(pod: &Value, grace: Grace) -> i64 {
    let runs = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let ended = ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase);
    if !runs || ended {
        return 0;
    }
    let seconds = match grace {
        Grace::Seconds(seconds) => seconds,
        Grace::Default => pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0),
    };
    if seconds < 0 { 1 } else { seconds }
}

/// Marks what goes at once but for its finalizers.
fn mark(object: &mut Value, now: Timestamp) {
    let due: Option<Timestamp> = object["metadata"]["deletionTimestamp"].as_str().and_then(|text| text.parse().ok());
    if due.is_none() {
        count(object);
    }
    if due.is_none_or(|due| due > now) {
        object["metadata"]["deletionTimestamp"] = clock::seconds(now).into();
    }
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
}

/// What the first delete of a namespace makes of it (upstream, `pkg/registry/core/namespace/storage/storage.go`).
fn mark_namespace(namespace: &mut Value, propagation: Propagation, now: Timestamp) {
    let finalizer = match propagation {
        Propagation::NoOrphans => Some(FOREGROUND),
        Propagation::Default => own_finalizer(namespace),
        other => other.finalizer(),
    };
    set_finalizers(namespace, finalizer);
    namespace["metadata"]["deletionTimestamp"] = clock::seconds(now).into();
    namespace["status"]["phase"] = "Terminating".into();
}

/// The finalizer for the garbage collector: what the options say comes before what the object has, and that before what
/// is usual for its kind (`shouldOrphanDependents` and `shouldDeleteDependents`).
fn wanted(resource: &Resource, object: &Value, propagation: Propagation) -> Option<&'static str> {
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    // Nothing depends on events, so nothing waits for that.
    if [("", "events"), ("events.k8s.io", "events")].contains(&of) {
        return None;
    }
    if propagation != Propagation::Default {
        return propagation.finalizer();
    }
    let keeps_dependents = [("batch", "jobs"), ("", "replicationcontrollers")].contains(&of);
    own_finalizer(object).or_else(|| keeps_dependents.then_some(ORPHAN))
}

/// The first of the finalizers that an object has for the garbage collector.
fn own_finalizer(object: &Value) -> Option<&'static str> {
    let mut names = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.find_map(|name| [FOREGROUND, ORPHAN].into_iter().find(|known| *known == name))
}

/// Leaves an object with one finalizer for the garbage collector, or with none. Returns whether that is a change: the
/// order is none.
fn set_finalizers(object: &mut Value, wanted: Option<&str>) -> bool {
    let known = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let others = known.iter().filter(|name| *name != FOREGROUND && *name != ORPHAN).cloned();
    let new: Vec<Value> = others.chain(wanted.map(Value::from)).collect();
    if new.iter().all(|name| known.contains(name)) && known.iter().all(|name| new.contains(name)) {
        return false;
    }
    let Some(meta) = object["metadata"].as_object_mut() else { return false };
    if new.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), new.into());
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Registry;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A pod that was to end at one minute past, after 100 seconds.
    fn check(now: &str, seconds: i64, expected: &(&str, i64), over_after: i64) {
        let pods = Registry::built_in().any_version(&crate::status::GroupResource::new("", "pods")).unwrap();
        let mut pod = json!({ "metadata": {
            "generation": 2, "deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 100,
        } });
        let graceful = graceful(&pods, &mut pod, Grace::Seconds(seconds), time(now));
        assert!(matches!(graceful, Graceful::For(seconds) if seconds == over_after), "{now} {seconds}");
        let meta = &pod["metadata"];
        let found = (meta["deletionTimestamp"].as_str().unwrap(), meta["deletionGracePeriodSeconds"].as_i64().unwrap());
        assert_eq!((found, &meta["generation"]), (*expected, &json!(2)), "{now} {seconds}");
    }

    #[test]
    fn a_shorter_grace_begins_when_the_longer_one_began() {
        check("2026-01-01T00:00:00Z", 99, &("2026-01-01T00:00:59Z", 99), 99);
        check("2026-01-01T00:00:00Z", 40, &("2026-01-01T00:00:00Z", 40), 40);
    }

    #[test]
    fn a_shorter_grace_that_is_over_leaves_a_second_to_the_kubelet() {
        check("2026-01-01T00:00:00Z", 39, &("2026-01-01T00:00:00Z", 1), 39);
        check("2026-01-01T00:00:00Z", 0, &("2026-01-01T00:00:00Z", 0), 0);
    }
}
