//! What each operation asks of a grant: a trait an operation, so that the error says in a sentence what to declare.

use super::{Allows, BuiltIn, Controller, Derived, verb};
use crate::__private::Seal;

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $verb:ident, $message:literal, $label:literal, $help:literal;)*) => { $(
        $(#[$doc])*
        #[diagnostic::on_unimplemented(message = $message, label = $label, note = $help, note = "code: K0038")]
        pub trait $name<C: ?Sized, K> {}
        #[diagnostic::do_not_recommend]
        impl<A: Allows<verb::$verb, C, K>, C: ?Sized, K> $name<C, K> for A {}
    )* };
}

operations! {
    /// A grant that includes `create`.
    MayCreate: create,
        "`{C}` may not create `{K}`",
        "`create` on `{K}` is not declared",
        "help: write `create` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Creates<{K}>`, or `Writes<{K}, Grant: MayCreate<C, {K}>>` of `kctl::reconcile` for what is not owned; what is owned with `metadata` is written by `apply`";
    /// A grant that includes `update`.
    MayUpdate: update,
        "`{C}` may not update `{K}`",
        "`update` on `{K}` is not declared",
        "help: write `update` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Owns<{K}>`, or `Writes<{K}, Grant: MayUpdate<C, {K}>>` of `kctl::reconcile` for what is not owned; what is owned with `metadata` is written by `apply`";
    /// A grant that includes `patch`.
    MayPatch: patch,
        "`{C}` may not patch `{K}`",
        "`patch` on `{K}` is not declared",
        "help: write `patch` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Patches<{K}>`, or `Writes<{K}, Grant: MayPatch<C, {K}>>` of `kctl::reconcile` for what is not owned";
    /// A grant that includes `apply`.
    MayApply: apply,
        "`{C}` may not apply `{K}`",
        "`apply` on `{K}` is not declared",
        "help: write `apply` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Owns<{K}>`, or `Writes<{K}, Grant: MayApply<C, {K}>>` of `kctl::reconcile` for what is not owned";
    /// A grant that includes `delete`.
    MayDelete: delete,
        "`{C}` may not delete `{K}`",
        "`delete` on `{K}` is not declared",
        "help: write `delete` in the parentheses of `{K}` in `#[controller(…)]`; in a helper function, add the bound `Deletes<{K}>`, or `Writes<{K}, Grant: MayDelete<C, {K}>>` of `kctl::reconcile` for what is not owned";
    /// A grant that includes `deletecollection`.
    MayDeleteCollection: deletecollection,
        "`{C}` may not delete collections of `{K}`",
        "`deletecollection` on `{K}` is not declared",
        "help: write `deletecollection` in the parentheses of `{K}` in `#[controller(…)]`";
    /// A grant that includes `status`.
    MayPatchStatus: status,
        "`{C}` may not write the status of `{K}`",
        "`status` on `{K}` is not declared",
        "help: write `status` in the parentheses of `{K}` in `#[controller(…)]`";
    /// A grant that includes `scale`.
    MayScale: scale,
        "`{C}` may not scale `{K}`",
        "`scale` on `{K}` is not declared",
        "help: write `scale` in the parentheses of `{K}` in `#[controller(…)]`";
    /// A grant that includes `eviction`.
    MayEvict: eviction,
        "`{C}` may not evict `{K}`",
        "`eviction` on `{K}` is not declared",
        "help: write `eviction` in the parentheses of `{K}` in `#[controller(…)]`";
    /// A grant that includes `binding`.
    MayBind: binding,
        "`{C}` may not bind `{K}`",
        "`binding` on `{K}` is not declared",
        "help: write `binding` in the parentheses of `{K}` in `#[controller(…)]`";
    /// A grant that includes `token`.
    MayToken: token,
        "`{C}` may not ask for tokens of `{K}`",
        "`token` on `{K}` is not declared",
        "help: write `token` in the parentheses of `{K}` in `#[controller(…)]`";
    /// A grant that includes `get` on the primary.
    MayGetPrimary: get,
        "`{C}` may not get `{K}` from the API server",
        "`get` on the primary is not declared",
        "help: write `#[controller(primary(get))]`; in a helper function, add the bound `Controller<Primary = {K}, Grant: MayGetPrimary<C, {K}>>`";
    /// A grant that includes `patch` on the primary.
    MayPatchPrimary: patch,
        "`{C}` may not patch `{K}`",
        "`patch` on the primary is not declared",
        "help: write `#[controller(primary(patch))]`; in a helper function, add the bound `Controller<Primary = {K}, Grant: MayPatchPrimary<C, {K}>>`";
    /// A grant that includes `delete` on the primary.
    MayDeletePrimary: delete,
        "`{C}` may not delete `{K}`",
        "`delete` on the primary is not declared",
        "help: write `#[controller(primary(delete))]`; in a helper function, add the bound `Controller<Primary = {K}, Grant: MayDeletePrimary<C, {K}>>`";
    /// A grant that includes `scale` on the primary.
    MayScalePrimary: scale,
        "`{C}` may not scale `{K}`",
        "`scale` on the primary is not declared",
        "help: write `#[controller(primary(scale))]`; in a helper function, add the bound `Controller<Primary = {K}, Grant: MayScalePrimary<C, {K}>>`";
}

/// A controller that may write the status of its primary where that is a custom resource: each, but for `primary(read_only)`.
pub trait WritesStatus: Controller {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A status that the controller `C` may write. That of a custom resource is its controller's; that of a built-in kind is somebody
/// else's, unless it is declared.
#[diagnostic::on_unimplemented(
    message = "`{C}` may not write the status of its primary",
    label = "`status` on the primary is not declared",
    note = "help: write `#[controller(primary(status))]`, without `read_only`",
    note = "code: K0038"
)]
pub trait WritableBy<C: ?Sized> {}
#[diagnostic::do_not_recommend]
impl<C: WritesStatus> WritableBy<C> for Derived {}
#[diagnostic::do_not_recommend]
impl<C: Controller> WritableBy<C> for BuiltIn where C::Grant: Allows<verb::status, C, C::Primary> {}
