//! The permission of each operation: one trait per verb, so that the compiler error says what to declare.
//!
//! These traits appear in bounds of helper functions, together with [`Writes`](super::Writes):
//! `C: Writes<Node, Verbs: MayPatch<C, Node>>`. They hold for each set of verbs that [`Allows`] the verb,
//! and their seal leaves no other way to implement them.

use super::seal::Seal;
use super::{Allows, BuiltIn, Controller, Derived, verb};

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $verb:ident, $message:literal, $label:literal, $help:literal;)*) => { $(
        $(#[$doc])*
        #[diagnostic::on_unimplemented(message = $message, label = $label, note = $help, note = "code: K0038")]
        pub trait $name<C: ?Sized, K> {
            #[doc(hidden)]
            const SEAL: Seal;
        }
        #[diagnostic::do_not_recommend]
        impl<A: Allows<verb::$verb, C, K>, C: ?Sized, K> $name<C, K> for A {
            const SEAL: Seal = Seal;
        }
    )* };
}

operations! {
    /// Verbs that include `create`, for [`Owned::create`](super::Owned::create) and
    /// [`Objects::create`](super::Objects::create).
    MayCreate: create,
        "`{C}` may not create `{K}`",
        "`create` on `{K}` is not declared",
        "help: write `create` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Creates<{K}>`, or `Writes<{K}, Verbs: MayCreate<C, {K}>>` of `kctl::reconcile` and its `bounds` for what is not owned; what is owned with `metadata` is written by `apply`";
    /// Verbs that include `update`, for [`Owned::update`](super::Owned::update) and
    /// [`Objects::update`](super::Objects::update).
    MayUpdate: update,
        "`{C}` may not update `{K}`",
        "`update` on `{K}` is not declared",
        "help: write `update` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Owns<{K}>`, or `Writes<{K}, Verbs: MayUpdate<C, {K}>>` of `kctl::reconcile` and its `bounds` for what is not owned; what is owned with `metadata` is written by `apply`";
    /// Verbs that include `patch`, for [`Owned::patch`](super::Owned::patch),
    /// [`Objects::patch`](super::Objects::patch), [`Context::adopt`](super::Context::adopt) and
    /// [`Context::release`](super::Context::release).
    MayPatch: patch,
        "`{C}` may not patch `{K}`",
        "`patch` on `{K}` is not declared",
        "help: write `patch` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Patches<{K}>`, or `Writes<{K}, Verbs: MayPatch<C, {K}>>` of `kctl::reconcile` and its `bounds` for what is not owned";
    /// Verbs that include `apply`, for [`Owned::apply`](super::Owned::apply), [`Owned::converge`](super::Owned::converge) and
    /// [`Objects::apply`](super::Objects::apply).
    MayApply: apply,
        "`{C}` may not apply `{K}`",
        "`apply` on `{K}` is not declared",
        "help: write `apply` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Owns<{K}>`, or `Writes<{K}, Verbs: MayApply<C, {K}>>` of `kctl::reconcile` and its `bounds` for what is not owned";
    /// Verbs that include `delete`, for [`Owned::delete`](super::Owned::delete) and
    /// [`Objects::delete`](super::Objects::delete).
    MayDelete: delete,
        "`{C}` may not delete `{K}`",
        "`delete` on `{K}` is not declared",
        "help: write `delete` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Deletes<{K}>`, or `Writes<{K}, Verbs: MayDelete<C, {K}>>` of `kctl::reconcile` and its `bounds` for what is not owned";
    /// Verbs that include `deletecollection`, for [`Objects::delete_collection`](super::Objects::delete_collection).
    MayDeleteCollection: deletecollection,
        "`{C}` may not delete collections of `{K}`",
        "`deletecollection` on `{K}` is not declared",
        "help: write `deletecollection` in the parentheses of `{K}` in `#[controller(…)]`, next to its other verbs";
    /// Verbs that include `status`: patches of the status of objects that are not the primary.
    MayPatchStatus: status,
        "`{C}` may not write the status of `{K}`",
        "`status` on `{K}` is not declared",
        "help: write `status` in the parentheses of `{K}` in `#[controller(…)]`, next to its other verbs; verbs in parentheses replace the verbs of a bare `owns`";
    /// Verbs that include `scale`: writes of the `scale` subresource.
    MayScale: scale,
        "`{C}` may not scale `{K}`",
        "`scale` on `{K}` is not declared",
        "help: write `scale` in the parentheses of `{K}` in `#[controller(…)]`, next to its other verbs; verbs in parentheses replace the verbs of a bare `owns`";
    /// Verbs that include `eviction`: requests to evict a Pod.
    MayEvict: eviction,
        "`{C}` may not evict `{K}`",
        "`eviction` on `{K}` is not declared",
        "help: write `eviction` in the parentheses of `{K}` in `#[controller(…)]`, next to its other verbs; verbs in parentheses replace the verbs of a bare `owns`";
    /// Verbs that include `binding`: assigning a Pod to a Node.
    MayBind: binding,
        "`{C}` may not bind `{K}`",
        "`binding` on `{K}` is not declared",
        "help: write `binding` in the parentheses of `{K}` in `#[controller(…)]`, next to its other verbs";
    /// Verbs that include `token`: requesting tokens of a `ServiceAccount`.
    MayToken: token,
        "`{C}` may not ask for tokens of `{K}`",
        "`token` on `{K}` is not declared",
        "help: write `token` in the parentheses of `{K}` in `#[controller(…)]`, next to its other verbs";
    /// Verbs that include `get` on the primary, for [`Context::get`](super::Context::get).
    MayGetPrimary: get,
        "`{C}` may not get `{K}` from the API server",
        "`get` on the primary is not declared",
        "help: write `#[controller(primary(get))]`; in a helper function, add the bound `Controller<Primary = {K}, Verbs: MayGetPrimary<C, {K}>>`";
    /// Verbs that include `patch` on the primary, for [`Context::patch`](super::Context::patch).
    MayPatchPrimary: patch,
        "`{C}` may not patch `{K}`",
        "`patch` on the primary is not declared",
        "help: write `#[controller(primary(patch))]`; in a helper function, add the bound `Controller<Primary = {K}, Verbs: MayPatchPrimary<C, {K}>>`";
    /// Verbs that include `delete` on the primary, for [`Context::delete`](super::Context::delete).
    MayDeletePrimary: delete,
        "`{C}` may not delete `{K}`",
        "`delete` on the primary is not declared",
        "help: write `#[controller(primary(delete))]`; in a helper function, add the bound `Controller<Primary = {K}, Verbs: MayDeletePrimary<C, {K}>>`";
    /// Verbs that include `scale` on the primary, for [`Context::scale`](super::Context::scale).
    MayScalePrimary: scale,
        "`{C}` may not scale `{K}`",
        "`scale` on the primary is not declared",
        "help: write `#[controller(primary(scale))]`; in a helper function, add the bound `Controller<Primary = {K}, Verbs: MayScalePrimary<C, {K}>>`";
}

/// A controller that may write the status of its primary if that is a custom resource: every one without
/// `primary(read_only)`.
pub trait WritesStatus: Controller {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A status that the controller `C` may write, for [`Context::patch_status`](super::Context::patch_status).
///
/// The status of a custom resource belongs to its controller. The status of a built-in kind belongs to another
/// controller, so it needs `primary(status)`.
#[diagnostic::on_unimplemented(
    message = "`{C}` may not write the status of its primary",
    label = "`status` on the primary is not declared",
    note = "help: write `#[controller(primary(status))]`, without `read_only`",
    note = "code: K0038"
)]
pub trait WritableBy<C: ?Sized> {
    #[doc(hidden)]
    const SEAL: Seal;
}
#[diagnostic::do_not_recommend]
impl<C: WritesStatus> WritableBy<C> for Derived {
    const SEAL: Seal = Seal;
}
#[diagnostic::do_not_recommend]
impl<C: Controller> WritableBy<C> for BuiltIn
where
    C::Verbs: Allows<verb::status, C, C::Primary>,
{
    const SEAL: Seal = Seal;
}
