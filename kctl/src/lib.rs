//! A declarative Kubernetes controller framework: annotate a reconcile function, get a controller.
//!
//! ```no_run
//! use kctl::prelude::*;
//!
//! #[resource(group = "apps.example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
//! pub struct GreetingSpec {
//!     pub name: String,
//! }
//!
//! #[schema]
//! pub struct GreetingStatus {
//!     pub text: String,
//! }
//!
//! /// Greets.
//! #[controller]
//! async fn greeting(greeting: Arc<Greeting>, cx: Context<greeting>) -> Result<Action> {
//!     cx.patch_status(GreetingStatus { text: format!("Hello, {}!", greeting.spec.name) }).await?;
//!     Ok(Action::await_change())
//! }
//!
//! #[tokio::main]
//! async fn main() -> kctl::Result<()> {
//!     App::new("greeter").controller::<greeting>().main().await
//! }
//! ```

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
/// The function's name is also that of the controller's type. What it declares is what it caches, what calls it, and all that
/// it may do: [the options](https://github.com/kctl-rs/kctl/blob/main/guide/attributes.md).
///
/// ```
/// use kctl::prelude::*;
///
/// /// Keeps one pod for each config map with the label `run`.
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
/// [`App::conversion`] has an example.
#[cfg(feature = "webhook")]
#[doc(inline)]
pub use kctl_macros::conversion;
/// ```
/// use kctl::prelude::*;
///
/// /// How many replicas a Deployment wants, and what one of them needs.
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
/// ```
/// use kctl::prelude::*;
///
/// #[resource(
///     group = "example.com", version = "v1", kind = "Website", namespaced, shortname = "web", status = "WebsiteStatus",
///     printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas")
/// )]
/// pub struct WebsiteSpec {
///     /// What is shown.
///     pub image: String,
///     /// One, if nothing is said.
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
/// Fields are camelCase on the wire, also those of variants, unless `#[serde(…)]` says otherwise.
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
#[cfg(feature = "dev")]
pub use kctl_macros::test;
/// A cache of views holds their fields and the metadata that names an object, nothing else of it. Each field has its path in the
/// kind, as in Rust, so that the compiler checks it, and its type; it is an `Option` where something on the way may be left out.
///
/// ```
/// use kctl::prelude::*;
///
/// /// Where a pod runs, and whose it is.
/// #[view(of = Pod)]
/// struct Placed {
///     #[view(spec.node_name)]
///     node: Option<String>,
///     #[view(metadata.annotations["example.com/team"])]
///     team: Option<String>,
/// }
///
/// /// Tells how many pods of its namespace run on the node that a config map names.
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

/// The code of the guide is compiled and run with the tests. That of the tutorial is one program in several blocks: `tests/guide`
/// has it.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../guide/permissions.md")]
    struct Permissions;
    #[doc = include_str!("../../guide/attributes.md")]
    struct Attributes;
    #[doc = include_str!("../../guide/simulation.md")]
    struct Simulation;
    #[doc = include_str!("../../guide/crds.md")]
    struct Crds;
    #[doc = include_str!("../../guide/operations.md")]
    struct Operations;
    #[cfg(feature = "webhook")]
    #[doc = include_str!("../../guide/webhooks.md")]
    struct Webhooks;
}
