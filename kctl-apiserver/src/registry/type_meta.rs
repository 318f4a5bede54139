//! The type of an object: its kind, and its version with the group.

use serde_json::{Value, json};

use super::{Resource, kind::Subresource};
use crate::schema;

/// The kind and the `apiVersion` of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeMeta {
    pub(crate) kind: String,
    pub(crate) api_version: String,
}

impl TypeMeta {
    /// Creates the type of this kind and `apiVersion`.
    pub(crate) fn new(kind: &str, api_version: &str) -> Self {
        Self { kind: kind.to_owned(), api_version: api_version.to_owned() }
    }

    /// Reads the type of an object. Absent fields are empty.
    pub(crate) fn from_object(object: &Value) -> Self {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        Self::new(text("kind"), text("apiVersion"))
    }

    /// Returns the type as reviews write it: a `GroupVersionKind` in JSON.
    pub(crate) fn group_version_kind(&self) -> Value {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", &self.api_version));
        json!({ "group": group, "version": version, "kind": self.kind })
    }
}

impl Resource {
    /// Returns the type of the resource's objects.
    pub(crate) fn type_meta(&self) -> TypeMeta {
        TypeMeta { kind: self.kind_name().to_owned(), api_version: self.api_version() }
    }

    /// Returns the type of the object that a subresource accepts; `Main` is the resource itself. It comes from
    /// discovery: a subresource can have its own group, such as `policy/v1` for evictions.
    pub(crate) fn type_at(&self, subresource: Subresource) -> TypeMeta {
        let Some(listed) = self.subresource(subresource.as_str()) else { return self.type_meta() };
        let api_version = match &listed.version {
            None => self.api_version(),
            Some(version) => schema::api_version(listed.group.as_deref().unwrap_or_default(), version),
        };
        TypeMeta { kind: listed.kind.clone(), api_version }
    }
}
