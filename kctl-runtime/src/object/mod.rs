//! Objects on their way from JSON to Rust types, and kinds as types and as data.
//!
//! An object enters as the bytes of a watch event or of an item of a list. [`Stored::accept`] reads
//! its metadata once, drops `managedFields` and keeps the rest as JSON. Handlers, indexes and the work
//! queue need only [`Meta`], so most objects are never decoded. The first reader that asks for a type
//! decodes it ([`Stored::decode`]); readers that follow soon share the result.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kctl_runtime::object::{Kind, Stored};
//!
//! let json = r#"{
//!     "apiVersion": "v1",
//!     "kind": "Pod",
//!     "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}, "resourceVersion": "7"},
//!     "spec": {"nodeName": "node-1", "containers": []}
//! }"#;
//! let stored = Stored::accept(&Kind::of::<Pod>(), json)?;
//!
//! // The metadata costs no decoding.
//! assert_eq!(stored.key().to_string(), "shop/web-0");
//! assert_eq!(stored.meta().labels.get("app").as_deref(), Some("web"));
//!
//! let pod = stored.decode::<Pod>()?;
//! assert_eq!(pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some("node-1"));
//! # Ok::<(), kctl_runtime::object::DecodeError>(())
//! ```
//!
//! # Memory
//!
//! A cache of 100,000 Pods is mostly repetition. Three things keep it small:
//!
//! - [`FieldMask`] selects the fields that a cache needs. A controller that reads one field of Pods declares a
//!   [`View`], and only that field is kept.
//! - Objects of one store share equal labels, owner references and namespaces. Their JSON is
//!   compressed against similar objects, with at most [`DICTIONARIES_MAX`] dictionaries tried for each.
//! - Decoded values are dropped again when newer ones exceed [`DECODED_BYTES_MAX`], or when they are not read for a while:
//!   10 to 20 s, and up to a minute more in a process that receives nothing.
//!
//! [`Uid`], [`Version`] and [`Time`] are the strings of the metadata in a few bytes each. They compare
//! with `str` and print exactly as the API server wrote them.
//!
//! The [`source`](crate::source) produces these objects and the [`store`](crate::store) holds them.

mod compact;
mod decode_cache;
mod dictionary;
mod field_mask;
mod labels;
mod meta;
mod names;
mod stored;
mod view;

use std::{any::TypeId, fmt};

use kctl_apimachinery::url;
use kube::{
    Resource,
    core::{ApiResource, ClusterResourceScope, NamespaceResourceScope},
};
use serde::{Serialize, de::DeserializeOwned};

#[doc(hidden)]
pub use self::view::{FieldAt, FieldPaths, Keyed, Open, Optional, Path, Required, TypedPath, ViewReader};
pub use self::{
    compact::{Time, Uid, Version},
    decode_cache::DECODED_BYTES_MAX,
    dictionary::DICTIONARIES_MAX,
    field_mask::FieldMask,
    labels::Labels,
    meta::{Meta, Owner},
    stored::{DecodeError, Stored},
    view::{View, ViewOf},
};
pub(crate) use self::{decode_cache::drop_unread_values, dictionary::Deduplicator};

/// A type that a cache can be read as.
///
/// Kinds qualify, and so do `kube::core::PartialObjectMeta<K>` (metadata alone) and every [`View`] of a
/// kind. The trait is implemented for each type with these supertraits; there is nothing to write.
/// Use it as the bound of a generic function that reads, and [`Object`] for one that writes.
///
/// ```
/// use kctl_runtime::object::{DecodeError, Readable, Stored};
///
/// fn name<K: Readable>(object: &Stored) -> Result<Option<String>, DecodeError> {
///     Ok(object.decode::<K>()?.meta().name.clone())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: use a kind of `kctl::k8s`, or a type that `#[resource(group = …, version = …, kind = …)]` generates; for kinds that are named at run time, use `env.watches` and `cx.client()` with `rbac(rule())`",
    note = "code: K0030"
)]
pub trait Readable: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<K> Readable for K where K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static {}

/// A Kubernetes kind that can be watched, cached and written.
///
/// Every type of `k8s_openapi` that is a kind qualifies, and so does every custom resource that derives
/// `kube::CustomResource` or has `#[resource]`. The trait is implemented for each type with these
/// supertraits. The group, version and plural must be known at compile time (`DynamicType = ()`). A kind that is named
/// at run time is read through [`Watches`](crate::watches::Watches).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: use a kind of `kctl::k8s`, or a type that `#[resource(group = …, version = …, kind = …)]` generates; for kinds that are named at run time, use `env.watches` and `cx.client()` with `rbac(rule())`",
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

/// Implemented by scopes whose objects can own objects of the scope `S`.
///
/// Cluster-scoped objects can own anything. Namespaced objects can own namespaced objects; that both
/// are in the same namespace is checked when the object is written.
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

/// Returns `true` if objects of the kind have a namespace.
///
/// The scope comes from the type. A URL does not show it: kube builds paths with a namespace for every kind.
pub(crate) fn is_namespaced<K: Readable>() -> bool {
    TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>()
}

/// A kind as data: group, version, kind and plural, as URLs, RBAC rules and `apiVersion` name them.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kctl_runtime::object::Kind;
///
/// let kind = Kind::of::<Deployment>();
/// assert_eq!(kind.api_version(), "apps/v1");
/// assert_eq!(kind.resource(), "deployments.apps");
/// assert_eq!(kind.path(Some("shop")), "/apis/apps/v1/namespaces/shop/deployments");
/// assert_eq!(kind.to_string(), "Deployment");
/// ```
///
/// The scope is not a part of it, because an API server's discovery and a Rust type express it in different ways. Kinds
/// of two versions of one group are different kinds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// API group, empty for the core group (`v1`).
    pub group: String,
    /// Version without the group, for example `v1` or `v1beta1`.
    pub version: String,
    /// Singular in camel case, as in `kind:` of a manifest, for example `Pod`.
    pub kind: String,
    /// Resource name in URLs and RBAC rules: plural and lower case, for example `pods`.
    pub plural: String,
}

impl Kind {
    /// Returns the kind of a Rust type.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
        }
    }

    /// Returns `apiVersion` as manifests have it: `v1` for the core group, else `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the resource with its group, as `kubectl` prints it: `pods`, `deployments.apps`.
    ///
    /// `CustomResourceDefinitions` have this as their name.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Returns the URL path of the collection: in one namespace, or across the cluster for `None`.
    ///
    /// A cluster-scoped kind takes `None`. The path has no trailing slash and no query. The namespace is escaped.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::object::Kind;
    ///
    /// assert_eq!(Kind::of::<Pod>().path(None), "/api/v1/pods");
    /// assert_eq!(Kind::of::<Pod>().path(Some("a?b")), "/api/v1/namespaces/a%3Fb/pods");
    /// ```
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api/" } else { "/apis/" };
        let api = self.api_version();
        match namespace {
            Some(ns) => format!("{root}{api}/namespaces/{}/{}", url::escape(ns), self.plural),
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
