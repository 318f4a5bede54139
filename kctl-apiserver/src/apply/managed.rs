//! The entries of `metadata.managedFields`.

use serde_json::{Map, Value, json};

use super::FieldSet;

/// Whose fields: one entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) operation: String,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) set: FieldSet,
}

impl Manager {
    /// Whether two entries are of the same manager: those that apply are the same in every version.
    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.name, &self.operation, &self.subresource) == (&other.name, &other.operation, &other.subresource)
            && (self.operation == "Apply" || self.api_version == other.api_version)
    }

    /// As texts of conflicts have it.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text += &format!(" with subresource {:?}", self.subresource);
        }
        if self.operation == "Update" {
            text += &format!(" using {}", self.api_version);
        }
        text
    }
}

/// Reads the entries of an object; what cannot be read is nobody's.
pub(super) fn decode(object: &Value) -> Vec<Manager> {
    let entries = object["metadata"]["managedFields"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries
        .into_iter()
        .flatten()
        .filter(|entry| entry["operation"].is_string())
        .map(|entry| Manager {
            name: text(&entry["manager"]),
            operation: text(&entry["operation"]),
            api_version: text(&entry["apiVersion"]),
            subresource: text(&entry["subresource"]),
            time: entry["time"].as_str().map(str::to_owned),
            set: FieldSet::decode(&entry["fieldsV1"]),
        })
        .collect()
}

/// Writes the entries into an object, in the order of the real server: by operation, time and name
/// (`managedfields/internal/managedfields.go`, `sortEncodedManagedFields`).
pub(super) fn encode(mut managers: Vec<Manager>, object: &mut Value) {
    managers.retain(|manager| !manager.set.is_empty());
    managers.sort_by(|a, b| {
        let key = |manager: &Manager| {
            let Manager { operation, time, name, api_version, subresource, .. } = manager.clone();
            (operation, time, name, api_version, subresource)
        };
        key(a).cmp(&key(b))
    });
    let entries: Vec<Value> = managers.iter().map(entry).collect();
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    let Some(meta) = object["metadata"].as_object_mut() else { return };
    if entries.is_empty() {
        meta.remove("managedFields");
    } else {
        meta.insert("managedFields".into(), entries.into());
    }
}

fn entry(manager: &Manager) -> Value {
    let mut entry = json!({
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": manager.set.encode(),
    });
    if let Some(time) = &manager.time {
        entry["time"] = time.clone().into();
    }
    if !manager.subresource.is_empty() {
        entry["subresource"] = manager.subresource.clone().into();
    }
    entry
}
