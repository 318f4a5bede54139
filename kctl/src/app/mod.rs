//! A program as a value: its controllers, kinds, webhooks and clusters, and the commands that run
//! it.
//!
//! [`App`] is built in `main` or, better, in a function `app()` of a library, so that tests and
//! simulations use the same value. Nothing happens while it is built: the closures of
//! [`App::controller_with`], [`App::cluster`] and [`App::trigger_on`] run at the start of `run` and
//! `dev`.
//!
//! The inner modules follow the commands. `cli`, `settings` and `options` read the command line,
//! the environment and the configuration file. `run` connects to a cluster (`connection`,
//! `client_layers`), checks permissions (`rbac_check`) and runs the manager until `signals` stops it.
//! `dev` does the same on an embedded API server. `output` prints, writes or compares what the `generate-…`
//! commands generate. `webhook`, `webhook_functions` and `certificates` serve admission functions, conversions and
//! interpreters.

/// Prints a line for people to standard error, or logs it if the log is JSON.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::app::log::say(format_args!($($text)*))
    };
}

mod app_model;
mod blocked_runtime;
#[cfg(feature = "webhook")]
mod certificates;
#[cfg(feature = "karmada-chain")]
mod chain;
mod cli;
mod client_layers;
mod connection;
mod debug;
#[cfg(feature = "testing")]
mod derived;
#[cfg(feature = "dev")]
mod dev;
mod diff_cluster;
#[cfg(feature = "dev")]
mod environment;
#[cfg(feature = "testing")]
mod files;
mod helm;
#[cfg(feature = "testing")]
mod hot_loops;
#[cfg(feature = "dev")]
mod input;
mod log;
mod names;
mod options;
#[cfg(feature = "otel")]
mod otel;
mod output;
mod rbac_check;
#[cfg(feature = "testing")]
mod required_kinds;
mod ring;
mod run;
mod settings;
mod shards;
mod signals;
#[cfg(feature = "testing")]
mod simulation;
#[cfg(feature = "dev")]
mod table;
mod trigger;
#[cfg(feature = "webhook")]
mod webhook;
#[cfg(feature = "webhook")]
mod webhook_functions;
#[cfg(feature = "testing")]
mod world;

#[cfg(feature = "testing")]
use std::collections::BTreeMap;
use std::{
    pin::Pin,
    sync::{Arc, LazyLock},
};

use futures::Stream;
#[cfg(feature = "testing")]
use kctl_runtime::manifest::Permission;
use kctl_runtime::{
    key::Key,
    manager::{Manager, metrics::prometheus_client::registry::Registry},
    manifest::KindSpec,
    reconcile::{Controller, FunctionController, Reconcile, Result},
    spec::ControllerSpec,
    watches::Watches,
};
use kube::{Client, CustomResourceExt};

#[cfg(feature = "testing")]
pub(crate) use connection::names_a_file;
#[cfg(feature = "sim")]
pub(crate) use files::{FromFile, apply, path};
#[cfg(feature = "testing")]
pub(crate) use files::{install, parse};
pub use kctl_runtime::shard::ShardBy;
#[cfg(feature = "testing")]
pub(crate) use rbac_check::missing;
#[cfg(feature = "sim")]
pub(crate) use required_kinds::{Remedy, check_kinds};
#[cfg(feature = "testing")]
pub(crate) use simulation::SimulatedNodes;
#[cfg(feature = "sim")]
pub(crate) use simulation::Simulation;
pub use trigger::{TRIGGERS_WAITING_MAX, Triggers};
#[cfg(feature = "testing")]
pub(crate) use world::World;
#[cfg(feature = "sim")]
pub(crate) use world::user_of;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Connect = Arc<dyn Fn() -> Boxed<'static, Result<Client>> + Send + Sync>;
/// Opens a stream of keys for the controller of that declaration.
type OpenStream = (fn() -> ControllerSpec, Arc<dyn Fn(Env) -> Boxed<'static, ()> + Send + Sync>);
/// Permissions by the name of the cluster.
#[cfg(feature = "testing")]
pub(crate) type Permissions = BTreeMap<String, Vec<Permission>>;
type RegisterMetrics = Box<dyn Fn(&mut Registry) + Send + Sync>;
type Add = Box<dyn FnOnce(&mut Manager) + Send>;

/// The environment of a controller: passed to the closure of [`App::controller_with`] at each
/// start.
///
/// ```
/// use kctl::{app::Env, prelude::*};
///
/// /// Prints the name of the program that it runs in.
/// #[controller(of = ConfigMap)]
/// struct Named {
///     app: String,
/// }
///
/// impl Reconcile for Named {
///     async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
///         println!("{} sees {}", self.app, config.name_any());
///         Ok(Action::await_change())
///     }
/// }
///
/// let app = App::new("named").controller_with(|env: Env| async move { Ok(Named { app: env.app }) });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Env {
    /// The name of the app, as given to [`App::new`].
    pub app: String,
    /// Opens watches while the app runs, for kinds that are known only then.
    ///
    /// The role of this controller has to allow them: kinds that it declares, and those in its
    /// `rbac(…)`.
    pub watches: Watches,
}

/// A program: a set of controllers, with the kinds, webhooks and clusters that they need.
///
/// The methods add to it and return it. [`main`](Self::main) parses the command line and runs one
/// command. [`manager`](Self::manager) returns the running part for programs with a command line of
/// their own, and `kctl::testing` takes an app as it is.
///
/// ```
/// use kctl::prelude::*;
///
/// /// Does nothing with every ConfigMap.
/// #[controller]
/// async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
///     Ok(Action::await_change())
/// }
///
/// let app = App::new("idler").version("1.2.0").controller::<idle>();
/// assert_eq!(app.specs()[0].name, "configmap");
/// ```
///
/// Several controllers share the connection, and one cache per kind. Two controllers for the same
/// kind need different names:
///
/// ```
/// use kctl::prelude::*;
///
/// #[controller(name = "labels", primary(patch))]
/// async fn labels(_config: Arc<ConfigMap>, _cx: Context<labels>) -> Result<Action> {
///     Ok(Action::await_change())
/// }
///
/// #[controller(name = "copies", owns = Secret(apply))]
/// async fn copies(_config: Arc<ConfigMap>, _cx: Context<copies>) -> Result<Action> {
///     Ok(Action::await_change())
/// }
///
/// let app = App::new("configs").controller::<labels>().controller::<copies>();
/// assert_eq!(app.specs().iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["labels", "copies"]);
/// ```
pub struct App {
    name: String,
    version: Option<String>,
    commit: Option<String>,
    controllers: Vec<Registration>,
    kinds: Vec<KindSpec>,
    clusters: Vec<(String, Connect)>,
    /// Objects that `dev` applies if it gets no files.
    #[cfg(feature = "dev")]
    dev_objects: Option<String>,
    triggers: Triggers,
    streams: Vec<OpenStream>,
    /// Overrides the namespaces that the controllers declare, unless it is empty.
    namespaces: Vec<String>,
    metrics: Vec<RegisterMetrics>,
    /// Number of slots and key of the division, if `run` shares the keys among replicas.
    shards: Option<(u32, ShardBy)>,
    /// Kinds of which each replica of a sharded program caches all objects.
    whole: Vec<kctl_runtime::object::Kind>,
    #[cfg(feature = "karmada")]
    interpreters: Vec<kctl_interpreter::function::Rule>,
    #[cfg(feature = "webhook")]
    webhook_functions: webhook_functions::WebhookFunctions,
    #[cfg(feature = "karmada-chain")]
    chains: Vec<Arc<kctl_interpreter::registry::Registry>>,
    /// Set if `generate-crds` prints the CRDs of the kinds that chains follow.
    #[cfg(feature = "karmada-chain")]
    has_interpreter_kinds: bool,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("namespaces", &self.namespaces)
            .finish_non_exhaustive()
    }
}

struct Registration {
    /// Created once: deriving the CRD takes noticeable time where a kind contains a pod template.
    spec: LazyLock<ControllerSpec>,
    start: Arc<dyn Fn(Env) -> Boxed<'static, Result<Add>> + Send + Sync>,
}

impl App {
    /// Creates an app without controllers.
    ///
    /// The name is the field manager of all its writes, the default name of its Lease, service
    /// account and roles in manifests, and part of the `User-Agent`. Choose it once: field managers
    /// of server-side apply don't follow a renamed program.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            version: None,
            commit: None,
            controllers: Vec::new(),
            kinds: Vec::new(),
            clusters: Vec::new(),
            #[cfg(feature = "dev")]
            dev_objects: None,
            triggers: Triggers::default(),
            streams: Vec::new(),
            namespaces: Vec::new(),
            metrics: Vec::new(),
            shards: None,
            whole: Vec::new(),
            #[cfg(feature = "karmada")]
            interpreters: Vec::new(),
            #[cfg(feature = "webhook")]
            webhook_functions: webhook_functions::WebhookFunctions::default(),
            #[cfg(feature = "karmada-chain")]
            chains: Vec::new(),
            #[cfg(feature = "karmada-chain")]
            has_interpreter_kinds: false,
        }
    }

    /// Sets the version that `--version` prints before those of kctl and the build, and that
    /// `kctl_app_info` reports.
    ///
    /// Usually `env!("CARGO_PKG_VERSION")`.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the commit that the app was built from, for `--version` and `kctl_app_info`.
    ///
    /// Usually `option_env!("COMMIT")`, which a build pipeline sets. `None` and an empty string are
    /// ignored.
    ///
    /// ```
    /// let app = kctl::App::new("web").version(env!("CARGO_PKG_VERSION")).commit(option_env!("COMMIT"));
    /// # let _ = app;
    /// ```
    #[must_use]
    pub fn commit(mut self, commit: Option<&str>) -> Self {
        self.commit = commit.filter(|commit| !commit.is_empty()).map(Into::into);
        self
    }

    /// Adds a controller without state, made from a function: `.controller::<site>()`.
    ///
    /// The function is named as a type, because `#[controller]` generates a type of that name with
    /// the declaration; it is not an argument.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[controller]
    /// async fn nodes(node: Arc<Node>, _cx: Context<nodes>) -> Result<Action> {
    ///     println!("{}", node.name_any());
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("nodes").controller::<nodes>();
    /// assert_eq!(app.specs().len(), 1);
    /// ```
    // For a call with an argument, rustc suggests removing it and shows this line, so the line says what to write.
    #[must_use]
    #[rustfmt::skip]
    pub fn controller<C: FunctionController>(self) -> Self { // write `.controller::<site>()`, a type, not an argument
        self.controller_with(|_env| async { Ok(C::instance()) })
    }

    /// Adds a controller with state. The closure creates it at each start of `run` and `dev`, never
    /// for `generate-…`.
    ///
    /// Use it to connect to a database or to read settings. An error of the closure ends the
    /// program with that error. In a simulation the closure runs again after each crash.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// /// Reports every `ConfigMap` to a service outside the cluster.
    /// #[controller(of = ConfigMap)]
    /// struct Reporter {
    ///     url: String,
    /// }
    ///
    /// impl Reconcile for Reporter {
    ///     async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
    ///         println!("{} has {}", self.url, config.name_any());
    ///         Ok(Action::await_change())
    ///     }
    /// }
    ///
    /// let app = App::new("reporter").controller_with(|env| async move {
    ///     Ok(Reporter { url: format!("https://example.com/{}", env.app) })
    /// });
    /// ```
    #[must_use]
    pub fn controller_with<C, F, Fut>(mut self, make: F) -> Self
    where
        C: Reconcile,
        F: Fn(Env) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<C>> + Send + 'static,
    {
        let start = move |env| -> Boxed<'static, Result<Add>> {
            let made = make(env);
            Box::pin(async move {
                let controller = made.await?;
                let add: Add = Box::new(move |manager: &mut Manager| manager.add(controller));
                Ok(add)
            })
        };
        self.triggers.declare(C::spec().name);
        self.controllers.push(Registration { spec: LazyLock::new(C::spec), start: Arc::new(start) });
        self
    }

    /// Adds the CRD of a kind that no controller reconciles, or of another version of one.
    ///
    /// Kinds of the same group and name are versions of one CRD, of which exactly one is stored:
    /// write `storage = false` in the others. Kinds that controllers reconcile are known without
    /// this method.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[resource(group = "example.com", version = "v2", kind = "Web", namespaced)]
    /// pub struct WebSpec {
    ///     pub hosts: Vec<String>,
    /// }
    ///
    /// mod v1 {
    ///     use kctl::prelude::*;
    ///
    ///     #[resource(group = "example.com", version = "v1", kind = "Web", namespaced, storage = false, deprecated = "use v2")]
    ///     pub struct WebSpec {
    ///         pub hosts: Vec<String>,
    ///     }
    /// }
    ///
    /// let app = App::new("webs").kind::<Web>().kind::<v1::Web>();
    /// let crds = kctl::manifest::definitions(&app.kinds(), kctl::manifest::Descriptions::Own).unwrap();
    /// assert_eq!(crds[0].spec.versions.len(), 2);
    /// ```
    #[must_use]
    pub fn kind<K: CustomResourceExt + schemars::JsonSchema>(mut self) -> Self {
        self.kinds.push(KindSpec::of::<K>());
        self
    }

    /// Adds resource interpreters: one function with `#[interpreter(op = …)]`, or a tuple of such.
    ///
    /// `run` and `dev` serve them as the webhook that Karmada calls. Two functions for the same
    /// operation of one kind are an error of [`main`](Self::main).
    ///
    /// ```
    /// use kctl::{karmada::prelude::*, prelude::*};
    ///
    /// /// A Deployment is healthy when all of its replicas are ready.
    /// #[interpreter(op = InterpretHealth)]
    /// fn health(deployment: &Deployment) -> bool {
    ///     deployment.status.as_ref().and_then(|status| status.ready_replicas) == deployment.spec.replicas
    /// }
    ///
    /// #[interpreter(op = ReviseReplica)]
    /// fn revise(deployment: &mut Deployment, replicas: i32) -> Result<()> {
    ///     deployment.spec.replicas = Some(replicas);
    ///     Ok(())
    /// }
    ///
    /// let app = App::new("interpreter").interpreter::<(health, revise)>();
    /// ```
    #[cfg(feature = "karmada")]
    #[must_use]
    pub fn interpreter<I>(mut self) -> Self
    where
        I: kctl_interpreter::function::Interpreter,
        I::Transport: kctl_interpreter::function::Served,
    {
        self.interpreters.extend(I::rules());
        self
    }

    /// Returns the interpreters in the order of their registration.
    ///
    /// ```
    /// use kctl::{karmada::prelude::*, prelude::*};
    ///
    /// #[interpreter(op = InterpretHealth)]
    /// fn health(deployment: &Deployment) -> bool {
    ///     deployment.spec.replicas == Some(0)
    /// }
    ///
    /// let app = App::new("interpreter").interpreter::<health>();
    /// assert_eq!(app.interpreters()[0].kind().kind, "Deployment");
    /// ```
    #[cfg(feature = "karmada")]
    pub fn interpreters(&self) -> &[kctl_interpreter::function::Rule] {
        &self.interpreters
    }

    /// Keeps a chain of interpreters current with the cluster that the app is started against.
    ///
    /// Its `ResourceInterpreterCustomization`s and `ResourceInterpreterWebhookConfiguration`s are
    /// watched, and each change replaces the layer as a whole. Until both kinds were listed, the
    /// chain answers that it is not ready. A control plane without these kinds counts as one
    /// without customizations after twelve seconds of 404 responses. The metrics of the chain are
    /// added to those of the app, and `list` and `watch` on these kinds and on Services to its
    /// role.
    ///
    /// The control plane decides about `LayerKind::Configurable` and `LayerKind::Webhook`: the app does not
    /// start if the chain has a layer of yours at one of them. Put your functions at
    /// `LayerKind::ThirdParty`, behind what users of the control plane install.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kctl::{karmada::{chain::Chain, operation::{InterpretHealth, Object}, registry::Registry}, prelude::*};
    ///
    /// /// Says of every Deployment whether it is healthy, by whatever rule the cluster has for it.
    /// #[controller(of = Deployment)]
    /// struct Health { chain: Arc<Registry> }
    ///
    /// impl Reconcile for Health {
    ///     async fn reconcile(&self, deployment: Arc<Deployment>, _cx: Context<Self>) -> Result<Action> {
    ///         let healthy = self.chain.interpret::<InterpretHealth>(Object(kctl::json!(*deployment))).await?;
    ///         println!("healthy: {healthy}");
    ///         Ok(Action::await_change())
    ///     }
    /// }
    ///
    /// let chain = Arc::new(Registry::new(Chain::native()));
    /// let app = App::new("health").interpreter_chain(&chain).controller_with(move |_env| {
    ///     let chain = chain.clone();
    ///     async { Ok(Health { chain }) }
    /// });
    /// ```
    #[cfg(feature = "karmada-chain")]
    #[must_use]
    pub fn interpreter_chain(mut self, chain: &Arc<kctl_interpreter::registry::Registry>) -> Self {
        // Set here and not when the app runs: before its rules are read, the chain can't know which layer answers.
        chain.wait_for(chain::FOLLOWED_LAYERS);
        self.chains.push(chain.clone());
        let registry = chain.clone();
        self.metrics(move |metrics| registry.register(metrics))
    }

    /// Prints the CRDs of the kinds that [`App::interpreter_chain`] follows with `generate-crds`
    /// and `generate-manifests`.
    ///
    /// Use it for a control plane without Karmada, because Karmada installs its CRDs itself. `dev` installs them
    /// in any case.
    #[cfg(feature = "karmada-chain")]
    #[must_use]
    pub fn interpreter_kinds(mut self) -> Self {
        self.has_interpreter_kinds = true;
        self
    }

    /// Returns a handle that enqueues keys of the app's controllers from outside.
    ///
    /// Get it before [`App::main`] takes the app; the handle works afterwards as well. [`Triggers`]
    /// has an example.
    pub fn triggers(&self) -> Triggers {
        self.triggers.clone()
    }

    /// Enqueues a key for the controller `C`: now if the app runs, otherwise at its start. See
    /// [`Triggers::trigger`].
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[controller]
    /// async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("idler").controller::<idle>();
    /// app.trigger::<idle>(&Key::namespaced("default", "web"))?;
    /// # Ok::<(), kctl::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Triggers::trigger`].
    pub fn trigger<C: Controller>(&self, key: &Key<C::Primary>) -> Result<()> {
        self.triggers.trigger::<C>(key)
    }

    /// Enqueues the keys of a stream for the controller `C`.
    ///
    /// The closure opens the stream at each start of `run` and `dev`. When the stream ends, the app
    /// continues. Use it for message queues, webhooks of external systems, and timers; a periodic
    /// reconcile of all objects is `resync = "1h"`.
    ///
    /// ```
    /// # use kctl::prelude::*;
    /// # #[controller]
    /// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
    /// let app = App::new("idler")
    ///     .controller::<idle>()
    ///     .trigger_on::<idle, _, _>(|_env| futures::stream::iter([Key::namespaced("default", "web")]));
    /// ```
    #[must_use]
    pub fn trigger_on<C, F, S>(mut self, open: F) -> Self
    where
        C: Controller,
        F: Fn(Env) -> S + Send + Sync + 'static,
        S: Stream<Item = Key<C::Primary>> + Send + 'static,
    {
        let triggers = self.triggers.clone();
        let drain = move |env| -> Boxed<'static, ()> { Box::pin(trigger::drain::<C>(triggers.clone(), open(env))) };
        self.streams.push((C::spec, Arc::new(drain)));
        self
    }

    /// Parses the command line and runs one command. Usually the last line of `main`.
    ///
    /// | command | does |
    /// |---|---|
    /// | `run` | runs the controllers against a cluster; also without a command |
    /// | `dev` | runs them on an embedded API server (feature `dev`) |
    /// | `generate-crds` | prints the CRDs |
    /// | `generate-rbac` | prints service account, roles and bindings |
    /// | `generate-manifests` | prints all of these, a Deployment, and what registers the webhooks; with `--helm DIR` writes a chart |
    /// | `shards` | prints the slots of a sharded program and their owners |
    /// | `graph` | prints the kinds and controllers as a diagram |
    ///
    /// Each command has `--help`. Options of `run` may also be environment variables
    /// (`KCTL_LEADER_ELECT=true`) or lines of a file (`--config`).
    ///
    /// SIGTERM and Ctrl-C stop `run` gracefully: running reconciles get 30 seconds by default, and
    /// the Lease is handed back. A second signal ends the process at once.
    ///
    /// ```no_run
    /// use kctl::prelude::*;
    ///
    /// #[controller]
    /// async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    ///
    /// #[tokio::main(flavor = "current_thread")]
    /// async fn main() -> kctl::Result<()> {
    ///     App::new("idler").controller::<idle>().main().await
    /// }
    /// ```
    ///
    /// # Errors
    /// Declarations contradict each other, no cluster is found, or the command fails; the message is
    /// for the person at the terminal. Wrong usage prints clap's message and exits with status 2.
    pub async fn main(self) -> Result<()> {
        self.check()?;
        #[cfg(feature = "webhook")]
        self.check_addresses()?;
        // On the heap: the future holds everything that `run` and `dev` hold, which is too much for the stacks of
        // callers.
        Box::pin(cli::main(self)).await
    }

    /// Adds a cluster beside the one that the program starts against: relations name it with `on =
    /// "name"`.
    ///
    /// The closure creates its client at each start of `run`; `dev` and tests start an embedded API
    /// server for it.
    ///
    /// `--dry-run`, `--kube-api-qps` (per cluster) and `--request-timeout` apply to this client,
    /// and its requests count in `rest_client_requests_total` under the name of the cluster.
    /// `--as`, `--as-group` and `--proxy-url` don't apply: the closure decides how to connect.
    /// `run` logs a warning when they are set.
    ///
    /// ```
    /// use kctl::{kube::{Config, config::KubeConfigOptions}, prelude::*};
    ///
    /// /// Counts the Pods of the cluster `edge`.
    /// #[controller(reads = Pod(on = "edge"))]
    /// async fn watching(_config: Arc<ConfigMap>, cx: Context<watching>) -> Result<Action> {
    ///     println!("{} pods", cx.store::<Pod>().len());
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("watcher").controller::<watching>().cluster("edge", || async {
    ///     let edge = KubeConfigOptions { context: Some("edge".into()), ..KubeConfigOptions::default() };
    ///     Ok(kctl::client(Config::from_kubeconfig(&edge).await?)?)
    /// });
    /// ```
    ///
    /// A type that implements [`Cluster`](crate::reconcile::Cluster) names the cluster where it is
    /// written to, or where one kind is declared on several clusters:
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// struct Edge;
    /// impl Cluster for Edge {
    ///     const NAME: &'static str = "edge";
    /// }
    ///
    /// /// Deletes the copies at the edge that a `ConfigMap` names.
    /// #[controller(reads = Secret(delete, on = Edge))]
    /// async fn revokes(config: Arc<ConfigMap>, cx: Context<revokes>) -> Result<Action> {
    ///     let edge = cx.cluster(Edge);
    ///     for secret in edge.store::<Secret>().iter().filter(|secret| secret.name_any() == config.name_any()) {
    ///         edge.objects::<Secret>().delete(&secret).await?;
    ///     }
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("revokes").controller::<revokes>().cluster(Edge::NAME, || async { Err("no kubeconfig".into()) });
    /// assert_eq!(app.specs()[0].relations[0].cluster, "edge");
    /// ```
    #[must_use]
    pub fn cluster<F, Fut>(mut self, name: &str, client: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Client>> + Send + 'static,
    {
        self.clusters.push((name.into(), Arc::new(move || Box::pin(client()))));
        self
    }

    /// Sets the YAML objects that `dev` applies when it gets no files, so that a first run
    /// shows the program at work.
    ///
    /// ```
    /// let app = kctl::App::new("web").dev_objects("
    /// apiVersion: v1
    /// kind: ConfigMap
    /// metadata: { name: example }
    /// ");
    /// # let _ = app;
    /// ```
    ///
    /// In a project: `.dev_objects(include_str!("../example.yaml"))`. Without the feature `dev` the
    /// call does nothing.
    #[must_use]
    #[cfg_attr(
        not(feature = "dev"),
        expect(unused_mut, unused_variables, reason = "there is no `dev` that applies them")
    )]
    pub fn dev_objects(mut self, yaml: &str) -> Self {
        #[cfg(feature = "dev")]
        {
            self.dev_objects = Some(yaml.into());
        }
        self
    }

    /// Adds metrics of your own to those of `/metrics`. The closure is called at each start of
    /// `run`.
    ///
    /// The metric types are in `kctl::metrics`. Names get no prefix, and a counter gets the suffix
    /// `_total`.
    ///
    /// ```
    /// use kctl::{App, metrics::counter::Counter};
    ///
    /// let uploads = Counter::<u64>::default();
    /// let app = App::new("uploader").metrics({
    ///     let uploads = uploads.clone();
    ///     move |registry| registry.register("uploads", "Files that were uploaded", uploads.clone())
    /// });
    /// uploads.inc(); // for example in a reconcile
    /// ```
    #[must_use]
    pub fn metrics(mut self, register: impl Fn(&mut Registry) + Send + Sync + 'static) -> Self {
        self.metrics.push(Box::new(register));
        self
    }

    /// Makes `run` share the keys among all replicas, by a number of slots from 1 to 256.
    ///
    /// Use it when one process is too small. Start with a few slots per replica, such as 16 for three replicas;
    /// each slot is a Lease that is renewed every 2 s. `--shards` sets another number, and `--shards 0` or
    /// `--leader-elect` turns it off. All replicas need the same settings. `dev` and [`App::manager`] ignore
    /// them.
    ///
    /// ```
    /// use kctl::{app::ShardBy, prelude::*};
    ///
    /// #[controller]
    /// async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("idler").controller::<idle>().sharded(16, ShardBy::Namespace);
    /// # let _ = app;
    /// ```
    #[must_use]
    pub fn sharded(mut self, slots: u32, by: ShardBy) -> Self {
        self.shards = Some((slots, by));
        self
    }

    /// Makes each replica of a sharded program cache all objects of `K`, and not only those of its slots.
    ///
    /// Call it for a primary or an owned kind that a reconcile reads with `cx.store::<K>()`. Without it such a read
    /// panics where it asks for objects of other replicas, rather than return that they do not exist. Kinds with
    /// `reads` or `watches` are whole anyway. It has no effect without shards.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// /// Compares a ConfigMap with all others.
    /// #[controller]
    /// async fn unique(config: Arc<ConfigMap>, cx: Context<unique>) -> Result<Action> {
    ///     let same = cx.store::<ConfigMap>().iter().filter(|other| other.data == config.data).count();
    ///     tracing::info!("{} others have its data", same - 1);
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("unique").controller::<unique>().cache_whole::<ConfigMap>();
    /// # let _ = app;
    /// ```
    #[must_use]
    pub fn cache_whole<K: kctl_runtime::object::Object>(mut self) -> Self {
        self.whole.push(kctl_runtime::object::Kind::of::<K>());
        self
    }

    /// Creates a manager with all controllers, ready to run against a cluster.
    ///
    /// Use it in programs that parse the command line themselves. It connects the clusters of
    /// [`App::cluster`] and creates the controllers, but checks no permissions, serves no webhooks
    /// and installs no CRDs: [`App::main`] does that.
    ///
    /// ```no_run
    /// use kctl::prelude::*;
    ///
    /// # #[controller]
    /// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
    /// # async fn run() -> kctl::Result<()> {
    /// let client = kctl::client(kctl::kube::Config::infer().await?)?;
    /// let manager = App::new("idler").controller::<idle>().manager(client).await?;
    /// manager.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A controller or a client can't be created, or the declarations contradict each other.
    pub async fn manager(&self, client: Client) -> Result<Manager> {
        self.manager_at(client, self.connected().await?, |manager| manager).await
    }

    /// Returns the clients of the other clusters, by name.
    pub(crate) async fn connected(&self) -> Result<Vec<(String, Client)>> {
        let mut clusters = Vec::new();
        for (name, connect) in &self.clusters {
            clusters.push((name.clone(), connect().await?));
        }
        Ok(clusters)
    }

    /// Creates the manager with given clients. `set_up` changes it before controllers are added.
    pub(crate) async fn manager_at(
        &self,
        client: Client,
        clusters: Vec<(String, Client)>,
        set_up: impl FnOnce(Manager) -> Manager,
    ) -> Result<Manager> {
        self.check()?;
        let manager = Manager::new(client, &self.name, run::observer()).namespaces(self.namespaces.clone());
        self.add_to(set_up(manager), clusters).await
    }

    /// Adds clusters, controllers and streams to a manager.
    async fn add_to(&self, mut manager: Manager, clusters: Vec<(String, Client)>) -> Result<Manager> {
        for kind in &self.whole {
            manager = manager.cache_whole(kind.clone());
        }
        for (name, client) in clusters {
            manager = manager.cluster(&name, client);
        }
        for controller in &self.controllers {
            let env = self.env(&manager, controller.spec.clone());
            let add = (controller.start)(env).await?;
            add(&mut manager);
        }
        let [version, commit] = [&self.version, &self.commit].map(|value| value.as_deref().unwrap_or_default());
        manager.metrics().app(&self.name, version, commit);
        for register in &self.metrics {
            manager.metrics().register(register);
        }
        #[cfg(feature = "karmada-chain")]
        for registry in &self.chains {
            manager.background(chain::follow(manager.client().clone(), registry.clone()));
        }
        self.triggers.connect(&manager);
        let triggers = self.triggers.clone();
        manager.show_bound("triggers", TRIGGERS_WAITING_MAX, move || triggers.n_waiting());
        for (spec, open) in &self.streams {
            manager.background(open(self.env(&manager, spec())));
        }
        Ok(manager)
    }

    /// Returns the environment of one controller, with watches restricted to what its declaration
    /// allows.
    fn env(&self, manager: &Manager, spec: ControllerSpec) -> Env {
        Env { app: self.name.clone(), watches: manager.watches().allowed_by(&self.in_use(spec)) }
    }
}
