//! Merges the schemas of one field in several variants into one, and returns what remains for each variant.
//!
//! The merged schema accepts every value that one of the variants accepts. The remains restrict it again to what the
//! single variant accepts, so nothing is lost:
//!
//! | Keyword | Merged schema | Remains of a variant |
//! |---|---|---|
//! | type | must be equal | – |
//! | bounds, pattern, enum, format | if all have the same one | otherwise those of the variant |
//! | fields of objects, items of lists | merged in turn | their remains |
//! | required | fields that all variants require | the others |
//! | description | that of the first variant with one | – |
//! | default | if all have the same one | dropped, because it is filled in before the variant is known |
//! | nullable | if all are | dropped: kctl leaves `None` out of what it writes |

use serde_json::{Map, Value, json};

use super::{FieldConflict, LISTS, fields_of, join, option_of, text_of};

/// Keywords that only restrict a value, so they may differ between variants. Those of one row belong together.
const RESTRICTIONS: [&[&str]; 16] = [
    &["minimum", "exclusiveMinimum"],
    &["maximum", "exclusiveMaximum"],
    &["enum"],
    &["format"],
    &["multipleOf"],
    &["minLength"],
    &["maxLength"],
    &["pattern"],
    &["minItems"],
    &["maxItems"],
    &["minProperties"],
    &["maxProperties"],
    &["oneOf"],
    &["anyOf"],
    &["allOf"],
    &["not"],
];
/// Descriptive keywords. The field gets those of the first variant that has some.
const WORDS: [&str; 5] = ["description", "title", "example", "examples", "externalDocs"];

/// A merged field, and the remaining restrictions of each schema that was merged into it.
pub(super) type Merged = (Value, Vec<Option<Value>>);

/// Returns one schema that accepts what any of several does, and the remaining restrictions of each.
///
/// # Errors
/// [`FieldConflict`] if they have different types, or a keyword that can't be a restriction differs.
pub(super) fn merge(mut schemas: Vec<Value>) -> Result<Merged, FieldConflict> {
    if schemas.iter().all(|schema| *schema == schemas[0]) {
        let rests = vec![None; schemas.len()];
        return Ok((schemas.swap_remove(0), rests));
    }
    let mut all = Vec::new();
    let mut n_nullable = 0;
    for schema in schemas {
        let Value::Object(schema) = schema else { return Err(FieldConflict::new("a variant takes any value")) };
        let (mut schema, is_nullable) = without_null(schema);
        n_nullable += usize::from(is_nullable);
        if let Some(value) = schema.remove("const") {
            schema.insert("enum".into(), json!([value]));
        }
        if LISTS.iter().any(|key| schema.get(*key).and_then(Value::as_array).into_iter().flatten().any(has_fields)) {
            join(&mut schema)?;
        }
        all.push(schema);
    }
    let mut merged = Map::new();
    merge_equal_keywords(&mut all, &mut merged, &["type"], |values| {
        format!("it is of type {} in another", values.join(" in one variant and of type "))
    })?;
    let mut rests = vec![Map::new(); all.len()];
    // Nullable only if all variants are. The others lose nothing, because `None` is left out when they are serialized.
    if n_nullable == all.len() {
        merged.insert("nullable".into(), true.into());
    }
    merge_fields(&mut all, &mut merged, &mut rests)?;
    merge_items(&mut all, &mut merged, &mut rests)?;
    widen_number_formats(&mut all);
    for keys in RESTRICTIONS {
        merge_restriction(keys, &mut all, &mut merged, &mut rests);
    }
    for key in WORDS {
        let found = all.iter_mut().find_map(|schema| schema.remove(key));
        merged.extend(found.map(|text| (key.to_owned(), text)));
        for schema in &mut all {
            schema.remove(key);
        }
    }
    // API servers apply defaults before they know the variant, so only a default that all variants share is kept.
    let defaults: Vec<Option<Value>> = all.iter_mut().map(|schema| schema.remove("default")).collect();
    if let Some(default) = defaults[0].clone().filter(|first| defaults.iter().all(|one| one.as_ref() == Some(first))) {
        merged.insert("default".into(), default);
    }
    let mut left: Vec<String> = all.iter().flat_map(|schema| schema.keys().cloned()).collect();
    left.dedup();
    for key in left {
        merge_equal_keywords(&mut all, &mut merged, &[&key], |_| {
            format!("its `{key}` is not the same in all variants")
        })?;
    }
    let rests = rests.into_iter().map(|rest| (!rest.is_empty()).then_some(Value::Object(rest))).collect();
    Ok((Value::Object(merged), rests))
}

fn has_fields(variant: &Value) -> bool {
    let below = || LISTS.iter().filter_map(|key| variant[*key].as_array()).flatten().any(has_fields);
    variant["properties"].is_object() || variant["type"] == "object" || below()
}

/// Returns the schema of an `Option`'s value, and whether it was an `Option`.
fn without_null(mut schema: Map<String, Value>) -> (Map<String, Value>, bool) {
    if let Some(value) = option_of(&schema).cloned() {
        schema.remove("anyOf");
        for (key, value) in value {
            schema.entry(key).or_insert(value);
        }
        return (schema, true);
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        let n_before = types.len();
        types.retain(|name| name != "null");
        let is_nullable = types.len() < n_before;
        if let [name] = types.as_slice() {
            let name = name.clone();
            schema.insert("type".into(), name);
        }
        return (schema, is_nullable);
    }
    let is_nullable = schema.remove("nullable").is_some_and(|nullable| nullable == true);
    (schema, is_nullable)
}

/// Moves keywords that must be equal in all schemas.
///
/// # Errors
/// [`FieldConflict`] with the message that `differ` returns for the different values.
fn merge_equal_keywords(
    all: &mut [Map<String, Value>],
    merged: &mut Map<String, Value>,
    keys: &[&str],
    differ: impl Fn(&[String]) -> String,
) -> Result<(), FieldConflict> {
    for key in keys {
        let values: Vec<Option<Value>> = all.iter_mut().map(|schema| schema.remove(*key)).collect();
        if values.iter().any(|value| *value != values[0]) {
            let mut shown: Vec<String> =
                values.iter().map(|value| value.as_ref().map_or_else(|| "any".to_owned(), text_of)).collect();
            shown.dedup();
            return Err(FieldConflict::new(differ(&shown)));
        }
        merged.extend(values[0].clone().map(|value| ((*key).to_owned(), value)));
    }
    Ok(())
}

/// Merges the fields of objects.
///
/// A field is required in the merged schema if all require it; the others require it in their rest.
fn merge_fields(
    all: &mut [Map<String, Value>],
    merged: &mut Map<String, Value>,
    rests: &mut [Map<String, Value>],
) -> Result<(), FieldConflict> {
    let mut names: Vec<String> = Vec::new();
    let fields: Vec<Map<String, Value>> = all.iter_mut().map(fields_of).collect();
    for name in fields.iter().flat_map(Map::keys) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let mut joined = Map::new();
    for name in names {
        let with_field: Vec<usize> = (0..fields.len()).filter(|index| fields[*index].contains_key(&name)).collect();
        let schemas = with_field.iter().map(|index| fields[*index][&name].clone()).collect();
        let (field, left) = merge(schemas).map_err(|conflict| conflict.below(&name))?;
        joined.insert(name.clone(), field);
        for (index, left) in with_field.into_iter().zip(left) {
            if let Some(left) = left {
                let restricted = rests[index].entry("properties").or_insert_with(|| json!({}));
                restricted[&name] = left;
            }
        }
    }
    if !joined.is_empty() {
        merged.insert("properties".into(), joined.into());
        // An API server rejects `properties` beside `additionalProperties`.
        for schema in all.iter_mut() {
            if schema.get("additionalProperties").is_some_and(|more| more == false) {
                schema.remove("additionalProperties");
            }
        }
    }
    let required: Vec<Vec<Value>> = all
        .iter_mut()
        .map(|schema| schema.remove("required").and_then(|all| all.as_array().cloned()).unwrap_or_default())
        .collect();
    let common: Vec<Value> =
        required[0].iter().filter(|name| required.iter().all(|all| all.contains(name))).cloned().collect();
    for (rest, names) in rests.iter_mut().zip(required) {
        let own: Vec<Value> = names.into_iter().filter(|name| !common.contains(name)).collect();
        if !own.is_empty() {
            rest.insert("required".into(), own.into());
        }
    }
    if !common.is_empty() {
        merged.insert("required".into(), common.into());
    }
    Ok(())
}

/// Gives numbers of several sizes the format of the largest.
///
/// API servers do not know the format of a number without a type, so the smaller ones get bounds instead.
fn widen_number_formats(all: &mut [Map<String, Value>]) {
    for (small, large) in [("int32", "int64"), ("float", "double")] {
        let format = |schema: &Map<String, Value>| schema.get("format").map(text_of);
        let is_mixed = all.iter().any(|schema| format(schema).as_deref() == Some(small))
            && all.iter().any(|schema| format(schema).as_deref() != Some(small));
        if !is_mixed {
            continue;
        }
        for schema in all.iter_mut() {
            if format(schema).as_deref() == Some(small) {
                let (low, high) = if small == "int32" {
                    (json!(i32::MIN), json!(i32::MAX))
                } else {
                    (json!(f32::MIN), json!(f32::MAX))
                };
                schema.entry("minimum").or_insert(low);
                schema.entry("maximum").or_insert(high);
            }
            schema.insert("format".into(), large.into());
        }
    }
}

/// Merges the items of lists. If one of the lists does not describe its items, none is merged.
fn merge_items(
    all: &mut [Map<String, Value>],
    merged: &mut Map<String, Value>,
    rests: &mut [Map<String, Value>],
) -> Result<(), FieldConflict> {
    let items: Option<Vec<Value>> = all.iter().map(|schema| schema.get("items").cloned()).collect();
    let Some(items) = items else { return Ok(()) };
    for schema in all.iter_mut() {
        schema.remove("items");
    }
    let (items, left) = merge(items).map_err(|conflict| conflict.below("[]"))?;
    merged.insert("items".into(), items);
    for (rest, left) in rests.iter_mut().zip(left) {
        rest.extend(left.map(|left| ("items".to_owned(), left)));
    }
    Ok(())
}

/// Moves a restriction to the merged schema if all have it, and leaves it to each of them otherwise.
fn merge_restriction(
    keys: &[&str],
    all: &mut [Map<String, Value>],
    merged: &mut Map<String, Value>,
    rests: &mut [Map<String, Value>],
) {
    let is_same = |key: &&str| all.iter().all(|schema| schema.get(*key) == all[0].get(*key));
    let into_merged = keys.iter().all(is_same);
    if keys == ["enum"] && !into_merged {
        let lists: Option<Vec<&Vec<Value>>> = all.iter().map(|schema| schema.get("enum")?.as_array()).collect();
        let mut values: Vec<Value> = Vec::new();
        for value in lists.into_iter().flatten().flatten() {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        if !values.is_empty() {
            merged.insert("enum".into(), values.into());
        }
    }
    for (schema, rest) in all.iter_mut().zip(rests) {
        for key in keys {
            let into = if into_merged { &mut *merged } else { &mut *rest };
            into.extend(schema.remove(*key).map(|value| ((*key).to_owned(), value)));
        }
    }
}
