//! The record of an election in a Lease: read from the object, and written without touching its other fields.
//!
//! The Lease is kept as JSON, because it may have fields of newer Kubernetes versions, such as `strategy` and
//! `preferredHolder` of coordinated leader election. An update through a fixed struct would remove them.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kctl_apimachinery::time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ElectionConfig;

/// Greatest value of `leaseTransitions`, an `int32`: the API server rejects a larger one.
const TRANSITIONS_MAX: u64 = i32::MAX as u64;

/// The election's part of a Lease's `spec` (`coordination.k8s.io/v1`, `LeaseSpec`).
///
/// Times are kept as strings, because they are compared and never calculated with.
///
/// ```
/// use kctl_runtime::manager::lease::Record;
///
/// let record: Record = serde_json::from_str(r#"{"holderIdentity": "host_1", "leaseDurationSeconds": 15}"#)?;
/// assert_eq!((record.holder(), record.duration().as_secs()), ("host_1", 15));
/// assert_eq!(Record::default().holder(), "");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Record {
    /// Identity of the holder; `None` or empty if the Lease is free.
    pub holder_identity: Option<String>,
    /// Time for which the record is valid after its last change.
    pub lease_duration_seconds: Option<u64>,
    /// Time at which the holder acquired it, by the holder's clock.
    pub acquire_time: Option<String>,
    /// Time of the last renewal, by the holder's clock.
    pub renew_time: Option<String>,
    /// Number of changes of the holder.
    pub lease_transitions: Option<u64>,
}

impl Record {
    /// Reads the record of a Lease. A record with a field of another type counts as empty.
    pub(in crate::manager) fn read(lease: &Value) -> Self {
        lease.get("spec").and_then(|spec| Self::deserialize(spec).ok()).unwrap_or_default()
    }

    /// Returns the holder, or an empty string if the Lease is free.
    pub fn holder(&self) -> &str {
        self.holder_identity.as_deref().unwrap_or_default()
    }

    /// Returns the time for which the record is valid, zero if it has none.
    ///
    /// This is the duration in the record, not the one that the reader is configured with (client-go, `isLeaseValid`).
    pub fn duration(&self) -> Duration {
        Duration::from_secs(self.lease_duration_seconds.unwrap_or_default())
    }

    /// Returns `true` if the holder of `held`, or a later one, has released the Lease itself. client-go writes the same record
    /// (`release`). A holder that another client has removed may be at work.
    ///
    /// Each acquisition counts a transition, so the record of an earlier release, from a backup, has fewer.
    pub(in crate::manager) fn is_release_of(&self, held: &Self) -> bool {
        self.is_release() && self.lease_transitions >= held.lease_transitions
    }

    /// Returns `true` for a record as a holder writes it to release the Lease.
    pub(in crate::manager) fn is_release(&self) -> bool {
        self.holder().is_empty() && self.lease_duration_seconds == Some(1) && self.acquire_time == self.renew_time
    }

    /// Returns `true` if the holder of `before` has written this record, with another `renewTime`. A person who edits the Lease
    /// leaves the time as it is.
    pub(in crate::manager) fn is_renewal_of(&self, before: &Self) -> bool {
        !self.holder().is_empty() && self.holder() == before.holder() && self.renew_time != before.renew_time
    }

    /// Returns the record of a holder that acquires or renews the Lease now. `before` is the current record.
    ///
    /// A renewal keeps `acquireTime` and `leaseTransitions`. A new holder counts one transition more.
    pub(super) fn for_holder(config: &ElectionConfig, before: &Self, now: Timestamp) -> Self {
        let now = time::micros(now);
        let renewed = before.holder() == config.identity;
        let acquire_time = before.acquire_time.clone().filter(|_| renewed).unwrap_or_else(|| now.clone());
        let transitions = before.lease_transitions.unwrap_or_default();
        Self {
            holder_identity: Some(config.identity.clone()),
            lease_duration_seconds: Some(config.lease_duration.as_secs()),
            acquire_time: Some(acquire_time),
            renew_time: Some(now),
            lease_transitions: Some(if renewed {
                transitions
            } else {
                transitions.saturating_add(1).min(TRANSITIONS_MAX)
            }),
        }
    }

    /// Returns the record of a released Lease: without a holder, and valid for a second (client-go, `release`).
    pub(super) fn for_release(before: &Self, now: Timestamp) -> Self {
        let now = time::micros(now);
        Self {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: before.lease_transitions,
        }
    }

    pub(super) fn create(&self, config: &ElectionConfig) -> Value {
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": config.name, "namespace": config.namespace },
        });
        self.put(config, &mut lease);
        lease
    }

    /// Returns the Lease with this record in place of the present one.
    pub(super) fn update(&self, config: &ElectionConfig, lease: &Value) -> Value {
        let mut lease = lease.clone();
        self.put(config, &mut lease);
        lease
    }

    /// Writes the five fields and the labels of the configuration into a Lease.
    fn put(&self, config: &ElectionConfig, lease: &mut Value) {
        // Serializing five strings and numbers does not fail.
        let fields = serde_json::to_value(self).unwrap_or_default();
        for (name, value) in fields.as_object().into_iter().flatten() {
            object_at(lease, &["spec"]).insert(name.clone(), value.clone());
        }
        if !config.labels.is_empty() {
            let labels = object_at(lease, &["metadata", "labels"]);
            labels.extend(config.labels.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        }
    }
}

/// Returns the object at a path, creating it where it is missing or null.
fn object_at<'a>(mut value: &'a mut Value, path: &[&str]) -> &'a mut serde_json::Map<String, Value> {
    for part in path {
        if !value.is_object() {
            *value = json!({});
        }
        value = &mut value[*part];
    }
    if !value.is_object() {
        *value = json!({});
    }
    // The line above made it an object.
    let Value::Object(fields) = value else { unreachable!("it is an object") };
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitions_are_counted_up_to_the_maximum() {
        let config = ElectionConfig::new("lock", "default", "b");
        for (transitions, expected) in
            [(0, 1), (41, 42), (TRANSITIONS_MAX, TRANSITIONS_MAX), (u64::MAX, TRANSITIONS_MAX)]
        {
            let before =
                Record { holder_identity: Some("a".into()), lease_transitions: Some(transitions), ..Record::default() };
            let record = Record::for_holder(&config, &before, Timestamp::UNIX_EPOCH);
            assert_eq!(record.lease_transitions, Some(expected), "{transitions}");
        }
    }
}
