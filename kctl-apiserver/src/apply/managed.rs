//! The entries of `metadata.managedFields`: which manager owns which fields. Reads and writes their JSON.
//!
//! Upstream: `managedfields.go`, `capmanagers.go` and `stripmeta.go` of
//! `k8s.io/apimachinery/pkg/util/managedfields/internal`.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Map, Value, json};

use super::field_set::FieldSet;
use crate::json_path::value_at;

/// The number of managers with operation `Update`. Beyond it, the oldest are merged into one
/// (`DefaultMaxUpdateManagers` of `internal/fieldmanager.go`). Managers that apply are not limited.
const UPDATE_MANAGERS_MAX: usize = 10;

/// The operation of a `managedFields` entry. The variants are in the order of the entries in `managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// The manager applied the fields with server-side apply.
    Apply,
    /// The manager created, updated or patched the object.
    Update,
}

impl Operation {
    /// Returns the name of the operation in `managedFields`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The identity of a manager (`BuildManagerIdentifier` upstream); two entries with the same identity are merged. The
/// time is not part of the identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    /// The name of the field manager.
    pub name: String,
    /// The operation of the entry.
    pub operation: Operation,
    /// The `apiVersion` of the writes; empty for `Apply`, which has one entry for all versions.
    pub api_version: String,
    /// The subresource that the manager wrote through; empty for the object itself.
    pub subresource: String,
}

impl Manager {
    /// Returns a manager with the operation `Apply`.
    pub(crate) fn applier(name: &str, subresource: &str) -> Self {
        Self { operation: Operation::Apply, ..Self::updater(name, "", subresource) }
    }

    /// Returns a manager with the operation `Update`.
    pub(crate) fn updater(name: &str, api_version: &str, subresource: &str) -> Self {
        let (name, subresource) = (name.to_owned(), subresource.to_owned());
        Self { name, operation: Operation::Update, api_version: api_version.to_owned(), subresource }
    }
}

/// The fields that one manager owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owned {
    /// The set of fields. Empty for an entry without fields, until [`Managed::take_from_others`] removes its manager.
    pub set: FieldSet,
    /// The `apiVersion` in which the fields are named.
    pub api_version: String,
    /// The time of the last write, RFC 3339. `None` if the manager owns the fields without having changed the object.
    pub time: Option<String>,
}

/// All managers of an object, with the fields that they own. Keyed by identity, so that duplicate JSON entries become
/// one: the last one is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed(BTreeMap<Manager, Owned>);

impl Managed {
    /// Parses `metadata.managedFields`; returns `None` if an entry is malformed. One malformed entry invalidates the
    /// whole list.
    pub(crate) fn decode(entries: &Value) -> Option<Self> {
        let entries = entries.as_array()?;
        entries.iter().map(decode_entry).collect::<Option<_>>().map(Self)
    }

    /// Parses the `metadata.managedFields` of an object; malformed entries count as absent.
    pub(crate) fn from_object(object: &Value) -> Self {
        value_at(object, ["metadata", "managedFields"]).and_then(Self::decode).unwrap_or_default()
    }

    /// Writes `metadata.managedFields` of an object, or removes the field if the object has no managers.
    pub(crate) fn write(&self, object: &mut Value) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let entries = self.encode();
        if entries.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".into(), entries.into());
        }
    }

    /// Returns the JSON entries: entries of `Apply` first, then by time, name, version and subresource. This is the
    /// order in which kube-apiserver stores entries, so that equal managers give equal JSON.
    pub(crate) fn encode(&self) -> Vec<Value> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by_key(|(manager, owned)| {
            (manager.operation, &owned.time, &manager.name, &owned.api_version, &manager.subresource)
        });
        entries.into_iter().map(|(manager, owned)| encode_entry(manager, owned)).collect()
    }

    /// Returns `true` if no manager owns a field.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fields of a manager.
    pub(crate) fn get(&self, manager: &Manager) -> Option<&Owned> {
        self.0.get(manager)
    }

    /// Iterates over all managers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Manager, &Owned)> {
        self.0.iter()
    }

    /// Replaces the fields of a manager. A manager with an empty set is removed.
    pub(crate) fn insert(&mut self, manager: Manager, owned: Owned) {
        if owned.set.is_empty() {
            self.0.remove(&manager);
        } else {
            self.0.insert(manager, owned);
        }
    }

    /// Removes fields from all managers whose version `fits` accepts, except from `manager`. Managers that own no more
    /// fields are removed. `fits` receives the `apiVersion` of an entry. Fields have the names of one version, and can
    /// only be compared with entries of versions that name them alike.
    pub(crate) fn take_from_others(
        &mut self,
        fields: &FieldSet,
        manager: Option<&Manager>,
        fits: impl Fn(&str) -> bool,
    ) {
        for (_, owned) in self.0.iter_mut().filter(|(other, _)| Some(*other) != manager) {
            if fits(&owned.api_version) && !owned.set.is_disjoint(fields) {
                owned.set = owned.set.difference(fields);
            }
        }
        self.0.retain(|_, owned| !owned.set.is_empty());
    }

    /// Replaces the field sets of managers with this `apiVersion`, where `other` returns a new set. `other` returns
    /// `None` if the set does not change.
    pub(crate) fn replace(&mut self, api_version: &str, other: impl Fn(&FieldSet) -> Option<FieldSet>) {
        for owned in self.0.values_mut().filter(|owned| owned.api_version == api_version) {
            if let Some(set) = other(&owned.set) {
                owned.set = set;
            }
        }
    }

    /// Merges the oldest managers with the operation `Update` into `ancient-changes`, one per version, until at most as
    /// many are left as kube-apiserver keeps (`NewCapManagersManager` upstream). The merged entry has the time of the
    /// latest of its parts.
    pub(crate) fn cap_updaters(&mut self) {
        let updaters = self.0.iter().filter(|(manager, _)| manager.operation == Operation::Update);
        let mut updaters: Vec<_> = updaters.map(|(manager, owned)| (owned.time.clone(), manager.clone())).collect();
        updaters.sort();
        let mut len = updaters.len();
        let mut first_of: BTreeMap<String, Manager> = BTreeMap::new();
        for (time, manager) in updaters {
            if len <= UPDATE_MANAGERS_MAX {
                return;
            }
            let Some(version) = self.0.get(&manager).map(|owned| owned.api_version.clone()) else { continue };
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, manager);
                continue;
            };
            let bucket = Manager::updater("ancient-changes", &version, "");
            let base = if self.0.contains_key(&bucket) { self.0.remove(&bucket) } else { self.0.remove(first) };
            let merged = self.0.remove(&manager);
            let sets = [base, merged].into_iter().flatten().map(|owned| owned.set);
            let set = sets.reduce(|all, set| all.union(&set)).unwrap_or_default();
            self.0.insert(bucket, Owned { set, api_version: version, time });
            len -= 1;
        }
    }
}

/// Decodes one entry, or returns `None` if it is malformed. An entry without `fieldsV1` owns nothing.
fn decode_entry(entry: &Value) -> Option<(Manager, Owned)> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let (name, api_version, subresource) = (text("manager"), text("apiVersion"), text("subresource"));
    let manager = match text("operation") {
        "Apply" => Manager::applier(name, subresource),
        "Update" => Manager::updater(name, api_version, subresource),
        _ => return None,
    };
    if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
        return None;
    }
    let set = entry.get("fieldsV1").map(FieldSet::decode).unwrap_or_default();
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Some((manager, Owned { set, api_version: api_version.to_owned(), time }))
}

/// Encodes one entry.
fn encode_entry(manager: &Manager, owned: &Owned) -> Value {
    let texts = [
        ("manager", manager.name.as_str()),
        ("operation", manager.operation.as_str()),
        ("apiVersion", &owned.api_version),
        ("time", owned.time.as_deref().unwrap_or_default()),
        ("fieldsType", "FieldsV1"),
        ("subresource", &manager.subresource),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut entry: Map<String, Value> = texts.map(|(key, text)| (key.to_owned(), text.into())).collect();
    entry.insert("fieldsV1".into(), owned.set.encode());
    Value::Object(entry)
}

/// Returns the fields that no manager owns (`NewStripMetaManager` upstream): `apiVersion`, `kind`, and the metadata
/// that identify an object or that the server sets.
pub(crate) fn stripped_fields() -> &'static FieldSet {
    static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
        let metadata = json!({
            ".": {}, "f:name": {}, "f:namespace": {}, "f:creationTimestamp": {}, "f:selfLink": {}, "f:uid": {},
            "f:clusterName": {}, "f:generation": {}, "f:managedFields": {}, "f:resourceVersion": {},
        });
        FieldSet::decode(&json!({ "f:apiVersion": {}, "f:kind": {}, "f:metadata": metadata }))
    });
    &NEVER_OWNED
}
