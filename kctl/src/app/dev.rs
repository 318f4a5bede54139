//! `dev`: the app against an embedded API server with a simulated kubelet.

use std::{collections::BTreeSet, path::Path};

use http::Request;
use k8s_openapi::jiff::Timestamp;
use kctl_apimachinery::url::escape;
use kctl_apiserver::{ApiServer, RequestRecord, ServeOptions};
use kctl_runtime::{
    manifest::{self, Permission, PermissionTarget},
    object::Kind,
    reconcile::{Result, ResultExt},
    source::WatchConfig,
    spec::RelationKind,
};
use kube::Client;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{
    App, blocked_runtime,
    dev_options::{DevOptions, Format},
    files::{self, FromFile},
    input,
    log::{self, LogFormat},
    required_kinds::Remedy,
    signals::{INTERRUPTED, Signals},
    stdout::print,
    table::{Row, table},
    world::{World, other_servers, user_of},
};

/// Annotation on printed objects with the name of their cluster.
const CLUSTER: &str = "kctl.dev/cluster";

/// Runs the command `dev`: starts servers, installs and applies everything, and runs until a signal
/// or until nothing is left to do.
#[cfg_attr(not(feature = "webhook"), allow(unused_mut, reason = "only webhooks change the app"))]
pub(super) async fn dev(mut app: App, options: DevOptions) -> Result<()> {
    log::begin(&app.name, LogFormat::Timeless);
    // Listens from here on: webhooks are served before the controllers run, and have to be shut down gracefully.
    let signals = Signals::listen(None);
    tokio::spawn(blocked_runtime::watch());
    let objects = input::read_or(&options.files, app.dev_objects.as_deref())?;
    // People look at ages, which need the system time. A run that ends by itself has to be repeatable.
    let server = if options.until_idle { ApiServer::new() } else { ApiServer::on_system_time() };
    let others =
        other_servers(
            &app,
            |seed| {
                if options.until_idle { ApiServer::seeded(seed) } else { ApiServer::on_system_time() }
            },
        );
    if let Some(folder) = &options.data {
        persist(&server, &others, folder)?;
    }
    let served = options.port.is_some() || options.write_kubeconfig.is_some() || !options.until_idle;
    let mut tasks = JoinSet::new();
    if served {
        serve(&app, &server, &others, &options, &mut tasks).await?;
    }
    #[cfg(feature = "webhook")]
    let webhooks = Webhooks::start(&mut app, &options).await?;
    print_writes(&app, &server, "");
    let started = start(server, others, &app, &objects, &options);
    let world = tokio::select! {
        world = started => Some(world?),
        () = signals.wait_for_stop() => None,
    };
    if !options.until_idle {
        // Returns at once if the signal arrived during the start.
        signals.wait_for_stop().await;
        #[cfg(feature = "webhook")]
        webhooks.stop().await?;
        if world.is_none() && signals.is_interrupted() {
            std::process::exit(INTERRUPTED);
        }
        return Ok(());
    }
    let Some(world) = world else { std::process::exit(INTERRUPTED) };
    tokio::select! {
        idle = world.idle(options.timeout) => idle?,
        error = world.wait_for_invalid(options.timeout) => return Err(error),
        () = signals.wait_for_stop() => std::process::exit(INTERRUPTED),
    }
    // Runs before the webhooks stop, because reading objects may need a conversion.
    let printed = world.objects(&app, &objects).await?;
    let now = world.server.now();
    #[cfg(feature = "webhook")]
    webhooks.stop().await?;
    let text = match options.output {
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&printed)?),
        Format::Yaml => manifest::yaml(&printed)?,
        Format::Table => as_table(&printed, &objects, now),
    };
    print(&text)?;
    world.check_given_up()
}

/// Stores the objects of all servers in a folder, and loads those that it has.
fn persist(server: &ApiServer, others: &[(String, ApiServer)], folder: &Path) -> Result<()> {
    let flag = |folder: &Path| format!("--data {}", folder.display());
    server.persist_in(folder).context(flag(folder))?;
    for (name, other) in others {
        let folder = folder.join(name);
        other.persist_in(&folder).context(flag(&folder))?;
    }
    Ok(())
}

/// Starts the controllers on the servers, and applies the objects.
async fn start(
    server: ApiServer,
    others: Vec<(String, ApiServer)>,
    app: &App,
    objects: &[FromFile],
    options: &DevOptions,
) -> Result<World> {
    // No one opens the debug page of a run that ends by itself, unless an option names its address.
    let usual = if options.until_idle { "0" } else { "127.0.0.1:0" };
    let page = options.debug.listen(usual).await?;
    let serve_page = |manager| page.serve(&app.name, manager);
    let world = World::with_servers(server, others, app, &app.permissions(), &[], serve_page).await?;
    for other in &world.others {
        print_writes(app, &other.server, &other.name);
    }
    if options.simulate_workloads {
        world.add_workloads();
    }
    files::apply(&world.client, objects).await?;
    world.check_kinds(app, Remedy::Files).await?;
    Ok(world)
}

/// Formats objects as a table, and marks those that came from files.
///
/// An object counts as applied if kind, name and namespace agree. A file without a namespace matches any namespace.
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

/// The webhooks that run next to the controllers; empty for an app without webhooks.
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
        serve.persist_in.clone_from(&options.data);
        serve.is_registered = true;
        let webhook = app.webhook(&serve).await?;
        app.webhook_functions.reached = webhook.as_ref().map(super::webhook::Serving::client_config);
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

    /// Rejects new requests, and waits until the running ones are answered.
    async fn stop(self) -> Result<()> {
        drop(self.stop);
        if let Err(error) = self.served.await {
            tracing::error!(%error, "the webhook server did not stop cleanly");
        }
        self.functions.wait_until_idle().await
    }
}

/// Serves the API server on a port, and the API servers of other clusters on ports that the system chooses.
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
        let written = listening.write_kubeconfig_with(file, &contexts);
        written.context(format!("--write-kubeconfig {}", file.display()))?;
    }
    let hint = match file {
        Some(file) => format!("; in another terminal: export KUBECONFIG={}", file.display()),
        None => "; with --write-kubeconfig FILE for kubectl".into(),
    };
    print_or_log!("{}: serving {}{hint}", app.name, listening.url());
    for (name, other) in &beside {
        print_or_log!("{}: serving {name} on {}; kubectl --context {name}", app.name, other.url());
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
        let RequestRecord { verb, resource, namespace, name: object, rejected_name, code, .. } = request;
        let object = if object.is_empty() { rejected_name } else { object };
        let full_name = if namespace.is_empty() { object.clone() } else { format!("{namespace}/{object}") };
        let rejected = if *code >= 400 { format!(": {code}") } else { String::new() };
        print_or_log!("{name}: {verb} {resource} {full_name}{rejected}");
    });
}

impl World {
    /// Returns what `dev --until-idle` prints, sorted by cluster, kind, namespace and name.
    ///
    /// These are the applied objects that still exist, and all objects of reconciled and owned kinds. On other clusters
    /// they are the reconciled objects, the watched objects of kinds that the app may create, and Pods. Objects of the
    /// cluster itself ([`is_server_object`]) are left out, unless they were applied.
    async fn objects(&self, app: &App, applied: &[FromFile]) -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        for file in applied {
            objects.extend(get(&self.client, &file.object).await?);
        }
        let specs = app.specs();
        let owned = |kind: &Kind| {
            let mut relations = specs.iter().flat_map(|spec| &spec.relations);
            relations.any(|relation| relation.declared_as == RelationKind::Owned && relation.kind == *kind)
        };
        // With `--data`, earlier runs may have stored primaries that no file of this run has.
        let is_primary = |config: &WatchConfig| {
            specs.iter().any(|spec| spec.primary.kind == config.kind && spec.primary.cluster == config.cluster)
        };
        let permissions = app.permissions();
        let created = |config: &WatchConfig| {
            let permissions = permissions.get(&config.cluster);
            permissions.into_iter().flatten().any(|permission| allows_create(permission, &config.kind))
        };
        let is_made = |config: &WatchConfig| {
            is_primary(config) || if config.cluster.is_empty() { owned(&config.kind) } else { created(config) }
        };
        objects.extend(self.read_caches(is_made)?);
        for other in &self.others {
            for pod in other.server.objects("", "pods") {
                objects.push(on_cluster(Value::clone(&pod), &other.name));
            }
        }
        for object in &mut objects {
            // `managedFields` is noise for a person; kubectl leaves it out as well.
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
        }
        // The sort is stable, so of two objects with equal keys the first is kept: the applied one, in the version of
        // its file.
        objects.sort_by_key(sort_key);
        objects.dedup_by_key(|object| sort_key(object));
        Ok(objects)
    }

    /// Returns the cached objects of the kinds for which `is_made` returns `true`, those with all fields first.
    fn read_caches(&self, is_made: impl Fn(&WatchConfig) -> bool) -> Result<Vec<Value>> {
        let (mut complete, mut partial) = (Vec::new(), Vec::new());
        for source in self.view.sources_now().iter().filter(|source| is_made(source.config())) {
            let config = source.config();
            for object in source.store().all() {
                let mut object: Value = serde_json::from_str(&object.json())?;
                if is_server_object(&object) {
                    continue;
                }
                // A cache that keeps a part of the fields leaves out `apiVersion` and `kind`.
                let objects = if object["kind"].is_null() {
                    object["apiVersion"] = config.kind.api_version().into();
                    object["kind"] = config.kind.kind.as_str().into();
                    &mut partial
                } else {
                    &mut complete
                };
                objects.push(on_cluster(object, &config.cluster));
            }
        }
        complete.append(&mut partial);
        Ok(complete)
    }
}

/// Returns `true` if the permission allows to create objects of a kind in its scope.
fn allows_create(permission: &Permission, kind: &Kind) -> bool {
    let (group, resource) = (kind.group.clone(), kind.plural.clone());
    permission.covers(&Permission {
        scope: permission.scope.clone(),
        target: PermissionTarget::Resource { group, resource, name: String::new() },
        verb: "create".into(),
        because: BTreeSet::new(),
        framework: false,
    })
}

/// Returns the sort key for printed objects: cluster, kind, namespace, name and uid.
fn sort_key(object: &Value) -> [String; 5] {
    let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let cluster = format!("/metadata/annotations/{}", CLUSTER.replace('/', "~1"));
    [field(&cluster), field("/kind"), field("/metadata/namespace"), field("/metadata/name"), field("/metadata/uid")]
}

/// Reads an object back from the server; `None` if a controller has deleted it.
async fn get(client: &Client, object: &Value) -> Result<Option<Value>> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let path = files::path(client, object).await?;
    match client.request(Request::get(format!("{path}/{}", escape(name))).body(Vec::new())?).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns `true` for objects of the cluster itself: those whose name or namespace begins with `kube-`, such as the
/// `ConfigMap` `kube-root-ca.crt`. Kubernetes reserves the prefix. An object with an owner is never one of them, and
/// neither is the namespace `default`.
fn is_server_object(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let is_reserved = |field: &str| metadata[field].as_str().is_some_and(|text| text.starts_with("kube-"));
    metadata["ownerReferences"].is_null() && (is_reserved("name") || is_reserved("namespace"))
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

    #[test]
    fn objects_of_the_server_are_left_out() {
        for (name, namespace, is_left_out) in
            [("kube-root-ca.crt", "shop", true), ("a", "kube-system", true), ("web", "shop", false), ("a", "", false)]
        {
            let object = serde_json::json!({ "metadata": { "name": name, "namespace": namespace } });
            assert_eq!(is_server_object(&object), is_left_out, "{object}");
        }
    }

    #[tokio::test]
    async fn port_in_use_is_named_with_the_remedy() {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let command = DevOptions::augment_args(clap::Command::new("dev"));
        let matches = command.get_matches_from(["dev".to_owned(), format!("--port={port}")]);
        let options = DevOptions::from_arg_matches(&matches).unwrap();
        let error = format!("{:#}", dev(App::new("taken"), options).await.unwrap_err());
        let what_to_do = "in use; stop what uses it, or choose another: 0 is any free port";
        assert_eq!(error, format!("--port: port {port} of 127.0.0.1: {what_to_do}"));
    }
}
