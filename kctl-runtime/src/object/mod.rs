//! An object between the wire and its type: kinds as types and as data, and what of an object is kept.

mod hot;
mod keep;
mod labels;
mod meta;
mod names;
mod shelf;
mod short;
mod stored;
mod view;

use std::{any::TypeId, fmt};

use kube::{
    Resource,
    core::{ApiResource, ClusterResourceScope, NamespaceResourceScope},
};
use serde::{Serialize, de::DeserializeOwned};

pub(crate) use self::shelf::Shelf;
#[doc(hidden)]
pub use self::view::{Always, FieldAt, Keyed, Maybe, Open, Parts, Path, Place, Places};
pub use self::{
    hot::HOT_BYTES_MAX,
    keep::Keep,
    labels::Labels,
    meta::{Meta, Owner},
    shelf::DICTIONARIES_MAX,
    short::{Time, Uid, Version},
    stored::{DecodeError, Stored},
    view::{View, ViewOf},
};
use crate::reconcile::Controller;

/// What a type must be to be read from a cache: a kind, its metadata (`PartialObjectMeta<Pod>`), or a view of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: use a kind of `kctl::k8s`, or what `#[resource(group = …, version = …, kind = …)]` makes; one that is named at run time is watched by `env.watches` and changed by `cx.client()`, with `rbac(rule())`",
    note = "code: K0030"
)]
pub trait Readable: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<K> Readable for K where K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static {}

/// What a kind must be to be watched, stored and written: every k8s-openapi kind and every `CustomResource`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: use a kind of `kctl::k8s`, or what `#[resource(group = …, version = …, kind = …)]` makes; one that is named at run time is watched by `env.watches` and changed by `cx.client()`, with `rbac(rule())`",
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
    note = "help: use a kind of `kctl::k8s`, or what `#[resource(group = …, version = …, kind = …)]` makes; one that is named at run time is watched by `env.watches` and changed by `cx.client()`, with `rbac(rule())`",
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

/// Whether objects of a kind live in namespaces. kube's URLs take a namespace for every kind: only the type says it.
pub(crate) fn is_namespaced<K: Readable>() -> bool {
    TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>()
}

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
