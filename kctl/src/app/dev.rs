//! `dev`: the app against an embedded API server with a simulated kubelet.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use kctl_apiserver::{ApiServer, RequestRecord, ServeOptions, User};
use kctl_runtime::{
    manager::{Manager, View},
    manifest::{self, Grant, On, RbacOptions},
    object::Kind,
    reconcile::{Error, Result, ResultExt},
    source::Identity,
    spec::Role,
};
use kube::Client;
use serde_json::Value;
use tokio::task::JoinSet;
use tower::Layer;

use super::{
    App, Grants,
    cli::{DevOptions, Format, print},
    files::{self, FromFile},
    hot_loops::HotLoops,
    log::{self, LogFormat},
    required_kinds::{Remedy, check_kinds},
    signals::{INTERRUPTED, Signals},
    simulation::Simulation,
    table::{Row, table},
};
use crate::refusal::Refusals;

/// Annotation on printed objects with the name of their cluster.
const CLUSTER: &str = "kctl.dev/cluster";
/// Interval between two checks for idleness.
const IDLE_POLL: Duration = Duration::from_millis(20);
/// Number of idle checks in a row that count: an event may be on its way between server and cache.
const IDLE_POLLS: u32 = 5;
/// Seed of trace ids, so that the log is the same in each run.
const TRACE_SEED: u64 = 1;

/// Runs the command `dev`: starts servers, installs and applies everything, and runs until a signal
/// or until nothing is left to do.
#[cfg_attr(not(feature = "webhook"), allow(unused_mut, reason = "interpreters have metrics"))]
pub(super) async fn dev(mut app: App, options: DevOptions) -> Result<()> {
    log::begin(&app.name, LogFormat::Timeless);
    // From now on: what is served answers before the controllers run, and ends as it should from then on.
    let signals = Signals::listen(None);
    let objects = files::read_or(&options.files, app.dev_objects.as_deref())?;
    // People look at ages; a run that ends by itself is repeatable.
    let server = if options.until_idle { ApiServer::new() } else { ApiServer::on_system_time() };
    let others =
        other_servers(
            &app,
            |seed| {
                if options.until_idle { ApiServer::seeded(seed) } else { ApiServer::on_system_time() }
            },
        );
    if let Some(folder) = &options.data {
        server.keep_in(folder).context(folder.display())?;
        for (name, other) in &others {
            let folder = folder.join(name);
            other.keep_in(&folder).context(folder.display())?;
        }
    }
    let served = options.port.is_some() || options.write_kubeconfig.is_some() || !options.until_idle;
    let mut tasks = JoinSet::new();
    if served {
        serve(&app, &server, &others, &options, &mut tasks).await?;
    }
    #[cfg(feature = "webhook")]
    let webhooks = Webhooks::start(&mut app, &options).await?;
    print_writes(&app, &server, "");
    let started = async {
        // No one opens the debug page of a run that ends by itself, unless an option names its address.
        let usual = if options.until_idle { "0" } else { "127.0.0.1:0" };
        let page = options.debug.listen(usual).await?;
        let serve_page = |manager| page.serve(&app.name, manager);
        let world = World::with_servers(server, others, &app, (&app.grants(), &[]), serve_page).await?;
        for other in &world.others {
            print_writes(&app, &other.server, &other.name);
        }
        if options.simulate_workloads {
            world.add_workloads();
        }
        files::apply(&world.client, &objects).await?;
        world.check_kinds(&app, Remedy::Files).await?;
        Ok::<_, Error>(world)
    };
    let world = tokio::select! {
        world = started => Some(world?),
        () = signals.stopped() => None,
    };
    if !options.until_idle {
        // The signal may have come already, and then nothing was started.
        signals.stopped().await;
        #[cfg(feature = "webhook")]
        webhooks.stop().await?;
        if world.is_none() && signals.interrupted() {
            std::process::exit(INTERRUPTED);
        }
        return Ok(());
    }
    let Some(world) = world else { std::process::exit(INTERRUPTED) };
    tokio::select! {
        idle = world.idle(options.timeout) => idle?,
        () = signals.stopped() => std::process::exit(INTERRUPTED),
    }
    // Reading them may need a conversion.
    let printed = world.objects(&app, &objects).await?;
    let now = world.server.now();
    #[cfg(feature = "webhook")]
    webhooks.stop().await?;
    match options.output {
        Format::Json => print(&format!("{}\n", serde_json::to_string_pretty(&printed)?)),
        Format::Yaml => print(&manifest::yaml(&printed)?),
        Format::Table => print(&as_table(&printed, &objects, now)),
    }
}

/// Formats objects as a table, and marks those that came from files.
///
/// An object counts as applied if kind, name and namespace agree; a file without a namespace means any.
fn as_table(objects: &[Value], applied: &[FromFile], now: Timestamp) -> String {
    let text = |object: &Value, path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_applied = |object: &Value| {
        applied.iter().any(|file| {
            let file = &file.object;
            let namespace = text(file, "/metadata/namespace");
            text(file, "/kind") == text(object, "/kind")
                && text(file, "/metadata/name") == text(object, "/metadata/name")
                && (namespace.is_empty() || namespace == text(object, "/metadata/namespace"))
        })
    };
    let cluster_of = |object: &Value| -> String {
        object
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(CLUSTER))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .into()
    };
    let clusters: Vec<_> = objects.iter().map(cluster_of).collect();
    let rows = objects.iter().zip(&clusters).map(|(object, cluster)| Row {
        object,
        applied: cluster.is_empty() && is_applied(object),
        cluster,
    });
    table(&rows.collect::<Vec<_>>(), now)
}

/// The webhooks beside the controllers; empty for an app without.
#[cfg(feature = "webhook")]
struct Webhooks {
    stop: tokio::sync::oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
    /// The functions that may still run when their requests have ended.
    functions: super::webhook::Functions,
}

#[cfg(feature = "webhook")]
impl Webhooks {
    /// Starts serving in the background, and records the address for the webhook configurations.
    async fn start(app: &mut App, options: &DevOptions) -> Result<Self> {
        let mut serve = options.webhook.clone();
        serve.keep_in.clone_from(&options.data);
        let webhook = app.webhook(&serve).await?;
        app.hooks.reached = webhook.as_ref().map(super::webhook::Serving::reached);
        let functions = webhook.as_ref().map(|webhook| webhook.functions.clone()).unwrap_or_default();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let served = tokio::spawn(async move {
            let Some(webhook) = webhook else { return };
            let stopped = async { drop::<Result<(), _>>(stopped.await) };
            if let Err(error) = webhook.server.serve(stopped).await {
                tracing::error!(%error, "webhooks are no longer served");
            }
        });
        Ok(Self { stop, served, functions })
    }

    /// Refuses new requests, and waits until the running ones are answered.
    async fn stop(self) -> Result<()> {
        drop(self.stop);
        if let Err(error) = self.served.await {
            tracing::error!(%error, "the webhook server did not stop cleanly");
        }
        self.functions.ended().await
    }
}

/// Serves the API server on a port, and those of other clusters on further ports that the system chooses.
///
/// The kubeconfig has a context for each of them.
///
/// # Errors
/// A port is in use, or the kubeconfig exists and kctl did not write it.
async fn serve(
    app: &App,
    server: &ApiServer,
    others: &[(String, ApiServer)],
    options: &DevOptions,
    tasks: &mut JoinSet<()>,
) -> Result<()> {
    let port = options.port.unwrap_or(0);
    let serve = ServeOptions::default().port(port);
    let listening = server.listen(serve).await.context("--port")?;
    let mut beside = Vec::new();
    for (name, other) in others {
        beside.push((name.as_str(), other.listen(ServeOptions::default()).await.context(name)?));
    }
    let file = &options.write_kubeconfig;
    if let Some(file) = file {
        let contexts: Vec<_> = beside.iter().map(|(name, other)| (*name, other)).collect();
        listening.write_kubeconfig_with(file, &contexts).context(file.display())?;
    }
    let hint = match file {
        Some(file) => format!("; in another terminal: export KUBECONFIG={}", file.display()),
        None => "; with --write-kubeconfig FILE for kubectl".into(),
    };
    say!("{}: serving {}{hint}", app.name, listening.url());
    for (name, other) in &beside {
        say!("{}: serving {name} on {}; kubectl --context {name}", app.name, other.url());
    }
    for listening in std::iter::once(listening).chain(beside.into_iter().map(|(_, other)| other)) {
        tasks.spawn(async move {
            if let Err(error) = listening.serve().await {
                tracing::error!(%error, "an API server stopped serving");
            }
        });
    }
    Ok(())
}

/// Creates a server for each other cluster. Different seeds give them different uids, as in real
/// clusters.
fn other_servers(app: &App, server: impl Fn(u64) -> ApiServer) -> Vec<(String, ApiServer)> {
    app.clusters.iter().zip(1..).map(|((name, _), seed)| (name.clone(), server(seed))).collect()
}

/// Prints a line for each write of a controller: `podset: create pods default/web-0`, with the status
/// code if the server rejected it.
fn print_writes(app: &App, server: &ApiServer, cluster: &str) {
    let (mut name, user) = (app.name.clone(), user_of(app).name);
    if !cluster.is_empty() {
        name += &format!(" on {cluster}");
    }
    server.observe(move |request| {
        if request.user != user || ["get", "list", "watch"].contains(&request.verb) {
            return;
        }
        let RequestRecord { verb, resource, namespace, name: object, code, .. } = request;
        let full_name = if namespace.is_empty() { object.clone() } else { format!("{namespace}/{object}") };
        let refused = if *code >= 400 { format!(": {code}") } else { String::new() };
        say!("{name}: {verb} {resource} {full_name}{refused}");
    });
}

/// Returns the service account that the generated manifests use, as which the app runs.
pub(crate) fn user_of(app: &App) -> User {
    User::service_account("default", &app.name)
}

/// Installs the CRDs and the app's role on a server. Returns a client of the app, and a record of
/// its rejected requests.
async fn as_role(server: &ApiServer, app: &App, role: &Grants, cluster: &str) -> Result<(Client, Refusals)> {
    let grants = role.get(cluster).cloned().unwrap_or_default();
    let names = RbacOptions::new(app.name.clone(), "default");
    #[cfg(feature = "webhook")]
    app.install_on(server, &grants, &names, cluster).await?;
    #[cfg(not(feature = "webhook"))]
    files::install(&Client::new(server.service(), "default"), &app.definitions()?, &grants, &names).await?;
    let refusals = Refusals::beyond(grants);
    Ok((Client::new(refusals.layer(server.service_as(user_of(app))), "default"), refusals))
}

/// A cluster beside the one that the app is started against.
pub(crate) struct Other {
    /// The name that `App::cluster` gave it.
    pub(crate) name: String,
    /// A client with all permissions.
    pub(crate) client: Client,
    /// Its embedded API server.
    pub(crate) server: ApiServer,
    simulation: Simulation,
}

/// An app that runs on embedded API servers: the core of `dev`, `TestServer` and role tests.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    simulation: Simulation,
    /// A client with all permissions, for the files of `dev` and the steps of a test.
    pub(crate) client: Client,
    /// The other clusters.
    pub(crate) others: Vec<Other>,
    /// The running manager: its caches and work queues.
    pub(crate) view: View,
    /// Requests that the app's role did not allow, on each cluster.
    pub(crate) refusals: Vec<Refusals>,
    /// Detects reconciles that repeat while simulated time stands still.
    hot_loops: HotLoops,
    _tasks: JoinSet<()>,
}

impl World {
    /// Starts a server, installs the CRDs and the generated role, and runs the controllers.
    pub(crate) async fn start(app: &App) -> Result<Self> {
        Self::with_role(app, &app.grants()).await
    }

    /// Starts like [`start`](Self::start), and applies objects before the controllers run.
    pub(crate) async fn start_with(app: &App, objects: &[FromFile]) -> Result<Self> {
        let (server, others) = (ApiServer::new(), other_servers(app, ApiServer::seeded));
        let world = Self::with_servers(server, others, app, (&app.grants(), objects), |manager| manager).await?;
        world.check_kinds(app, Remedy::StartWith).await?;
        Ok(world)
    }

    /// Starts with another role, by cluster. The app is never an administrator: a request that the
    /// role does not allow gets 403.
    pub(crate) async fn with_role(app: &App, role: &Grants) -> Result<Self> {
        let (server, others) = (ApiServer::new(), other_servers(app, ApiServer::seeded));
        let world = Self::with_servers(server, others, app, (role, &[]), |manager| manager).await?;
        world.check_kinds(app, Remedy::StartWith).await?;
        Ok(world)
    }

    /// Fails if a server lacks a kind of the app.
    async fn check_kinds(&self, app: &App, remedy: Remedy) -> Result<()> {
        let client_of = |cluster: &str| {
            let other = self.others.iter().find(|other| other.name == cluster);
            other.map_or(&self.client, |other| &other.client).clone()
        };
        check_kinds(app, client_of, &[], remedy).await
    }

    /// Starts on existing servers, with objects that are applied before the controllers run.
    async fn with_servers(
        server: ApiServer,
        servers: Vec<(String, ApiServer)>,
        app: &App,
        (role, objects): (&Grants, &[FromFile]),
        set_up: impl FnOnce(Manager) -> Manager + Send,
    ) -> Result<Self> {
        let client = Client::new(server.service(), "default");
        let mut tasks = JoinSet::new();
        let simulation = Simulation::of_pods(&server, &mut tasks);
        let clock = server.clone();
        let (own, refusals) = as_role(&server, app, role, "").await?;
        files::apply(&client, objects).await?;
        let mut refusals = vec![refusals];
        let mut clusters = Vec::new();
        let mut others = Vec::new();
        for (name, other) in servers {
            let (there, refused) = as_role(&other, app, role, &name).await?;
            refusals.push(refused);
            clusters.push((name.clone(), there));
            others.push(Other {
                name,
                client: Client::new(other.service(), "default"),
                simulation: Simulation::of_workloads(&other, &mut tasks),
                server: other,
            });
        }
        let hot_loops = HotLoops::of(&user_of(app).name);
        for server in std::iter::once(&server).chain(others.iter().map(|other| &other.server)) {
            let counts = hot_loops.clone();
            server.observe(move |request| counts.request(request));
        }
        let (begins, ended) = (hot_loops.clone(), hot_loops.clone());
        let repeatable = |manager: Manager| {
            let manager = manager.clock(Arc::new(move || clock.now())).trace_seed(TRACE_SEED);
            manager
                .on_begin(Arc::new(move |controller, key, trace| begins.begins(controller, key, trace)))
                .on_end(Arc::new(move |report| ended.ended(report)))
        };
        let manager = set_up(app.manager_at(own, clusters, repeatable).await?);
        let (view, hot) = (manager.view(), hot_loops.clone());
        tasks.spawn(async move {
            // An app that goes on would keep time from advancing: whatever else the test waits for would hang.
            tokio::select! {
                biased;
                hot_loop = hot.found() => tracing::error!("{hot_loop}"),
                ended = manager.run(std::future::pending()) => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "the controllers no longer run");
                    }
                }
            }
        });
        Ok(Self { server, simulation, client, others, view, refusals, hot_loops, _tasks: tasks })
    }

    /// Starts the simulated controllers of Deployments, `ReplicaSets` and Jobs.
    pub(crate) fn add_workloads(&self) {
        self.simulation.add_workloads();
    }

    /// Waits until nothing is left to do: the work queues are empty, the caches have seen all changes, and
    /// the simulated controllers rest. [`IDLE_POLLS`] checks in a row have to agree.
    ///
    /// # Errors
    /// Something is left after `timeout`, or a hot loop kept simulated time from advancing.
    pub(crate) async fn idle(&self, timeout: Duration) -> Result<()> {
        let quiet = async {
            let mut quiet = 0;
            while quiet < IDLE_POLLS {
                tokio::time::sleep(IDLE_POLL).await;
                let others = self.others.iter().map(|other| &other.simulation);
                let simulated = std::iter::once(&self.simulation).chain(others).all(Simulation::is_idle);
                let idle = self.view.is_idle() && simulated;
                quiet = if idle { quiet + 1 } else { 0 };
            }
        };
        tokio::select! {
            biased;
            hot_loop = self.hot_loops.found() => Err(Error::from(hot_loop)),
            timed = tokio::time::timeout(timeout, quiet) => timed.map_err(|_elapsed| Error::from(self.busy(timeout))),
        }
    }

    /// Describes what is still running or waiting.
    fn busy(&self, timeout: Duration) -> String {
        let mut lines = vec![format!("not idle after {timeout:?}")];
        lines.extend(self.view.unfinished());
        if lines.len() == 1 {
            lines.push("pods and other objects are still being simulated".into());
        }
        lines.join("\n  ")
    }

    /// Returns what `dev --until-idle` prints, sorted by cluster, kind, namespace and name.
    ///
    /// These are the applied objects and those of owned kinds. On other clusters they are the
    /// watched objects of kinds that the app may create, and Pods.
    async fn objects(&self, app: &App, applied: &[FromFile]) -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        for file in applied {
            objects.push(files::get(&self.client, &file.object).await?);
        }
        let owned = |kind: &Kind| {
            let mut relations = app.specs().into_iter().flat_map(|spec| spec.relations);
            relations.any(|relation| relation.role == Role::Owned && relation.kind == *kind)
        };
        let grants = app.grants();
        let created = |identity: &Identity| {
            let Kind { group, plural, .. } = &identity.kind;
            let on = On::Resource { group: group.clone(), resource: plural.clone(), name: String::new() };
            let cluster_grants = grants.get(&identity.cluster);
            cluster_grants.into_iter().flatten().any(|grant| {
                let (scope, because) = (grant.scope.clone(), BTreeSet::new());
                grant.covers(&Grant { scope, on: on.clone(), verb: "create".into(), because, framework: false })
            })
        };
        let is_made = |identity: &Identity| {
            if identity.cluster.is_empty() { owned(&identity.kind) } else { created(identity) }
        };
        for source in self.view.sources_now().iter().filter(|source| is_made(source.identity())) {
            for object in source.store().all() {
                let object: Value = serde_json::from_str(&object.json())?;
                objects.push(on_cluster(object, &source.identity().cluster));
            }
        }
        for other in &self.others {
            for pod in other.server.objects("", "pods") {
                objects.push(on_cluster(Value::clone(&pod), &other.name));
            }
        }
        let sort_key = |object: &Value| {
            let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let cluster = format!("/metadata/annotations/{}", CLUSTER.replace('/', "~1"));
            [
                field(&cluster),
                field("/kind"),
                field("/metadata/namespace"),
                field("/metadata/name"),
                field("/metadata/uid"),
            ]
        };
        for object in &mut objects {
            // `managedFields` is noise for a person; kubectl leaves it out as well.
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
        }
        objects.sort_by_key(sort_key);
        objects.dedup_by_key(|object| sort_key(object));
        Ok(objects)
    }
}

/// Adds the cluster of an object as an annotation, unless it is the main one.
fn on_cluster(mut object: Value, cluster: &str) -> Value {
    if !cluster.is_empty() {
        object["metadata"]["annotations"][CLUSTER] = cluster.into();
    }
    object
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    #[tokio::test]
    async fn port_in_use_is_named_with_the_remedy() {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let command = DevOptions::augment_args(clap::Command::new("dev"));
        let matches = command.get_matches_from(["dev".to_owned(), format!("--port={port}")]);
        let options = DevOptions::from_arg_matches(&matches).unwrap();
        let error = format!("{:#}", dev(App::new("taken"), options).await.unwrap_err());
        let what_to_do = "in use; stop what uses it, or choose another one: 0 is any free one";
        assert_eq!(error, format!("--port: port {port} of 127.0.0.1: {what_to_do}"));
    }
}
