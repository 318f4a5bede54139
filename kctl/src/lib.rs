//! Kubernetes controllers in Rust: annotate a reconcile function, get a controller.
//!
//! From the annotation come the informers, the work queue, the RBAC role, and a compile-time check that the function does nothing
//! that it does not declare. The same program runs against a cluster (`run`), against an API server inside the process (`dev`), and
//! in tests under simulated time.
//!
//! # A whole operator
//!
//! ```no_run
//! use kctl::prelude::*;
//!
//! /// The kind: `generate-crds` prints its `CustomResourceDefinition`.
//! #[resource(group = "apps.example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
//! pub struct SiteSpec {
//!     #[kctl(minimum = 0)]
//!     pub replicas: i32,
//!     pub image: String,
//! }
//!
//! #[schema]
//! pub struct SiteStatus {
//!     pub pods: i32,
//! }
//!
//! /// Keeps `spec.replicas` pods for every `Site`. The declaration `owns = Pod(create, delete)` is all that it may do.
//! #[controller(owns = Pod(create, delete))]
//! async fn sites(site: Arc<Site>, cx: Context<sites>) -> Result<Action> {
//!     let pods = cx.owned::<Pod>();
//!     let wanted = usize::try_from(site.spec.replicas)?;
//!     for _ in pods.len()..wanted {
//!         pods.create(kctl::from_json(kctl::json!({
//!             "metadata": { "generateName": format!("{}-", site.name_any()) },
//!             "spec": { "containers": [{ "name": "web", "image": site.spec.image }] },
//!         }))?).await?;
//!     }
//!     for surplus in pods.iter().skip(wanted) {
//!         pods.delete(&surplus).await?;
//!     }
//!     cx.patch_status(SiteStatus { pods: site.spec.replicas }).await?;
//!     Ok(Action::await_change())
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> kctl::Result<()> {
//!     App::new("sites").controller::<sites>().main().await
//! }
//! ```
//!
//! `cargo run -- dev -f site.yaml` runs it without a cluster, `cargo run -- generate-manifests` prints what a cluster needs, and
//! `cargo run -- run` works there.
//!
//! # Concepts
//!
//! | | |
//! |---|---|
//! | **Primary** | The kind that is reconciled: the function's first parameter. One call handles one object, and never runs twice at once for it. |
//! | **Owned** | `owns = K`: objects whose controller reference names the primary. Read and change them with [`Context::owned`](reconcile::Context::owned). |
//! | **Watched** | `watches = K(map = f)`: objects whose changes queue the primaries that `f` returns. Read them with [`Context::store`](reconcile::Context::store). |
//! | **Cache** | Reads come from memory. After a write returns, the next read sees its result. |
//! | **Permissions** | Each operation of the [`Context`](reconcile::Context) compiles only if the declaration allows it; `generate-rbac` prints the role. |
//! | **Requests** | Writes are lazy: nothing is sent until a [`Request`](reconcile::Request) is awaited. With leader election each write first asks whether this replica still leads. |
//! | **Errors** | `?` works with every error; a failed key is retried with growing waits. [`ResultExt`](reconcile::ResultExt) sets the wait or stops the retries. |
//! | **Tests** | [`testing::TestServer`](https://docs.rs/kctl/latest/kctl/testing/struct.TestServer.html) runs the app against an API server in the process; `#[kctl::test]` adds simulated faults. |
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `dev` | yes | the command `dev` and `kctl::testing`: the embedded API server. Leave it out of release builds. |
//! | `v1_37` | yes | the built-in kinds of Kubernetes 1.37; exactly one version has to be on |
//! | `rules` | with `dev` | `generate-crds` checks CEL rules and patterns |
//! | `webhook` | no | `#[admission]`, `#[conversion]` and their HTTPS server |
//! | `otel` | no | traces sent to a collector over OTLP |
//! | `interpreter`, `lua`, `chain`, `thirdparty` | no | Karmada's resource interpreters |
//!
//! # Where to go next
//!
//! * [`prelude`]: the types that a controller's file needs.
//! * [`App`]: the program as a value, and its commands.
//! * [`reconcile::Context`]: reads and writes inside a reconcile.
//! * The [book](https://github.com/kctl-rs/kctl/tree/main/guide): tutorial, recipes, every option, every compile error.
//! * [`kctl_runtime`](https://docs.rs/kctl-runtime): the parts of the loop, usable without the macro.

#[cfg(feature = "webhook")]
pub mod admission;
pub mod app;
#[cfg(feature = "webhook")]
pub mod conversion;
#[cfg(feature = "interpreter")]
pub mod interpreter;
pub mod prelude;
#[cfg(feature = "dev")]
pub mod testing;

pub use app::App;
pub use k8s_openapi as k8s;
#[cfg(feature = "dev")]
pub use kctl_apiserver as apiserver;
/// Validates or changes objects before an API server stores them: an admission webhook as a function.
///
/// `#[admission(validate)]` takes `&Kind` and rejects the request with an error; `#[admission(mutate)]` takes `&mut Kind`.
/// [`App::admission`] registers functions.
///
/// ```
/// use kctl::prelude::*;
///
/// /// A Deployment without a number of replicas gets two.
/// #[admission(mutate)]
/// fn two_replicas(deployment: &mut Deployment) {
///     deployment.spec.replicas.get_or_insert(2);
/// }
///
/// let mut deployment = kctl::from_yaml("{spec: {selector: {}, template: {}}}").unwrap();
/// two_replicas(&mut deployment);
/// assert_eq!(deployment.spec.replicas, Some(2));
/// ```
#[cfg(feature = "webhook")]
#[doc(inline)]
pub use kctl_macros::admission;
/// Makes a controller of a reconcile function or of a struct with `impl Reconcile`.
///
/// The options declare the kinds that the controller uses: what it caches, which changes queue a key, and all that it may do.
/// The function's name is also the name of the controller's type, for `Context<name>` and [`App::controller`]. The book lists
/// [all options](https://github.com/kctl-rs/kctl/blob/main/guide/attributes.md).
///
/// ```
/// use kctl::prelude::*;
///
/// /// Keeps one Pod for each ConfigMap with the label `run`.
/// #[controller(owns = Pod(create, delete), primary(selector = "run"))]
/// async fn runner(config: Arc<ConfigMap>, cx: Context<runner>) -> Result<Action> {
///     let pods = cx.owned::<Pod>();
///     if pods.is_empty() {
///         pods.create(kctl::from_json(kctl::json!({
///             "metadata": { "generateName": format!("{}-", config.name_any()) },
///             "spec": { "containers": [{ "name": "main", "image": config.data.as_ref().and_then(|data| data.get("image")) }] },
///         }))?).await?;
///     }
///     for surplus in pods.iter().skip(1) {
///         pods.delete(&surplus).await?;
///     }
///     Ok(Action::await_change())
/// }
///
/// let app = App::new("runner").controller::<runner>();
/// ```
#[doc(inline)]
pub use kctl_macros::controller;
/// Converts objects between two versions of a kind: a function from one Rust type to the other.
///
/// The API server calls it when a client reads or writes a version that is not the stored one. [`App::conversion`] registers
/// functions, and has an example.
#[cfg(feature = "webhook")]
#[doc(inline)]
pub use kctl_macros::conversion;
/// Answers one question of Karmada about a kind: a resource interpreter as a function.
///
/// `op` names the operation, such as `InterpretReplica` or `InterpretHealth`. [`App::interpreter`] registers functions.
///
/// ```
/// use kctl::prelude::*;
///
/// /// Returns how many replicas a Deployment wants.
/// #[interpreter(op = InterpretReplica)]
/// fn replicas(deployment: &Deployment) -> Result<Replicas> {
///     Ok(Replicas { replicas: deployment.spec.replicas.unwrap_or(1), ..Replicas::default() })
/// }
///
/// let wanted = replicas(&kctl::from_yaml("{spec: {replicas: 3, selector: {}, template: {}}}").unwrap()).unwrap();
/// assert_eq!(wanted.replicas, 3);
/// ```
#[cfg(feature = "interpreter")]
#[doc(inline)]
pub use kctl_macros::interpreter;
/// Defines a custom resource: the struct becomes the `spec` of a kind.
///
/// It takes every option of kube's `#[kube(…)]`, adds the derives, and names fields in camelCase. `#[kctl(…)]` on a field sets bounds,
/// CEL rules and list types. `generate-crds` prints the `CustomResourceDefinition`.
///
/// ```
/// use kctl::prelude::*;
///
/// #[resource(
///     group = "example.com", version = "v1", kind = "Website", namespaced, shortname = "web", status = "WebsiteStatus",
///     printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas")
/// )]
/// pub struct WebsiteSpec {
///     /// The container image.
///     pub image: String,
///     /// Defaults to one.
///     #[serde(default = "one")]
///     pub replicas: i32,
/// }
///
/// #[schema]
/// pub struct WebsiteStatus {
///     pub ready_replicas: i32,
/// }
///
/// fn one() -> i32 {
///     1
/// }
///
/// let website = Website::new("web", WebsiteSpec { image: "nginx".into(), replicas: 2 });
/// assert_eq!(kctl::json!(website.spec)["replicas"], 2);
/// ```
#[doc(inline)]
pub use kctl_macros::resource;
/// Defines a type that is part of a custom resource: its status, or a struct or enum inside its spec.
///
/// Fields and variants' fields are camelCase in JSON, unless `#[serde(…)]` names them otherwise.
///
/// ```
/// use kctl::prelude::*;
///
/// #[schema]
/// #[derive(PartialEq)]
/// pub enum Strategy {
///     Recreate,
///     RollingUpdate { max_surge: i32 },
/// }
///
/// let strategy = kctl::json!(Strategy::RollingUpdate { max_surge: 1 });
/// assert_eq!(strategy, kctl::json!({ "RollingUpdate": { "maxSurge": 1 } }));
/// ```
#[doc(inline)]
pub use kctl_macros::schema;
/// Runs a [`Scenario`](testing::Scenario) again and again, each time with other simulated faults.
///
/// The function takes a scenario and returns it, completed. `seeds` is the number of seeded runs, 64 by default; the environment variable
/// `KCTL_SEEDS` changes it, and `KCTL_SEED` replays one run. A failure prints the faults that are enough for it, a timeline, and the
/// command that repeats it.
///
/// ```no_run
/// use kctl::{prelude::*, testing::Scenario};
///
/// #[controller(owns = Secret(create))]
/// async fn keeper(config: Arc<ConfigMap>, cx: Context<keeper>) -> Result<Action> {
///     if cx.owned::<Secret>().is_empty() {
///         cx.owned::<Secret>().create(kctl::from_json(kctl::json!({ "metadata": { "name": config.name_any() } }))?).await?;
///     }
///     Ok(Action::await_change())
/// }
///
/// #[kctl::test(seeds = 16)]
/// fn keeper_survives(scenario: Scenario) -> Scenario {
///     scenario
///         .app(|| App::new("keeper").controller::<keeper>())
///         .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
/// }
/// ```
#[cfg(feature = "dev")]
pub use kctl_macros::test;
/// Defines a view: a few fields of a kind, which a cache holds instead of whole objects.
///
/// Each field names its path in the kind as a Rust path, so that the compiler checks it. A field is an `Option` where a part of the path
/// may be absent. `reads = Pod(as = View)` and `watches = Pod(as = View, …)` use it.
///
/// ```
/// use kctl::prelude::*;
///
/// /// The node of a pod, and the team that it belongs to.
/// #[view(of = Pod)]
/// struct Placed {
///     #[view(spec.node_name)]
///     node: Option<String>,
///     #[view(metadata.annotations["example.com/team"])]
///     team: Option<String>,
/// }
///
/// /// Counts the pods on the node that a ConfigMap names.
/// #[controller(reads = Pod(as = Placed, index = by_node))]
/// async fn census(config: Arc<ConfigMap>, cx: Context<census>) -> Result<Action> {
///     let node = config.data.as_ref().and_then(|data| data.get("node").cloned()).unwrap_or_default();
///     let pods: Vec<Arc<Placed>> = cx.store::<Placed>().by(by_node, &node).collect();
///     let n_blue = pods.iter().filter(|pod| pod.team.as_deref() == Some("blue")).count();
///     cx.event(Normal, "Counted", format!("{} pods, {n_blue} of the blue team", pods.len()));
///     Ok(Action::await_change())
/// }
///
/// fn by_node(pod: &Placed) -> Vec<String> {
///     pod.node.iter().cloned().collect()
/// }
///
/// let app = App::new("census").controller::<census>();
/// ```
#[doc(inline)]
pub use kctl_macros::view;
#[doc(hidden)]
pub use kctl_runtime::__private;
pub use kctl_runtime::manager::metrics::prometheus_client::metrics;
pub use kctl_runtime::{
    connection::client,
    effect::ApiError,
    reconcile::{Error, Result},
    *,
};
pub use kube;
pub use serde_json::{Value as Json, from_value as from_json, json};
pub use serde_saphyr::from_str as from_yaml;
