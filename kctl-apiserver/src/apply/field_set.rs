//! Sets of field paths: what a manager owns. Reads and writes the `FieldsV1` form of `metadata.managedFields`.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Map, Value};

/// Bytes of the texts of steps that are made without an allocation of their own.
const SHORT_LEN_MAX: usize = 64;

/// One step of a path, kept as its `FieldsV1` text: `f:name`, `k:{"name":"a"}`, `v:"a"` or `i:0`.
///
/// Keys are sorted and whole numbers have no fraction, so that equal steps have equal texts.
///
/// The text is shared: sets are added and subtracted all the time, and most of their steps stay what they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathElement(Arc<str>);

impl PathElement {
    /// The step into a field of an object.
    pub fn field(name: &str) -> Self {
        // Most names are short: their texts are put together on the stack.
        let mut buffer = [0; SHORT_LEN_MAX];
        let len = name.len() + 2;
        if len <= SHORT_LEN_MAX {
            buffer[..2].copy_from_slice(b"f:");
            buffer[2..len].copy_from_slice(name.as_bytes());
            if let Ok(text) = std::str::from_utf8(&buffer[..len]) {
                return Self(text.into());
            }
        }
        Self(format!("f:{name}").into())
    }

    /// The step to the item of a list that has these values of its key fields.
    pub fn key<'v>(fields: impl IntoIterator<Item = (&'v str, &'v Value)>) -> Self {
        let mut sorted: Vec<(&str, &Value)> = fields.into_iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        sorted.dedup_by_key(|(name, _)| *name);
        let mut text = b"k:".to_vec();
        let mut between = b'{';
        for (name, value) in sorted {
            text.push(between);
            write(&mut text, name);
            text.push(b':');
            write(&mut text, canonical(value).as_ref());
            between = b',';
        }
        if between == b'{' {
            text.push(between);
        }
        text.push(b'}');
        Self(String::from_utf8_lossy(&text).into())
    }

    /// The step to the item of a set.
    pub fn value(value: &Value) -> Self {
        Self(format!("v:{}", canonical(value)).into())
    }

    /// The step to the item of a list by its place.
    pub fn index(index: usize) -> Self {
        Self(format!("i:{index}").into())
    }

    /// Reads the `FieldsV1` text of a step; nothing for a text that is none.
    pub fn decode(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once(':')?;
        match prefix {
            "k" if is_one_plain_pair(rest) => Some(Self(text.into())),
            "f" => Some(Self(text.into())),
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

/// Whether a text is an object with one field, which is a text without escapes: most keys are, and they are written as
/// they are read.
fn is_one_plain_pair(json: &str) -> bool {
    let pair = json.strip_prefix("{\"").and_then(|rest| rest.strip_suffix("\"}"));
    let is_plain = |text: &str| !text.bytes().any(|byte| byte == b'"' || byte == b'\\' || byte < b' ');
    pair.and_then(|pair| pair.split_once("\":\"")).is_some_and(|(name, value)| is_plain(name) && is_plain(value))
}

/// Texts and values of JSON always serialise.
fn write(text: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    let _infallible = serde_json::to_writer(text, value);
}

/// Numbers that are equal have one text.
fn canonical(value: &Value) -> Cow<'_, Value> {
    match value.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "the bound is checked")]
        Some(number) if value.is_f64() && number.fract() == 0.0 && number.abs() < 9e15 => {
            Cow::Owned(Value::from(number as i64))
        }
        _ => Cow::Borrowed(value),
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
    /// In the order of their steps, each step once: two sets are compared and combined in one walk.
    entries: Vec<Entry>,
}

/// A step that leads to a path of the set, or to paths below it, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    element: PathElement,
    is_member: bool,
    below: FieldSet,
}

impl Entry {
    fn new(element: PathElement) -> Self {
        Self { element, is_member: false, below: FieldSet::default() }
    }

    fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Reads the `FieldsV1` form. Steps that are not understood are left out.
    pub fn decode(fields: &Value) -> Self {
        let mut set = Self::default();
        for (text, below) in fields.as_object().into_iter().flatten() {
            let Some(element) = PathElement::decode(text) else { continue };
            let children = Self::decode(below);
            let is_member = children.is_empty() || below.get(".").is_some();
            set.add(element, is_member, children);
        }
        set
    }

    /// Writes the `FieldsV1` form.
    pub fn encode(&self) -> Value {
        self.encode_below(false)
    }

    fn encode_below(&self, is_member: bool) -> Value {
        let own = (is_member && !self.is_empty()).then(|| (".".to_owned(), Map::new().into()));
        let steps = self
            .entries
            .iter()
            .map(|Entry { element, is_member, below }| (element.as_str().to_owned(), below.encode_below(*is_member)));
        Value::Object(own.into_iter().chain(steps).collect())
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn find(&self, element: &PathElement) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.element.cmp(element)).ok()?;
        Some(&self.entries[at])
    }

    fn entry(&mut self, element: &PathElement) -> &mut Entry {
        // Most steps come in their order.
        let at = match self.entries.last() {
            Some(last) if last.element >= *element => self.entries.binary_search_by(|entry| entry.element.cmp(element)),
            _ => Err(self.entries.len()),
        };
        let at = at.unwrap_or_else(|at| {
            self.entries.insert(at, Entry::new(element.clone()));
            at
        });
        &mut self.entries[at]
    }

    /// Adds a path; the root is never in a set.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.entry(last).is_member = true,
            [first, rest @ ..] => self.entry(first).below.insert(rest),
        }
    }

    /// Adds a step that leads to a path of the set, or to paths below it, or both.
    pub fn add(&mut self, element: PathElement, is_member: bool, below: FieldSet) {
        if !is_member && below.is_empty() {
            return;
        }
        if self.entries.last().is_none_or(|last| last.element < element) {
            self.entries.push(Entry { element, is_member, below });
            return;
        }
        let entry = self.entry(&element);
        entry.is_member |= is_member;
        if !below.is_empty() {
            entry.below = below;
        }
    }

    /// Whether exactly this path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.find(last).is_some_and(|entry| entry.is_member),
            [first, rest @ ..] => self.find(first).is_some_and(|entry| entry.below.contains(rest)),
        }
    }

    /// The paths of the set below a step.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.find(element).map(|entry| &entry.below).filter(|below| !below.is_empty())
    }

    /// Takes other paths below a step.
    pub fn replace_below(&mut self, element: &PathElement, below: FieldSet) {
        self.entry(element).below = below;
        self.entries.retain(|entry| !entry.is_empty());
    }

    /// The steps from here below which there are paths.
    pub fn children(&self) -> impl Iterator<Item = (&PathElement, &FieldSet)> {
        self.entries.iter().filter(|entry| !entry.below.is_empty()).map(|entry| (&entry.element, &entry.below))
    }

    /// The entries of this set with those of the other one that have the same steps.
    fn beside<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Entry, Option<&'a Entry>)> {
        let mut rest = other.entries.as_slice();
        self.entries.iter().map(move |entry| {
            while let Some((first, later)) = rest.split_first() {
                match first.element.cmp(&entry.element) {
                    Ordering::Less => rest = later,
                    Ordering::Equal => return (entry, Some(first)),
                    Ordering::Greater => break,
                }
            }
            (entry, None)
        })
    }

    /// The paths of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (mut mine, mut theirs) = (self.entries.as_slice(), other.entries.as_slice());
        let mut entries = Vec::with_capacity(mine.len().max(theirs.len()));
        while let ([one, mine_later @ ..], [two, theirs_later @ ..]) = (mine, theirs) {
            match one.element.cmp(&two.element) {
                Ordering::Less => {
                    entries.push(one.clone());
                    mine = mine_later;
                }
                Ordering::Greater => {
                    entries.push(two.clone());
                    theirs = theirs_later;
                }
                Ordering::Equal => {
                    let below = one.below.union(&two.below);
                    entries.push(Entry {
                        element: one.element.clone(),
                        is_member: one.is_member || two.is_member,
                        below,
                    });
                    (mine, theirs) = (mine_later, theirs_later);
                }
            }
        }
        entries.extend(mine.iter().chain(theirs).cloned());
        Self { entries }
    }

    /// The paths that are not in the other set. Removing a path leaves the paths below it.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let rest = self.beside(other).map(|(mine, theirs)| match theirs {
            None => mine.clone(),
            Some(theirs) => Entry {
                element: mine.element.clone(),
                is_member: mine.is_member && !theirs.is_member,
                below: mine.below.difference(&theirs.below),
            },
        });
        Self { entries: rest.filter(|entry| !entry.is_empty()).collect() }
    }

    /// The set without a path and all that is below it.
    #[must_use]
    pub fn without(mut self, path: &[&str]) -> Self {
        self.remove(path);
        self
    }

    fn remove(&mut self, path: &[&str]) {
        let [first, rest @ ..] = path else { return };
        let Some(at) = self.entries.iter().position(|entry| entry.element.field_name() == Some(first)) else { return };
        if rest.is_empty() {
            self.entries.remove(at);
        } else {
            self.entries[at].below.remove(rest);
            self.entries.retain(|entry| !entry.is_empty());
        }
    }

    /// Whether all paths of this set are in the other one.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.beside(other).all(|(mine, theirs)| {
            theirs.is_some_and(|theirs| mine.is_member <= theirs.is_member && mine.below.is_subset(&theirs.below))
        })
    }

    /// Whether no path is in both sets.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.beside(other).all(|(mine, theirs)| {
            theirs.is_none_or(|theirs| !(mine.is_member && theirs.is_member) && mine.below.is_disjoint(&theirs.below))
        })
    }

    /// The paths of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let both = self.beside(other).filter_map(|(mine, theirs)| {
            let theirs = theirs?;
            let (element, below) = (mine.element.clone(), mine.below.intersection(&theirs.below));
            Some(Entry { element, is_member: mine.is_member && theirs.is_member, below })
        });
        Self { entries: both.filter(|entry| !entry.is_empty()).collect() }
    }

    /// Every path: those that end here first, then those below, each in order.
    pub fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, prefix: &mut Path, found: &mut Vec<Path>) {
        for Entry { element, .. } in self.entries.iter().filter(|entry| entry.is_member) {
            found.push(prefix.iter().chain([element]).cloned().collect());
        }
        for (element, below) in self.children() {
            prefix.push(element.clone());
            below.collect(prefix, found);
            prefix.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::clock::Chance;

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
    fn a_path_is_taken_out_with_all_below_it() {
        let encoded = |set: FieldSet| set.encode();
        let set = || FieldSet::decode(&fields());
        let (metadata, spec) = (json!({"f:metadata": fields()["f:metadata"]}), json!({"f:spec": fields()["f:spec"]}));
        assert_eq!(encoded(set().without(&["spec"])), metadata);
        assert_eq!(encoded(set().without(&["metadata", "finalizers"])), spec, "what leads to it goes as well");
        assert_eq!(encoded(set().without(&["metadata", "labels"])), fields());
        assert_eq!(encoded(set().without(&["status"])), fields());
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
        assert!(left.is_subset(&left.union(&right)) && !left.is_subset(&right) && !right.is_subset(&left));
        assert!(left.difference(&right).is_disjoint(&right) && !left.is_disjoint(&right));
        assert!(left.contains(&[PathElement::field("a"), PathElement::field("b")]));
        assert!(!right.contains(&[PathElement::field("a")]));
    }

    #[test]
    fn numbers_that_are_equal_are_one_step() {
        assert_eq!(PathElement::value(&json!(1.0)), PathElement::value(&json!(1)));
        for (text, expected) in [
            (r#"k:{"b":1,"a":2}"#, Some(r#"k:{"a":2,"b":1}"#)),
            (r#"k:{"a":"\u0062"}"#, Some(r#"k:{"a":"b"}"#)),
            (r#"k:{"a": "b"}"#, Some(r#"k:{"a":"b"}"#)),
            (r#"k:{"a":"b"}"#, Some(r#"k:{"a":"b"}"#)),
            (r#"k:{"a":"b","c":"d"}"#, Some(r#"k:{"a":"b","c":"d"}"#)),
            (r#"k:{"a":"b"c"}"#, None),
            ("k:{\"a\":\"\n\"}", None),
        ] {
            assert_eq!(PathElement::decode(text).as_ref().map(PathElement::as_str), expected, "{text}");
        }
    }

    /// Some of the paths of two steps out of few.
    fn some(chance: &mut Chance) -> FieldSet {
        let mut set = FieldSet::default();
        for first in ["a", "b", "c"].map(PathElement::field) {
            if chance.next().is_multiple_of(2) {
                set.insert(std::slice::from_ref(&first));
            }
            for second in [PathElement::field("x"), PathElement::index(1), PathElement::value(&json!("v"))] {
                if chance.next().is_multiple_of(3) {
                    set.insert(&[first.clone(), second]);
                }
            }
        }
        set
    }

    #[test]
    fn sets_are_combined_as_sets_of_their_paths() {
        let mut chance = Chance::new(3);
        for _ in 0..5_000 {
            let (left, right) = (some(&mut chance), some(&mut chance));
            let paths = |set: &FieldSet| set.paths().into_iter().collect::<BTreeSet<_>>();
            let (of_left, of_right) = (paths(&left), paths(&right));
            assert_eq!(paths(&left.union(&right)), &of_left | &of_right);
            assert_eq!(paths(&left.difference(&right)), &of_left - &of_right);
            assert_eq!(paths(&left.intersection(&right)), &of_left & &of_right);
            assert_eq!(left.is_subset(&right), of_left.is_subset(&of_right));
            assert_eq!(left.is_disjoint(&right), of_left.is_disjoint(&of_right));
            assert_eq!(left == right, of_left == of_right);
            assert_eq!(FieldSet::decode(&left.encode()), left);
            assert!(left.paths().iter().all(|path| left.contains(path)));
        }
    }
}
