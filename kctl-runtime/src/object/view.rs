//! Views: structs with some fields of a kind, and where each field is in the object.
//!
//! `#[view(of = Pod)]` expands to a [`View`] whose deserializer reads just the listed paths. The types
//! in this file check a path such as `#[view(spec.node_name)]` at compile time: [`TypedPath`] walks the
//! Rust types of the kind, and [`FieldAt`] compares the end of the path with the type of the field.
//!
//! ```text
//! #[view(of = Pod)]
//! struct Placement {
//!     #[view(spec.node_name)]                       // TypedPath::root().field("spec", …).open().field("node_name", …)
//!     node: Option<String>,                         // may be missing: `Option`
//!     #[view(metadata.labels["app"])]               // ….field("labels", …).open().key("app")
//!     app: Option<String>,
//! }
//! ```

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Map, Value};

use super::{FieldMask, Object, Readable, names::name_of};

/// A struct with a few fields of a kind, read only.
///
/// `#[view(of = Kind)]` implements it. A cache whose readers all use views keeps only the fields of
/// those views, which is a small part of large kinds such as Pod. A view cannot be written: to change
/// an object, patch it through the kind in [`Of`](Self::Of).
pub trait View: Readable {
    /// The kind whose fields the view has.
    type Of: Object;
    /// Returns the paths of the fields, in the order in which the struct declares them.
    #[doc(hidden)]
    fn paths() -> &'static FieldPaths;
}

/// A view of the kind `K`; the bound of `reads = K(as = V)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a view of `{K}`",
    label = "not a view of `{K}`",
    note = "help: put `#[view(of = {K})]` on the struct and `#[view(spec.field)]` on each of its fields, or name the kind of the view",
    note = "code: K0071"
)]
pub trait ViewOf<K>: View {}

/// Paths of the fields of a view, in the order in which the struct declares them.
#[doc(hidden)]
#[derive(Debug)]
pub struct FieldPaths(Vec<Path>);

/// JSON field names from the root of an object to a value: `["spec", "nodeName"]`.
pub type Path = Vec<Cow<'static, str>>;

impl FieldPaths {
    /// Collects the paths, in the order of the fields.
    pub fn new(paths: impl IntoIterator<Item = Path>) -> Self {
        Self(paths.into_iter().collect())
    }

    /// Returns the fields that a cache has to keep for the view.
    pub(crate) fn field_mask(&self) -> FieldMask {
        FieldMask::fields(self.0.iter().map(|path| path.iter().cloned()))
    }
}

/// The values of one object, handed out in the order of the paths. Generated deserializers use it.
#[doc(hidden)]
pub struct ViewReader {
    object: Value,
    paths: std::slice::Iter<'static, Path>,
}

impl std::fmt::Debug for ViewReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ViewReader").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl ViewReader {
    /// Reads an object and keeps only the metadata and the values at these paths.
    ///
    /// # Errors
    /// The input is not a JSON object, or a value on the way to a path is not an object.
    pub fn read<'de, D: Deserializer<'de>>(paths: &'static FieldPaths, deserializer: D) -> Result<Self, D::Error> {
        let object =
            PathFilter { paths: paths.0.iter().map(Vec::as_slice).collect(), depth: 0 }.deserialize(deserializer)?;
        Ok(Self { object, paths: paths.0.iter() })
    }

    /// Returns the metadata as the type of the view's `metadata` field.
    ///
    /// # Errors
    /// `metadata` does not have the expected type.
    pub fn metadata<T: DeserializeOwned, E: serde::de::Error>(&self) -> Result<T, E> {
        T::deserialize(&self.object["metadata"]).map_err(|error| E::custom(format_args!("metadata: {error}")))
    }

    /// Returns the value of the next field. A missing `Option`, list or map is empty, as API servers omit them.
    ///
    /// # Errors
    /// A required value is missing, or the value has another type. The message has the path.
    pub fn field<T: DeserializeOwned, E: serde::de::Error>(&mut self) -> Result<T, E> {
        let path = self.paths.next().ok_or_else(|| E::custom("the view has no further field"))?;
        let mut value = &self.object;
        for name in path {
            value = &value[&**name];
        }
        let read = if value.is_null() { T::deserialize(Absent) } else { T::deserialize(value) };
        read.map_err(|error| E::custom(format_args!("{}: {error}", path.join("."))))
    }
}

/// Deserializes an object, skipping all but the metadata and the values at the paths.
///
/// `depth` is the number of names of each path that lead here.
struct PathFilter<'p> {
    paths: Vec<&'p [Cow<'static, str>]>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for PathFilter<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.paths.iter().any(|path| path.len() == self.depth) {
            return Value::deserialize(deserializer);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PathFilter<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.paths.first().map(|path| path[..self.depth].join(".")) {
            Some(path) if !path.is_empty() => write!(f, "an object at `{path}`"),
            _ => f.write_str("an object"),
        }
    }

    /// Accepts `null`, which API servers may write for a missing object.
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let (mut object, depth) = (Map::new(), self.depth + 1);
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let named = |path: &&[Cow<'static, str>]| path.get(self.depth).is_some_and(|member| *member == name);
            let paths: Vec<_> = self.paths.iter().copied().filter(named).collect();
            if self.depth == 0 && name == "metadata" {
                object.insert(name.into_owned(), map.next_value()?);
            } else if paths.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                object.insert(name.into_owned(), map.next_value_seed(PathFilter { paths, depth })?);
            }
        }
        Ok(Value::Object(object))
    }
}

/// Deserializer of a field that is missing: `None`, an empty list or an empty map, and an error for the rest.
///
/// API servers omit all three, so a view treats a missing list as an empty one.
struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("it is not there; write `Option<…>` if it may be left out"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_none()
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::<_, Error>::new(std::iter::empty::<Value>()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(MapDeserializer::<_, Error>::new(std::iter::empty::<(String, Value)>()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct
        tuple tuple_struct struct enum identifier ignored_any
    }
}

/// Marks a path on which every step is required, so that its value is always there.
#[derive(Debug)]
pub struct Required;
/// Marks a path with an optional step, so that its value may be missing.
#[derive(Debug)]
pub struct Optional;

/// A place in an object: its Rust type `T`, and the JSON names on the way.
///
/// `M` is [`Required`] or [`Optional`]. The macro writes a chain of [`field`](Self::field), [`open`](Open::open)
/// and [`key`](Self::key) calls; a wrong step is a type error at that step of the path.
#[doc(hidden)]
pub struct TypedPath<T, M> {
    path: Path,
    is: PhantomData<fn() -> (T, M)>,
}

impl<T, M> std::fmt::Debug for TypedPath<T, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedPath").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<T> TypedPath<T, Required> {
    /// Returns the place of the whole object.
    pub fn root() -> Self {
        Self { path: Vec::new(), is: PhantomData }
    }
}

impl<T, M> TypedPath<T, M> {
    fn retype<U, N>(self) -> TypedPath<U, N> {
        TypedPath { path: self.path, is: PhantomData }
    }

    /// Steps to a field of a struct. The function is never called: it carries the field's type.
    ///
    /// # Panics
    /// If no JSON member of the type matches the Rust name, as with `#[serde(rename = "…")]`. The message
    /// lists the members.
    #[must_use]
    pub fn field<U>(mut self, name: &str, _is: fn(&T) -> &U) -> TypedPath<U, M>
    where
        T: DeserializeOwned,
    {
        self.path.push(name_of::<T>(name));
        self.retype()
    }

    /// Returns the path, if a field of the type `F` can hold the value there.
    pub fn end<F: FieldAt<T, M>>(self) -> Path {
        self.path
    }

    /// Steps to the value under a key of a map, such as a label or an annotation.
    #[must_use]
    pub fn key<U>(mut self, key: &'static str) -> TypedPath<U, Optional>
    where
        T: Keyed<U>,
    {
        self.path.push(key.into());
        self.retype()
    }
}

impl<T, M> TypedPath<Option<T>, M> {
    /// Steps into an `Option`; the value may be missing from here on.
    #[must_use]
    pub fn open(self) -> TypedPath<T, Optional> {
        self.retype()
    }
}

/// Makes `open` a no-op for types that are not an `Option`.
///
/// Method resolution finds the inherent method of `TypedPath<Option<T>, M>` first and this trait for every
/// other type, so the macro can write `open` after each step.
#[doc(hidden)]
pub trait Open: Sized {
    #[must_use]
    fn open(self) -> Self {
        self
    }
}
impl<T, M> Open for TypedPath<T, M> {}

/// A map with string keys and values of the type `U`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no keys",
    label = "not the key of a map",
    note = "help: write the path without it; a list is read whole",
    note = "code: K0074"
)]
pub trait Keyed<U> {}
impl<U> Keyed<U> for BTreeMap<String, U> {}

/// The type of a view's field whose path ends at a `T`.
///
/// A value that may be missing needs an `Option`; a required one can be read as either.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a field of the type `{Self}` does not fit its path: the kind has `{T}` there",
    label = "the path needs another type, or an `Option` of this one",
    note = "help: write the type of that field in the kind, as `Option<…>` if it or one of its parents is optional",
    note = "code: K0072"
)]
pub trait FieldAt<T, M> {}
#[diagnostic::do_not_recommend]
impl<T> FieldAt<T, Required> for T {}
#[diagnostic::do_not_recommend]
impl<T> FieldAt<T, Required> for Option<T> {}
#[diagnostic::do_not_recommend]
impl<T> FieldAt<T, Optional> for Option<T> {}
#[diagnostic::do_not_recommend]
impl<T> FieldAt<Option<T>, Optional> for Option<T> {}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::*;

    static PATHS: LazyLock<FieldPaths> = LazyLock::new(|| {
        let path = |text: &'static str| text.split('.').map(Cow::from).collect();
        FieldPaths::new([
            path("spec.nodeName"),
            path("spec.count"),
            path("spec.reader"),
            path("metadata.annotations.x"),
        ])
    });

    type Fields = (Option<String>, i32, Vec<i32>, Option<String>);

    fn read(object: &Value) -> Result<Fields, String> {
        let mut reader = ViewReader::read(&PATHS, object).map_err(|error| error.to_string())?;
        let read = |reader: &mut ViewReader| {
            Ok::<Fields, Error>((reader.field()?, reader.field()?, reader.field()?, reader.field()?))
        };
        read(&mut reader).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_are_read_and_missing_ones_are_empty() {
        let whole = json!({
            "metadata": { "name": "a", "annotations": { "x": "1" } },
            "spec": { "nodeName": "n", "count": 3, "reader": [1, 2], "other": { "deep": [] } },
        });
        assert_eq!(read(&whole), Ok((Some("n".into()), 3, vec![1, 2], Some("1".into()))));
        assert_eq!(read(&json!({ "spec": { "count": 3, "reader": null } })), Ok((None, 3, vec![], None)));
    }

    #[test]
    fn missing_or_mistyped_field_is_named() {
        let cases = [
            (json!({ "spec": {} }), "spec.count: it is not there; write `Option<…>` if it may be left out"),
            (json!({ "spec": { "count": "3" } }), "spec.count: invalid type: string \"3\", expected i32"),
            (json!({ "spec": { "nodeName": 4 } }), "spec.nodeName: invalid type: integer `4`, expected a string"),
            (json!({ "spec": [] }), "invalid type: sequence, expected an object at `spec`"),
            (json!([]), "invalid type: sequence, expected an object"),
        ];
        for (object, expected) in cases {
            assert_eq!(read(&object).unwrap_err(), expected, "{object}");
        }
    }
}
