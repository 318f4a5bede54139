//! Compares two CRDs: which stored objects would be rejected, lose fields, or become unreachable.
//!
//! An API server checks an object when it is written, not when it is read. It tolerates errors in parts that a write
//! leaves unchanged (ratcheting, KEP-4008, since Kubernetes 1.33). For example, kube-apiserver 1.36.3 accepts a new
//! label on objects that break a new type, bound, pattern, enum, rule or required field. A stricter schema therefore
//! breaks nothing at once: an old object remains readable, and the write that changes that part fails. Removed fields
//! are dropped at the next write without an error. So a CRD that looks harmless can break objects weeks later, which is
//! why CI should compare it with the released one.
//!
//! | Change | Breaks |
//! |---|---|
//! | scope, group or kind | API servers reject it |
//! | a version is gone or no longer served | its clients, and objects stored in it |
//! | the storage version changes without a conversion | fields that the new version lacks |
//! | a field is gone, or a map no longer takes any key | its content is dropped |
//! | another type, a tighter bound, a new pattern or format | objects with other values |
//! | a new required field without a default | objects without it |
//! | fewer allowed values, a new CEL rule | objects with the others |
//! | another default, or a default is gone | the meaning of objects without the field |
//! | another list or map type | the ownership of server-side apply |
//! | a selectable field or a subresource is gone | clients that use it |
//!
//! A wider type (`integer` to `number`), a looser bound, a first default, a new optional field and a new variant of an enum
//! break nothing. Neither does a bound that the old Rust type implied: no program could have stored another value.

use std::fmt::{self, Display};

use serde_json::{Map, Value};

use super::values::{IPV4, TEXT_FORMATS, URI, UUID, integer};

/// A difference between two CRDs that breaks stored objects or clients.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The version that it is about, empty for the whole CRD.
    pub version: String,
    /// The field, as in an object: `spec.hosts[].name`.
    pub path: String,
    /// The difference, for example `is gone`.
    pub what: String,
    /// The objects or clients that no longer work.
    pub breaks: String,
    /// The way to make the change safely.
    pub migrate: String,
}

impl Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.version.is_empty() { String::new() } else { format!("{} ", self.version) };
        write!(f, "{version}{}: {}; {}; {}", self.path, self.what, self.breaks, self.migrate)
    }
}

/// Returns the changes from the CRD `old` to `new` that break stored objects or clients.
///
/// Both have the same name. An empty result means that every stored object remains valid and keeps its fields.
///
/// ```
/// use kctl_runtime::manifest::breaking;
/// use serde_json::json;
///
/// let crd = |port: serde_json::Value| json!({
///     "spec": { "versions": [{
///         "name": "v1", "served": true, "storage": true,
///         "schema": { "openAPIV3Schema": { "type": "object", "properties": { "port": port } } },
///     }] },
/// });
/// let (old, new) = (crd(json!({ "type": "integer" })), crd(json!({ "type": "integer", "maximum": 65535 })));
/// let changes = breaking(&old, &new);
/// assert_eq!((changes.len(), changes[0].path.as_str()), (1, "port"));
/// assert!(changes[0].what.starts_with("has the new constraint maximum 65535"));
/// assert!(breaking(&new, &old).is_empty()); // a bound that is dropped breaks nothing
/// ```
pub fn breaking(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare_definitions(old, new, &mut changes);
    for before in versions(old) {
        let name = before["name"].as_str().unwrap_or_default();
        let first = changes.len();
        let Some(after) = versions(new).find(|after| after["name"] == before["name"]) else {
            let breaks = if before["storage"] == true {
                "all stored objects are of this version"
            } else {
                "its clients, and objects that were stored in it"
            };
            let migrate = "keep it with `served = false` until `status.storedVersions` no longer names it";
            changes.push(change("", &format!("the version {name}"), "is gone", breaks, migrate));
            continue;
        };
        compare_versions(before, after, &mut changes);
        changes[first..].iter_mut().for_each(|change| name.clone_into(&mut change.version));
    }
    changes
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd["spec"]["versions"].as_array().into_iter().flatten()
}

/// Creates a change. `version` is empty for the whole CRD; [`breaking`] fills it in for changes of a schema.
fn change(version: &str, path: &str, what: impl Into<String>, breaks: &str, migrate: &str) -> Change {
    let [version, path, breaks, migrate] = [version, path, breaks, migrate].map(ToOwned::to_owned);
    Change { version, path, what: what.into(), breaks, migrate }
}

/// Compares scope, group, kind, storage version and conversion.
///
/// The storage version may change without a conversion only if both versions have the same schema: then every stored object
/// is valid in both.
fn compare_definitions(old: &Value, new: &Value, changes: &mut Vec<Change>) {
    for (pointer, name) in
        [("/spec/scope", "the scope"), ("/spec/group", "the group"), ("/spec/names/kind", "the kind")]
    {
        let (before, after) = (old.pointer(pointer), new.pointer(pointer));
        if before != after {
            let [before, after] =
                [before, after].map(|value| value.and_then(Value::as_str).unwrap_or_default().to_owned());
            let breaks = "API servers reject the change; every object would have to be recreated";
            let migrate = "add a new kind, copy the objects, then remove the old CRD";
            changes.push(change("", name, format!("was {before} and is {after}"), breaks, migrate));
        }
    }
    let stored =
        |crd: &Value| versions(crd).find(|version| version["storage"] == true).map(|version| version["name"].clone());
    let (before, after) = (stored(old), stored(new));
    let is_converted = new["spec"]["conversion"]["strategy"] == "Webhook";
    if let (Some(before), Some(after)) = (before, after)
        && before != after
        && !is_converted
        && !same_schema(old, &before, new, &after)
    {
        let what = format!("was {} and is {}", before.as_str().unwrap_or_default(), after.as_str().unwrap_or_default());
        let breaks = "objects stored in the old version lose the fields that the new version does not have";
        changes.push(change(
            "",
            "the storage version",
            what,
            breaks,
            "add a conversion: `conversion(service = \"…\", namespace = \"…\")`",
        ));
    }
    if old["spec"]["conversion"]["strategy"] == "Webhook" && !is_converted && versions(new).count() > 1 {
        let breaks = "objects lose their fields when they are read in another version";
        changes.push(change("", "the conversion", "is gone", breaks, "remove the other versions first"));
    }
}

fn same_schema(old: &Value, before: &Value, new: &Value, after: &Value) -> bool {
    let find = |crd: &Value, name: &Value| {
        versions(crd).find(|version| version["name"] == *name).map(|version| version["schema"].clone())
    };
    find(old, before) == find(new, after)
}

/// Compares what one version serves: its subresources, selectable fields and schema.
///
/// A new status subresource breaks clients too: from then on an API server ignores `status` in a write of the object
/// itself.
fn compare_versions(old: &Value, new: &Value, changes: &mut Vec<Change>) {
    if old["served"] == true && new["served"] == false {
        changes.push(change(
            "",
            "the version",
            "is no longer served",
            "its clients get 404",
            "write `deprecated = \"use …\"` for one release first",
        ));
    }
    for name in ["status", "scale"] {
        let (before, after) = (&old["subresources"][name], &new["subresources"][name]);
        if before.is_object() && !after.is_object() {
            changes.push(change(
                "",
                &format!("the subresource {name}"),
                "is gone",
                "clients that write it get 404",
                "keep it",
            ));
        }
    }
    if !old["subresources"]["status"].is_object() && new["subresources"]["status"].is_object() {
        let breaks = "what clients write into `status` of the object itself is ignored from now on";
        changes.push(change("", "the subresource status", "is new", breaks, "let clients write `/status` first"));
    }
    let fields = |version: &Value| -> Vec<String> {
        let all = version["selectableFields"].as_array().into_iter().flatten();
        all.filter_map(|field| field["jsonPath"].as_str()).map(str::to_owned).collect()
    };
    let new_fields = fields(new);
    for path in fields(old).into_iter().filter(|path| !new_fields.contains(path)) {
        changes.push(change(
            "",
            &path,
            "is no longer selectable",
            "clients that select by it get 400",
            "keep it selectable",
        ));
    }
    compare_schemas(&old["schema"]["openAPIV3Schema"], &new["schema"]["openAPIV3Schema"], "", changes);
}

/// Compares two schemas of one place, and all below them. A type that becomes wider breaks nothing.
fn compare_schemas(old: &Value, new: &Value, path: &str, changes: &mut Vec<Change>) {
    let display_path = if path.is_empty() { "the object" } else { path };
    if kind_of(old) != kind_of(new) && kind_of(new) != "any" {
        let is_wider = kind_of(old) == "integer" && ["number", "an integer or a string"].contains(&kind_of(new))
            || kind_of(old) == "string" && kind_of(new) == "an integer or a string";
        if !is_wider {
            let what = format!("was of type {} and is of type {}", kind_of(old), kind_of(new));
            let breaks = format!("objects that have {display_path} are rejected when that part of them is changed");
            changes.push(change(
                "",
                display_path,
                what,
                &breaks,
                "add a field of the new type, copy the values, then stop reading the old one",
            ));
            return;
        }
    }
    compare_pruning(old, new, display_path, changes);
    compare_merging(old, new, display_path, changes);
    compare_bounds(old, new, display_path, changes);
    compare_words(old, new, display_path, changes);
    compare_fields(old, new, path, changes);
    if old["items"].is_object() && new["items"].is_object() {
        compare_schemas(&old["items"], &new["items"], &format!("{path}[]"), changes);
    }
    match (values_of(old), values_of(new)) {
        (Some(before), Some(after)) => compare_schemas(&before, &after, &format!("{path}{{}}"), changes),
        (Some(_), None) if !accepts_any(new) => {
            let breaks = format!("what objects have in {display_path} is dropped when they are written again");
            changes.push(change("", display_path, "is no longer a map", &breaks, "keep the map and add a field"));
        }
        _ => {}
    }
}

/// Returns the schema of a map's values. API servers read `true` as an empty schema, which drops the content
/// of values that are objects.
fn values_of(schema: &Value) -> Option<Value> {
    match &schema["additionalProperties"] {
        Value::Bool(true) => Some(Value::Object(Map::new())),
        values => values.is_object().then(|| values.clone()),
    }
}

/// Returns the type of a schema in words; `any` if it has none.
fn kind_of(schema: &Value) -> &str {
    if schema["x-kubernetes-int-or-string"] == true {
        return "an integer or a string";
    }
    schema["type"].as_str().unwrap_or("any")
}

fn accepts_any(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
        && (kind_of(schema) == "any" || schema["properties"].is_null())
}

/// Compares which values are kept as they are: unknown fields, embedded objects and null.
fn compare_pruning(old: &Value, new: &Value, path: &str, changes: &mut Vec<Change>) {
    let preserves = "x-kubernetes-preserve-unknown-fields";
    if old[preserves] == true && new[preserves] != true {
        let breaks =
            format!("fields of {path} that the schema does not name are dropped when objects are written again");
        changes.push(change(
            "",
            path,
            "no longer keeps unknown fields",
            &breaks,
            "add each field in use to the type first",
        ));
    }
    if old["x-kubernetes-embedded-resource"] == true
        && new["x-kubernetes-embedded-resource"] != true
        && new[preserves] != true
    {
        let breaks = "`apiVersion`, `kind` and `metadata` in it are dropped";
        changes.push(change("", path, "is no longer an embedded object", breaks, "keep `#[kctl(embedded)]`"));
    }
    if old["x-kubernetes-embedded-resource"] != true && new["x-kubernetes-embedded-resource"] == true {
        let breaks =
            format!("objects without `apiVersion` and `kind` in {path} are rejected when that part of them is changed");
        let migrate = "leave out `#[kctl(embedded)]`, or change the objects first";
        changes.push(change("", path, "is an embedded object", &breaks, migrate));
    }
    // With an `enum`, API servers rejected null even if the old schema was nullable.
    if old["nullable"] == true && new["nullable"] != true && !old["enum"].is_array() {
        let breaks = format!("objects with null in {path} are rejected, or get its default");
        changes.push(change("", path, "can no longer be null", &breaks, "keep it an `Option`"));
    }
}

/// Compares how lists and maps are merged.
///
/// Another list or map type changes who owns what: managers of single items own the whole list after the next apply, or
/// the other way round. A `set` or a `map` also rejects equal items.
fn compare_merging(old: &Value, new: &Value, path: &str, changes: &mut Vec<Change>) {
    for (key, default) in [("x-kubernetes-list-type", "atomic"), ("x-kubernetes-map-type", "granular")] {
        let read = |schema: &Value| schema[key].as_str().unwrap_or(default).to_owned();
        let (before, after) = (read(old), read(new));
        if before == after {
            continue;
        }
        let is_stricter = ["set", "map"].contains(&after.as_str());
        let breaks = if is_stricter {
            format!(
                "objects with two equal items in {path} are rejected, and field ownership of server-side apply changes"
            )
        } else if after == "atomic" {
            format!("field managers that own single parts of {path} own all of it from now on")
        } else {
            format!("field managers that own all of {path} own single fields from now on")
        };
        changes.push(change("", path, format!("was {before} and is {after}"), &breaks, "keep it, or add a new field"));
    }
    let keys = "x-kubernetes-list-map-keys";
    if old[keys].is_array() && new[keys].is_array() && old[keys] != new[keys] {
        let breaks = "items that differ only in a key that is gone are rejected, and field ownership of server-side apply changes";
        changes.push(change(
            "",
            path,
            format!("had the keys {} and has {}", old[keys], new[keys]),
            breaks,
            "keep the keys",
        ));
    }
}

/// Compares bounds, formats and patterns. A bound that every value of the old type meets breaks nothing.
fn compare_bounds(old: &Value, new: &Value, path: &str, changes: &mut Vec<Change>) {
    let mut tighter = |what: String, values: &str| {
        let breaks = format!("objects whose {path} is {values} are rejected when that part of them is changed");
        changes.push(change("", path, what, &breaks, "keep the old bound, or change the objects first"));
    };
    for (key, is_lower, values) in [
        ("minimum", true, "lower"),
        ("maximum", false, "higher"),
        ("minLength", true, "shorter"),
        ("maxLength", false, "longer"),
        ("minItems", true, "shorter"),
        ("maxItems", false, "longer"),
        ("minProperties", true, "smaller"),
        ("maxProperties", false, "larger"),
    ] {
        let Some(after) = new[key].as_f64() else { continue };
        if is_implied_by_type(old, key, after) {
            continue;
        }
        match old[key].as_f64() {
            None if is_lower && after <= 0.0 && key != "minimum" => {}
            None => tighter(format!("has the new constraint {key} {after}"), values),
            Some(before) if before.total_cmp(&after).is_ne() && allows_fewer(old, new, key) => {
                tighter(format!("had {key} {before} and has {after}"), values);
            }
            Some(_) => {}
        }
    }
    for (key, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        // A looser bound excludes no value that the old one allowed, and a tighter or a new one was reported.
        let is_same = match (old[bound].as_f64(), new[bound].as_f64()) {
            (Some(before), Some(after)) => before.total_cmp(&after).is_eq(),
            (None, Some(after)) => is_implied_by_type(old, bound, after),
            (_, None) => false,
        };
        if old[key] != true && new[key] == true && is_same {
            tighter(format!("has {key}"), "at the bound");
        }
    }
    for key in ["multipleOf", "pattern", "format", "not", "oneOf", "anyOf", "allOf"] {
        let is_open = (key == "format" && !is_tighter_format(old, new))
            || is_implied_by_format(old, key, &new[key])
            || is_looser_factor(old, new, key)
            || has_looser_alternatives(old, new, key);
        if !new[key].is_null() && new[key] != old[key] && !is_open {
            let what = if old[key].is_null() {
                format!("has the new constraint {key} {}", new[key])
            } else {
                format!("had {key} {} and has {}", old[key], new[key])
            };
            tighter(what, "a value that the new constraint excludes");
        }
    }
}

/// Returns `true` if a bound of the new schema allows fewer values than the old one.
fn allows_fewer(old: &Value, new: &Value, key: &str) -> bool {
    let (Some(before), Some(after)) = (last_value(old, key), last_value(new, key)) else { return false };
    if key.starts_with("min") { after > before } else { after < before }
}

/// Returns a bound. For an integer it is the last value that the bound allows: more than 0 is at least 1.
fn last_value(schema: &Value, key: &str) -> Option<f64> {
    let bound = schema[key].as_f64()?;
    let is_integer = schema["type"] == "integer";
    Some(match key {
        "minimum" if is_integer && schema["exclusiveMinimum"] == true => bound + 1.0,
        "maximum" if is_integer && schema["exclusiveMaximum"] == true => bound - 1.0,
        _ => bound,
    })
}

/// Returns `true` if a bound comes from the integer type of the old format, or from an `IntOrString`.
///
/// No program with that type could read values beyond it, so the bound breaks nothing.
#[expect(clippy::cast_precision_loss, reason = "bounds of types of up to 32 bits are exact")]
fn is_implied_by_type(old: &Value, key: &str, bound: f64) -> bool {
    let int_or_string_range = Some((Some(i64::from(i32::MIN)), Some(i64::from(i32::MAX)), ""));
    let is_int_or_string = old["x-kubernetes-int-or-string"] == true;
    let range = if is_int_or_string { int_or_string_range } else { old["format"].as_str().and_then(integer) };
    let Some((low, high, _)) = range else { return false };
    let range = if key == "minimum" { low } else { high };
    ["minimum", "maximum"].contains(&key) && range.is_some_and(|value| (value as f64).total_cmp(&bound).is_eq())
}

/// Returns `true` if a restriction only repeats what the old format meant.
fn is_implied_by_format(old: &Value, key: &str, after: &Value) -> bool {
    match (key, old["format"].as_str().unwrap_or_default()) {
        ("pattern", "ipv4") => after == IPV4,
        ("pattern", "uuid") => after == UUID,
        ("pattern", "uri") => after == URI,
        ("anyOf", "ip") => true,
        // The `enum` of an `Option` moves below `allOf`, because API servers compare it with null otherwise.
        ("allOf", _) => only_allowed(after).is_some() && old["enum"].is_array(),
        _ => false,
    }
}

/// Returns `true` if each multiple of the old `multipleOf` is one of the new factor, as after a change from 10 to 5.
///
/// API servers ignore the fraction of the factor for an integer, so only whole factors are compared.
fn is_looser_factor(old: &Value, new: &Value, key: &str) -> bool {
    let factor = |schema: &Value| schema[key].as_f64().filter(|factor| *factor > 0.0 && factor.fract() == 0.0);
    match (factor(old), factor(new)) {
        (Some(before), Some(after)) => key == "multipleOf" && before % after == 0.0,
        _ => false,
    }
}

/// Returns `true` if each stored object that fits the old alternatives fits the new ones as well, as after a new variant
/// of an enum.
///
/// A further alternative of `oneOf` must not fit an old object, which would then fit two.
fn has_looser_alternatives(old: &Value, new: &Value, key: &str) -> bool {
    let (Some(before), Some(after)) = (old[key].as_array(), new[key].as_array()) else { return false };
    match key {
        // `compare_words` compares lists of allowed values.
        "allOf" if only_allowed(&old[key]).is_some() && only_allowed(&new[key]).is_some() => true,
        "allOf" => after.iter().all(|one| before.contains(one)),
        "anyOf" => before.iter().all(|one| after.contains(one)),
        "oneOf" => {
            let added: Vec<&Value> = after.iter().filter(|one| !before.contains(one)).collect();
            before.iter().all(|one| after.contains(one))
                && after.len() == before.len() + added.len()
                && added.iter().all(|one| excludes_stored_objects(old, one))
        }
        _ => false,
    }
}

/// Returns `true` if an alternative requires something that no stored object has: a field that the old schema dropped, or
/// another value than it allowed, such as the tag of a new variant.
fn excludes_stored_objects(old: &Value, alternative: &Value) -> bool {
    let fields = &old["properties"];
    let drops_others = old["x-kubernetes-preserve-unknown-fields"] != true && old["additionalProperties"].is_null();
    let mut required = alternative["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    required.any(|name| match fields.get(name) {
        None => drops_others,
        Some(field) => match (allowed_values(field), allowed_values(&alternative["properties"][name])) {
            (Some(before), Some(after)) => after.iter().all(|value| !before.contains(value)),
            _ => false,
        },
    })
}

/// Returns the `enum` of an `allOf` that contains nothing else.
fn only_allowed(all_of: &Value) -> Option<&Vec<Value>> {
    match all_of.as_array()?.as_slice() {
        [Value::Object(only)] if only.len() == 1 => only.get("enum")?.as_array(),
        _ => None,
    }
}

/// Returns the values that a schema allows, without null.
fn allowed_values(schema: &Value) -> Option<Vec<&Value>> {
    let listed = schema["enum"].as_array().or_else(|| only_allowed(&schema["allOf"]))?;
    Some(listed.iter().filter(|value| !value.is_null()).collect())
}

/// Returns `true` if values of the old format may be invalid in the new one.
///
/// API servers check `int32` and `float` of numbers; `int64` and `double` are all that they store.
fn is_tighter_format(old: &Value, new: &Value) -> bool {
    let format = |schema: &Value| schema["format"].as_str().unwrap_or_default().replace('-', "");
    let is_within = |lower: f64, upper: f64| {
        old["minimum"].as_f64().is_some_and(|bound| bound >= lower)
            && old["maximum"].as_f64().is_some_and(|bound| bound <= upper)
    };
    let (before, after) = (format(old), format(new));
    match (kind_of(new), after.as_str()) {
        _ if before == after => false,
        ("integer" | "an integer or a string", "int32") => !is_within(f64::from(i32::MIN), f64::from(i32::MAX)),
        ("number", "float") => kind_of(old) != "integer" && !is_within(f64::from(f32::MIN), f64::from(f32::MAX)),
        ("string", after) => TEXT_FORMATS.contains(&after),
        _ => false,
    }
}

/// Compares allowed values, CEL rules and defaults.
fn compare_words(old: &Value, new: &Value, path: &str, changes: &mut Vec<Change>) {
    if let Some(after) = allowed_values(new) {
        let gone: Vec<String> = match allowed_values(old) {
            Some(before) => before.iter().filter(|value| !after.contains(value)).map(ToString::to_string).collect(),
            None => vec!["any other value".to_owned()],
        };
        if !gone.is_empty() {
            let values = gone.join(", ");
            let breaks = format!("objects with {values} in {path} are rejected when that part of them is changed");
            changes.push(change(
                "",
                path,
                format!("no longer allows {values}"),
                &breaks,
                "keep the values, or change the objects first",
            ));
        }
    }
    let rules = |schema: &Value| schema["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
    let old_rules = rules(old);
    for rule in rules(new) {
        if !old_rules.iter().any(|old_rule| old_rule["rule"] == rule["rule"]) {
            let what = format!("has a new rule: `{}`", rule["rule"].as_str().unwrap_or_default());
            let breaks = "objects that break it are rejected when that part of them is changed";
            changes.push(change("", path, what, breaks, "look for such objects first"));
        }
    }
    // A first default breaks nothing: stored objects without the field get a value, on which no reader relied.
    if old["default"] != new["default"] && !old["default"].is_null() {
        let display = |value: &Value| if value.is_null() { "none".to_owned() } else { value.to_string() };
        let what = format!("had the default {} and has {}", display(&old["default"]), display(&new["default"]));
        let breaks = format!("objects that were stored without {path} mean something else when they are read");
        changes.push(change("", path, what, &breaks, "keep the default, or write the value into all objects first"));
    }
}

/// Compares the fields of an object: removed ones, new required ones, and the change to or from a map.
fn compare_fields(old: &Value, new: &Value, path: &str, changes: &mut Vec<Change>) {
    let empty = Map::new();
    let properties = |schema: &'_ Value| schema["properties"].as_object().cloned().unwrap_or_default();
    let (before, after) = (properties(old), properties(new));
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for (name, field) in &before {
        let child = below(name);
        if let Some(now) = after.get(name) {
            compare_schemas(field, now, &child, changes);
        } else if let Some(values) = values_of(new) {
            compare_schemas(field, &values, &child, changes);
        } else if new["x-kubernetes-preserve-unknown-fields"] != true {
            let breaks = format!("what objects have in {child} is dropped when they are written again");
            changes.push(change(
                "",
                &child,
                "is gone",
                &breaks,
                "keep the field and stop reading it, or add a version and convert",
            ));
        }
    }
    if let Some(values) = values_of(old) {
        for (name, field) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
            compare_schemas(&values, field, &below(name), changes);
        }
    }
    let is_required = |schema: &Value, name: &str| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|required| required == name))
    };
    for name in new["required"].as_array().unwrap_or(&Vec::new()).iter().filter_map(Value::as_str) {
        let has_default = after.get(name).is_some_and(|field| !field["default"].is_null());
        // No stored object has a field of a new type.
        let is_new = old.as_object().unwrap_or(&empty).is_empty();
        if !is_required(old, name) && !has_default && !is_new {
            let child = below(name);
            let breaks = format!("objects without {child} are rejected when that part of them is changed");
            changes.push(change("", &child, "is required", &breaks, "give it a default, or make it an `Option`"));
        }
    }
}
