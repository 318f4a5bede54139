//! The scopes of owners and their dependents, as a bound on `owns`.

use kube::Resource;

use crate::{
    object::{MayOwn, Object},
    reconcile::Controller,
};

/// A kind whose objects the primary of the controller `C` can own.
///
/// The garbage collector looks for an owner with a namespace in the namespace of the dependent object
/// only. It takes a dependent elsewhere for an orphan and deletes it (Kubernetes documentation,
/// "Owners and Dependents"). This trait turns that mistake into a compile error.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: use a kind of `kctl::k8s`, or a type that `#[resource(group = …, version = …, kind = …)]` generates; for kinds that are named at run time, use `env.watches` and `cx.client()` with `rbac(rule())`",
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
