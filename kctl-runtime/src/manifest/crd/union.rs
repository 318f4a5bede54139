//! Joins the variants of an enum into one structural schema.
//!
//! Its fields are in `properties` once, and `oneOf` has the restrictions of each variant. kube's derive
//! panics where a field differs between two variants, as the tag of `#[serde(tag = "type")]` does.
//!
//! ```yaml
//! properties:
//!   type: { type: string, enum: [S3, Disk] }
//!   bucket: { type: string }
//!   path: { type: string }
//! required: [type]
//! oneOf:
//! - properties: { type: { enum: [S3] } }
//!   required: [type, bucket]
//! - properties: { type: { enum: [Disk] } }
//!   required: [type, path]
//! ```
//!
//! | Rust | Joined schema |
//! |---|---|
//! | `#[serde(tag = "type")]` | the tag has the values of all variants, and each variant allows one of them |
//! | variants with data, as serde writes them by default | one optional field for each variant, exactly one of them set |
//! | `#[serde(untagged)]` objects | the fields of all, and the fields that each variant requires |
//! | an enum that is flattened into a struct | the same, merged with the fields of the struct |
//!
//! A schema passes [`join_all`] first, then kube's derive, then [`unwrap`]. In between, the restrictions of a variant are
//! sealed, because the derive would take them for fields.

mod merge;

use serde_json::{Map, Value, json};

use self::merge::{Merged, merge};
use super::values::is_null;

/// Keywords that have alternatives.
const LISTS: [&str; 3] = ["oneOf", "anyOf", "allOf"];
/// Schema key that hides a variant's restrictions until everything is joined, so that neither this module nor
/// kube's derive reads them as fields.
const SEALED: &str = "x-kctl-variant";

/// A field that cannot be one field of a structural schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FieldConflict {
    /// Path within the enum, such as `name` or `spec.size`; empty if the variants themselves differ.
    pub(super) field: String,
    /// The difference.
    pub(super) what: String,
    /// `true` if the field is in the enum and in the struct around it.
    pub(super) is_tag_sibling: bool,
}

impl FieldConflict {
    fn new(what: impl Into<String>) -> Self {
        Self { field: String::new(), what: what.into(), is_tag_sibling: false }
    }

    fn below(mut self, field: &str) -> Self {
        let is_item = self.field.starts_with("[]");
        self.field = match self.field.as_str() {
            "" => field.to_owned(),
            below if is_item => format!("{field}{below}"),
            below => format!("{field}.{below}"),
        };
        self
    }

    /// Returns the remedy.
    pub(super) fn help(&self) -> String {
        let name = self.field.rsplit('.').next().unwrap_or_default().trim_end_matches("[]");
        if self.is_tag_sibling {
            "rename one of the two".to_owned()
        } else if name.is_empty() {
            "give the variants fields, so that all of them are objects".to_owned()
        } else {
            format!("give `{name}` one type in all variants, or rename it in one")
        }
    }
}

/// Joins the variants of all enums in a schema without references, except those that kube's derive joins.
///
/// # Errors
/// [`FieldConflict`] if a field of two variants cannot be one field.
pub(super) fn join_all(schema: &mut Value) -> Result<(), FieldConflict> {
    descend(schema)?;
    open(schema);
    Ok(())
}

/// Returns why the variants of one schema cannot be joined, apart from problems inside of their fields.
pub(super) fn conflict(schema: &mut Value) -> Option<FieldConflict> {
    let schema = schema.as_object_mut()?;
    fields_below(schema).ok()?;
    if needs_joining(schema) { join(schema).err() } else { None }
}

/// Joins enums below a schema, innermost first.
fn descend(schema: &mut Value) -> Result<(), FieldConflict> {
    let Some(schema) = schema.as_object_mut() else { return Ok(()) };
    if option_of(schema).is_some() {
        return schema["anyOf"].as_array_mut().into_iter().flatten().try_for_each(descend);
    }
    fields_below(schema)?;
    if needs_joining(schema) { join(schema) } else { Ok(()) }
}

/// Joins enums in the fields of a schema and of its variants, but not the variants themselves.
fn fields_below(schema: &mut Map<String, Value>) -> Result<(), FieldConflict> {
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for (name, field) in fields {
            descend(field).map_err(|conflict| conflict.below(name))?;
        }
    }
    for key in ["items", "additionalProperties"] {
        schema.get_mut(key).map_or(Ok(()), descend)?;
    }
    for key in LISTS {
        for variant in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            variant.as_object_mut().map_or(Ok(()), fields_below)?;
        }
    }
    Ok(())
}

/// Returns the first field that differs between variants, about which kube's derive panics.
pub(super) fn difference(schema: &Value) -> Option<FieldConflict> {
    let field = conflicting_field(schema.as_object()?, &mut Map::new())?;
    Some(FieldConflict::new("it is not the same in all variants").below(&field))
}

/// Returns the schema of an `Option`'s value, as schemars writes it.
fn option_of(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    match schema.get("anyOf").and_then(Value::as_array)?.as_slice() {
        [Value::Object(value), null] if is_null(null) => Some(value),
        _ => None,
    }
}

/// Returns `true` if kube's derive would panic, or leave fields where API servers reject them.
fn needs_joining(schema: &Map<String, Value>) -> bool {
    let has_fields = |one: &Value| one["properties"].is_object() || LISTS.iter().any(|key| one[*key].is_array());
    let is_split = schema.get("allOf").and_then(Value::as_array).is_some_and(|all| all.iter().any(has_fields));
    is_split || conflicting_field(schema, &mut Map::new()).is_some()
}

/// Returns a field for which two variants have different schemas.
fn conflicting_field(schema: &Map<String, Value>, joined: &mut Map<String, Value>) -> Option<String> {
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if joined.get(name).is_some_and(|joined| joined != field) {
            return Some(name.clone());
        }
        joined.insert(name.clone(), field.clone());
    }
    let mut variants = LISTS.iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    variants.find_map(|variant| conflicting_field(variant.as_object()?, joined))
}

/// A field as one variant describes it, or as the schema around the variants does.
struct Source {
    variant: Option<(&'static str, usize)>,
    schema: Value,
}

/// Moves the fields of all variants to the schema around them.
///
/// Each field is merged from all variants that have it. A variant keeps only what differs from the merged field, and
/// its list of required fields. A variant that is null alone makes the whole schema nullable.
///
/// # Errors
/// [`FieldConflict`] if a field has different types in two variants.
fn join(schema: &mut Map<String, Value>) -> Result<(), FieldConflict> {
    let mut fields: Vec<(String, Vec<Source>)> = Vec::new();
    let mut add = |name: String, source: Source| match fields.iter_mut().find(|(existing, _)| *existing == name) {
        Some((_, all)) => all.push(source),
        None => fields.push((name, vec![source])),
    };
    for (name, field) in fields_of(schema) {
        add(name, Source { variant: None, schema: field });
    }
    let mut comments = Vec::new();
    for key in LISTS {
        let Some(Value::Array(variants)) = schema.get_mut(key) else { continue };
        let n_before = variants.len();
        variants.retain(|variant| !is_null(variant));
        let is_nullable = variants.len() < n_before;
        for (index, variant) in variants.iter_mut().enumerate() {
            let Some(variant) = variant.as_object_mut() else { continue };
            let (of_variant, comment) = take_fields(variant, key)?;
            for (name, field) in of_variant {
                add(name, Source { variant: Some((key, index)), schema: field });
            }
            comments.extend(comment.map(|text| ((key, index), text)));
        }
        if is_nullable {
            schema.insert("nullable".into(), true.into());
        }
    }
    if fields.is_empty() {
        return Ok(());
    }
    let mut joined = Map::new();
    for (name, sources) in fields {
        let (mut field, rests) = merge_sources(&sources).map_err(|conflict| conflict.below(&name))?;
        describe_tag(&mut field, &sources, &comments);
        joined.insert(name.clone(), field);
        for (source, rest) in sources.iter().zip(rests) {
            let variant = source.variant.and_then(|(key, index)| schema.get_mut(key)?.get_mut(index)?.as_object_mut());
            if let (Some(variant), Some(rest)) = (variant, rest) {
                let restricted = variant.entry("properties").or_insert_with(|| json!({}));
                restricted[&name] = rest;
            }
        }
    }
    for key in LISTS {
        schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(hide_restrictions);
    }
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), joined.into());
    Ok(())
}

fn fields_of(schema: &mut Map<String, Value>) -> Map<String, Value> {
    match schema.remove("properties") {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Removes the fields of a variant, and its description. The rest only restricts.
///
/// The description goes to the variant's field if it has exactly one, and to the tag otherwise.
///
/// # Errors
/// [`FieldConflict`] if the variant is not an object: a number and an object have no common type.
fn take_fields(
    variant: &mut Map<String, Value>,
    key: &str,
) -> Result<(Map<String, Value>, Option<Value>), FieldConflict> {
    join(variant)?;
    if let Some(name) = variant.remove("type").filter(|name| name != "object") {
        return Err(FieldConflict::new(format!("a variant is of type {}", text_of(&name))));
    }
    variant.remove("title");
    if variant.get("additionalProperties").is_some_and(Value::is_boolean) {
        variant.remove("additionalProperties");
    }
    let comment = variant.remove("description");
    let mut fields = fields_of(variant);
    // The description of a variant moves to its field, as in kube's derive.
    if let (Some(text), 1, "oneOf") = (&comment, fields.len(), key) {
        fields.values_mut().filter_map(Value::as_object_mut).for_each(|field| {
            field.insert("description".into(), text.clone());
        });
    }
    Ok((fields, comment))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// Hides the restrictions of a variant.
fn hide_restrictions(variant: &mut Value) {
    if variant["properties"].is_object() {
        *variant = json!({ SEALED: variant.take() });
    }
}

/// Writes sealed restrictions below an `allOf`, which kube's derive leaves alone.
fn open(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(open);
            if let Some(sealed) = fields.remove(SEALED) {
                fields.insert("allOf".into(), json!([sealed]));
            }
        }
        Value::Array(all) => all.iter_mut().for_each(open),
        _ => {}
    }
}

/// Removes that `allOf` again after the derive.
pub(super) fn unwrap(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(unwrap);
            for key in ["oneOf", "anyOf"] {
                for variant in fields.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                    let inner =
                        variant.as_object_mut().filter(|only| only.len() == 1).and_then(|only| only.get_mut("allOf"));
                    if let Some(Value::Array(all)) = inner
                        && let [inner] = all.as_mut_slice()
                    {
                        *variant = inner.take();
                    }
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(unwrap),
        _ => {}
    }
}

/// Describes a tag by the doc comments of the variants, one line per value: `` `S3`: A bucket. ``
///
/// A structural schema has no place for the description of a variant, so `kubectl explain` would not show it.
fn describe_tag(field: &mut Value, sources: &[Source], comments: &[((&'static str, usize), Value)]) {
    if field.get("description").is_some() {
        return;
    }
    let mut lines = Vec::new();
    for source in sources {
        let Some(value) = single_tag_value(&source.schema) else { return };
        let comment =
            comments.iter().find(|(variant, _)| Some(*variant) == source.variant).and_then(|(_, text)| text.as_str());
        if let Some(comment) = comment {
            lines.push(format!("`{}`: {comment}", text_of(value)));
        }
    }
    if !lines.is_empty() {
        field["description"] = lines.join("\n\n").into();
    }
}

/// Returns the single value of a tag in a variant.
fn single_tag_value(schema: &Value) -> Option<&Value> {
    match schema["enum"].as_array().map(Vec::as_slice) {
        Some([value]) => Some(value),
        _ => schema.get("const"),
    }
}

/// Merges a field of several variants. In a struct with a flattened enum the field has to be the same everywhere.
fn merge_sources(sources: &[Source]) -> Result<Merged, FieldConflict> {
    let schemas: Vec<Value> = sources.iter().map(|source| source.schema.clone()).collect();
    let is_tag_sibling = sources.iter().any(|source| source.variant.is_none());
    if is_tag_sibling && schemas.iter().any(|schema| *schema != schemas[0]) {
        return Err(FieldConflict {
            is_tag_sibling: true,
            ..FieldConflict::new("it is also a field next to the enum")
        });
    }
    merge(schemas)
}
