//! Describes requests, events and changes in the timeline of a run.

use kctl_apiserver::Change;

use crate::testing::sim::snapshot::Id;

/// Name of the user who takes the steps of a scenario.
const ADMIN: &str = "kubernetes-admin";

/// Describes a request or an event for a timeline: `patch pods default/web`.
pub(super) fn describe_target(verb: &str, resource: &str, namespace: &str, name: &str, cluster: &str) -> String {
    let [cluster, resource, namespace, name] = [cluster, resource, namespace, name].map(str::to_owned);
    format!("{verb} {}", Id { cluster, group: String::new(), resource, namespace, name })
}

/// Returns the author of a change, for a timeline.
pub(super) fn author(change: &Change) -> &str {
    match change.by.as_str() {
        "" => "server",
        ADMIN => "user",
        other => other,
    }
}

/// Returns the verb of a change, for a timeline. A deletion that waits for finalizers is
/// `is being deleted`.
pub(super) fn change_verb(change: &Change) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "is created",
        (_, None) => "is gone",
        (Some(before), Some(after))
            if after["metadata"]["deletionTimestamp"] != before["metadata"]["deletionTimestamp"] =>
        {
            "is being deleted"
        }
        _ => "changes",
    }
}

/// Describes a change of the holder of a Lease; `None` for a renewal.
pub(super) fn of_lease(change: &Change) -> Option<&'static str> {
    let [before, after] = [&change.before, &change.after].map(|lease| {
        let spec = lease.as_ref().map(|lease| &lease["spec"]);
        spec.and_then(|spec| spec["holderIdentity"].as_str()).unwrap_or_default()
    });
    match after {
        _ if after == before => None,
        "" => Some("releases the lease"),
        _ => Some("holds the lease from here on"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn empty_holder_is_a_released_lease() {
        let lease = |holder: &str| Some(Arc::new(json!({ "spec": { "holderIdentity": holder } })));
        for (before, after, expected) in [
            ("", "web-0", Some("holds the lease from here on")),
            ("web-0", "web-0", None),
            ("web-0", "", Some("releases the lease")),
        ] {
            let mut change = Change::default();
            (change.before, change.after) = (lease(before), lease(after));
            assert_eq!(of_lease(&change), expected, "from {before:?} to {after:?}");
        }
    }
}
