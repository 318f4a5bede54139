//! Other clusters: types that name them, and the operations of a controller there.

use std::{marker::PhantomData, sync::Arc};

use kube::Client;

use super::{
    Controller, Live, Objects, ReconcileEnv,
    seal::{NoKind, NoOtherKind, Seal, ValidDeclaration},
};
use crate::{
    object::{Object, Readable, Stored},
    store::Store,
};

/// A second cluster as a type. With `on = Edge` one kind can be declared on several clusters, and `cx.cluster(Edge)`
/// selects the one to read or write.
///
/// ```text
/// use kctl::prelude::*;
///
/// /// The cluster at the edge.
/// pub struct Edge;
///
/// impl Cluster for Edge {
///     const NAME: &'static str = "edge";
/// }
///
/// /// Counts the secrets of both clusters.
/// #[controller(reads = Secret, watches = Secret(map = everything, on = Edge))]
/// async fn counter(_config: Arc<ConfigMap>, cx: Context<counter>) -> Result<Action> {
///     let (here, there) = (cx.store::<Secret>().len(), cx.cluster(Edge).store::<Secret>().len());
///     println!("{here} secrets here, {there} at the edge");
///     Ok(Action::await_change())
/// }
///
/// fn everything(_secret: &Secret, configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
///     configs.keys()
/// }
///
/// let app = App::new("counter")
///     .controller::<counter>()
///     .cluster(Edge::NAME, || async { Err("where is it?".into()) });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a cluster",
    label = "not a cluster",
    note = "help: write `impl Cluster for {Self} {{ const NAME: &'static str = \"…\"; }}`, with the name that `App::cluster` has; a kind that is declared with a string, `on = \"name\"`, is used without `cx.cluster`",
    note = "code: K0042"
)]
pub trait Cluster: Send + Sync + 'static {
    /// The name of the cluster in `App::cluster`.
    const NAME: &'static str;
}

/// A controller that caches the kind `K` of the cluster `M`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not declare `{K}` on the cluster `{M}`",
    label = "`{K}` is not declared with `on = {M}`",
    note = "help: write `#[controller(reads = {K}(on = {M}))]` or `watches = {K}(map = …, on = {M})`",
    note = "code: K0039"
)]
pub trait CachesOn<M, K>: Controller {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A controller that declares the kind `K` of the cluster `M`, with the verbs in the parentheses.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not declare `{K}` on the cluster `{M}`",
    label = "`{K}` is not declared with `on = {M}`",
    note = "help: write `#[controller(reads = {K}(verb, on = {M}))]` with the verbs that are used",
    note = "code: K0039"
)]
pub trait WritesOn<M, K>: Controller {
    /// The declared verbs.
    type Verbs;
    #[doc(hidden)]
    const SEAL: Seal;
}

// With these impls rustc reports which kind is not declared on which cluster. Without them it reports a missing
// method `objects`.
#[diagnostic::do_not_recommend]
impl<C: ValidDeclaration, M> WritesOn<M, NoKind> for C {
    type Verbs = NoKind;
    const SEAL: Seal = Seal;
}
#[diagnostic::do_not_recommend]
impl<C: ValidDeclaration, M> WritesOn<M, NoOtherKind> for C {
    type Verbs = NoOtherKind;
    const SEAL: Seal = Seal;
}

/// A controller that declares `reads = K(live, on = M)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not read `{K}` live on the cluster `{M}`",
    label = "`{K}` is not declared as `live` with `on = {M}`",
    note = "help: write `#[controller(reads = {K}(live, on = {M}))]`",
    note = "code: K0040"
)]
pub trait ReadsLiveOn<M, K>: Controller {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// A controller that declares `rbac(…, on = M)`, and so gets the client of that cluster.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no client of the cluster `{M}`: it declares no `rbac(…, on = {M})`",
    label = "`rbac(…, on = {M})` is not declared",
    note = "help: declare the kind, `#[controller(reads = Kind(on = {M}))]`, or write a rule for requests that kctl has no method for: `#[controller(rbac(rule(), on = {M}))]`; in a helper function, add the bound `HasRulesOn<{M}>`",
    note = "code: K0046"
)]
pub trait HasRulesOn<M>: Controller {
    #[doc(hidden)]
    const SEAL: Seal;
}

/// The operations of the controller `C` on the cluster `M`, from [`Context::cluster`](super::Context::cluster).
///
/// ```
/// use k8s_openapi::api::core::v1::Secret;
/// use kctl_runtime::reconcile::{CachesOn, Cluster, Context, Controller};
///
/// pub struct Edge;
/// impl Cluster for Edge {
///     const NAME: &'static str = "edge";
/// }
///
/// /// Returns the number of cached Secrets at the edge.
/// fn secrets_at_the_edge<C: Controller + CachesOn<Edge, Secret>>(cx: &Context<C>) -> usize {
///     cx.cluster(Edge).store::<Secret>().len()
/// }
/// ```
pub struct OnCluster<C: ?Sized, M> {
    env: Arc<ReconcileEnv>,
    primary: Arc<Stored>,
    types: PhantomData<fn() -> (*const C, M)>,
}

impl<C: ?Sized, M> std::fmt::Debug for OnCluster<C, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnCluster").field("primary", self.primary.key()).finish_non_exhaustive()
    }
}

impl<C: Controller, M: Cluster> OnCluster<C, M> {
    pub(super) fn new(env: Arc<ReconcileEnv>, primary: Arc<Stored>) -> Self {
        Self { env, primary, types: PhantomData }
    }

    /// Returns the cached objects of the kind `K` on this cluster.
    pub fn store<K: Readable>(&self) -> Store<K>
    where
        C: CachesOn<M, K>,
    {
        let source = self.env.source_on::<K>(Some(M::NAME));
        Store::new(source.store().clone()).of_part(source.part())
    }

    /// Returns `true` if the API server of this cluster serves the kind `K`, like
    /// [`Context::is_served`](super::Context::is_served).
    pub fn is_served<K: Readable>(&self) -> bool
    where
        C: CachesOn<M, K>,
    {
        self.env.source_on::<K>(Some(M::NAME)).store().is_served()
    }

    /// Returns the writes to objects of this cluster, with the verbs that the controller declares:
    /// `reads = Node(patch, on = M)`.
    pub fn objects<K: Readable>(&self) -> Objects<C, K, <C as WritesOn<M, K>>::Verbs>
    where
        C: WritesOn<M, K>,
    {
        Objects::new(self.env.clone(), self.primary.clone(), self.env.source_on::<K>(Some(M::NAME)))
    }

    /// Returns the client of this cluster for operations beyond this API, within the rules of `rbac(…, on = M)`, like
    /// [`Context::client`](super::Context::client).
    pub fn client(&self) -> Client
    where
        C: HasRulesOn<M>,
    {
        self.env.raw(M::NAME, self.primary.key())
    }

    /// Returns the reads of the kind `K` from the API server of this cluster, without the cache:
    /// `reads = K(live, on = M)`.
    pub fn live<K: Object>(&self) -> Live<K>
    where
        C: ReadsLiveOn<M, K>,
    {
        Live::new(self.env.clone(), self.primary.clone(), Some(M::NAME))
    }
}
