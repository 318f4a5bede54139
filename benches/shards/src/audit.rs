//! Checks the audit log of kube-apiserver: each write for a key was made by the replica that held the Lease of the key's slot.
//!
//! A `resourceVersion` is an etcd revision, one sequence for all objects of a server. So the log gives the exact order
//! of all writes without comparing clocks. The last write of the slot's Lease before a revision names the holder at
//! that revision.
//!
//! The check is stricter than the write permit in one respect. It reports every write that was stored after another replica
//! took the Lease, even if the request arrived at the last moment of the old Lease.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kctl_runtime::{key::ObjectKey, shard::slot_name};
use serde_json::Value;

use crate::division::Division;

/// The audit policy: it logs the writes of the relevant kinds, with their responses.
pub(crate) const POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  verbs: [get, list, watch]
- level: RequestResponse
  resources:
  - {group: "", resources: [pods]}
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: apps.example.com, resources: [podsets, podsets/status]}
- level: None
"#;

/// The prefix of replica user names.
pub(crate) const REPLICA: &str = "replica-";

/// A write that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Write {
    /// The etcd revision of the stored object.
    revision: u64,
    /// The user name: a replica, or the benchmark itself.
    user: String,
    /// Verb, resource and name, for messages.
    what: String,
    /// The primary that the write belongs to, or a Lease with its holder.
    target: WriteTarget,
    /// The times at which the request was received and answered.
    times: [String; 2],
}

/// The object that a write is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WriteTarget {
    /// The key of a primary: the written object itself, or the controller owner of a written Pod.
    Primary(ObjectKey),
    /// A Lease with its holder after the write. The holder is empty if the Lease was released.
    Lease { name: String, holder: String },
}

/// The result of the check.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Number of checked writes by replicas.
    pub(crate) n_writes: usize,
    /// Number of primaries with a write.
    pub(crate) n_keys: usize,
    /// Number of primaries that more than one replica wrote for, one after the other.
    pub(crate) n_moved: usize,
    /// Number of times that a slot moved from one replica to another.
    pub(crate) n_moves: usize,
    /// Number of renewals and other Lease writes.
    pub(crate) n_leases: usize,
    /// Writes by a replica that did not hold the slot's Lease.
    pub(crate) violations: Vec<String>,
}

/// Parses one line. Returns `None` if it is not a successful write of a known kind.
///
/// The user is the impersonated one, because all replicas use the administrator's kubeconfig.
fn read(line: &str) -> Option<Write> {
    let event: Value = serde_json::from_str(line).ok()?;
    let code = event["responseStatus"]["code"].as_u64()?;
    if event["stage"] != "ResponseComplete" || !(200..300).contains(&code) {
        return None;
    }
    let user = event["impersonatedUser"]["username"].as_str().or_else(|| event["user"]["username"].as_str())?;
    let (reference, object) = (&event["objectRef"], &event["responseObject"]);
    let meta = &object["metadata"];
    let name = meta["name"].as_str()?;
    let namespace = meta["namespace"].as_str();
    let resource = reference["resource"].as_str()?;
    let target = match resource {
        "leases" => WriteTarget::Lease {
            name: name.into(),
            holder: object["spec"]["holderIdentity"].as_str().unwrap_or_default().into(),
        },
        "podsets" => WriteTarget::Primary(ObjectKey::new(namespace, name)),
        "pods" => {
            let owners = meta["ownerReferences"].as_array()?;
            let owner = owners.iter().find(|owner| owner["controller"] == true)?;
            WriteTarget::Primary(ObjectKey::new(namespace, owner["name"].as_str()?))
        }
        _ => return None,
    };
    let subresource = reference["subresource"].as_str().map(|sub| format!("/{sub}")).unwrap_or_default();
    let time = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
    Some(Write {
        revision: meta["resourceVersion"].as_str()?.parse().ok()?,
        user: user.into(),
        what: format!("{} {resource}{subresource} {name}", event["verb"].as_str()?),
        target,
        times: [time("requestReceivedTimestamp"), time("stageTimestamp")],
    })
}

/// Checks the lines of a log. `app` is the prefix of its Lease names.
///
/// A request that changed nothing returns the revision of an earlier write. So only one of the requests with the same
/// revision has to come from the owner.
pub(crate) fn check<'a>(lines: impl Iterator<Item = &'a str>, app: &str, n_slots: u32, division: Division) -> Verdict {
    let mut by_revision: BTreeMap<u64, Vec<Write>> = BTreeMap::new();
    for write in lines.filter_map(read) {
        by_revision.entry(write.revision).or_default().push(write);
    }
    let slot_of: HashMap<String, u32> = (0..n_slots).map(|slot| (slot_name(app, slot), slot)).collect();
    let mut owners: HashMap<u32, String> = HashMap::new();
    let mut last: HashMap<u32, String> = HashMap::new();
    let mut writers: HashMap<ObjectKey, BTreeSet<String>> = HashMap::new();
    let mut verdict = Verdict::default();
    for writes in by_revision.into_values() {
        let mut judged = Vec::new();
        for write in writes {
            match &write.target {
                WriteTarget::Lease { name, holder } => {
                    verdict.n_leases += 1;
                    let Some(slot) = slot_of.get(name) else { continue };
                    if !holder.is_empty() && last.insert(*slot, holder.clone()).is_some_and(|before| before != *holder)
                    {
                        verdict.n_moves += 1;
                    }
                    owners.insert(*slot, holder.clone());
                }
                WriteTarget::Primary(key) => judged.push((division.slot(key, n_slots), key.clone(), write)),
            }
        }
        // The log is ordered by response, so the first of them is taken for the write.
        let Some((slot, key, write)) = judged.first() else { continue };
        // The benchmark itself changes sets and deletes Pods.
        if !write.user.starts_with(REPLICA) {
            continue;
        }
        verdict.n_writes += 1;
        let owner = owners.get(slot).map(String::as_str).unwrap_or_default();
        if let Some((_, _, write)) = judged.iter().find(|(_, _, write)| write.user == owner) {
            writers.entry(key.clone()).or_default().insert(write.user.clone());
        } else {
            let Write { revision, user, what, times: [received, answered], .. } = write;
            let owner = if owner.is_empty() { "no replica" } else { owner };
            verdict.violations.push(format!(
                "{user} wrote for {key} ({what}) at revision {revision}, from {received} to {answered}: {owner} held slot {slot}"
            ));
        }
    }
    verdict.n_keys = writers.len();
    verdict.n_moved = writers.values().filter(|users| users.len() > 1).count();
    verdict
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(user: &str, resource: &str, revision: u64, rest: &Value) -> String {
        let mut object = json!({ "metadata": { "name": "web", "namespace": "default" } });
        for (field, value) in rest.as_object().unwrap() {
            object[field] = value.clone();
        }
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        json!({
            "stage": "ResponseComplete",
            "verb": "update",
            "user": { "username": "admin" },
            "impersonatedUser": { "username": user },
            "objectRef": { "resource": resource },
            "responseStatus": { "code": 200 },
            "responseObject": object,
        })
        .to_string()
    }

    fn lease(holder: &str, revision: u64) -> String {
        lease_of(0, holder, revision)
    }

    fn lease_of(slot: u32, holder: &str, revision: u64) -> String {
        let rest = json!({ "metadata": { "name": slot_name("app", slot) }, "spec": { "holderIdentity": holder } });
        line(holder, "leases", revision, &rest)
    }

    fn pod(user: &str, revision: u64) -> String {
        let owner = json!({ "name": "web", "controller": true });
        let meta = json!({ "name": "web-x", "namespace": "default", "ownerReferences": [owner] });
        line(user, "pods", revision, &json!({ "metadata": meta }))
    }

    fn judge(lines: &[String]) -> Verdict {
        check(lines.iter().map(String::as_str), "app", 1, Division::Object)
    }

    #[test]
    fn writes_by_the_holder_of_the_slot_pass() {
        let set = |user, revision| line(user, "podsets", revision, &json!({}));
        // The log is ordered by response, not by write.
        let log = [
            pod("replica-1", 2),
            lease("replica-1", 1),
            set("replica-1", 3),
            lease("replica-2", 5),
            set("replica-2", 6),
        ];
        let verdict = judge(&log);
        assert_eq!(verdict.violations, [""; 0]);
        assert_eq!((verdict.n_writes, verdict.n_keys, verdict.n_moved, verdict.n_moves), (3, 1, 1, 1));
    }

    #[test]
    fn write_after_losing_slot_is_reported() {
        let log = [lease("replica-1", 1), lease("replica-2", 3), pod("replica-1", 4)];
        assert_eq!(judge(&log).violations.len(), 1);
        let released = [lease("replica-1", 1), lease("", 2), pod("replica-1", 3)];
        assert_eq!(judge(&released).violations.len(), 1, "a slot without owner");
    }

    #[test]
    fn write_is_judged_by_the_division_of_keys() {
        // Of 8 slots, default/web is in slot 1 by its key, and in slot 7 by its namespace.
        let log = [lease_of(1, "replica-1", 1), lease_of(7, "replica-2", 2), pod("replica-1", 3)];
        for (division, n_violations) in [(Division::Object, 0), (Division::Namespace, 1), (Division::NamespaceRange, 1)]
        {
            let verdict = check(log.iter().map(String::as_str), "app", 8, division);
            assert_eq!(verdict.violations.len(), n_violations, "{division:?}: {:?}", verdict.violations);
        }
    }

    #[test]
    fn request_of_benchmark_hides_no_write() {
        let by_other = [lease("replica-1", 1), pod("replica-2", 2), pod("admin", 2)];
        assert_eq!(judge(&by_other).violations.len(), 1);
        let by_benchmark = [lease("replica-1", 1), pod("admin", 2), pod("replica-2", 2)];
        assert_eq!(judge(&by_benchmark).violations, [""; 0]);
    }

    #[test]
    fn request_that_changed_nothing_is_not_a_write() {
        let log = [lease("replica-1", 1), pod("replica-1", 2), lease("replica-2", 3), pod("replica-2", 2)];
        assert_eq!(judge(&log).violations, [""; 0]);
    }
}
