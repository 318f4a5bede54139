//! Acceptance of the names in a CRD: each name is unique in its API group. Writes `status.acceptedNames` and the
//! conditions `NamesAccepted`, `Established` and `Terminating`.
//!
//! Upstream: `naming_controller.go`, `establishing_controller.go` and `crd_finalizer.go` of apiextensions-apiserver.
//!
//! Names are accepted after the CRD is stored, not during validation. Two CRDs may claim one name, and then the one
//! that came first keeps it. The other is stored with `NamesAccepted: False` and is not served until the conflict is
//! over.
//!
//! Three controllers write these conditions upstream. The functions here are the pure part of all three.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::bundle;
use crate::conditions::{condition, is_true, report};

/// The names that the CRDs of a group have been granted.
#[derive(Debug, Default)]
pub(crate) struct GrantedNames {
    /// Plurals, singulars and short names are one set, because kubectl resolves all of them in the same way.
    resources: BTreeSet<String>,
    /// Kinds and list kinds are one set, too.
    kinds: BTreeSet<String>,
}

impl GrantedNames {
    /// Collects the accepted names of these CRDs.
    ///
    /// CRDs without a status have no names yet; the empty strings that they add match no name.
    pub(crate) fn from_definitions<'a>(definitions: impl Iterator<Item = &'a Value>) -> Self {
        let mut taken = Self::default();
        for definition in definitions {
            let names = &definition["status"]["acceptedNames"];
            let texts = |fields: [&str; 2]| fields.map(|field| names[field].as_str().unwrap_or_default().to_owned());
            taken.resources.extend(texts(["plural", "singular"]));
            taken.resources.extend(short_names(names).map(str::to_owned));
            taken.kinds.extend(texts(["kind", "listKind"]));
        }
        taken
    }
}

/// Returns the short names in a `names` object of a CRD.
fn short_names(names: &Value) -> impl Iterator<Item = &str> {
    names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Accepts the free names of a CRD and writes the conditions `NamesAccepted` and `Established`. `now` becomes the
/// `lastTransitionTime` of conditions whose status changes.
///
/// If the CRD already has all requested names, it is unchanged, even if it still has a condition about a
/// conflict that is over. Upstream does the same.
///
/// Order of the fields: plural, singular, short names, kind, list kind. Each is decided on its own,
/// so a CRD can get a part of its names. Categories are shared by design and always granted.
///
/// Without a conflict the CRD is established in the same call. Upstream does so in a second step,
/// after a delay for its informers in clusters with several API servers.
pub(crate) fn accept_names(definition: &mut Value, taken: &GrantedNames, now: &str) {
    if names_accepted(definition) {
        return;
    }
    let requested = definition["spec"]["names"].clone();
    let mut naming = Naming {
        requested: &requested,
        accepted: &definition["status"]["acceptedNames"],
        granted: Map::new(),
        conflict: None,
    };
    naming.name("plural", "PluralConflict", &taken.resources);
    naming.name("singular", "SingularConflict", &taken.resources);
    naming.short_names(&taken.resources);
    naming.name("kind", "KindConflict", &taken.kinds);
    naming.name("listKind", "ListKindConflict", &taken.kinds);
    naming.list("categories", &requested);
    let Naming { granted, conflict, .. } = naming;
    definition["status"]["acceptedNames"] = granted.into();
    match conflict {
        None => {
            report(definition, now, ["NamesAccepted", "True", "NoConflicts", "no conflicts found"]);
            establish(definition, now);
        }
        Some((reason, message)) => {
            report(definition, now, ["NamesAccepted", "False", reason, &message]);
            // An established CRD remains established, under its accepted names.
            if condition(definition, "Established").is_none() {
                report(definition, now, ["Established", "False", "NotAccepted", "not all names are accepted"]);
            }
        }
    }
}

/// Returns `true` if the CRD has been granted all requested names.
///
/// The order of short names and categories matters. An absent field equals an empty one.
pub(crate) fn names_accepted(definition: &Value) -> bool {
    let (requested, accepted) = (&definition["spec"]["names"], &definition["status"]["acceptedNames"]);
    let text = |names: &Value, field: &str| names[field].as_str().unwrap_or_default().to_owned();
    let list = |names: &Value, field: &str| names[field].as_array().cloned().unwrap_or_default();
    ["plural", "singular", "kind", "listKind"].iter().all(|field| text(requested, field) == text(accepted, field))
        && ["shortNames", "categories"].iter().all(|field| list(requested, field) == list(accepted, field))
}

/// Returns `true` if the condition `Established` is `True`: the resource is served.
///
/// Once `True`, the condition never becomes `False` again: objects of the resource may exist.
pub(crate) fn is_established(definition: &Value) -> bool {
    is_true(definition, "Established")
}

/// Returns `true` if the CRD can become established: its names are accepted, its CA bundle is valid, and it is not
/// established yet.
///
/// A CRD with an invalid `caBundle` waits for an update that repairs it.
pub(crate) fn may_be_established(definition: &Value) -> bool {
    is_true(definition, "NamesAccepted") && !is_established(definition) && !bundle::is_broken(definition)
}

/// Sets the condition `Established` of a CRD whose names are accepted: `True`, or `False` with the reason
/// `InvalidCABundle`. An established CRD remains established.
pub(crate) fn establish(definition: &mut Value, now: &str) {
    if is_established(definition) {
        return;
    }
    let condition = if bundle::is_broken(definition) {
        ["Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"]
    } else {
        ["Established", "True", "InitialNamesAccepted", "the initial names have been accepted"]
    };
    report(definition, now, condition);
}

/// Returns `true` if the objects of the CRD are being deleted, or are about to be.
///
/// Set when a CRD is deleted that has the finalizer `customresourcecleanup.apiextensions.k8s.io`. Discovery lists no
/// `create` from then on.
pub(crate) fn is_ending(definition: &Value) -> bool {
    is_true(definition, "Terminating")
}

/// Returns `true` if no objects of the CRD may be created, because the CRD is being deleted. This also holds after all
/// objects are gone, while other finalizers keep the CRD (`ServeHTTP` of `customresource_handler.go`).
pub(crate) fn rejects_creates(definition: &Value) -> bool {
    !definition["metadata"]["deletionTimestamp"].is_null() || is_ending(definition)
}

/// The names that a CRD is granted, decided field by field. If several names conflict, the condition reports the last
/// conflict.
struct Naming<'a> {
    /// `spec.names`.
    requested: &'a Value,
    /// `status.acceptedNames` so far.
    accepted: &'a Value,
    /// The new `status.acceptedNames`.
    granted: Map<String, Value>,
    /// Reason and message of the condition `NamesAccepted`, if a name is taken.
    conflict: Option<(&'static str, String)>,
}

impl Naming<'_> {
    /// Grants the requested name if it is free or already granted; otherwise keeps the old name. `taken` includes the
    /// accepted names of the CRD itself. Absent optional names are left out of the status.
    fn name(&mut self, field: &str, reason: &'static str, taken: &BTreeSet<String>) {
        let text = |names: &Value| names[field].as_str().unwrap_or_default().to_owned();
        let (requested, accepted) = (text(self.requested), text(self.accepted));
        let is_free = requested == accepted || !taken.contains(&requested);
        if !is_free {
            self.conflict = Some((reason, in_use(&requested)));
        }
        let name = if is_free { requested } else { accepted };
        // These two are written even if they are empty.
        if !name.is_empty() || ["plural", "kind"].contains(&field) {
            self.granted.insert(field.into(), name.into());
        }
    }

    /// Grants all requested short names, or keeps the old ones if any new one is taken, as upstream. The message has
    /// all conflicts.
    fn short_names(&mut self, taken: &BTreeSet<String>) {
        let had: BTreeSet<&str> = short_names(self.accepted).collect();
        let is_taken = |name: &&str| !had.contains(name) && taken.contains(*name);
        let rejected: Vec<String> = short_names(self.requested).filter(is_taken).map(in_use).collect();
        if rejected.is_empty() {
            return self.list("shortNames", self.requested);
        }
        self.conflict = Some(("ShortNamesConflict", rejected.join(", ")));
        self.list("shortNames", self.accepted);
    }

    /// Copies a list of names, unless it is empty (`omitempty`).
    fn list(&mut self, field: &str, from: &Value) {
        if let Some(list) = from[field].as_array().filter(|list| !list.is_empty()) {
            self.granted.insert(field.into(), list.clone().into());
        }
    }
}

/// Returns the message about a taken name.
fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Sets the condition `Terminating` as the first `delete` of a CRD does.
pub(crate) fn mark_deletion_pending(definition: &mut Value, now: &str) {
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    report(definition, now, ["Terminating", "True", "InstanceDeletionPending", message]);
}

/// Sets the condition `Terminating` to report that the objects of the CRD are being deleted.
pub(crate) fn mark_deletion_in_progress(definition: &mut Value, now: &str) {
    let message = "CustomResource deletion is in progress";
    report(definition, now, ["Terminating", "True", "InstanceDeletionInProgress", message]);
}

/// Sets the condition `Terminating` to report that all objects of the CRD are deleted.
pub(crate) fn mark_deletion_completed(definition: &mut Value, now: &str) {
    let condition = if is_established(definition) {
        ["Terminating", "False", "InstanceDeletionCompleted", "removed all instances"]
    } else {
        ["Terminating", "False", "NeverEstablished", "resource was never established"]
    };
    report(definition, now, condition);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const THEN: &str = "2026-11-21T06:21:48Z";
    const NOW: &str = "2026-11-22T00:00:00Z";

    fn definition(names: &Value) -> Value {
        let mut object = json!({ "spec": { "names": names, "versions": [{ "name": "v1", "storage": true }] } });
        crate::crd::default_definition(&mut object);
        object
    }

    fn condition_fields(definition: &Value) -> Vec<String> {
        let conditions = definition["status"]["conditions"].as_array().unwrap();
        let text = |condition: &Value| {
            ["type", "status", "reason", "message", "lastTransitionTime"]
                .map(|field| condition[field].as_str().unwrap().to_owned())
                .join(" ")
        };
        conditions.iter().map(text).collect()
    }

    #[test]
    fn free_names_are_accepted_and_established_once() {
        let mut object = definition(&json!({ "plural": "things", "kind": "Thing" }));
        accept_names(&mut object, &GrantedNames::default(), THEN);
        let names = json!({ "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" });
        assert_eq!(object["status"]["acceptedNames"], names);
        let expected = [
            format!("NamesAccepted True NoConflicts no conflicts found {THEN}"),
            format!("Established True InitialNamesAccepted the initial names have been accepted {THEN}"),
        ];
        assert_eq!(condition_fields(&object), expected);
        let accepted = object.clone();
        accept_names(&mut object, &GrantedNames::from_definitions([&accepted].into_iter()), NOW);
        assert_eq!(object, accepted);
    }

    #[test]
    fn established_crd_keeps_names_and_transition_times() {
        let mut object = definition(&json!({ "plural": "things", "kind": "Thing", "shortNames": ["t"] }));
        accept_names(&mut object, &GrantedNames::default(), THEN);
        object["spec"]["names"]["shortNames"] = json!(["t", "things"]);
        let own = object.clone();
        // Its own plural is in use, too.
        accept_names(&mut object, &GrantedNames::from_definitions([&own].into_iter()), NOW);
        assert_eq!(object["status"]["acceptedNames"]["shortNames"], json!(["t"]));
        let expected = [
            format!("NamesAccepted False ShortNamesConflict \"things\" is already in use {NOW}"),
            format!("Established True InitialNamesAccepted the initial names have been accepted {THEN}"),
        ];
        assert_eq!(condition_fields(&object), expected);
        assert!(is_established(&object) && !names_accepted(&object));
    }

    /// Takes minutes if each short name is searched in a list.
    #[test]
    fn many_short_names_are_compared_as_sets() {
        let names: Vec<String> = (0..100_000).map(|n| format!("n{n}")).collect();
        let mut object = definition(&json!({ "plural": "things", "kind": "Thing", "shortNames": names }));
        accept_names(&mut object, &GrantedNames::default(), THEN);
        object["spec"]["names"]["shortNames"].as_array_mut().unwrap().push("things".into());
        let own = object.clone();
        accept_names(&mut object, &GrantedNames::from_definitions([&own].into_iter()), NOW);
        assert!(object["status"]["acceptedNames"]["shortNames"] == json!(names));
        assert!(!names_accepted(&object));
    }
}
