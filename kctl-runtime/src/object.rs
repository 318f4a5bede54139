//! An object between the wire and its type: trimmed JSON with the metadata that the loop needs, decoded once when it is read.

use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use kube::{
    Resource,
    core::{ApiResource, ClusterResourceScope, NamespaceResourceScope},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{key::ObjectKey, reconcile::Controller, trim};

/// What a kind must be to be watched, stored and written: every k8s-openapi kind and every `CustomResource`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: use a kind of `kctl::k8s`, or what `#[resource(group = …, version = …, kind = …)]` makes",
    note = "code: K0030"
)]
pub trait Object:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static
{
}
#[diagnostic::do_not_recommend]
impl<K> Object for K where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static
{
}

/// A kind whose objects the primary of the controller `C` can own: an owner in a namespace is looked for in that namespace
/// only, so what it owns elsewhere is taken for an orphan and collected ("Owners and Dependents" in the Kubernetes manual).
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: use a kind of `kctl::k8s`, or what `#[resource(group = …, version = …, kind = …)]` makes",
    note = "code: K0030"
)]
pub trait OwnedBy<C>: Object {}
impl<C, K> OwnedBy<C> for K
where
    C: Controller,
    K: Object,
    <C::Primary as Resource>::Scope: MayOwn<K::Scope, C::Primary, K>,
{
}

/// A scope whose objects can own objects of the scope `S`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{P}` lives in a namespace and can't own `{K}`, which does not",
    label = "not in a namespace",
    note = "help: write `watches = {K}(map = f)` or `reads = {K}`, and clean up in `finalize`",
    note = "code: K0031"
)]
pub trait MayOwn<S, P, K> {}
impl<S, P, K> MayOwn<S, P, K> for ClusterResourceScope {}
impl<P, K> MayOwn<NamespaceResourceScope, P, K> for NamespaceResourceScope {}

/// A kind as data: how it is named on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// Empty for the core group.
    pub group: String,
    /// For example `v1`.
    pub version: String,
    /// For example `Pod`.
    pub kind: String,
    /// For example `pods`.
    pub plural: String,
}

impl Kind {
    /// The kind that a type stands for.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
        }
    }

    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// As roles and kubectl name it: `pods`, `deployments.apps`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The path of the collection, in one namespace or over all.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api/" } else { "/apis/" };
        let api = self.api_version();
        match namespace {
            Some(ns) => format!("{root}{api}/namespaces/{ns}/{}", self.plural),
            None => format!("{root}{api}/{}", self.plural),
        }
    }
}

impl From<&ApiResource> for Kind {
    fn from(resource: &ApiResource) -> Self {
        let ApiResource { group, version, kind, plural, .. } = resource.clone();
        Self { group, version, kind, plural }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

/// One owner reference, as far as the loop reads it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner: what makes it that owner and not a later one of the same name.
    pub uid: String,
    /// Whether this owner is the one that manages the object.
    #[serde(default)]
    pub controller: bool,
}

impl Owner {
    /// The API group of the owner, without the version.
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }
}

/// The metadata that handlers, indexes and write-through read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Empty never, once accepted.
    pub name: String,
    /// Absent for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Identity across re-creation under the same name.
    pub uid: String,
    /// Opaque but, since Kubernetes 1.35, comparable as a number.
    pub resource_version: String,
    /// Grows with each change of the spec.
    pub generation: Option<i64>,
    /// RFC 3339.
    pub creation_timestamp: Option<String>,
    /// Set once deletion was asked for.
    pub deletion_timestamp: Option<String>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// What must happen before the object goes.
    pub finalizers: Vec<String>,
    /// All owners.
    pub owner_references: Vec<Owner>,
}

impl Meta {
    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// The resourceVersion as a number, if it is one.
    pub fn revision(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }

    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref(), &self.name)
    }
}

/// Why bytes from the API server are not an object of their kind.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name} cannot be decoded")]
pub struct DecodeError {
    /// The kind that was expected.
    pub kind: String,
    /// `namespace/name` as far as it could be read.
    pub name: String,
    /// What the decoder says.
    pub source: serde_json::Error,
}

/// An accepted object: shared, immutable, readable as any projection of its kind.
pub struct Stored {
    key: ObjectKey,
    meta: Meta,
    json: Box<str>,
    decoded: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Stored {
    /// Accepts the bytes of one object: trims managedFields and reads the metadata.
    ///
    /// # Errors
    /// When the JSON is broken, or its metadata is not metadata or has no name.
    pub fn accept(kind: &Kind, json: &str) -> Result<Self, DecodeError> {
        let unreadable = |source| DecodeError { kind: kind.kind.clone(), name: "(unreadable)".into(), source };
        let metadata = trim::metadata_of(json).map_err(unreadable)?;
        let meta: Meta = metadata.map_or_else(|| Ok(Meta::default()), serde_json::from_str).map_err(unreadable)?;
        if meta.name.is_empty() {
            return Err(unreadable(serde::de::Error::missing_field("metadata.name")));
        }
        let json = trim::without_managed_fields(json, metadata).map_err(unreadable)?;
        Ok(Self { key: meta.key(), meta, json, decoded: OnceLock::new() })
    }

    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The metadata that the loop reads.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The object as JSON, without managedFields.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The object as its type; decoded once for the first type that asks.
    ///
    /// # Errors
    /// When the object does not fit the type. The source of objects checks that before they are stored.
    pub fn decode<K: Object>(&self) -> Result<Arc<K>, DecodeError> {
        self.decode_as(&K::kind(&()))
    }

    pub(crate) fn decode_as<T>(&self, kind: &str) -> Result<Arc<T>, DecodeError>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        if let Some(value) = self.decoded.get()
            && let Ok(value) = value.clone().downcast::<T>()
        {
            return Ok(value);
        }
        let value = Arc::new(self.decode_once::<T>(kind)?);
        // Another type may have come first: then this one is decoded at each read.
        let _taken = self.decoded.set(value.clone());
        Ok(value)
    }

    /// The object as a type that is not kept.
    pub(crate) fn decode_once<T: DeserializeOwned>(&self, kind: &str) -> Result<T, DecodeError> {
        serde_json::from_str(&self.json).map_err(|source| DecodeError {
            kind: kind.into(),
            name: self.key.to_string(),
            source,
        })
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.meta.resource_version)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn managed_fields_are_never_kept() {
        let json = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","managedFields":[{"manager":"x"}]}}"#;
        let stored = Stored::accept(&Kind::of::<Pod>(), json).unwrap();
        assert!(!stored.json().contains("managedFields"));
        assert_eq!(stored.key().to_string(), "b/a");
        assert_eq!(stored.decode::<Pod>().unwrap().metadata.name.as_deref(), Some("a"));
    }

    #[test]
    fn broken_object_is_an_error_that_names_the_kind() {
        let error = Stored::accept(&Kind::of::<Pod>(), r#"{"metadata":{"name":3}}"#).unwrap_err();
        assert!(error.to_string().starts_with("Pod "), "{error}");
    }
}
