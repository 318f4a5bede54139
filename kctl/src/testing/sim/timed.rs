//! Decides which part of the state depends on when something happens: two correct runs may differ
//! in it.

use std::collections::BTreeSet;

use kctl_apiserver::Change;
use kctl_runtime::reconcile::{Error, Result};
use serde_json::Value;

use super::snapshot::uid;

/// The resources of [`Scenario::depending_on_time`](super::Scenario::depending_on_time), and the
/// objects that belong to them.
#[derive(Clone, Default)]
pub(super) struct TimeDependent {
    /// Plurals of resources that depend on time as a whole.
    resources: BTreeSet<String>,
    /// Plurals of resources whose status depends on time.
    status_of: BTreeSet<String>,
    /// The uids of objects of these resources, and of all that they own.
    uids: BTreeSet<String>,
}

impl TimeDependent {
    /// Parses `jobs` and `schedules/status`.
    ///
    /// # Errors
    /// Another subresource is named.
    pub(super) fn parse(names: &[String]) -> Result<Self> {
        let mut timed = Self::default();
        for name in names {
            match name.split_once('/') {
                None => drop(timed.resources.insert(name.clone())),
                Some((plural, "status")) => drop(timed.status_of.insert(plural.into())),
                Some((plural, other)) => {
                    return Err(Error::from(format!(
                        "depending_on_time({name:?}): {other:?} is not a part of a resource; write {plural:?} or {:?}",
                        format!("{plural}/status")
                    )));
                }
            }
        }
        Ok(timed)
    }

    /// Records a change, and returns `true` if it depends on time.
    pub(super) fn record_change(&mut self, change: &Change) -> bool {
        let states = [&change.before, &change.after].map(Option::as_deref);
        let belongs = self.resources.contains(&change.resource)
            || states.iter().flatten().any(|object| self.uids.contains(uid(object)) || self.is_owned(object));
        if belongs {
            self.uids.extend(states.iter().flatten().map(|object| uid(object).to_owned()));
            return true;
        }
        match states {
            [Some(before), Some(after)] if self.status_of.contains(&change.resource) => {
                is_same_but_status(before, after)
            }
            _ => false,
        }
    }

    fn is_owned(&self, object: &Value) -> bool {
        let references = object["metadata"]["ownerReferences"].as_array();
        references.into_iter().flatten().any(|owner| self.uids.contains(owner["uid"].as_str().unwrap_or_default()))
    }

    /// Returns `true` for an object that depends on time as a whole.
    pub(super) fn has(&self, object: &Value) -> bool {
        self.uids.contains(uid(object))
    }

    /// Returns `true` if the status of these objects depends on time.
    pub(super) fn has_status_of(&self, plural: &str) -> bool {
        self.status_of.contains(plural)
    }

    /// Returns `true` for a request to such a resource. `resource` includes the subresource.
    pub(super) fn has_request(&self, resource: &str) -> bool {
        let (plural, part) = resource.split_once('/').unwrap_or((resource, ""));
        self.resources.contains(plural) || (part == "status" && self.status_of.contains(plural))
    }
}

/// Returns `true` if two states differ only in the status and in what the server writes with it.
fn is_same_but_status(before: &Value, after: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        object.as_object_mut().map(|fields| fields.remove("status"));
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| !["resourceVersion", "managedFields"].contains(&field.as_str()));
        }
        object
    };
    rest(before) == rest(after)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn change(resource: &str, before: Option<Value>, after: Option<Value>) -> Change {
        let mut change = Change::default();
        (change.resource, change.revision) = (resource.into(), 1);
        (change.before, change.after) = (before.map(Arc::new), after.map(Arc::new));
        change
    }

    #[test]
    fn objects_and_what_they_own_depend_on_time() {
        let mut timed = TimeDependent::parse(&["jobs".into(), "schedules/status".into()]).unwrap();
        let object =
            |uid: &str, owner: &str| json!({ "metadata": { "uid": uid, "ownerReferences": [{ "uid": owner }] } });
        assert!(timed.record_change(&change("jobs", None, Some(object("job", "schedule")))));
        assert!(timed.record_change(&change("pods", None, Some(object("pod", "job")))));
        assert!(timed.record_change(&change("pods", Some(object("pod", "job")), None)));
        assert!(!timed.record_change(&change("pods", None, Some(object("other", "set")))));
        assert!(timed.has(&object("pod", "")) && !timed.has(&object("other", "")));
    }

    #[test]
    fn only_a_named_status_depends_on_time() {
        let mut timed = TimeDependent::parse(&["schedules/status".into()]).unwrap();
        let at = |version: &str, spec: u32, status: u32| json!({ "metadata": { "uid": "s", "resourceVersion": version }, "spec": spec, "status": status });
        assert!(timed.record_change(&change("schedules", Some(at("1", 1, 1)), Some(at("2", 1, 2)))));
        assert!(!timed.record_change(&change("schedules", Some(at("1", 1, 1)), Some(at("2", 2, 2)))));
        assert!(!timed.record_change(&change("schedules", None, Some(at("1", 1, 1)))));
        assert!(timed.has_request("schedules/status") && !timed.has_request("schedules"));
    }

    #[test]
    fn another_subresource_is_rejected_with_what_to_write() {
        let error = TimeDependent::parse(&["sets/scale".into()]).err().unwrap().to_string();
        assert_eq!(
            error,
            r#"depending_on_time("sets/scale"): "scale" is not a part of a resource; write "sets" or "sets/status""#
        );
    }
}
