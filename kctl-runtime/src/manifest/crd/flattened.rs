//! Finds fields that a struct shares with its `#[serde(flatten)]` parts: serde keeps one of their values, and schemars
//! one of their schemas.
//!
//! A macro does not know the fields of another struct. So `#[schema]` names the type of each part, and the transform
//! compares their properties when the schema is generated. [`variants`](super::variants) reports what it finds. Fields
//! of a flattened enum are compared by [`union`](super::union).

use std::collections::{BTreeMap, btree_map::Entry};

use schemars::{JsonSchema, Schema, transform::Transform};
use serde_json::{Map, Value};

use super::{owner, schema_of};

/// Schema key with one sentence for each field that is lost. A CRD with it is not generated.
pub(super) const LOST: &str = "x-kctl-lost-fields";

/// A schema transform for a struct with `#[serde(flatten)]` fields.
#[derive(Debug)]
pub struct Flattened {
    /// JSON names of the fields, each with its owner as messages name it.
    owners: BTreeMap<String, String>,
    /// A sentence for each name with two owners.
    lost: Vec<String>,
}

impl Flattened {
    /// Starts with the JSON names of the struct's other fields.
    #[must_use]
    pub fn new(names: &[&str]) -> Self {
        let owners = names.iter().map(|name| ((*name).to_owned(), "the struct".to_owned())).collect();
        Self { owners, lost: Vec::new() }
    }

    /// Adds the fields of a part, which has this type and is flattened in `field`.
    #[must_use]
    pub fn with<T: JsonSchema>(mut self, field: &str) -> Self {
        let root = schema_of::<T>();
        let (name, schema) = owner::follow(&root, &root);
        let name = name.or_else(|| root["title"].as_str()).unwrap_or_default();
        let part = format!("the flattened `{field}: {name}`");
        for property in schema["properties"].as_object().into_iter().flat_map(Map::keys) {
            match self.owners.entry(property.clone()) {
                Entry::Vacant(free) => {
                    free.insert(part.clone());
                }
                Entry::Occupied(first) => self.lost.push(format!(
                    "`{property}` is a field of {} and of {part}, and one of the two is lost",
                    first.get()
                )),
            }
        }
        self
    }
}

impl Transform for Flattened {
    fn transform(&mut self, schema: &mut Schema) {
        if self.lost.is_empty() {
            return;
        }
        // A part may have parts, too: schemars copies its key.
        let all = schema.ensure_object().entry(LOST).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(all) = all {
            all.extend(self.lost.drain(..).map(Value::String));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is read")]
    struct Net {
        port: u16,
        host: String,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is read")]
    struct Disk {
        host: String,
        size: u16,
    }

    /// Returns the sentences in the schema.
    fn lost(mut flattened: Flattened) -> Vec<String> {
        let mut schema = Schema::default();
        flattened.transform(&mut schema);
        let all = schema.get(LOST).and_then(Value::as_array).cloned().unwrap_or_default();
        all.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    }

    #[test]
    fn field_names_with_two_owners_are_found() {
        let found = lost(Flattened::new(&["name", "port"]).with::<Option<Net>>("net").with::<Disk>("disk"));
        assert_eq!(
            found,
            [
                "`port` is a field of the struct and of the flattened `net: Net`, and one of the two is lost",
                "`host` is a field of the flattened `net: Net` and of the flattened `disk: Disk`, and one of the two is lost",
            ]
        );
        assert!(lost(Flattened::new(&["name"]).with::<Net>("net").with::<BTreeMap<String, String>>("rest")).is_empty());
    }
}
