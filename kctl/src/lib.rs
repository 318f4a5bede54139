//! Kubernetes controllers in Rust: annotate a reconcile function, get a controller.
//!
//! The annotation generates the informers, the work queue, the RBAC role, and a compile-time check
//! that every operation on its `Context` is declared. The same program runs against a cluster
//! (`run`), against an API server inside the process (`dev`), and in tests under simulated time.
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
//! /// Keeps `spec.replicas` pods for every `Site`. The declaration lists what it may do to Pods; the role gets list, watch,
//! /// the status of the `Site` and events as well.
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
//!     // `pods` is a snapshot. A new call of `owned` has the writes above.
//!     let pods = i32::try_from(cx.owned::<Pod>().len())?;
//!     cx.patch_status(SiteStatus { pods }).await?;
//!     Ok(Action::await_change())
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> kctl::Result<()> {
//!     App::new("sites").controller::<sites>().main().await
//! }
//! ```
//!
//! `cargo run -- dev -f site.yaml` runs it without a cluster, `cargo run -- generate-manifests`
//! prints what a cluster needs, and `cargo run -- run` works there. [`App::main`] lists all
//! commands.
//!
//! # Concepts
//!
//! | | |
//! |---|---|
//! | **Primary** | The kind that is reconciled: the function's first parameter. One call handles one object, and never runs twice at once for it. |
//! | **Owned** | `owns = K`: objects whose controller reference names the primary. Read and change them with [`Context::owned`](reconcile::Context::owned). |
//! | **Watched** | `watches = K(map = f)`: objects whose changes enqueue the primaries that `f` returns. Read them with [`Context::store`](reconcile::Context::store). |
//! | **Read** | `reads = K`: objects that are cached and enqueue nothing, from [`Context::store`](reconcile::Context::store). `reads = K(live)` reads from the API server instead, by [`Context::live`](reconcile::Context::live). |
//! | **Predicate** | `when = f` in the parentheses of a kind: the changes that count. [`generation_changed`](predicate::generation_changed) ignores changes of status and metadata. |
//! | **Cache** | Reads come from memory. After a write returns, the next read sees its result. |
//! | **Writes** | They are lazy: nothing is sent until an [`ApiRequest`](reconcile::ApiRequest) is awaited. With leader election each write first checks that this replica still leads. |
//! | **Status** | [`Context::patch_status`](reconcile::Context::patch_status) needs no verb for a custom resource with a status; `primary(read_only)` takes it away. `primary(patch, …)` names the verbs for other writes to the primary. |
//! | **Permissions** | Each operation of the [`Context`](reconcile::Context) compiles only if the declaration allows it; `generate-rbac` prints the role. |
//! | **Errors** | `?` works with every error; a failed key is retried with exponential backoff. [`ResultExt`](reconcile::ResultExt) sets the wait or stops the retries. |
//! | **Finalizer** | `finalizer = "example.com/name"` on a struct with [`Finalize`](reconcile::Finalize): it is added before the first reconcile, and removed when `finalize` returns `Ok`. |
//! | **Events** | [`Context::event`](reconcile::Context::event) records what people should see in `kubectl describe`. It is sent in the background; if too many wait, the newest are dropped. |
//! | **Tests** | [`testing::TestServer`](https://docs.rs/kctl/latest/kctl/testing/struct.TestServer.html) runs the app against an API server in the process; `#[kctl::test]` adds simulated faults. |
//!
//! # How a reconcile works
//!
//! A reconcile is *level-triggered*: it gets an object, not a change. It compares the desired
//! state, which is the object's `spec`, with the observed state, which is in the caches, and writes
//! the difference. It must give the same result if it runs twice, or if several changes were merged
//! into one call.
//!
//! 1. A list and a watch fill the cache of each declared kind. A controller starts when all its
//!    caches are complete.
//! 2. A change of a primary enqueues its key. A change of an owned object enqueues the key of its
//!    controller, and a change of a watched object the keys that its `map` returns.
//! 3. A worker takes a key from the queue and calls the function with the newest cached state.
//!    `concurrency = n` sets the number of workers; one key is never reconciled twice at once.
//! 4. The function reads from the caches and awaits its writes. An error requeues the key with
//!    backoff. A conflict (409) requeues it when the watch delivers the newer state. It is not a failure unless the
//!    error names a wait. After more than five in a row the key is reported as failing.
//! 5. [`Action`](reconcile::Action) sets when the function is called again without a
//!    change.
//!
//! This is the design of client-go and controller-runtime. The names are theirs as well: informer,
//! store, event handler, predicate, work queue, requeue. The book [explains
//! them](https://github.com/kctl-rs/kctl/blob/main/guide/concepts.md).
//!
//! # The declaration is checked
//!
//! The options of `#[controller(…)]` are the only source of permissions. An operation that is not
//! declared is a compile error, with the option to add in its message:
//!
//! ```compile_fail
//! use kctl::prelude::*;
//!
//! #[controller(owns = Pod(create))]
//! async fn sites(_site: Arc<ConfigMap>, cx: Context<sites>) -> Result<Action> {
//!     for pod in cx.owned::<Pod>().iter() {
//!         cx.owned::<Pod>().delete(&pod).await?; // error: `delete` is not declared
//!     }
//!     Ok(Action::await_change())
//! }
//! ```
//!
//! `owns = Pod(create, delete)` makes it compile.
//!
//! From the same declaration, `generate-rbac` prints a role with exactly these verbs. `dev` and
//! tests run the app under that role, so a permission that is missing in a cluster is missing in a
//! test as well.
//!
//! # Errors and retries
//!
//! Return errors with `?`. A failing key waits for 5 ms, then twice as long at each failure, up to
//! 1000 s; `backoff(…)` changes both. Other keys are not delayed.
//!
//! ```
//! use kctl::prelude::*;
//!
//! #[controller]
//! async fn parses(config: Arc<ConfigMap>, _cx: Context<parses>) -> Result<Action> {
//!     let data = config.data.as_ref().and_then(|data| data.get("size"));
//!     // A retry can't fix the string: the key is given up until its next event or resync.
//!     let size: u32 = data.map_or("1", String::as_str).parse().terminal()?;
//!     println!("{size}");
//!     Ok(Action::requeue(Duration::from_secs(600)))
//! }
//! # let _app = App::new("parses").controller::<parses>();
//! ```
//!
//! # Test it
//!
//! ```
//! use kctl::{kube::{Api, api::PostParams}, prelude::*, testing::TestServer};
//!
//! /// Keeps a `Secret` for each `ConfigMap`.
//! #[controller(owns = Secret(create))]
//! async fn secrets(config: Arc<ConfigMap>, cx: Context<secrets>) -> Result<Action> {
//!     let owned = cx.owned::<Secret>();
//!     if owned.is_empty() {
//!         let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
//!         owned.create(Secret { metadata, ..Secret::default() }).await?;
//!     }
//!     Ok(Action::await_change())
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> kctl::Result<()> {
//!     let server = TestServer::start(App::new("secrets").controller::<secrets>()).await?;
//!     let config = kctl::from_json(kctl::json!({ "metadata": { "name": "web" } }))?;
//!     Api::<ConfigMap>::default_namespaced(server.client()).create(&PostParams::default(), &config).await?;
//!     server.idle().await?;
//!     assert!(Api::<Secret>::default_namespaced(server.client()).get_opt("web").await?.is_some());
//!     Ok(())
//! }
//! ```
//!
//! A [`TestServer`](https://docs.rs/kctl/latest/kctl/testing/struct.TestServer.html) tests one sequence of events, which you
//! write. Two more kinds of tests find what you did not think of:
//!
//! * [`role_tests!`](https://docs.rs/kctl/latest/kctl/macro.role_tests.html) runs a function of yours under the generated role, and then with one permission removed at a time. It fails if
//!   a permission is missing, and also if one is superfluous.
//! * [`#[kctl::test]`](https://docs.rs/kctl/latest/kctl/attr.test.html) repeats a scenario with crashes between writes, lost responses and stale caches. Each
//!   run must end in the same state as the run without faults.
//!
//! The book has an example of each: [role tests](https://github.com/kctl-rs/kctl/blob/main/guide/permissions.md) and
//! [simulated faults](https://github.com/kctl-rs/kctl/blob/main/guide/simulation.md).
//!
//! # Run it in a cluster
//!
//! ```sh
//! cargo run -- generate-manifests --image example.com/sites:1 --leader-elect | kubectl apply --server-side -f -
//! ```
//!
//! That applies the CRDs, a service account, the roles with exactly the declared permissions, and a
//! Deployment that runs `sites run`. At its start the program logs each declared permission that it
//! lacks, with the command that grants it. `/metrics` and `/healthz` are options of `run`, and the
//! metrics have the names of controller-runtime's. `generate-manifests --helm DIR` writes the same as
//! a Helm chart, with documented values.
//!
//! # When to use something else
//!
//! * A program that only sends requests, such as a command-line tool, needs [`kube`] alone.
//! * A rule that a schema or CEL can express belongs in the CRD ([`macro@resource`]): it needs no
//!   running webhook.
//! * A controller that decides at run time which kinds it handles is built from the parts of
//!   [`kctl_runtime`](https://docs.rs/kctl-runtime), or opens watches with [`app::Env::watches`].
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `dev` | yes | the command `dev`, and `kctl::testing` with simulated nodes, on which Pods run. Leave it out of release builds. |
//! | `testing` | with `dev` | `kctl::testing` and the embedded API server alone: for controllers that need no running Pods |
//! | `v1_37` | yes | the built-in kinds of Kubernetes 1.37 |
//! | `v1_33`, `v1_34`, `v1_35`, `v1_36` | no | types of an older Kubernetes; exactly one version has to be enabled |
//! | `sim` | no | `#[kctl::test]` and the simulator in `kctl::testing`. Leave it out of release builds: it turns on `tokio/test-util`. |
//! | `rules` | with `testing` | `generate-crds` checks CEL rules and patterns |
//! | `webhook` | no | `#[admission]`, `#[conversion]` and their HTTPS server |
//! | `otel` | no | traces sent to a collector over OTLP |
//! | `karmada` | no | `kctl::karmada`: resource interpreters for Karmada, as functions and as a webhook |
//! | `karmada-chain` | no | the chain of interpreters of a multi-cluster control plane, with Lua scripts |
//!
//! A release build needs no embedded API server. Depend on `kctl` with
//! `default-features = false, features = ["v1_37"]`, and let a default feature of your own crate
//! turn on `kctl/dev`, or `kctl/sim`, which includes it. `kctl new` writes `dev = ["kctl/sim"]`:
//! with `sim` in `dev-dependencies`, `cargo run` and `cargo test` would each compile kctl.
//! `cargo build --release --no-default-features` leaves it out.
//!
//! # Crates that kctl re-exports
//!
//! Use these paths instead of dependencies of your own, so that both have one version.
//!
//! * `kctl::k8s` is [`k8s_openapi`](k8s): the built-in kinds, such as
//!   `kctl::k8s::api::core::v1::Pod`.
//! * `kctl::kube` is [`kube`]: its `Api`, clients and error types, for tests and for what the
//!   context does not offer.
//! * `kctl::metrics` has the metric types for [`App::metrics`], from `prometheus-client`.
//! * `kctl::apiserver` is the embedded API server (feature `testing`), for tests that need more control
//!   than a test server gives.
//! * The modules [`reconcile`], [`manifest`], [`store`], [`object`], [`watches`], [`manager`],
//!   [`key`], [`predicate`] and [`spec`] have items of [`kctl_runtime`](https://docs.rs/kctl-runtime). That crate has
//!   more for programs that build on the parts of the loop, such as roles as values (`kctl_runtime::manifest`), and the
//!   types of errors that programs only pass on.
//!
//! # Where to go next
//!
//! * [`prelude`]: the types that a controller's file needs.
//! * [`App`]: the program as a value, and its commands.
//! * [`macro@controller`], [`macro@resource`]: the two attributes that every operator has.
//! * [`reconcile::Context`]: reads and writes inside a reconcile.
//! * The [book](https://github.com/kctl-rs/kctl/tree/main/guide): tutorial, recipes, every option,
//!   every compile error.
//! * [`kctl_runtime`](https://docs.rs/kctl-runtime): the parts of the loop, usable without the
//!   macro.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "webhook")]
pub mod admission;
#[cfg(feature = "testing")]
pub mod apiserver;
pub mod app;
#[cfg(feature = "webhook")]
pub mod conversion;
#[cfg(feature = "karmada")]
pub mod karmada;
mod parts;
pub mod prelude;
#[cfg(feature = "testing")]
mod rejection;
#[cfg(feature = "testing")]
pub mod testing;
mod yaml;

pub use app::App;
pub use k8s_openapi as k8s;
/// Turns a function that validates or changes objects into an admission webhook, which API servers
/// call before they store an object.
///
/// `#[admission(validate)]` takes `&Kind` and rejects the request with an error.
/// `#[admission(mutate)]` takes `&mut Kind`; the response is a patch with what the function
/// changed. An optional second parameter `&Admission<Kind>` has the caller, the old object and the
/// operation, and takes warnings. The function may be `async`, and may return nothing instead of a
/// `Result`.
///
/// An object that does not fit the type is rejected with 400. A stored object that does not fit
/// rejects an update only if the function takes the second parameter.
///
/// [`App::admission`] registers functions. `dev` installs them on the embedded API server, `run`
/// serves them over HTTPS, and `generate-manifests` prints what registers them in a cluster.
///
/// The options in short; the book [explains
/// them](https://github.com/kctl-rs/kctl/blob/main/guide/attributes.md#admission):
///
/// | option | default | meaning |
/// |---|---|---|
/// | `operations(create, update, delete, connect)` | `create, update` | operations that call it |
/// | `subresources(status)` | none | calls it for these instead of the object |
/// | `failure_policy = Fail` | `Fail` | `Ignore` accepts the request if the webhook does not answer |
/// | `timeout = 10` | 10 | seconds, 1 to 30 |
/// | `side_effects = None` | `None` | or `NoneOnDryRun` |
/// | `match_policy = Equivalent` | `Equivalent` | `Exact` ignores other versions of the kind |
/// | `namespace_selector = "…"`, `object_selector = "…"` | all | label selectors |
/// | `match_conditions("name" = "expression")` | none | CEL, evaluated by the API server |
/// | `reinvocation = Never` | `Never` | `IfNeeded` calls a mutating function again after other changes |
///
/// Prefer bounds, patterns and CEL rules in the CRD ([`macro@resource`]) where they suffice: they
/// work without a running program.
///
/// ```
/// use kctl::prelude::*;
///
/// /// Sets two replicas where a Deployment names no number.
/// #[admission(mutate)]
/// fn two_replicas(deployment: &mut Deployment) {
///     deployment.spec.replicas.get_or_insert(2);
/// }
///
/// /// Rejects images without a tag.
/// #[admission(validate, operations(create, update), failure_policy = Ignore)]
/// fn tagged(pod: &Pod, request: &Admission<Pod>) -> Result<()> {
///     let mut invalid = Invalid::default();
///     for (index, container) in pod.spec.iter().flat_map(|spec| &spec.containers).enumerate() {
///         let image = container.image.as_deref().unwrap_or_default();
///         if !image.contains(':') {
///             invalid.field(&format!("spec.containers[{index}].image"), image, "must have a tag");
///         }
///     }
///     if request.user.name == "admin" {
///         request.warn("admins are checked as well");
///     }
///     Ok(invalid.finish()?)
/// }
///
/// let mut deployment = kctl::from_yaml("{spec: {selector: {}, template: {}}}").unwrap();
/// two_replicas(&mut deployment);
/// assert_eq!(deployment.spec.replicas, Some(2));
///
/// let app = App::new("images").admission::<(two_replicas, tagged)>();
/// assert_eq!(app.admissions()[0].path(), "/mutate-apps-v1-deployment");
/// assert_eq!(app.admissions()[1].path(), "/validate--v1-pod");
/// ```
#[cfg(feature = "webhook")]
#[doc(inline)]
pub use kctl_macros::admission;
/// Turns a reconcile function, or a struct with `impl Reconcile`, into a controller.
///
/// The options declare the kinds that the controller uses: what it caches, which changes enqueue a
/// key, and the operations that its `Context` has. The function's name is also the name of the
/// controller's type, for `Context<name>` and [`App::controller`]. The tables below are short; the
/// book explains [all options](https://github.com/kctl-rs/kctl/blob/main/guide/attributes.md).
///
/// # The kinds
///
/// | option | meaning |
/// |---|---|
/// | `owns = K` | objects of `K` that the primary controls: cached, writable, and their changes enqueue the primary |
/// | `watches = K(map = f)` | other objects of `K`: cached, and their changes enqueue the primaries that `f` returns |
/// | `reads = K` | cached; changes enqueue nothing. `reads = K(live)` is read from the API server and never cached |
/// | `primary(…)` | verbs and options for the primary itself |
/// | `of = K` | the primary of a struct; a function's is its first parameter |
///
/// The parentheses of a kind contain its verbs (`create`, `patch`, `delete`, …) and the options of
/// its cache: `when = f` filters changes, `index = f` adds an index, and `optional` allows the kind to be absent.
/// `selector = "app=web"` and `fields = "…"` restrict the list, `metadata` or `as = View` caches a part, and
/// `on = Edge` names another cluster.
///
/// # The loop
///
/// | option | default | meaning |
/// |---|---|---|
/// | `finalizer = "example.com/name"` | none | cleanup by `impl Finalize` before an object is deleted |
/// | `concurrency = n` | 1 | concurrent reconciles; never two of one key |
/// | `backoff("5ms", max = "1000s")` | as here | waits after consecutive failures of a key |
/// | `retries = n` | unlimited | retries after a first failure; then a key waits for its next event or resync: `retries = 2` makes three attempts |
/// | `resync = "1h"` | none | reconciles every object once per interval |
/// | `timeout = "30s"` | none | cancels a longer reconcile |
/// | `namespaces = ["a"]` | all | restricts caches, work and role |
/// | `name = "…"` | the kind in lower case | name in metrics, logs and events |
/// | `converged = f` | all are reconciled | skips objects at the start for which `f` returns `true` |
/// | `rbac(rule)` | none | additional rules of the role |
///
/// # Examples
///
/// A function, which has no state:
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
/// assert_eq!(app.specs()[0].name, "configmap");
/// ```
///
/// A struct, whose fields hold what the program needs besides the cluster, here with a finalizer:
///
/// ```
/// use kctl::prelude::*;
///
/// /// Registers each `Service` in a directory outside the cluster.
/// #[controller(of = Service, finalizer = "example.com/directory", concurrency = 4, timeout = "30s")]
/// struct Directory {
///     url: String,
/// }
///
/// impl Reconcile for Directory {
///     async fn reconcile(&self, service: Arc<Service>, cx: Context<Self>) -> Result<Action> {
///         println!("PUT {}/{}", self.url, service.name_any());
///         cx.event(Normal, "Registered", format!("in {}", self.url));
///         Ok(Action::requeue(Duration::from_secs(3_600)))
///     }
/// }
///
/// impl Finalize for Directory {
///     async fn finalize(&self, service: Arc<Service>, _cx: Context<Self>) -> Result<()> {
///         println!("DELETE {}/{}", self.url, service.name_any());
///         Ok(())
///     }
/// }
///
/// let app = App::new("directory").controller_with(|_env| async { Ok(Directory { url: "https://example.com".into() }) });
/// ```
///
/// A watched kind, with the function that finds the primaries that it matters for:
///
/// ```
/// use kctl::prelude::*;
///
/// /// Restarts each Deployment whose `ConfigMap` of the same name has changed.
/// #[controller(watches = ConfigMap(map = same_name), primary(patch))]
/// async fn restarts(deployment: Arc<Deployment>, cx: Context<restarts>) -> Result<Action> {
///     let Some(config) = cx.store::<ConfigMap>().get(&Key::namespaced(
///         &deployment.namespace().unwrap_or_default(),
///         &deployment.name_any(),
///     )) else {
///         return Ok(Action::await_change());
///     };
///     let annotations = kctl::json!({ "example.com/config": config.resource_version() });
///     cx.patch(kctl::json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } })).await?;
///     Ok(Action::await_change())
/// }
///
/// fn same_name(config: &ConfigMap, deployments: &Store<Deployment>) -> Vec<Key<Deployment>> {
///     let key = Key::namespaced(&config.namespace().unwrap_or_default(), &config.name_any());
///     deployments.get(&key).map(|_found| key).into_iter().collect()
/// }
///
/// let app = App::new("restarts").controller::<restarts>();
/// ```
///
/// # Errors
///
/// The macro reports all mistakes of a declaration at once, each at the smallest wrong token, with
/// a code such as `K0027`. The book [explains the
/// codes](https://github.com/kctl-rs/kctl/blob/main/guide/errors.md).
#[doc(inline)]
pub use kctl_macros::controller;
/// Converts objects between two versions of a kind: a function from one Rust type to the other.
///
/// The API server calls it when a client reads or writes a version that is not the stored one. The
/// signature names both versions, `fn(v1alpha1::Web) -> Web` or the same with a `Result`; the
/// only option is `crate = path`. The function may be `async`.
///
/// [`App::conversion`] registers functions. Each version needs a path to each other version,
/// directly or through others. With the stored version as a hub, n versions need 2(n − 1)
/// functions.
///
/// A round trip must lose nothing. A client that reads an old version and writes it back must not delete what only the
/// new version has. Keep such fields in an annotation.
///
/// ```
/// use kctl::prelude::*;
///
/// mod v1alpha1 {
///     use kctl::prelude::*;
///
///     #[resource(group = "example.com", version = "v1alpha1", kind = "Web", namespaced, storage = false)]
///     pub struct WebSpec {
///         pub host: String,
///     }
/// }
///
/// #[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
/// pub struct WebSpec {
///     pub hosts: Vec<String>,
/// }
///
/// #[conversion]
/// fn up(old: v1alpha1::Web) -> Web {
///     let others = old.annotations().get("example.com/others").cloned().unwrap_or_default();
///     let hosts = std::iter::once(old.spec.host).chain(others.split_whitespace().map(str::to_owned)).collect();
///     Web { metadata: old.metadata, spec: WebSpec { hosts } }
/// }
///
/// #[conversion]
/// fn down(mut new: Web) -> Result<v1alpha1::Web> {
///     let mut hosts = new.spec.hosts.into_iter();
///     let host = hosts.next().ok_or("spec.hosts is empty")?;
///     let others = hosts.collect::<Vec<_>>().join(" ");
///     new.metadata.annotations.get_or_insert_default().insert("example.com/others".into(), others);
///     Ok(v1alpha1::Web { metadata: new.metadata, spec: v1alpha1::WebSpec { host } })
/// }
///
/// let app = App::new("web").conversion::<(up, down)>();
/// assert_eq!(app.conversions().len(), 2);
///
/// let web = Web::new("web", WebSpec { hosts: vec!["a.example.com".into(), "b.example.com".into()] });
/// assert_eq!(up(down(web.clone()).unwrap()).spec.hosts, web.spec.hosts);
/// ```
#[cfg(feature = "webhook")]
#[doc(inline)]
pub use kctl_macros::conversion;
/// Defines a custom resource: the struct becomes the `spec` of a kind.
///
/// The struct is named `KindSpec`, and the macro generates the type `Kind` with `metadata`, `spec`
/// and, with `status = "…"`, `status`. It takes the options of kube's `#[kube(…)]`, adds the
/// derives (`Clone`, `Debug`, `PartialEq`, serde, `JsonSchema`), and names fields in camelCase.
///
/// | option | meaning |
/// |---|---|
/// | `group`, `version`, `kind` | required: the API group, version and kind |
/// | `namespaced` | objects live in namespaces; without it the kind is cluster-scoped |
/// | `status = "KindStatus"` | the type of `status`, which becomes a subresource |
/// | `scale(…)` | the scale subresource, for `kubectl scale` and autoscalers |
/// | `shortname`, `category`, `plural`, `singular` | names for `kubectl` |
/// | `printcolumn(name = …, type_ = …, json_path = …)` | a column of `kubectl get` |
/// | `rule("…", message = "…")` | a CEL rule over the whole object |
/// | `storage = false`, `served = false`, `deprecated = "…"` | for one of several versions |
/// | `conversion(…)` | the address of a converter in another program |
/// | `crate = path` | path of the `kctl` crate, also of `#[schema]`; without it `::kctl` |
///
/// [All options](https://github.com/kctl-rs/kctl/blob/main/guide/crds.md#options-of-resource) are in the book.
///
/// On fields and types, `#[kctl(…)]` adds what the Rust type does not say: `minimum`, `max_length`,
/// `pattern`, `default`, `immutable`, `list = map("name")` and
/// [more](https://github.com/kctl-rs/kctl/blob/main/guide/crds.md#field-attributes). `generate-crds`
/// prints the `CustomResourceDefinition`. It checks the schema first: an error names the type and
/// the field.
///
/// `Option` fields are optional and `None` is left out of what is written. Doc comments become
/// descriptions, which `kubectl explain` prints.
///
/// ```
/// use kctl::prelude::*;
///
/// /// A web site.
/// #[resource(
///     group = "example.com", version = "v1", kind = "Website", namespaced, shortname = "web", status = "WebsiteStatus",
///     printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
///     rule("self.metadata.name.size() <= 40", message = "the name becomes a label")
/// )]
/// pub struct WebsiteSpec {
///     /// The container image.
///     #[kctl(min_length = 1)]
///     pub image: String,
///     /// Defaults to one.
///     #[serde(default = "one")]
///     #[kctl(minimum = 0, maximum = 10)]
///     pub replicas: i32,
///     /// Chosen once.
///     #[kctl(immutable)]
///     pub class: Option<String>,
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
/// let website = Website::new("web", WebsiteSpec { image: "nginx".into(), replicas: 2, class: None });
/// assert_eq!(kctl::json!(website.spec), kctl::json!({ "image": "nginx", "replicas": 2 }));
///
/// let app = App::new("websites").kind::<Website>();
/// let crds = kctl::manifest::definitions(&app.kinds(), kctl::manifest::Descriptions::Own).unwrap();
/// let spec = &kctl::json!(crds[0])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
/// assert_eq!(spec["properties"]["replicas"]["maximum"], 10.0);
/// assert_eq!(spec["required"], kctl::json!(["image"]));
/// ```
///
/// A type that derives kube's `CustomResource` itself needs no change: `#[controller]` and
/// [`App::kind`] accept it as it is.
#[doc(inline)]
pub use kctl_macros::resource;
/// Defines a type that is part of a custom resource: its status, or a struct or enum inside its
/// spec.
///
/// It adds the same derives as [`macro@resource`], and allows `#[kctl(…)]` on the type and its
/// fields. Fields, including fields of variants, are camelCase in JSON unless `#[serde(…)]` names them otherwise;
/// variants keep their names. The only option is `crate = path`.
///
/// ```
/// use kctl::prelude::*;
///
/// #[schema]
/// pub enum Strategy {
///     Recreate,
///     RollingUpdate { max_surge: i32 },
/// }
///
/// let strategy = kctl::json!(Strategy::RollingUpdate { max_surge: 1 });
/// assert_eq!(strategy, kctl::json!({ "RollingUpdate": { "maxSurge": 1 } }));
/// ```
///
/// A status usually has conditions:
///
/// ```
/// use kctl::prelude::*;
///
/// #[resource(group = "example.com", version = "v1", kind = "Web", namespaced, status = "WebStatus")]
/// pub struct WebSpec {
///     pub host: String,
/// }
///
/// #[schema]
/// pub struct WebStatus {
///     /// Listed by type, so that several field managers can write them.
///     #[kctl(list = map("type"))]
///     pub conditions: Vec<Condition>,
/// }
///
/// #[controller]
/// async fn webs(_web: Arc<Web>, cx: Context<webs>) -> Result<Action> {
///     let conditions = cx.conditions().with("Ready", true, "Serving", "the site is up");
///     cx.patch_status(WebStatus { conditions: conditions.into_vec()? }).await?;
///     Ok(Action::await_change())
/// }
///
/// let app = App::new("webs").controller::<webs>();
/// ```
#[doc(inline)]
pub use kctl_macros::schema;
/// Runs a [`Scenario`](testing::Scenario) again and again, each time with other simulated faults.
///
/// The function takes a scenario and returns it with the app, objects and rules added. It is not
/// `async`, because it only describes the simulation. The test fails at the first run in which a
/// checker or an invariant finds something. Its message has the smallest set of faults that causes
/// the failure, a timeline, and the command that repeats the run.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `seeds = n` | 64 | the number of seeded runs, and of single faults |
/// | `crate = path` | `::kctl` | path of the `kctl` crate |
///
/// The environment variable `KCTL_SEEDS` changes the number of runs, and `KCTL_SEED` replays one
/// run; see [`Sim::from_env`](testing::Sim::from_env). Use a [`TestServer`](testing::TestServer) in
/// a `#[tokio::test]` to test one sequence of events.
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
///         .settled("one secret", |snapshot| match snapshot.all::<Secret>().len() {
///             1 => Ok(()),
///             n => Err(format!("{n} secrets")),
///         })
/// }
/// ```
#[cfg(feature = "sim")]
pub use kctl_macros::test;
/// Defines a view: a few fields of a kind, which a cache holds instead of whole objects.
///
/// Each field names its path in the kind as a Rust path, so that the compiler checks it. A field is
/// an `Option` where a part of the path may be absent. Square brackets name the key of a map.
/// `reads = K(as = View)` and `watches = K(as = View, …)` use it; `metadata` of a view has the
/// name, namespace, labels and owners, and annotations only where a field names them.
///
/// A view saves memory in a large cluster, and changes of other fields enqueue nothing. It does not
/// save requests: the API server still sends whole objects. For metadata alone use the option
/// `metadata`, which also requests only that.
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
///     let pods: Vec<Arc<Placed>> = cx.store::<Placed>().by_index(by_node, &node).collect();
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
pub use kctl_runtime::__private_0_1;
pub use kctl_runtime::manager::metrics::prometheus_client::metrics;
#[doc(inline)]
pub use kctl_runtime::{
    connection::client,
    reconcile::{Error, Result},
    writer::{ApiError, EventType},
};
pub use kube;
pub use parts::{key, manager, manifest, object, predicate, reconcile, spec, store, watches};
/// Any JSON value: for objects without a Rust type, and what [`json!`] returns.
///
/// ```
/// use kctl::Json;
///
/// let object: Json = kctl::json!({ "spec": { "replicas": 3 } });
/// assert_eq!(object["spec"]["replicas"].as_i64(), Some(3));
/// ```
#[doc(inline)]
pub use serde_json::Value as Json;
/// Converts JSON into a type. With [`json!`] it is the short way to write an object with nested
/// fields.
///
/// ```
/// use kctl::k8s::api::core::v1::Service;
///
/// let service: Service = kctl::from_json(kctl::json!({
///     "metadata": { "name": "web" },
///     "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
/// }))?;
/// assert_eq!(service.spec.unwrap().ports.unwrap()[0].port, 80);
/// # Ok::<(), kctl::Error>(())
/// ```
#[doc(inline)]
pub use serde_json::from_value as from_json;
pub use serde_json::json;
pub use yaml::from_yaml;
