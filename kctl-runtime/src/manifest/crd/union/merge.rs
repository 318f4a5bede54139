//! Merges the schemas of one field in several variants into one, and returns what remains for each variant.
//!
//! The merged schema accepts every value that one of the variants accepts. The remains restrict it again to what the
//! single variant accepts, so nothing is lost:
//!
//! | Keyword | Merged schema | Remains of a variant |
//! |---|---|---|
//! | type | must be equal | – |
//! | bounds, pattern, enum, format | if all have the same one | otherwise the variant's |
//! | fields of objects, items of lists | merged recursively | their remains |
//! | required | fields that all variants require | the others |
//! | description | from the first variant that has one | – |
//! | default | if all have the same one | dropped, because it is filled in before the variant is known |
//! | nullable | if all are | dropped: kctl leaves `None` out of what it writes |

use serde_json::{Map, Value, json};

use super::{FieldConflict, LISTS, fields_of, join, option_of, text_of};

/// Keywords that only restrict a value, so they may differ between variants. The keywords of one row belong together.
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
/// Descriptive keywords. The field gets the keywords of the first variant that has some.
const WORDS: [&str; 5] = ["description", "title", "example", "examples", "externalDocs"];

/// A merged field, and the remaining restrictions of each schema that was merged into it.
pub(super) type Merged = (Value, Vec<Option<Value>>);

/// Returns one schema that accepts what any of several does, and the remaining restrictions of each.
///
/// # Errors
/// [`FieldConflict`] if they have different types, or a keyword that can't be a restriction differs.
pub(super) fn merge(mut schemas: Vec<Value>) -> Result<Merged, FieldConflict> {
    debug_assert!(!schemas.is_empty(), "no variant has the field");
    if schemas.iter().all(|schema| *schema == schemas[0]) {
        let rests = vec![None; schemas.len()];
        return Ok((schemas.swap_remove(0), rests));
    }
    let mut merge = Merge::from_schemas(schemas)?;
    merge.merge_fields()?;
    merge.merge_items()?;
    merge.widen_number_formats();
    for keys in RESTRICTIONS {
        merge.merge_restriction(keys);
    }
    merge.merge_words();
    merge.merge_default();
    merge.finish()
}

/// The merge of several schemas. Each step moves keywords out of all of them.
struct Merge {
    /// The schemas, with the keywords that are still to be merged.
    all: Vec<Map<String, Value>>,
    merged: Map<String, Value>,
    /// The remaining keywords of each schema, in the same order.
    rests: Vec<Map<String, Value>>,
}

/// The steps, in their order.
impl Merge {
    /// Begins with the keywords that must be equal: `type`, and `nullable` if all variants have it.
    ///
    /// A value that may be `null` in only some variants loses nothing, because `None` is left out when it is serialized.
    fn from_schemas(schemas: Vec<Value>) -> Result<Self, FieldConflict> {
        let mut all = Vec::new();
        let mut n_nullable = 0;
        for schema in schemas {
            let Value::Object(schema) = schema else { return Err(FieldConflict::new("a variant takes any value")) };
            let (mut schema, is_nullable) = without_null(schema);
            n_nullable += usize::from(is_nullable);
            if let Some(value) = schema.remove("const") {
                schema.insert("enum".into(), json!([value]));
            }
            if LISTS.iter().any(|key| schema.get(*key).and_then(Value::as_array).into_iter().flatten().any(has_fields))
            {
                join(&mut schema)?;
            }
            all.push(schema);
        }
        let mut merge = Self { rests: vec![Map::new(); all.len()], all, merged: Map::new() };
        merge.merge_equal_keyword("type", |values| {
            format!("it is of type {} in another", values.join(" in one variant and of type "))
        })?;
        if n_nullable == merge.all.len() {
            merge.merged.insert("nullable".into(), true.into());
        }
        Ok(merge)
    }

    /// Moves a keyword that must be equal in all schemas.
    ///
    /// # Errors
    /// [`FieldConflict`] with the message that `differ` returns for the different values.
    fn merge_equal_keyword(&mut self, key: &str, differ: impl Fn(&[String]) -> String) -> Result<(), FieldConflict> {
        let values: Vec<Option<Value>> = self.all.iter_mut().map(|schema| schema.remove(key)).collect();
        if values.iter().any(|value| *value != values[0]) {
            let mut shown: Vec<String> =
                values.iter().map(|value| value.as_ref().map_or_else(|| "any".to_owned(), text_of)).collect();
            shown.dedup();
            return Err(FieldConflict::new(differ(&shown)));
        }
        self.merged.extend(values[0].clone().map(|value| (key.to_owned(), value)));
        Ok(())
    }

    /// Merges the fields of objects, and which of them are required.
    fn merge_fields(&mut self) -> Result<(), FieldConflict> {
        let mut names: Vec<String> = Vec::new();
        let fields: Vec<Map<String, Value>> = self.all.iter_mut().map(fields_of).collect();
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
                    let restricted = self.rests[index].entry("properties").or_insert_with(|| json!({}));
                    restricted[&name] = left;
                }
            }
        }
        if !joined.is_empty() {
            self.merged.insert("properties".into(), joined.into());
            // An API server rejects `properties` together with `additionalProperties`.
            for schema in &mut self.all {
                if schema.get("additionalProperties").is_some_and(|more| more == false) {
                    schema.remove("additionalProperties");
                }
            }
        }
        self.merge_required();
        Ok(())
    }

    /// Requires a field in the merged schema if all require it. The others require it in their rest.
    fn merge_required(&mut self) {
        let required: Vec<Vec<Value>> = self
            .all
            .iter_mut()
            .map(|schema| schema.remove("required").and_then(|all| all.as_array().cloned()).unwrap_or_default())
            .collect();
        let common: Vec<Value> =
            required[0].iter().filter(|name| required.iter().all(|all| all.contains(name))).cloned().collect();
        for (rest, names) in self.rests.iter_mut().zip(required) {
            let own: Vec<Value> = names.into_iter().filter(|name| !common.contains(name)).collect();
            if !own.is_empty() {
                rest.insert("required".into(), own.into());
            }
        }
        if !common.is_empty() {
            self.merged.insert("required".into(), common.into());
        }
    }

    /// Merges the items of lists. If one of the lists does not describe its items, none is merged.
    fn merge_items(&mut self) -> Result<(), FieldConflict> {
        let items: Option<Vec<Value>> = self.all.iter().map(|schema| schema.get("items").cloned()).collect();
        let Some(items) = items else { return Ok(()) };
        for schema in &mut self.all {
            schema.remove("items");
        }
        let (items, left) = merge(items).map_err(|conflict| conflict.below("[]"))?;
        self.merged.insert("items".into(), items);
        for (rest, left) in self.rests.iter_mut().zip(left) {
            rest.extend(left.map(|left| ("items".to_owned(), left)));
        }
        Ok(())
    }

    /// Gives numbers of several sizes the format of the largest.
    ///
    /// API servers do not know the format of a number without a type, so the smaller ones get bounds instead.
    fn widen_number_formats(&mut self) {
        let format = |schema: &Map<String, Value>| schema.get("format").map(text_of);
        for (small, large) in [("int32", "int64"), ("float", "double")] {
            let n_small = self.all.iter().filter(|schema| format(schema).as_deref() == Some(small)).count();
            if n_small == 0 || n_small == self.all.len() {
                continue;
            }
            for schema in &mut self.all {
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

    /// Moves a restriction to the merged schema if all have it, and leaves it to each of them otherwise.
    ///
    /// Different enums also restrict the merged schema, to the values of all of them.
    fn merge_restriction(&mut self, keys: &[&str]) {
        let is_same = |key: &&str| self.all.iter().all(|schema| schema.get(*key) == self.all[0].get(*key));
        let into_merged = keys.iter().all(is_same);
        if keys == ["enum"] && !into_merged {
            let lists: Option<Vec<&Vec<Value>>> =
                self.all.iter().map(|schema| schema.get("enum")?.as_array()).collect();
            let mut values: Vec<Value> = Vec::new();
            for value in lists.into_iter().flatten().flatten() {
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            if !values.is_empty() {
                self.merged.insert("enum".into(), values.into());
            }
        }
        for (schema, rest) in self.all.iter_mut().zip(&mut self.rests) {
            let into = if into_merged { &mut self.merged } else { rest };
            into.extend(keys.iter().filter_map(|key| Some(((*key).to_owned(), schema.remove(*key)?))));
        }
    }

    /// Moves the descriptive keywords of the first schema that has them.
    fn merge_words(&mut self) {
        for key in WORDS {
            let found: Vec<Value> = self.all.iter_mut().filter_map(|schema| schema.remove(key)).collect();
            self.merged.extend(found.into_iter().next().map(|text| (key.to_owned(), text)));
        }
    }

    /// Moves a default that all variants share. API servers apply defaults before they know the variant, so others are
    /// dropped.
    fn merge_default(&mut self) {
        let defaults: Vec<Option<Value>> = self.all.iter_mut().map(|schema| schema.remove("default")).collect();
        if defaults.iter().all(|one| *one == defaults[0]) {
            self.merged.extend(defaults[0].clone().map(|default| ("default".to_owned(), default)));
        }
    }

    /// Moves the keywords without a rule, which must be equal.
    fn finish(mut self) -> Result<Merged, FieldConflict> {
        let mut left: Vec<String> = self.all.iter().flat_map(|schema| schema.keys().cloned()).collect();
        left.dedup();
        for key in left {
            self.merge_equal_keyword(&key, |_| format!("its `{key}` is not the same in all variants"))?;
        }
        debug_assert!(self.all.iter().all(Map::is_empty), "keywords were not merged: {:?}", self.all);
        debug_assert_eq!(self.all.len(), self.rests.len(), "one rest for each schema");
        let rests = self.rests.into_iter().map(|rest| (!rest.is_empty()).then_some(Value::Object(rest))).collect();
        Ok((Value::Object(self.merged), rests))
    }
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
