//! What an expression may name: variables, and the fields of types that are made for one policy or one schema.
//!
//! Upstream: `SchemaDeclType` in `pkg/cel/common/schemas.go` and `MaybeAssignTypeName` in `pkg/cel/types.go` of apiserver.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::{
    Type,
    names::{escape, has_name, is_reserved},
};

/// The name of the type of `self`, after which upstream writes the time.
const SELF: &str = "selfType0";

/// The variables and types that an expression can use.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: HashMap<String, Type>,
    /// Fields of types of its own.
    own: HashMap<String, BTreeMap<String, Type>>,
    /// Whether expressions make objects (`Object{…}`).
    makes_objects: bool,
    /// Whether expressions give names to values (`cel.bind`).
    binds: bool,
}

impl Environment {
    /// Returns the environment of a CRD validation rule: `self` and `oldSelf` with the types of the schema. `is_whole` is for whole objects
    /// and embedded resources, which have metadata. `None` if API servers know no type for the schema.
    #[must_use]
    pub fn of_rule(schema: &Value, is_whole: bool, is_old_optional: bool) -> Option<Self> {
        let mut environment = Self::default();
        let is_whole = is_whole || schema["x-kubernetes-embedded-resource"] == true;
        let own = environment.declare(schema, is_whole, SELF)?;
        let old = if is_old_optional { Type::optional(own.clone()) } else { own.clone() };
        Some(environment.with("self", own).with("oldSelf", old))
    }

    /// Whether the values of a schema have a type in expressions.
    #[must_use]
    pub fn has_type(schema: &Value) -> bool {
        if schema["x-kubernetes-int-or-string"] == true {
            return true;
        }
        match schema["type"].as_str() {
            Some("array") => Self::has_type(&schema["items"]),
            Some("object") if schema["additionalProperties"].is_object() => {
                Self::has_type(&schema["additionalProperties"])
            }
            Some("object" | "string" | "boolean" | "number" | "integer") => true,
            _ => false,
        }
    }

    /// One more variable.
    #[must_use]
    pub fn with(mut self, name: &str, is: Type) -> Self {
        self.variables.insert(name.into(), is);
        self
    }

    /// A variable whose fields are those that it is given.
    #[must_use]
    pub fn with_object(mut self, name: &str, is: &str) -> Self {
        self.own.entry(is.into()).or_default();
        self.with(name, Type::Object(is.into()))
    }

    /// Without a variable.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.variables.remove(name);
        self
    }

    /// Gives a type one more field.
    pub fn add_field(&mut self, of: &str, name: &str, is: Type) {
        self.own.entry(of.into()).or_default().insert(name.into(), is);
    }

    /// Lets expressions make objects.
    #[must_use]
    pub fn making_objects(mut self) -> Self {
        self.makes_objects = true;
        self
    }

    /// Returns the environment of device selectors: `device` (`dynamic-resource-allocation/cel/compile.go`).
    #[must_use]
    pub fn of_device() -> Self {
        Self { binds: true, ..Self::default() }.with("device", Type::Object("kubernetes.DRADevice".into()))
    }

    /// Returns the field names of an object type, sorted.
    pub fn fields(&self, of: &str) -> impl Iterator<Item = &str> {
        self.own.get(of).into_iter().flat_map(|fields| fields.keys().map(String::as_str))
    }

    pub(crate) fn variable(&self, name: &str) -> Option<Type> {
        self.variables.get(name).cloned()
    }

    /// Whether the fields of a type are declared here.
    pub(crate) fn declares(&self, of: &str) -> bool {
        self.own.contains_key(of)
    }

    /// The type of a field of a type that is declared here.
    pub(crate) fn field(&self, of: &str, name: &str) -> Option<Type> {
        let fields = self.own.get(of)?;
        // A field may be named by a word that no variable can have.
        fields.get(name).or_else(|| fields.get(&escape(name)).filter(|_| is_reserved(name))).cloned()
    }

    pub(crate) fn makes_objects(&self) -> bool {
        self.makes_objects
    }

    pub(crate) fn binds(&self) -> bool {
        self.binds
    }

    pub(crate) fn is_made(&self, name: &str) -> bool {
        let root = name.split('.').next().unwrap_or_default();
        self.makes_objects && (root == "Object" || name == "JSONPatch")
    }

    /// The type of the values of a schema, with the fields of all types in it.
    fn declare(&mut self, schema: &Value, is_whole: bool, name: &str) -> Option<Type> {
        if schema["x-kubernetes-int-or-string"] == true {
            return Some(Type::Dyn);
        }
        Some(match schema["type"].as_str()? {
            "array" => Type::list(self.below(&schema["items"], &format!("{name}.@idx"))?),
            "object" if schema["additionalProperties"].is_object() => {
                Type::map(Type::Text, self.below(&schema["additionalProperties"], &format!("{name}.@elem"))?)
            }
            "object" => self.object(schema, is_whole, name),
            "string" => match schema["format"].as_str() {
                Some("byte") => Type::Bytes,
                Some("duration") => Type::Duration,
                Some("date" | "date-time") => Type::Timestamp,
                _ => Type::Text,
            },
            "boolean" => Type::Bool,
            "number" => Type::Double,
            "integer" => Type::Int,
            _ => return None,
        })
    }

    fn below(&mut self, schema: &Value, name: &str) -> Option<Type> {
        self.declare(schema, schema["x-kubernetes-embedded-resource"] == true, name)
    }

    fn object(&mut self, schema: &Value, is_whole: bool, name: &str) -> Type {
        let mut fields = BTreeMap::new();
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let escaped = escape(field);
            let known = self.below(schema, &format!("{name}.{escaped}"));
            if let Some(known) = known.filter(|_| has_name(field)) {
                fields.insert(escaped, known);
            }
        }
        if is_whole {
            let metadata = format!("{name}.metadata");
            let names = ["name", "generateName"].map(|field| (field.to_owned(), Type::Text));
            self.own.insert(metadata.clone(), BTreeMap::from(names));
            fields.insert("metadata".into(), Type::Object(metadata.into()));
            fields.extend(["apiVersion", "kind"].map(|field| (field.to_owned(), Type::Text)));
        }
        self.own.insert(name.into(), fields);
        Type::Object(name.into())
    }
}
