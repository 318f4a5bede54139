//! The normal form of a state, without what two correct runs may differ in: uids, times, versions,
//! generated names, addresses.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{ByteString, jiff::Timestamp};
use serde_json::{Map, Value};

use super::{
    snapshot::{Creator, Id, Snapshot, uid},
    timed::TimeDependent,
};

/// Metadata fields that the server writes.
pub(super) const SERVER_SET_METADATA: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "deletionGracePeriodSeconds"];
/// Metadata fields that are sets: controllers add their items in any order.
const UNORDERED_METADATA: [&str; 2] = ["finalizers", "ownerReferences"];
/// Maximum number of characters of a value in a timeline; the rest is left out.
const CHANGED_LEN_MAX: usize = 60;
/// The same of a value in a finding.
const DIFFERENCE_LEN_MAX: usize = 200;
/// Core resources in which the cluster allocates addresses.
const ADDRESSED: [&str; 3] = ["endpoints", "pods", "services"];
/// Fields that are allocated in the order in which objects are created.
const ADDRESSES: [&str; 6] = ["podIP", "podIPs", "hostIP", "clusterIP", "clusterIPs", "nodePort"];

/// The label of a `ReplicaSet` with the hash of its Pod template, with which the name of the set ends.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// An object in its normal form, with a name that both runs share: `pods default/web-*`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NormalizedObject {
    pub(super) name: String,
    /// The plural.
    pub(super) resource: String,
    pub(super) object: Value,
}

/// Returns the objects of a snapshot in normal form, in an order that does not depend on generated names.
///
/// Objects that [`Scenario::depending_on_time`](super::Scenario::depending_on_time) names are left out. `ignored` are the
/// fields of [`Scenario::ignoring`](super::Scenario::ignoring).
pub(super) fn state(snapshot: &Snapshot, ignored: &[String], timed: &TimeDependent) -> Vec<NormalizedObject> {
    normalize(snapshot, ignored, timed, |_object| true)
}

/// Returns the objects that the app created, in the same form and without their status.
pub(super) fn state_of_created(
    snapshot: &Snapshot,
    ignored: &[String],
    timed: &TimeDependent,
) -> Vec<NormalizedObject> {
    let ignored: Vec<String> = ignored.iter().cloned().chain(["/status".to_owned()]).collect();
    normalize(snapshot, &ignored, timed, |object| snapshot.created.contains(uid(object)))
}

/// Returns the objects that `is_compared` selects in normal form.
fn normalize(
    snapshot: &Snapshot,
    ignored: &[String],
    timed: &TimeDependent,
    is_compared: impl Fn(&Value) -> bool,
) -> Vec<NormalizedObject> {
    let names = Names::collect(snapshot);
    let mut state: Vec<NormalizedObject> = snapshot
        .objects
        .iter()
        .filter(|(_, object)| !timed.has(object) && is_compared(object))
        .map(|(id, object)| {
            let maker = if snapshot.created.contains(uid(object)) { Creator::App } else { Creator::Other };
            let mut ignored: Vec<&str> = ignored.iter().filter_map(|field| pointer_in(field, &id.resource)).collect();
            ignored.extend(timed.has_status_of(&id.resource).then_some("/status"));
            normalize_object(id, object, maker, &names, &ignored)
        })
        .collect();
    state.sort_by_cached_key(|normal| (normal.name.clone(), normal.object.to_string()));
    state
}

/// Replacements for uids and generated names.
///
/// Strings anywhere in an object may contain them: names of other objects, owner references, selectors, messages of
/// conditions.
#[derive(Default)]
struct Names {
    /// The replacements by the string that is replaced.
    exact: BTreeMap<String, String>,
    /// The same. Invariant: longest string first, so that the name of a Pod is replaced before the name of its Job.
    parts: Vec<(String, String)>,
    /// The addresses and node ports of Services, Pods and Endpoints.
    addresses: BTreeSet<String>,
}

/// The origin of fields with the name of an address.
#[derive(Clone, Copy)]
enum Origin {
    /// The cluster has allocated them, or a status has copies of them.
    Allocated,
    /// They are in the `spec` of another kind: either chosen there, or a copy.
    Spec,
}

impl Names {
    fn collect(snapshot: &Snapshot) -> Self {
        let mut names = Self::default();
        for hash in snapshot.objects.iter().filter_map(|(id, object)| template_hash(id, object)) {
            names.add(hash, "*".into());
        }
        let mut objects: Vec<_> = snapshot.objects.iter().collect();
        // A name that contains another name is longer, so the names that it may contain are known before it.
        objects.sort_by_key(|(id, _)| id.name.len());
        for (id, object) in objects {
            let name = names.generic_name(object, &id.name);
            names.add(uid(object), format!("(uid of {} {name})", id.resource));
            if has_addresses(id) {
                names.add_addresses(object);
            }
            if name != id.name {
                names.add(&id.name, name);
            }
        }
        names
    }

    fn add(&mut self, text: &str, general: String) {
        if text.is_empty() || self.exact.insert(text.to_owned(), general.clone()).is_some() {
            return;
        }
        let place = self.parts.partition_point(|(longer, _)| longer.len() >= text.len());
        self.parts.insert(place, (text.to_owned(), general));
        debug_assert!(
            self.parts.is_sorted_by(|(longer, _), (shorter, _)| longer.len() >= shorter.len()),
            "a name is inserted behind longer ones"
        );
    }

    /// Adds the addresses of an object.
    fn add_addresses(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if ADDRESSES.contains(&name.as_str()) {
                        self.addresses.extend(scalars(value).into_iter().filter(|address| address != "None"));
                    }
                    self.add_addresses(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_addresses(item)),
            _ => {}
        }
    }

    /// Returns `true` for a value of a field with the name of an address that runs may differ in. A headless Service has
    /// `None` in each run.
    fn is_allocated(&self, value: &Value, origin: Origin) -> bool {
        match origin {
            Origin::Allocated => scalars(value).iter().all(|address| address != "None"),
            Origin::Spec => scalars(value).iter().all(|address| self.addresses.contains(address)),
        }
    }

    /// Returns a name without its generated parts. `metadata.generateName` may itself contain a generated name: for a
    /// Pod it is the name of its Job. The name of a `ReplicaSet` is not generated: it is the Deployment's name and a hash.
    fn generic_name(&self, object: &Value, name: &str) -> String {
        match object["metadata"]["generateName"].as_str() {
            Some(base) if name.starts_with(base) => format!("{}*", self.replace(base)),
            _ => self.replace(name),
        }
    }

    /// Returns a string with uids, generated names and timestamps replaced.
    fn replace(&self, text: &str) -> String {
        if let Some(replacement) = self.exact.get(text) {
            return replacement.clone();
        }
        if text.parse::<Timestamp>().is_ok() {
            return "(a time)".into();
        }
        let mut replaced = text.to_owned();
        // Longer strings name objects as well: messages of conditions do.
        for (part, general) in &self.parts {
            if replaced.contains(part.as_str()) {
                replaced = replace_words(&replaced, part, general);
            }
        }
        replaced
    }
}

/// Returns `true` for an object in which the cluster allocates addresses.
fn has_addresses(id: &Id) -> bool {
    id.group.is_empty() && ADDRESSED.contains(&id.resource.as_str())
}

/// Returns the hash in the name of a `ReplicaSet`. It depends on times, uids and generated names in the Pod template, which
/// are compared without them.
fn template_hash<'a>(id: &Id, object: &'a Value) -> Option<&'a str> {
    let is_set = (id.group.as_str(), id.resource.as_str()) == ("apps", "replicasets");
    let hash = object["metadata"]["labels"][TEMPLATE_HASH].as_str().filter(|hash| is_set && !hash.is_empty())?;
    id.name.strip_suffix(hash).is_some_and(|base| base.ends_with('-')).then_some(hash)
}

/// Returns the strings and numbers in a value.
fn scalars(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields.values().flat_map(scalars).collect(),
        Value::Array(items) => items.iter().flat_map(scalars).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Null | Value::Bool(_) => Vec::new(),
    }
}

/// Replaces a name where it is a whole word or between characters such as `-`, and not inside of a longer word.
fn replace_words(text: &str, name: &str, general: &str) -> String {
    let is_in_word = |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(name) {
        let (before, found) = rest.split_at(at);
        let after = &found[name.len()..];
        let last = before.chars().next_back().or_else(|| replaced.chars().next_back());
        let is_word = !is_in_word(last) && !is_in_word(after.chars().next());
        replaced += before;
        replaced += if is_word { general } else { name };
        rest = after;
    }
    replaced + rest
}

fn normalize_object(id: &Id, object: &Value, maker: Creator, names: &Names, ignored: &[&str]) -> NormalizedObject {
    let mut object = object.clone();
    for pointer in ignored {
        remove(&mut object, pointer);
    }
    let [name, namespace] = [&id.name, &id.namespace].map(|name| names.replace(name));
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !SERVER_SET_METADATA.contains(&field.as_str()));
        metadata.insert("name".into(), name.clone().into());
        if maker == Creator::App {
            // The generation counts writes of the spec, and an app may write once more after a fault.
            metadata.remove("generation");
            remove(&mut object, "/status/observedGeneration");
        }
    }
    if (id.group.as_str(), id.resource.as_str()) == ("", "secrets") {
        replace_in_secret(&mut object, names);
    }
    for (field, value) in object.as_object_mut().into_iter().flatten() {
        let origin = if field == "spec" && !has_addresses(id) { Origin::Spec } else { Origin::Allocated };
        clean(value, names, origin);
    }
    for field in UNORDERED_METADATA {
        if let Some(items) = object["metadata"].get_mut(field).and_then(Value::as_array_mut) {
            items.sort_by_cached_key(Value::to_string);
        }
    }
    let resource = id.resource.clone();
    NormalizedObject { name: Id { namespace, name, ..id.clone() }.to_string(), resource, object }
}

/// Replaces names, uids and times in the `data` of a `Secret`, which is in base64. Values without any of them remain as
/// they are.
fn replace_in_secret(secret: &mut Value, names: &Names) {
    let data = secret.get_mut("data").and_then(Value::as_object_mut);
    for value in data.into_iter().flat_map(Map::values_mut) {
        let bytes = serde_json::from_value::<ByteString>(value.clone()).ok();
        let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes.0).ok()) else { continue };
        let replaced = names.replace(&text);
        if replaced != text {
            *value = replaced.into();
        }
    }
}

/// Replaces names, uids and times in all strings below a value, and removes allocated addresses.
fn clean(value: &mut Value, names: &Names, origin: Origin) {
    match value {
        Value::Object(fields) => clean_fields(fields, names, origin),
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, names, origin)),
        Value::String(text) => *text = names.replace(text),
        _ => {}
    }
}

fn clean_fields(fields: &mut Map<String, Value>, names: &Names, origin: Origin) {
    fields.retain(|name, value| !(ADDRESSES.contains(&name.as_str()) && names.is_allocated(value, origin)));
    fields.values_mut().for_each(|value| clean(value, names, origin));
}

/// Returns the JSON pointer of an ignored field in objects of a resource; `None` if the field is one of another resource.
///
/// `/status/attempts` is a field of each resource, and `sites/status/attempts` one of sites.
pub(super) fn pointer_in<'a>(ignored: &'a str, resource: &str) -> Option<&'a str> {
    let pointer = if ignored.starts_with('/') { ignored } else { ignored.strip_prefix(resource)? };
    pointer.starts_with('/').then_some(pointer)
}

/// Removes a field by its JSON pointer. An item of an array becomes `null`, so that indexes remain valid.
fn remove(object: &mut Value, pointer: &str) {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return };
    let field = field.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.remove(&field)),
        Some(Value::Array(items)) => {
            if let Some(item) = field.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                item.take();
            }
        }
        _ => {}
    }
}

/// Describes how two states differ; `None` if they are equal.
///
/// An object that is on both sides under one name is reported by its first different field. The text does not say which
/// state is wrong: the run without faults may have the bug, and a fault may repair it.
pub(super) fn difference(expected: &[NormalizedObject], found: &[NormalizedObject]) -> Option<String> {
    let missing: Vec<_> = without(expected, found);
    let surplus: Vec<_> = without(found, expected);
    let mut texts = Vec::new();
    for one in &missing {
        texts.push(match surplus.iter().find(|other| other.name == one.name) {
            Some(other) => format!("{}: {}", one.name, field(&one.object, &other.object)),
            None => format!("{} is there only without these faults", one.name),
        });
    }
    for other in surplus.iter().filter(|other| !missing.iter().any(|one| one.name == other.name)) {
        texts.push(format!("{} is there only with these faults", other.name));
    }
    if missing.len() != surplus.len() && !texts.is_empty() {
        texts.push(format!("{} objects with these faults, {} without", found.len(), expected.len()));
    }
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Returns the name of the first object in which two states differ.
pub(super) fn first_object<'a>(expected: &'a [NormalizedObject], found: &'a [NormalizedObject]) -> Option<&'a str> {
    let mut differing = without(expected, found).into_iter().chain(without(found, expected));
    differing.next().map(|object| object.name.as_str())
}

/// Returns the first field that differs in an object of both states, as [`Scenario::ignoring`](super::Scenario::ignoring)
/// names it: by its resource and its JSON pointer.
pub(super) fn field_to_ignore(expected: &[NormalizedObject], found: &[NormalizedObject]) -> Option<String> {
    let surplus = without(found, expected);
    let pair = without(expected, found).into_iter().find_map(|one| {
        let other = surplus.iter().find(|other| other.name == one.name)?;
        Some((one, other))
    });
    let (one, other) = pair?;
    let pointer = pointer_of_difference(&one.object, &other.object);
    (!pointer.is_empty()).then(|| format!("{}{pointer}", one.resource))
}

/// Returns the JSON pointer of the first field in which two values differ; empty if they differ as a whole.
fn pointer_of_difference(one: &Value, other: &Value) -> String {
    match first_different_part(one, other) {
        Some((Part::Field(name), one, other)) => {
            format!("/{}{}", name.replace('~', "~0").replace('/', "~1"), pointer_of_difference(one, other))
        }
        Some((Part::Item(index), one, other)) => format!("/{index}{}", pointer_of_difference(one, other)),
        None => String::new(),
    }
}

/// Returns what `list` has more often than `other`.
pub(super) fn without<'a>(list: &'a [NormalizedObject], other: &[NormalizedObject]) -> Vec<&'a NormalizedObject> {
    let mut rest: Vec<&NormalizedObject> = other.iter().collect();
    let mut more = Vec::new();
    for one in list {
        match rest.iter().position(|line| *line == one) {
            Some(index) => drop(rest.swap_remove(index)),
            None => more.push(one),
        }
    }
    more
}

/// Describes the first field in which two objects differ.
fn field(expected: &Value, found: &Value) -> String {
    let (path, expected, found) = first_field(expected, found);
    format!("{path} is {found} with these faults, and {expected} without")
}

/// Returns the path of the first field in which two objects differ, with both values of it as JSON.
pub(super) fn first_field(one: &Value, other: &Value) -> (String, String, String) {
    let (path, one, other) = first_difference(one, other, String::new());
    let [one, other] = [one, other].map(|value| shorten(value, DIFFERENCE_LEN_MAX));
    (path, one, other)
}

/// Describes the first field in which an object differs between two runs of one plan; `None` if nothing differs that
/// states are compared by.
///
/// Such runs have the same uids and generated names, so these are compared as they are. `resource` is the plural of the object.
pub(super) fn field_that_differs(first: &Value, second: &Value, resource: &str, ignored: &[String]) -> Option<String> {
    if first == second {
        return None;
    }
    let [first, second] = [first, second].map(|object| {
        let mut object = object.clone();
        for pointer in ignored.iter().filter_map(|field| pointer_in(field, resource)) {
            remove(&mut object, pointer);
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| !SERVER_SET_METADATA.contains(&field.as_str()));
        }
        clean(&mut object, &Names::default(), Origin::Allocated);
        object
    });
    let (path, one, other) = first_field(&first, &second);
    (first != second).then(|| format!("{path} is {one} in one run, and {other} in the other"))
}

/// Describes the first field that a change sets, for a timeline. Fields that the server writes are left out.
pub(super) fn changed_field(before: &Value, after: &Value) -> Option<String> {
    let is_set = |name: &&String| name.as_str() != "generation" && !SERVER_SET_METADATA.contains(&name.as_str());
    let names = |value| Value::as_object(value).into_iter().flat_map(Map::keys);
    let [old, new] = [&before["metadata"], &after["metadata"]];
    let metadata_field = names(old).chain(names(new)).filter(is_set).find(|name| old[*name] != new[*name]);
    let object_field = || {
        let mut names = names(before).chain(names(after)).filter(|name| *name != "metadata");
        names.find(|name| before[*name] != after[*name])
    };
    let (path, _old, new) = match metadata_field {
        Some(name) => first_difference(&old[name], &new[name], format!(".metadata.{name}")),
        None => object_field().map(|name| first_difference(&before[name], &after[name], format!(".{name}")))?,
    };
    Some(format!("{path} is {}", shorten(new, CHANGED_LEN_MAX)))
}

/// Returns the path of the first field in which two values differ, with both values of it.
fn first_difference<'a>(one: &'a Value, other: &'a Value, path: String) -> (String, &'a Value, &'a Value) {
    match first_different_part(one, other) {
        Some((Part::Field(name), one, other)) => first_difference(one, other, format!("{path}.{name}")),
        Some((Part::Item(index), one, other)) => first_difference(one, other, format!("{path}[{index}]")),
        None => (path, one, other),
    }
}

/// A part of a value: a field of an object, or an item of an array.
enum Part<'a> {
    Field(&'a str),
    Item(usize),
}

/// Returns the first part in which two objects, or two arrays of one length, differ, with both values of it.
///
/// Arrays of different lengths differ as a whole, because an item that is inserted moves all later ones.
fn first_different_part<'a>(one: &'a Value, other: &'a Value) -> Option<(Part<'a>, &'a Value, &'a Value)> {
    match (one, other) {
        (Value::Object(first), Value::Object(second)) => {
            let names = first.keys().chain(second.keys().filter(|name| !first.contains_key(*name)));
            let mut values = names.map(|name| {
                let [one, other] = [first, second].map(|fields| fields.get(name).unwrap_or(&Value::Null));
                (Part::Field(name), one, other)
            });
            values.find(|(_, one, other)| one != other)
        }
        (Value::Array(first), Value::Array(second)) if first.len() == second.len() => {
            let mut items = first.iter().zip(second).enumerate();
            items.find(|(_, (one, other))| one != other).map(|(index, (one, other))| (Part::Item(index), one, other))
        }
        _ => None,
    }
}

/// Returns a value as JSON, with at most `max` characters and `…` for the rest.
fn shorten(value: &Value, max: usize) -> String {
    let text = value.to_string();
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
