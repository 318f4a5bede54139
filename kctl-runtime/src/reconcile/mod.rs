//! The API of reconcile functions: [`Context`] and its operations, [`Action`], [`Error`], and the permission types.
//!
//! A reconcile function compares what an object asks for with what exists, and acts on the difference. It gets the
//! object and a [`Context`], and returns an [`Action`] or an [`Error`]:
//!
//! | In the function | Use |
//! |---|---|
//! | read a cache | [`cx.store::<K>()`](Context::store), [`cx.owned::<K>()`](Context::owned) |
//! | read the API server | [`cx.live::<K>()`](Context::live) |
//! | create, change and delete owned objects | [`Owned`], above all [`converge`](Owned::converge) |
//! | change other objects | [`cx.objects::<K>()`](Context::objects) |
//! | write the status | [`cx.patch_status(…)`](Context::patch_status) with [`Conditions`] |
//! | record an Event | [`cx.event(…)`](Context::event) |
//! | run again later | [`Action::requeue`] |
//! | do not retry an error | [`ResultExt::terminal`] |
//!
//! # Permissions are types
//!
//! The declaration of a controller, `#[controller(owns = Pod, reads = Node(patch))]`, generates the RBAC role and
//! implements traits such as [`Declares<Pod>`](Declares) and [`Writes<Node>`](Writes). Each operation requires the
//! trait of its verb. A call that the role would not allow does not compile, and the error names the declaration to
//! add. A helper function names only what it needs:
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//! use kctl_runtime::reconcile::{Action, Context, Owns, Reads, Result};
//! use serde_json::json;
//!
//! /// Owns one Pod per line of a ConfigMap. Any controller that declares both kinds can call it.
//! async fn one_pod_per_line<C: Owns<Pod> + Reads<ConfigMap>>(cx: &Context<C>) -> Result<Action> {
//!     let configs = cx.store::<ConfigMap>();
//!     let lines = configs.iter().flat_map(|config| config.data.clone().unwrap_or_default().into_values());
//!     let desired = lines.map(|line| {
//!         let container = json!({ "name": "main", "image": "busybox", "args": ["echo", line] });
//!         json!({ "metadata": { "name": line }, "spec": { "containers": [container] } })
//!     });
//!     cx.owned::<Pod>().converge(desired).await?;
//!     Ok(Action::await_change())
//! }
//! ```
//!
//! # Rules for reconcile functions
//!
//! - It can be called at any time and any number of times. Without a difference it does nothing.
//! - It never runs twice at once for one key, so it needs no lock per object.
//! - Caches contain its own writes, and may lack the newest writes of other clients. Writes that depend on a state fail
//!   with a conflict if it was outdated; return that error, and the newer state is reconciled.
//! - An error is retried with exponential backoff. A panic counts as an error.

mod api_request;
mod applied;
mod apply;
mod cluster;
mod conditions;
mod context;
mod delete;
mod error;
mod events;
mod live;
mod merge_patch;
pub(crate) mod missing_bounds;
pub(crate) mod misuse_diagnostics;
mod noop_writes;
mod outcome;
mod owned;
mod owner_references;
mod payload;
mod permission;
mod reason;
pub(crate) mod seal;
mod status;
mod timed_runs;
mod unreadable;
mod used_caches;
mod verb_bounds;

use std::{pin::Pin, sync::Arc, time::Duration};

pub use api_request::ApiRequest;
pub(crate) use applied::Applied;
pub use cluster::{CachesOn, Cluster, HasRulesOn, OnCluster, ReadsLiveOn, WritesOn};
pub use conditions::{ConditionError, Conditions};
pub use context::Context;
pub(crate) use context::{Env, ReconcileEnv};
pub use delete::DeleteRequest;
pub use error::{Error, Result, ResultExt};
pub use events::Events;
pub use live::{Live, Objects};
pub(crate) use noop_writes::NoopWrites;
pub use outcome::{Outcome, outcome};
pub use owned::{Converged, CreateRequest, Owned};
pub use permission::{
    Allows, Caches, Creates, Declares, Deletes, HasRules, Owns, Patches, Reads, ReadsLive, Writes, verb,
};
pub use reason::ReconcileReason;
pub use status::{BuiltIn, Derived, HasStatus};
pub(crate) use timed_runs::TimedRuns;
pub use unreadable::UnreadableObject;
pub(crate) use used_caches::UsedCaches;
pub use verb_bounds::{
    MayApply, MayBind, MayCreate, MayDelete, MayDeleteCollection, MayDeletePrimary, MayEvict, MayGetPrimary, MayPatch,
    MayPatchPrimary, MayPatchStatus, MayScale, MayScalePrimary, MayToken, MayUpdate, WritableBy, WritesStatus,
};

use crate::{declaration::ControllerSpec, object::Object};

/// A controller: its primary kind and its declaration as data. `#[controller]` implements it; user code only names it
/// in bounds.
///
/// ```
/// use kctl_runtime::reconcile::{Context, Controller};
///
/// /// A helper for every controller.
/// fn describe<C: Controller>(cx: &Context<C>) -> String {
///     format!("{} {}: attempt {}", C::spec().name, cx.key(), cx.attempt())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a controller",
    label = "not a controller",
    note = "help: annotate it with `#[controller(…)]`; in a helper function, add the bound `Controller`",
    note = "code: K0033"
)]
pub trait Controller: Sized + 'static {
    /// The kind whose objects the controller reconciles.
    type Primary: Object;
    /// The declared verbs on the primary, from `primary(…)`.
    type Verbs;

    /// Returns the declaration as data: kinds, relations, verbs and options.
    fn spec() -> ControllerSpec;

    /// Returns the cleanup, exactly if the controller declares a finalizer.
    #[doc(hidden)]
    fn finalize_fn() -> Option<FinalizeFn<Self>> {
        None
    }

    /// Returns the check of `converged = f`, if it is declared: objects of the initial list that pass it need no
    /// reconcile.
    #[doc(hidden)]
    fn converged_fn() -> Option<ConvergedFn<Self>> {
        None
    }
}

/// The reconcile function of a controller that is a struct, with fields for clients and configuration.
///
/// A controller without state is simpler as a function:
/// `#[controller] async fn name(object: Arc<K>, cx: Context<name>) -> Result<Action>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `reconcile`",
    label = "`impl Reconcile` is missing",
    note = "help: write `impl Reconcile for {Self} {{ async fn reconcile(&self, object: Arc<…>, cx: Context<Self>) -> Result<Action> {{ … }} }}`",
    note = "code: K0034"
)]
pub trait Reconcile: Controller + Send + Sync {
    /// Compares what the object asks for with what exists, and acts on the difference.
    ///
    /// It is called with the newest cached state whenever the object or a related one may have changed, and never twice
    /// at once for the same key. It cannot rely on seeing every change, and does nothing if nothing differs.
    ///
    /// # Errors
    /// An error is logged, and the key is retried with exponential backoff, unless the error is
    /// [terminal](ResultExt::terminal).
    fn reconcile(&self, object: Arc<Self::Primary>, cx: Context<Self>) -> impl Future<Output = Result<Action>> + Send;
}

/// The cleanup of a controller with a finalizer, before an object is deleted.
///
/// The [worker](crate::worker) adds the finalizer before the first reconcile of an object, so no external resource
/// exists without it. See the Kubernetes documentation on
/// [finalizers](https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/).
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares a finalizer but has no `finalize`",
    label = "`impl Finalize` is missing",
    note = "help: write `impl Finalize for {Self} {{ async fn finalize(&self, object: Arc<…>, cx: Context<Self>) -> Result<()> {{ … }} }}`",
    note = "code: K0035"
)]
pub trait Finalize: Controller + DeclaresFinalizer {
    /// Cleans up what exists outside the cluster. It is called while the object is being deleted, possibly more than
    /// once; the finalizer is removed when it returns `Ok`.
    ///
    /// # Errors
    /// An error keeps the finalizer, and the cleanup is retried.
    fn finalize(&self, object: Arc<Self::Primary>, cx: Context<Self>) -> impl Future<Output = Result<()>> + Send;

    /// Cleans up an object that cannot be decoded as the primary, and that this process has never read in an earlier
    /// state. It is called instead of [`finalize`](Self::finalize), after a change of the type, or of the CRD by
    /// another program.
    ///
    /// The finalizer is removed when it returns `Ok`. The default implementation keeps it, and a `Warning` event on the
    /// object says what to do.
    ///
    /// ```
    /// # use kctl_runtime::reconcile::{Result, UnreadableObject};
    /// # struct Records;
    /// # impl Records { async fn remove(&self, _id: &str) -> Result<()> { Ok(()) } }
    /// # async fn finalize_unreadable(records: &Records, object: UnreadableObject) -> Result<()> {
    /// // The status names the external record, and may well be readable.
    /// if let Some(id) = object.json["status"]["recordId"].as_str() {
    ///     records.remove(id).await?;
    /// }
    /// Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An error keeps the finalizer and is retried, unless it is [terminal](ResultExt::terminal).
    fn finalize_unreadable(
        &self,
        object: UnreadableObject,
        cx: Context<Self>,
    ) -> impl Future<Output = Result<()>> + Send {
        drop(cx);
        std::future::ready(Err(object.into_error()))
    }
}

/// A controller that declares `finalizer = "…"`. Without the declaration `finalize` would never be called.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has a `finalize` but declares no finalizer",
    label = "no finalizer is declared",
    note = "help: write `finalizer = \"example.com/name\"` in `#[controller(…)]` of `{Self}`",
    note = "code: K0036"
)]
pub trait DeclaresFinalizer {}

/// The functions of a [`Finalize`] implementation as values, for generated code.
pub struct FinalizeFn<C: Controller> {
    pub(crate) readable: CleanUp<C, Arc<C::Primary>>,
    pub(crate) unreadable: CleanUp<C, UnreadableObject>,
}

impl<C: Controller> std::fmt::Debug for FinalizeFn<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FinalizeFn").finish_non_exhaustive()
    }
}

/// A cleanup of an object in one of its forms.
pub(crate) type CleanUp<C, O> =
    for<'a> fn(&'a C, O, Context<C>) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// The check of `converged = f`.
pub type ConvergedFn<C> = fn(&<C as Controller>::Primary, &Context<C>) -> bool;

/// A controller without state, made from a function. `App::controller` creates it by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a controller made from a function",
    label = "not a function with `#[controller]`",
    note = "help: register a struct by `App::controller_with(|env| async {{ Ok({Self} {{ … }}) }})`",
    note = "controllers are registered one at a time: `.controller::<a>().controller::<b>()`; functions of other attributes are registered by `App::admission`, `App::conversion` or `App::interpreter`",
    note = "code: K0037"
)]
pub trait FunctionController: Reconcile {
    /// Returns the controller.
    fn instance() -> Self;
}

/// The next step for a key after a successful reconcile: wait for a change, or reconcile again after a time.
///
/// In both cases a change of the primary or of a related object leads to a reconcile at once. Return an error, not an
/// action, if something failed: failures count, and the key gets the backoff of the controller.
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
    /// Waits until the primary or a related object changes. The usual result: watches report everything that the
    /// declaration names.
    pub fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// Reconciles again after `after`, or sooner if the primary or a related object changes.
    ///
    /// Use it for what no watch reports: a TTL, a certificate that expires, an external system that must be polled. The
    /// longest wait is one year ([`WAIT_MAX`](crate::queue::WAIT_MAX)). A requeue resets the failures of the key.
    pub fn requeue(after: Duration) -> Self {
        Self { requeue_after: Some(after) }
    }

    /// Returns the wait of [`requeue`](Self::requeue), or `None`.
    pub fn requeue_after(self) -> Option<Duration> {
        self.requeue_after
    }
}
