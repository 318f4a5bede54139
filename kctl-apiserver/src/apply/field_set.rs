//! Sets of fields, as `managedFields` writes them (`FieldsV1`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of places in an object. Names of children are those of `FieldsV1`: `f:spec`, `k:{"name":"a"}`, `v:1`, `i:0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// The place itself is in the set.
    member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// Just the place itself.
    pub(super) fn leaf() -> Self {
        Self { member: true, children: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.get(name)
    }

    pub(super) fn join(&mut self) {
        self.member = true;
    }

    /// Adds what is in a child; nothing when there is nothing in it.
    pub(super) fn insert(&mut self, name: String, child: &Self) {
        if !child.is_empty() {
            let known = self.children.entry(name).or_default();
            *known = known.union(child);
        }
    }

    pub(super) fn remove(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => {
                self.children.remove(*last);
            }
            [first, rest @ ..] => {
                let Some(child) = self.children.get_mut(*first) else { return };
                child.remove(rest);
                if child.is_empty() {
                    self.children.remove(*first);
                }
            }
        }
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut children = self.children.clone();
        for (name, child) in &other.children {
            let known = children.entry(name.clone()).or_default();
            *known = known.union(child);
        }
        Self { member: self.member || other.member, children }
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        let left = self.children.iter().filter_map(|(name, child)| {
            let left = other.children.get(name).map_or_else(|| child.clone(), |other| child.difference(other));
            (!left.is_empty()).then(|| (name.clone(), left))
        });
        Self { member: self.member && !other.member, children: left.collect() }
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let both = self.children.iter().filter_map(|(name, child)| {
            let both = child.intersection(other.children.get(name)?);
            (!both.is_empty()).then(|| (name.clone(), both))
        });
        Self { member: self.member && other.member, children: both.collect() }
    }

    /// The places in it as texts for people: `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, at: &str, paths: &mut Vec<String>) {
        if self.member {
            paths.push(at.to_owned());
        }
        for (name, child) in &self.children {
            let part = match name.split_once(':') {
                Some(("f", field)) => format!(".{field}"),
                Some(("k", keys)) => {
                    let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                    format!("[{}]", keys.join(","))
                }
                Some(("v", value)) => format!("[={value}]"),
                Some((_, index)) => format!("[{index}]"),
                None => String::new(),
            };
            child.collect(&format!("{at}{part}"), paths);
        }
    }

    pub(super) fn encode(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.children.is_empty() {
            fields.insert(".".into(), Value::Object(Map::new()));
        }
        fields.extend(self.children.iter().map(|(name, child)| (name.clone(), child.encode())));
        Value::Object(fields)
    }

    /// Reads `fieldsV1`. The root itself is never a member.
    pub(super) fn decode(fields: &Value) -> Self {
        let mut set = Self::decode_at(fields);
        set.member = false;
        set
    }

    fn decode_at(fields: &Value) -> Self {
        let Some(fields) = fields.as_object() else { return Self::leaf() };
        let children: BTreeMap<String, Self> = fields
            .iter()
            .filter(|(name, _)| *name != ".")
            .map(|(name, child)| (name.clone(), Self::decode_at(child)))
            .collect();
        Self { member: children.is_empty() || fields.contains_key("."), children }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sets_survive_being_written_and_read() {
        let written = json!({
            "f:spec": { "f:ports": { ".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {} } } },
            "f:metadata": { "f:finalizers": { "v:\"a.b/c\"": {} } },
        });
        let set = FieldSet::decode(&written);
        assert_eq!(set.encode(), written);
        assert_eq!(
            set.paths(),
            [
                r#".metadata.finalizers[="a.b/c"]"#,
                ".spec.ports",
                r#".spec.ports[port=80,protocol="TCP"]"#,
                r#".spec.ports[port=80,protocol="TCP"].port"#,
            ]
        );
    }

    #[test]
    fn sets_are_added_subtracted_and_intersected() {
        let set = |json: &Value| FieldSet::decode(json);
        let one = set(&json!({ "f:a": {}, "f:b": { ".": {}, "f:c": {} } }));
        let other = set(&json!({ "f:b": { "f:c": {} }, "f:d": {} }));
        assert_eq!(one.union(&other), set(&json!({ "f:a": {}, "f:b": { ".": {}, "f:c": {} }, "f:d": {} })));
        assert_eq!(one.difference(&other), set(&json!({ "f:a": {}, "f:b": {} })));
        assert_eq!(one.intersection(&other), set(&json!({ "f:b": { "f:c": {} } })));
    }
}
