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
macro_rules! print_or_log {
    ($($text:tt)*) => {
        $crate::app::log::print_or_log(format_args!($($text)*))
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
mod clusters;
mod connection;
mod controllers;
mod debug;
#[cfg(feature = "testing")]
mod derived;
#[cfg(feature = "dev")]
mod dev;
#[cfg(feature = "dev")]
mod dev_options;
mod diff_cluster;
mod difference;
#[cfg(feature = "dev")]
mod environment;
#[cfg(feature = "testing")]
mod files;
mod helm;
#[cfg(feature = "testing")]
mod hot_loops;
#[cfg(feature = "dev")]
mod input;
mod interpreters;
mod listen;
mod log;
mod manager;
#[cfg(all(feature = "rules", feature = "webhook"))]
mod match_conditions;
mod names;
mod options;
#[cfg(feature = "otel")]
mod otel;
mod output;
mod rbac_check;
#[cfg(feature = "testing")]
mod reconciles;
mod replace;
#[cfg(feature = "testing")]
mod required_kinds;
mod ring;
mod run;
mod run_options;
mod settings;
mod sharding;
mod shards;
mod signals;
#[cfg(feature = "testing")]
mod simulation;
mod stdout;
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

#[cfg(feature = "testing")]
use kctl_runtime::manifest::Permission;
use kctl_runtime::{
    manager::{Manager, metrics::prometheus_client::registry::Registry},
    manifest::KindSpec,
    reconcile::{FunctionController, Reconcile, Result},
};

use self::{
    clusters::Connect,
    controllers::{Add, Registration},
    trigger::OpenStream,
};

#[cfg(feature = "testing")]
pub(crate) use connection::names_a_file;
pub use controllers::Env;
#[cfg(feature = "sim")]
pub(crate) use files::{FromFile, apply, create_namespaces, path};
#[cfg(feature = "testing")]
pub(crate) use files::{install, parse};
pub use kctl_runtime::shard::ShardBy;
#[cfg(feature = "testing")]
pub(crate) use rbac_check::missing;
#[cfg(feature = "testing")]
pub(crate) use reconciles::Reconciles;
#[cfg(feature = "sim")]
pub(crate) use required_kinds::{Remedy, check_kinds};
#[cfg(feature = "testing")]
pub(crate) use simulation::SimulatedNodes;
#[cfg(feature = "sim")]
pub(crate) use simulation::Simulation;
#[doc(hidden)]
pub use trigger::TRIGGERS_WAITING_MAX;
pub use trigger::Triggers;
#[cfg(feature = "testing")]
pub(crate) use world::World;
#[cfg(feature = "sim")]
pub(crate) use world::{process_clock, user_of};

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Permissions by the name of the cluster.
#[cfg(feature = "testing")]
pub(crate) type Permissions = BTreeMap<String, Vec<Permission>>;

type RegisterMetrics = Box<dyn Fn(&mut Registry) + Send + Sync>;

/// A program: a set of controllers, with the kinds, webhooks and clusters that they need.
///
/// The methods add to it and return it. [`main`](Self::main) parses the command line and runs one
/// command. [`manager`](Self::manager) returns the running part for programs with
/// their own command line, and `kctl::testing` takes an app as it is.
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
    /// Kinds whose objects are all cached by each replica of a sharded program.
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

    /// Sets the version that `--version` prints before the versions of kctl and of the build, and that `kctl_app_info`
    /// reports.
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

    /// Parses the command line and runs one command. Usually the last line of `main`.
    ///
    /// | command | does |
    /// |---|---|
    /// | `run` | runs the controllers against a cluster; also without a command, as in `my-controller --leader-elect` |
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
    /// the Lease is released. A second signal ends the process at once.
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
        #[cfg(all(feature = "rules", feature = "webhook"))]
        match_conditions::check(self.admissions())?;
        // On the heap: the future holds everything that `run` and `dev` hold, which is too much for the stacks of
        // callers.
        Box::pin(cli::main(self)).await
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

    /// Adds custom metrics to `/metrics`. The closure is called at each start of `run`.
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

    // Methods with a bound on user types are in the module of `App`: rustc writes `App::controller` in errors only
    // then.

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
}
