//! The API of reconcile functions: [`Context`] and its operations, [`Action`], [`Error`], and the traits of controllers.

mod applied;
mod apply;
pub(crate) mod astray;
mod cluster;
mod conditions;
mod context;
mod delete;
mod error;
mod events;
mod given;
mod live;
mod may;
mod outcome;
mod owned;
mod owner_references;
mod permission;
mod reason;
mod request;
mod status;
mod unbound;
mod unreadable;
mod used;
mod vain;

use std::{pin::Pin, sync::Arc, time::Duration};

pub(crate) use applied::Applied;
pub use cluster::{CachesOn, Cluster, HasRulesOn, OnCluster, ReadsLiveOn, WritesOn};
pub use conditions::{ConditionError, Conditions};
pub use context::Context;
pub(crate) use context::Env;
pub use delete::DeleteRequest;
pub use error::{Error, Result, ResultExt};
pub use events::Events;
pub use live::{Live, Objects};
pub use may::{
    MayApply, MayBind, MayCreate, MayDelete, MayDeleteCollection, MayDeletePrimary, MayEvict, MayGetPrimary, MayPatch,
    MayPatchPrimary, MayPatchStatus, MayScale, MayScalePrimary, MayToken, MayUpdate, WritableBy, WritesStatus,
};
pub use outcome::{Outcome, outcome};
pub use owned::{Converged, CreateRequest, Owned};
pub use permission::{
    Allows, Caches, Creates, Declares, Deletes, HasRules, Owns, Patches, Reads, ReadsLive, Writes, verb,
};
pub use reason::Reason;
pub use request::Request;
pub use status::{BuiltIn, Derived, HasStatus};
#[doc(hidden)]
pub use unbound::WithoutBounds;
pub use unreadable::UnreadableObject;
pub(crate) use used::Used;
pub(crate) use vain::Vain;

use crate::{object::Object, spec::ControllerSpec};

/// A controller: its primary kind and its declaration as data. `#[controller]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a controller",
    label = "not a controller",
    note = "help: annotate it with `#[controller(…)]`; in a helper function, add the bound `Controller`",
    note = "code: K0033"
)]
pub trait Controller: Sized + 'static {
    /// The primary kind.
    type Primary: Object;
    /// The permissions on its primary.
    type Grant;

    /// Returns the declaration as data.
    fn spec() -> ControllerSpec;

    /// How the controller cleans up; present exactly when it declares a finalizer.
    #[doc(hidden)]
    fn finalize_fn() -> Option<FinalizeFn<Self>> {
        None
    }

    /// What tells that an object of the initial list needs no reconcile; present exactly when `converged` is declared.
    #[doc(hidden)]
    fn converged_fn() -> Option<ConvergedFn<Self>> {
        None
    }
}

/// The reconcile function of a controller struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `reconcile`",
    label = "`impl Reconcile` is missing",
    note = "help: write `impl Reconcile for {Self} {{ async fn reconcile(&self, object: Arc<…>, cx: Context<Self>) -> Result<Action> {{ … }} }}`",
    note = "code: K0034"
)]
pub trait Reconcile: Controller + Send + Sync {
    /// Compares what the object asks for with what exists, and acts on the difference.
    ///
    /// It is called with the newest cached state whenever the object or a related one may have changed, and never twice at once for the same
    /// key. It can't rely on seeing every change, and does nothing if there is no difference.
    ///
    /// # Errors
    /// An error is logged and the key retried with growing waits, unless it is `.terminal()`.
    fn reconcile(&self, object: Arc<Self::Primary>, cx: Context<Self>) -> impl Future<Output = Result<Action>> + Send;
}

/// The cleanup of a controller with a finalizer, before an object is deleted.
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares a finalizer but has no `finalize`",
    label = "`impl Finalize` is missing",
    note = "help: write `impl Finalize for {Self} {{ async fn finalize(&self, object: Arc<…>, cx: Context<Self>) -> Result<()> {{ … }} }}`",
    note = "code: K0035"
)]
pub trait Finalize: Controller + DeclaresFinalizer {
    /// Cleans up what exists outside the cluster. It is called while the object is being deleted; the finalizer is removed when it returns
    /// `Ok`.
    ///
    /// # Errors
    /// An error keeps the finalizer, and the cleanup is retried.
    fn finalize(&self, object: Arc<Self::Primary>, cx: Context<Self>) -> impl Future<Output = Result<()>> + Send;

    /// Called instead of [`finalize`](Self::finalize) for an object that can't be read as the primary, and of which this process
    /// has read no earlier state: after a change of the type, or of the CRD by another program. The finalizer goes when it
    /// returns `Ok`. Without an implementation the finalizer stays, and a `Warning` event on the object says what to do.
    ///
    /// ```
    /// # use kctl_runtime::reconcile::{Result, UnreadableObject};
    /// # struct Records;
    /// # impl Records { async fn remove(&self, _id: &str) -> Result<()> { Ok(()) } }
    /// # async fn finalize_unreadable(records: &Records, object: UnreadableObject) -> Result<()> {
    /// // What was made outside is named in the status, which may well be readable.
    /// if let Some(id) = object.json["status"]["recordId"].as_str() {
    ///     records.remove(id).await?;
    /// }
    /// Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Any error keeps the finalizer and is tried again, unless it is `.terminal()`.
    fn finalize_unreadable(
        &self,
        object: UnreadableObject,
        cx: Context<Self>,
    ) -> impl Future<Output = Result<()>> + Send {
        drop(cx);
        std::future::ready(Err(object.into_error()))
    }
}

/// A controller that declares `finalizer = "…"`: without it, `finalize` would never be called.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has a `finalize` but declares no finalizer",
    label = "no finalizer is declared",
    note = "help: write `finalizer = \"example.com/name\"` in `#[controller(…)]` of `{Self}`",
    note = "code: K0036"
)]
pub trait DeclaresFinalizer {}

/// A `Finalize` as values.
pub struct FinalizeFn<C: Controller> {
    #[doc(hidden)]
    pub readable: CleanUp<C, Arc<C::Primary>>,
    #[doc(hidden)]
    pub unreadable: CleanUp<C, UnreadableObject>,
}

/// A clean-up of an object in one of its forms.
pub type CleanUp<C, O> = for<'a> fn(&'a C, O, Context<C>) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A check of `converged = f`.
pub type ConvergedFn<C> = fn(&<C as Controller>::Primary, &Context<C>) -> bool;

/// Controllers without state: those made from functions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a controller made from a function",
    label = "not a function with `#[controller]`",
    note = "help: register a struct by `App::controller_with(|env| async {{ Ok({Self} {{ … }}) }})`",
    note = "code: K0037"
)]
pub trait FunctionController: Reconcile {
    /// The controller.
    fn instance() -> Self;
}

/// The next step for a key after a successful reconcile: wait for a change, or reconcile again after a time.
///
/// ```
/// use std::time::Duration;
/// use kctl_runtime::reconcile::Action;
/// assert_eq!(Action::requeue(Duration::from_secs(60)).requeue_after(), Some(Duration::from_secs(60)));
/// assert_eq!(Action::await_change().requeue_after(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an action does nothing until the reconcile returns it"]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Waits until the primary or a related object changes.
    pub fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// Reconciles again after `after`, or sooner if the primary or a related object changes.
    pub fn requeue(after: Duration) -> Self {
        Self { requeue_after: Some(after) }
    }

    /// Returns the wait of [`requeue`](Self::requeue), or `None`.
    pub fn requeue_after(self) -> Option<Duration> {
        self.requeue_after
    }
}
