//! The declaration as types: the operations that a controller may use. `#[controller]` implements these traits.
//!
//! Helper functions use them as bounds. Start with [`Owns`] and [`Reads`]; the others require less.

use super::Controller;
use super::seal::Seal;

/// The verbs as types. `status`, `scale`, `eviction`, `binding` and `token` are writes of these subresources, and
/// `apply` for a server-side apply patch.
#[expect(non_camel_case_types, reason = "they are spelled as in RBAC rules and in compiler messages")]
pub mod verb {
    macro_rules! verbs {
        ($($verb:ident)*) => { $(
            #[doc = concat!("The verb `", stringify!($verb), "`.")]
            #[derive(Debug)]
            pub struct $verb;
        )* };
    }
    verbs! { get list watch create update patch apply delete deletecollection status scale eviction binding token }
}

/// Declared verbs that include `V` on the kind `K`.
#[diagnostic::on_unimplemented(
    message = "`{C}` may not {V} `{K}`",
    label = "`{V}` on `{K}` is not declared",
    note = "help: add `{V}` to the verbs of `{K}` in `#[controller(…)]` of `{C}`, or to the bound of a helper function",
    note = "code: K0038"
)]
pub trait Allows<V, C: ?Sized, K> {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A controller that declares `owns = K`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not own `{K}`",
    label = "`{K}` is not declared as `owns`",
    note = "help: write `#[controller(owns = {K})]`; in a helper function, add the bound `Owns<{K}>`",
    note = "a kind has one relation: `watches` and `reads` are changed by `cx.objects::<{K}>()`, the primary by `cx.patch(…)` with `primary(patch)`, and `owns = Kind(metadata)` by `cx.owned::<PartialObjectMeta<Kind>>()`",
    note = "code: K0039"
)]
pub trait Declares<K>: Controller {
    /// The declared verbs.
    type Verbs;
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A controller that declares `rbac(…)`, and so gets a [client](super::Context::client).
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no client: it declares no `rbac(…)`",
    label = "`rbac(…)` is not declared",
    note = "help: declare the kind, `#[controller(reads = Kind)]`, or write a rule for requests that kctl has no method for: `#[controller(rbac(rule()))]`; in a helper function, add the bound `HasRules`",
    note = "code: K0046"
)]
pub trait HasRules: Controller {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A controller that caches `K`: as its primary, or by `owns`, `watches` or `reads`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not declare `{K}`",
    label = "`{K}` is not declared",
    note = "help: write `#[controller(owns = {K})]`, `reads = {K}` or `watches = {K}(map = …)`; in a helper function, add the bound `Reads<{K}>`",
    note = "a kind has one relation: with `reads = {K}(live)` it is read by `cx.live::<{K}>()`; without `live` it is cached",
    note = "code: K0039"
)]
pub trait Caches<K>: Controller {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A controller that declares `K` by `watches` or `reads`, with the verbs in the parentheses.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not declare `{K}` as `watches` or `reads`",
    label = "`{K}` is not declared as `watches` or `reads`",
    note = "help: write `#[controller(reads = {K}(verb))]` with the verbs that are used, such as `reads = {K}(patch)`; a view is only read: write its kind, `cx.objects::<Kind>()`; in a helper function, add the bound `Writes<{K}, Verbs: MayPatch<C, {K}>>` of `kctl::reconcile`",
    note = "a kind has one relation: `owns` is changed by `cx.owned::<{K}>()`, and the primary by `cx.patch(…)` with `primary(patch)`; what is read `live` is not changed",
    note = "code: K0039"
)]
pub trait Writes<K>: Controller {
    /// The declared verbs.
    type Verbs;
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A controller that declares `reads = K(live)`, so that [`Context::live`](super::Context::live) reads `K` from the API
/// server.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not read `{K}` live",
    label = "`{K}` is not declared as `live`",
    note = "help: write `#[controller(reads = {K}(live))]`; in a helper function, add the bound `ReadsLive<{K}>`",
    note = "a kind has one relation: a cached one is read by `cx.store::<{K}>()`, and the primary by `cx.get()` with `primary(get)`",
    note = "code: K0040"
)]
pub trait ReadsLive<K>: Controller {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// The bound of helper functions that read the cache of `K`: every controller that caches it.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use kctl_runtime::reconcile::{Context, Reads};
///
/// fn has_nodes<C: Reads<Node>>(cx: &Context<C>) -> bool {
///     !cx.store::<Node>().is_empty()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not declare `{K}`",
    label = "`{K}` is not declared",
    note = "help: write `#[controller(owns = {K})]`, `reads = {K}` or `watches = {K}(map = …)`; in a helper function, add the bound `Reads<{K}>`",
    note = "code: K0039"
)]
pub trait Reads<K>: Caches<K> {}
#[diagnostic::do_not_recommend]
impl<C: Caches<K>, K> Reads<K> for C {}

macro_rules! alias {
    ($(#[$doc:meta])* $name:ident: $($verb:ident)+; $message:literal, $label:literal, $help:literal) => {
        $(#[$doc])*
        #[diagnostic::on_unimplemented(message = $message, label = $label, note = $help, note = "code: K0038")]
        pub trait $name<K>: Declares<K, Verbs: $(Allows<verb::$verb, Self, K> +)+> {}
        #[diagnostic::do_not_recommend]
        impl<C, K> $name<K> for C where C: Declares<K, Verbs: $(Allows<verb::$verb, C, K> +)+> {}
    };
}
alias! {
    /// The bound of helper functions that manage `K`: controllers that declare `owns = K` without restricting the
    /// verbs, or with all of `create`, `update`, `patch`, `apply` and `delete`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kctl_runtime::reconcile::{Context, Owns, Result};
    /// use serde_json::json;
    ///
    /// async fn publish<C: Owns<ConfigMap>>(cx: &Context<C>, address: &str) -> Result<()> {
    ///     let config = json!({ "metadata": { "name": "address" }, "data": { "address": address } });
    ///     cx.owned::<ConfigMap>().apply(config).await?;
    ///     Ok(())
    /// }
    /// ```
    Owns: create update patch apply delete;
    "`{Self}` does not declare `owns = {K}`",
    "`owns = {K}` is not declared, or with fewer verbs",
    "help: write `#[controller(owns = {K})]` without verbs; in a helper function, add the bound `Owns<{K}>`, or ask for less: `Creates<{K}>`, `Patches<{K}>`, `Deletes<{K}>`"
}
alias! {
    /// The bound of helper functions that create owned objects of kind `K`: `owns = K`, or `owns = K(create)`.
    Creates: create;
    "`{Self}` may not create `{K}`",
    "`create` on `{K}` is not declared",
    "help: write `#[controller(owns = {K}(create))]`; in a helper function, add the bound `Creates<{K}>`"
}
alias! {
    /// The bound of helper functions that patch owned objects of kind `K`: `owns = K`, or `owns = K(patch)`.
    Patches: patch;
    "`{Self}` may not patch `{K}`",
    "`patch` on `{K}` is not declared",
    "help: write `#[controller(owns = {K}(patch))]`; in a helper function, add the bound `Patches<{K}>`"
}
alias! {
    /// The bound of helper functions that delete owned objects of kind `K`: `owns = K`, or `owns = K(delete)`.
    Deletes: delete;
    "`{Self}` may not delete `{K}`",
    "`delete` on `{K}` is not declared",
    "help: write `#[controller(owns = {K}(delete))]`; in a helper function, add the bound `Deletes<{K}>`"
}
