//! The merge behaviour of each position of an object: as one value, by field or by item. Validation, comparison and
//! merge walk objects with it.
//!
//! The schema decides if it declares the position; otherwise the value decides, as in upstream's deduced types.
//! Built-in types take `x-kubernetes-list-type` and its siblings from the `OpenAPI` document, custom types from the
//! CRD.
//!
//! Upstream: `deduceAtom` and `handleAtom` of structured-merge-diff, `typed/helpers.go`.

use std::{borrow::Cow, sync::LazyLock};

use serde_json::{Value, json};

use super::field_set::PathElement;
use crate::schema::{ListType, PerPosition, Schema};

/// A position in an object, with its schema if it has one.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Position<'a> {
    /// `None` below values that no schema describes.
    schema: Option<Schema<'a>>,
    /// `true` if `apiVersion`, `kind` and `metadata` are fields here, although the schema does not declare them.
    is_object_root: bool,
    /// `true` if undeclared fields are kept, here and everywhere below. A schema that sets
    /// `x-kubernetes-preserve-unknown-fields` sets it for all that is below.
    keeps_unknown: bool,
}

/// A field of an object, looked up in the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldPosition<'a> {
    /// The schema declares the field. If it has children, a field set contains only these.
    Named(Position<'a>),
    /// The field is an entry of a map. It is owned as an entry, in addition to its children.
    Entry(Position<'a>),
    /// The schema does not declare the field.
    Undeclared,
}

/// The way in which values at a position are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape<'a> {
    /// The value is merged as one scalar.
    Scalar(Scalar),
    /// The value is merged as a list, by its list type.
    List(ListType<'a>),
    /// The value is merged by field, unless the object is atomic.
    Map {
        /// `true` if the object is merged as one value.
        is_atomic: bool,
    },
}

/// The scalars that a position accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    /// Strings.
    String,
    /// Integers and floating-point numbers.
    Numeric,
    /// Booleans.
    Boolean,
    /// Every scalar.
    Any,
}

/// The number of items whose keys are compared pairwise. Longer lists are sorted by their keys instead. Pairwise
/// comparison needs no allocation, which is faster for short lists such as containers and ports.
const COMPARED_MAX: usize = 16;

/// Returns `true` if an item has a key whose fields are equal exactly if their JSON is. Floats are excluded: `1` and
/// `1.0` are the same key.
fn is_keyed(keys: &[Value], item: &Value) -> bool {
    let mut key_values = keys.iter().filter_map(|name| item.get(name.as_str()?)).peekable();
    key_values.peek().is_some() && key_values.all(|value| value.is_string() || value.is_i64() || value.is_u64())
}

/// The shapes of all positions in built-in types. Computed once, because reading them is most of the cost of a
/// comparison.
static DECLARED: LazyLock<PerPosition<Option<Shape<'static>>>> =
    LazyLock::new(|| PerPosition::new(Position::shape_from_schema));

/// The schema of `apiVersion` and `kind` of a custom object.
static TEXT: LazyLock<Value> = LazyLock::new(|| json!({ "type": "string" }));

impl<'a> Position<'a> {
    /// The position of a value without a schema.
    pub(super) const UNKNOWN: Self = Self { schema: None, is_object_root: false, keeps_unknown: false };

    /// Returns the root of an object. Without a schema, shapes are deduced from the values.
    pub(crate) fn root(schema: Option<Schema<'a>>) -> Self {
        Self { is_object_root: true, ..schema.map_or(Self::UNKNOWN, Self::for_schema) }
    }

    /// Returns the position of a value with this schema.
    fn for_schema(schema: Schema<'a>) -> Self {
        // No built-in type has embedded objects, or keeps unknown fields.
        if DECLARED.get(&schema).is_some() {
            return Self { schema: Some(schema), ..Self::UNKNOWN };
        }
        Self {
            schema: Some(schema),
            is_object_root: schema.flag("x-kubernetes-embedded-resource"),
            keeps_unknown: schema.preserves_unknown_fields(),
        }
    }

    /// Returns the position of a child with this schema.
    fn below(&self, schema: Schema<'a>) -> Self {
        let position = Self::for_schema(schema);
        Self { keeps_unknown: self.keeps_unknown || position.keeps_unknown, ..position }
    }

    /// Returns `true` if the schema declares a list or an object as atomic.
    pub(super) fn is_one_value(&self) -> bool {
        matches!(self.declared_shape(), Some(Shape::List(ListType::Atomic) | Shape::Map { is_atomic: true }))
    }

    /// Returns the shape that the schema declares, or `None` if it depends on the value.
    fn declared_shape(&self) -> Option<Shape<'a>> {
        let schema = self.schema?;
        match DECLARED.get(&schema) {
            Some(position) => *position,
            None => Self::shape_from_schema(schema),
        }
    }

    /// Returns the shape that a schema declares.
    fn shape_from_schema(schema: Schema<'a>) -> Option<Shape<'a>> {
        let reference = schema.text("$ref").unwrap_or_default();
        // Strings and numbers fit. The decoder or validation reports a value of another type.
        if schema.format() == Some("int-or-string") || schema.flag("x-kubernetes-int-or-string") {
            return None;
        }
        // The OpenAPI type of these formats is `string`, but numbers are accepted too.
        if schema.format() == Some("date-time") || reference == "io.k8s.apimachinery.pkg.api.resource.Quantity" {
            return Some(Shape::Scalar(Scalar::Any));
        }
        // Objects of an unknown type are atomic.
        if reference == "io.k8s.apimachinery.pkg.runtime.RawExtension" {
            return Some(Shape::Map { is_atomic: true });
        }
        match schema.type_name() {
            Some("string") => Some(Shape::Scalar(Scalar::String)),
            Some("integer" | "number") => Some(Shape::Scalar(Scalar::Numeric)),
            Some("boolean") => Some(Shape::Scalar(Scalar::Boolean)),
            Some("array") => Some(Shape::List(schema.list_type())),
            Some("object") => Some(Shape::Map { is_atomic: schema.is_atomic_map() }),
            _ if schema.has_properties() => Some(Shape::Map { is_atomic: schema.is_atomic_map() }),
            _ => None,
        }
    }

    /// Returns the shape of a value at this position. Without a declaration, `null` counts as an object without fields
    /// (`deduceAtom` of `structured-merge-diff`).
    pub(crate) fn shape(&self, value: &Value) -> Shape<'a> {
        self.declared_shape().unwrap_or(match value {
            Value::Object(_) | Value::Null => Shape::Map { is_atomic: false },
            Value::Array(_) => Shape::List(ListType::Atomic),
            _ => Shape::Scalar(Scalar::Any),
        })
    }

    /// Looks up a field in the schema.
    pub(crate) fn field(&self, name: &str) -> FieldPosition<'a> {
        let Some(schema) = self.schema else { return FieldPosition::Entry(Self::UNKNOWN) };
        let property = schema.property(name);
        if self.is_object_root && name == "metadata" {
            // The schema of a custom resource has little or nothing about `metadata`.
            let metadata = property.filter(|metadata| metadata.text("$ref").is_some());
            let metadata = metadata.or_else(|| Schema::for_type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
            return FieldPosition::Named(metadata.map_or(Self::UNKNOWN, Self::for_schema));
        }
        if let Some(property) = property {
            return FieldPosition::Named(self.below(property));
        }
        if self.is_object_root && (name == "apiVersion" || name == "kind") {
            return FieldPosition::Named(Self::for_schema(Schema::structural(&TEXT)));
        }
        if let Some(entry) = schema.additional_properties() {
            return FieldPosition::Entry(self.below(entry));
        }
        let accepts_all = self.keeps_unknown || schema.flag("additionalProperties");
        if accepts_all || !schema.has_properties() {
            return FieldPosition::Entry(Self::UNKNOWN);
        }
        FieldPosition::Undeclared
    }

    /// Returns the position of a field, even if the schema does not declare it.
    pub(crate) fn field_position(&self, name: &str) -> Self {
        match self.field(name) {
            FieldPosition::Named(position) | FieldPosition::Entry(position) => position,
            FieldPosition::Undeclared => Self::UNKNOWN,
        }
    }

    /// Returns `true` if the schema declares the field.
    pub(crate) fn names_field(&self, name: &str) -> bool {
        matches!(self.field(name), FieldPosition::Named(_))
    }

    /// Returns the position of the items of a list.
    pub(crate) fn items(&self) -> Self {
        self.schema.and_then(|schema| schema.items()).map_or(Self::UNKNOWN, |items| self.below(items))
    }

    /// Returns the position that one path element leads to. Paths have no types: a key element leads to a list item,
    /// and a field element to a field or a map entry.
    pub(crate) fn step(&self, element: &PathElement) -> Self {
        match element.field_name() {
            Some(name) => self.field_position(name),
            None if element.is_key() => self.items(),
            None => Self::UNKNOWN,
        }
    }

    /// Returns the value that a key field has in items that omit it. Required fields of built-in types default to their
    /// zero value, so that such an item has a key. Validation reports it later.
    fn key_default(&self, name: &str) -> Option<Value> {
        let schema = self.schema?;
        let key = schema.property(name)?;
        if let Some(default) = key.json().get("default") {
            return Some(default.clone());
        }
        // The recorded schemas of built-in types lack the defaults below. Only built-in types are used by `$ref`, so this
        // returns for a custom resource.
        schema.text("$ref")?;
        if name == "protocol" {
            return Some("TCP".into());
        }
        schema.requires(name).then(|| match key.type_name() {
            Some("integer" | "number") => 0.into(),
            _ => "".into(),
        })
    }

    /// Returns the path element of a list item: its key fields, its value, or its index in atomic lists.
    ///
    /// # Errors
    /// Returns a message if the item has no key or an invalid one.
    pub(crate) fn path_element(&self, list: ListType<'_>, index: usize, item: &Value) -> Result<PathElement, String> {
        match list {
            ListType::Atomic => Ok(PathElement::index(index)),
            ListType::Set => match item {
                Value::Object(_) | Value::Array(_) | Value::Null => Err("items of a set must be scalars".into()),
                _ => Ok(PathElement::value(item)),
            },
            ListType::Map(keys) => self.keyed_element(keys, item),
        }
    }

    /// Checks that an item has a valid path element, without creating one. The common case needs no string.
    ///
    /// # Errors
    /// Returns the errors of [`path_element`](Self::path_element).
    pub(crate) fn check_element(&self, list: ListType<'_>, index: usize, item: &Value) -> Result<(), String> {
        match list {
            ListType::Map(keys) if is_keyed(keys, item) => Ok(()),
            _ => self.path_element(list, index, item).map(drop),
        }
    }

    /// Returns `true` if the keys show that all items are distinct. It is cheap, because it builds no strings. `false`
    /// means unknown.
    pub(crate) fn are_distinct(&self, list: ListType<'_>, items: &[Value]) -> bool {
        let ListType::Map(keys) = list else { return false };
        let differs = |(index, item): (usize, &Value)| {
            is_keyed(keys, item) && items[..index].iter().all(|other| !self.has_key_of(keys, item, other))
        };
        items.len() <= COMPARED_MAX && items.iter().enumerate().all(differs)
    }

    /// Returns `true` if the keys show that both lists have the same distinct items in the same order. `false` means
    /// unknown.
    pub(crate) fn are_paired(&self, list: ListType<'_>, left: &[Value], right: &[Value]) -> bool {
        let ListType::Map(keys) = list else { return false };
        let is_pair = |(left, right): (&Value, &Value)| is_keyed(keys, left) && self.has_key_of(keys, left, right);
        left.len() == right.len() && left.iter().zip(right).all(is_pair) && self.are_distinct(list, right)
    }

    /// Returns `true` if two items have the same key. A missing key field equals its default.
    fn has_key_of(&self, keys: &[Value], left: &Value, right: &Value) -> bool {
        let mut names = keys.iter().filter_map(Value::as_str);
        names.all(|name| match (left.get(name), right.get(name)) {
            (Some(left), Some(right)) => left == right,
            (None, None) => true,
            (Some(key), None) | (None, Some(key)) => self.items().key_default(name).as_ref() == Some(key),
        })
    }

    /// Returns the element of an item by its key fields. A missing key field is left out if it has no default; at least
    /// one must be present.
    fn keyed_element(&self, keys: &[Value], item: &Value) -> Result<PathElement, String> {
        let Some(fields) = item.as_object() else { return Err("items of a list with keys must be objects".into()) };
        let names = keys.iter().filter_map(Value::as_str);
        let values = names.filter_map(|name| {
            let given = fields.get(name).map(Cow::Borrowed);
            Some((name, given.or_else(|| self.items().key_default(name).map(Cow::Owned))?))
        });
        let values: Vec<(&str, Cow<'_, Value>)> = values.collect();
        if values.is_empty() {
            return Err(format!("an item must have one of the keys {}", Value::from(keys)));
        }
        Ok(PathElement::key(values.iter().map(|(name, value)| (*name, value.as_ref()))))
    }
}
