//! Sets of field paths: what a manager owns. Reads and writes the `FieldsV1` form of `metadata.managedFields`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Value};

/// One step of a path, kept as its `FieldsV1` text: `f:name`, `k:{"name":"a"}`, `v:"a"` or `i:0`.
///
/// Keys are sorted and whole numbers have no fraction, so that equal steps have equal texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathElement(String);

impl PathElement {
    /// The step into a field of an object.
    pub fn field(name: &str) -> Self {
        Self(format!("f:{name}"))
    }

    /// The step to the item of a list that has these values of its key fields.
    pub fn key<'v>(fields: impl IntoIterator<Item = (&'v str, &'v Value)>) -> Self {
        let sorted: BTreeMap<&str, Value> = fields.into_iter().map(|(name, value)| (name, canonical(value))).collect();
        let fields: Vec<String> = sorted.iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
        Self(format!("k:{{{}}}", fields.join(",")))
    }

    /// The step to the item of a set.
    pub fn value(value: &Value) -> Self {
        Self(format!("v:{}", canonical(value)))
    }

    /// The step to the item of a list by its place.
    pub fn index(index: usize) -> Self {
        Self(format!("i:{index}"))
    }

    /// Reads the `FieldsV1` text of a step; nothing for a text that is none.
    pub fn decode(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once(':')?;
        match prefix {
            "f" => Some(Self(text.to_owned())),
            "k" => {
                let fields: Map<String, Value> = serde_json::from_str(rest).ok()?;
                Some(Self::key(fields.iter().map(|(name, value)| (name.as_str(), value))))
            }
            "v" => Some(Self::value(&serde_json::from_str(rest).ok()?)),
            "i" => Some(Self::index(rest.parse().ok()?)),
            _ => None,
        }
    }

    /// The `FieldsV1` text of the step.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the field, when the step is into one.
    pub fn field_name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    /// Whether the step is to an item by the values of its key fields.
    pub fn is_key(&self) -> bool {
        self.0.starts_with("k:")
    }
}

/// The text of a step in messages: `.name`, `[name="a"]`, `[="a"]` or `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once(':').unwrap_or_default() {
            ("f", name) => write!(out, ".{name}"),
            ("k", fields) => {
                let fields: BTreeMap<String, Value> = serde_json::from_str(fields).unwrap_or_default();
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(out, "[{}]", fields.join(","))
            }
            ("v", value) => write!(out, "[={value}]"),
            (_, index) => write!(out, "[{index}]"),
        }
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Numbers that are equal have one text.
fn canonical(value: &Value) -> Value {
    match value.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "the bound is checked")]
        Some(number) if value.is_f64() && number.fract() == 0.0 && number.abs() < 9e15 => Value::from(number as i64),
        _ => value.clone(),
    }
}

/// A path from the root of an object.
pub type Path = Vec<PathElement>;

/// The text of a path in messages: `.spec.containers[name="a"].image`.
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

/// A set of paths, as a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// The steps that lead to a path of the set.
    members: BTreeSet<PathElement>,
    /// The steps below which there are paths of the set; none of these sets is empty.
    children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    /// Reads the `FieldsV1` form. Steps that are not understood are left out.
    pub fn decode(fields: &Value) -> Self {
        let mut set = Self::default();
        for (text, below) in fields.as_object().into_iter().flatten() {
            let Some(element) = PathElement::decode(text) else { continue };
            let children = Self::decode(below);
            if children.is_empty() || below.get(".").is_some() {
                set.members.insert(element.clone());
            }
            if !children.is_empty() {
                set.children.insert(element, children);
            }
        }
        set
    }

    /// Writes the `FieldsV1` form.
    pub fn encode(&self) -> Value {
        self.encode_below(false)
    }

    fn encode_below(&self, is_member: bool) -> Value {
        let mut map = Map::new();
        if is_member && !self.is_empty() {
            map.insert(".".into(), Map::new().into());
        }
        for element in &self.members {
            map.insert(element.as_str().into(), Map::new().into());
        }
        for (element, below) in &self.children {
            map.insert(element.as_str().into(), below.encode_below(self.members.contains(element)));
        }
        Value::Object(map)
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Adds a path; the root is never in a set.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Whether exactly this path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|below| below.contains(rest)),
        }
    }

    /// The paths of the set below a step.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.children.get(element)
    }

    /// Takes other paths below a step.
    pub fn replace_below(&mut self, element: &PathElement, below: FieldSet) {
        if below.is_empty() {
            self.children.remove(element);
        } else {
            self.children.insert(element.clone(), below);
        }
    }

    /// The steps from here below which there are paths.
    pub fn children(&self) -> impl Iterator<Item = (&PathElement, &FieldSet)> {
        self.children.iter()
    }

    /// The paths of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.members.extend(other.members.iter().cloned());
        for (element, below) in &other.children {
            let merged = all.children.get(element).map_or_else(|| below.clone(), |mine| mine.union(below));
            all.children.insert(element.clone(), merged);
        }
        all
    }

    /// The paths that are not in the other set. Removing a path leaves the paths below it.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let children = self.children.iter().map(|(element, below)| {
            let rest = other.children.get(element).map_or_else(|| below.clone(), |others| below.difference(others));
            (element.clone(), rest)
        });
        Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: children.filter(|(_, below)| !below.is_empty()).collect(),
        }
    }

    /// The paths of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(element, below)| {
            let both = below.intersection(other.children.get(element)?);
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        Self { members: self.members.intersection(&other.members).cloned().collect(), children: children.collect() }
    }

    /// Every path: those that end here first, then those below, each in order.
    pub fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, prefix: &mut Path, found: &mut Vec<Path>) {
        for element in &self.members {
            found.push(prefix.iter().chain([element]).cloned().collect());
        }
        for (element, below) in &self.children {
            prefix.push(element.clone());
            below.collect(prefix, found);
            prefix.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> Value {
        json!({
            "f:metadata": {"f:finalizers": {".": {}, "v:\"a/b\"": {}}},
            "f:spec": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}, "i:1": {}},
        })
    }

    #[test]
    fn fields_v1_is_written_as_it_was_read() {
        assert_eq!(FieldSet::decode(&fields()).encode(), fields());
    }

    #[test]
    fn steps_that_are_not_understood_are_left_out() {
        assert_eq!(FieldSet::decode(&json!({"x:y": {}, "k:{": {}, "f:a": {}})).encode(), json!({"f:a": {}}));
        assert!(FieldSet::decode(&json!([1])).is_empty());
    }

    #[test]
    fn paths_read_as_in_messages() {
        let texts: Vec<String> = FieldSet::decode(&fields()).paths().iter().map(|path| path_text(path)).collect();
        let expected = [
            ".metadata.finalizers",
            ".metadata.finalizers[=\"a/b\"]",
            ".spec[1]",
            ".spec.ports[containerPort=80,protocol=\"TCP\"]",
            ".spec.ports[containerPort=80,protocol=\"TCP\"].name",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn sets_are_added_subtracted_and_intersected_path_by_path() {
        let left = FieldSet::decode(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let right = FieldSet::decode(&json!({"f:a": {"f:b": {}, "f:d": {}}}));
        assert_eq!(left.union(&right).encode(), json!({"f:a": {".": {}, "f:b": {}, "f:d": {}}, "f:c": {}}));
        assert_eq!(left.difference(&right).encode(), json!({"f:a": {}, "f:c": {}}));
        assert_eq!(left.intersection(&right).encode(), json!({"f:a": {"f:b": {}}}));
        assert!(left.difference(&left).is_empty());
        assert!(left.contains(&[PathElement::field("a"), PathElement::field("b")]));
        assert!(!right.contains(&[PathElement::field("a")]));
    }

    #[test]
    fn numbers_that_are_equal_are_one_step() {
        assert_eq!(PathElement::value(&json!(1.0)), PathElement::value(&json!(1)));
        assert_eq!(PathElement::decode("k:{\"b\":1,\"a\":2}").unwrap().as_str(), "k:{\"a\":2,\"b\":1}");
    }
}
