//! `run`: the manager against a cluster, until a signal stops it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[cfg(feature = "webhook")]
use futures::TryFutureExt;
use kctl_runtime::{
    connection as clients,
    manager::{Manager, health::Health, metrics::RequestCounter},
    reconcile::Result,
    worker::{CONFLICTS_BEFORE_WARNING, Decision, Observer, Outcome},
};
use kube::{Client, config::Config};
use tokio::task::JoinSet;
use tower::util::option_layer;

use super::{
    App, blocked_runtime,
    client_layers::ClientOptions,
    connection::{Connection, ReadCluster},
    rbac_check,
    run_options::RunOptions,
    signals::{INTERRUPTED, Signals},
};

/// Maximum time that the start waits for the permission check, so that its log lines precede the failures that they
/// explain. A slower check continues in the background.
const PERMISSION_CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Version in the `User-Agent` of a program that sets none.
const UNVERSIONED: &str = "0.0.0";

/// Runs the command `run`: webhooks and controllers, until a signal.
///
/// The namespaces of `--namespace` replace the declared namespaces for this process, both in the caches and in the
/// permission check.
///
/// - Without controllers and without `--webhook-secret`, the webhooks only answer, next to probes and metrics. A cluster
///   is contacted only if the metrics port has to authenticate its clients.
/// - With both, the webhook server starts first and stops last. Caches may need its conversions for their
///   first list, and the last writes of workers may need its admission functions.
pub(super) async fn run(mut app: App, mut options: RunOptions) -> Result<()> {
    options.manager.set_slots_of_app(app.shards);
    options.check_dry_run()?;
    let signals = Signals::listen(options.manager.grace());
    tokio::spawn(blocked_runtime::watch());
    app.namespaces = std::mem::take(&mut options.namespace);
    options.manager.set_namespaces(app.namespaces.clone());
    #[cfg(feature = "webhook")]
    if let Some(webhook) = app.webhook(&options.webhook).await? {
        let certificates = webhook.certificates.clone();
        if app.controllers.is_empty() && certificates.is_none() {
            // A webhook server needs no connection to the cluster: API servers connect to it.
            let cluster = read_cluster(&app, options.kubeconfig, options.context).map_ok(|cluster| cluster.client);
            let metrics = options.manager.metrics_without_manager(&app.metrics, webhook.count_reads(), cluster).await?;
            let probes = options.manager.probes_without_manager(webhook.is_served()).await?;
            return tokio::select! {
                served = webhook.serve(signals.wait_for_stop()) => served,
                () = metrics => Ok(()),
                () = probes => Ok(()),
            };
        }
        // The webhooks answer before the caches start, because the first lists may need conversions.
        let (count_reads, ready_when_served) = (webhook.count_reads(), webhook.ready_when_served());
        let beside = move |manager: &mut Manager, client: Client, namespace: String| {
            count_reads(manager.metrics());
            ready_when_served(manager);
            if let Some(certificates) = certificates {
                let leader = super::certificates::Leader::of(&manager.view());
                manager.background(certificates.run(client, namespace, leader));
            }
        };
        // On the heap: both futures are large, and are polled together.
        let manager = Box::pin(run_manager(app, options, &signals, beside));
        return webhook.serve_beside(manager, signals.wait_for_stop()).await;
    }
    run_manager(app, options, &signals, |_manager, _client, _namespace| {}).await
}

/// Runs the manager. `beside` adds tasks that run concurrently with the controllers.
///
/// A signal that arrives while the manager is being created drops it: no reconcile has begun, so there is
/// nothing to finish. Readiness is sampled when the signal arrives, because a stopping manager is not ready.
async fn run_manager(
    app: App,
    options: RunOptions,
    signals: &Signals,
    beside: impl FnOnce(&mut Manager, Client, String) + Send,
) -> Result<()> {
    let manager = tokio::select! {
        manager = start(app, options, signals, beside) => manager?,
        () = signals.wait_for_stop() => {
            ended_unready(signals);
            return Ok(());
        }
    };
    let health = Health::new(manager.view(), manager.metrics().clone());
    let was_ready = AtomicBool::new(true);
    let stop = async {
        signals.wait_for_stop().await;
        was_ready.store(health.ready().iter().all(|check| check.result.is_ok()), Ordering::Relaxed);
    };
    manager.run(stop).await?;
    if !was_ready.into_inner() {
        ended_unready(signals);
    }
    Ok(())
}

/// Exits with status 130 if Ctrl-C ended a program that was not ready, as a shell expects of an interrupted command.
fn ended_unready(signals: &Signals) {
    if signals.is_interrupted() {
        std::process::exit(INTERRUPTED);
    }
}

/// Connects, checks permissions for a limited time, and creates the manager.
///
/// The order matters. Permission checks start as soon as there is a client, so that their log lines precede the errors
/// that missing permissions cause. They never delay the start for longer than [`PERMISSION_CHECK_TIMEOUT`]. Elections run
/// on the signal thread, so that a reconcile that blocks its thread does not delay the renewal of a Lease. The Lease
/// has a client without the rate limit of `--kube-api-qps`, and so have the `TokenReview`s for metrics scrapes.
///
/// # Errors
/// No cluster is found, a client or a controller can't be created, or the options contradict each other.
async fn start(
    app: App,
    options: RunOptions,
    signals: &Signals,
    beside: impl FnOnce(&mut Manager, Client, String) + Send,
) -> Result<Manager> {
    #[cfg(feature = "webhook")]
    let webhook = options.webhook.clone();
    let Connection { config, token, .. } = connect(&app, &options).await?;
    let RunOptions { manager: options, outgoing, .. } = options;
    let namespace = config.default_namespace.clone();
    let requests = RequestCounter::new(&host(&config));
    let client_of = |outgoing: &ClientOptions| -> Result<Client> {
        let connected = clients::builder(config.clone())?.with_layer(&option_layer(token.clone()));
        Ok(connected.with_layer(outgoing).with_layer(&requests).build())
    };
    let unlimited = outgoing.without_rate_limit();
    // An `exec` plugin runs for this client, and the others share its credential.
    let first = clients::nonblocking_builder(config.clone()).await?.with_layer(&option_layer(token.clone()));
    let client = first.with_layer(&outgoing).with_layer(&requests).build();
    let (lease, reviews) = (client_of(&unlimited)?, client_of(&unlimited)?);
    let ring = options.ring(&namespace).transpose()?;
    let takes_part = ring.is_some() || options.takes_part_in_elections();
    let elections = signals.runtime().filter(|_| takes_part).map(|runtime| {
        let _in_runtime = runtime.enter();
        client_of(&unlimited).map(|client| (runtime.clone(), client))
    });
    let elections = elections.transpose()?;
    let ring_role = ring.as_ref().map(|ring| app.ring_role(ring.ring(), ring.namespace()));
    let extra = options.lease_role(&app.name, &namespace)?.into_iter().chain(ring_role);
    #[cfg(feature = "webhook")]
    let extra = extra.chain(app.certificate_role(&webhook, &namespace)?);
    let checked_program = |cluster: &str| rbac_check::CheckedProgram {
        app: app.name.clone(),
        specs: app.specs_in_use(),
        cluster: cluster.into(),
    };
    let mut checks = JoinSet::new();
    checks.spawn(rbac_check::report(client.clone(), checked_program(""), extra.collect()));
    let clusters = clusters(&app, &outgoing, &requests).await?;
    for (name, client) in &clusters {
        checks.spawn(rbac_check::report(client.clone(), checked_program(name), Vec::new()));
    }
    wait_for_checks(checks).await;
    let manager = match ring {
        Some(ring) => app.ring_at(client.clone(), clusters, lease.clone(), ring).await?,
        None => app.manager_at(client.clone(), clusters, |manager| manager).await?,
    };
    requests.register(manager.metrics());
    let mut manager = options.apply(&app.name, &namespace, lease, reviews, manager).await?;
    if let Some((runtime, client)) = elections {
        manager = manager.run_elections_on(runtime, client);
        signals.exit_if_blocked();
    }
    beside(&mut manager, client, namespace);
    Ok(manager)
}

/// Finds the cluster that the options name, and prints it. Requests are sent as the user of `--as`.
///
/// # Errors
/// The options and the environment name no cluster.
async fn connect(app: &App, options: &RunOptions) -> Result<Connection> {
    let RunOptions { kubeconfig, context, as_user, as_group, proxy_url, .. } = options;
    let mut connection = Connection::find(kubeconfig.clone(), context.clone(), proxy_url.clone()).await?;
    if let Some(user) = as_user {
        connection.config.auth_info.impersonate = Some(user.clone());
        connection.config.auth_info.impersonate_groups = Some(as_group.clone());
    }
    let differs_from_others = as_user.is_some() || proxy_url.is_some();
    for (name, _) in app.clusters.iter().filter(|_| differs_from_others) {
        print_or_log!(
            "{}: --as and --proxy-url have no effect on cluster {name}, whose client the program creates",
            app.name
        );
    }
    print_or_log!("{}: {}", app.name, connection.describe());
    clients::name(&mut connection.config, &app.name, app.version.as_deref().unwrap_or(UNVERSIONED));
    Ok(connection)
}

/// Waits for the permission checks, at most for [`PERMISSION_CHECK_TIMEOUT`]. They continue in the background after that.
///
/// The wait is short: a Pod that its liveness probe restarts every few seconds would otherwise never get past the check.
async fn wait_for_checks(mut checks: JoinSet<()>) {
    let all = async { while checks.join_next().await.is_some() {} };
    let _later = tokio::time::timeout(PERMISSION_CHECK_TIMEOUT, all).await;
    checks.detach_all();
}

/// Returns clients of the other clusters, with the same options, counted under the clusters' names.
///
/// Connecting runs the closures of [`App::cluster`], in the order in which they were added.
///
/// # Errors
/// A closure fails; the program does not start without one of its clusters.
pub(super) async fn clusters(
    app: &App,
    outgoing: &ClientOptions,
    requests: &RequestCounter,
) -> Result<Vec<(String, Client)>> {
    let around = |(name, client): (String, Client)| {
        let client = outgoing.wrap(client, &requests.for_host(&name));
        (name, client)
    };
    Ok(app.connect_clusters().await?.into_iter().map(around).collect())
}

/// Finds the cluster of a command that only reads, such as `shards`, and prints it.
pub(super) async fn read_cluster(app: &App, file: Option<PathBuf>, context: Option<String>) -> Result<ReadCluster> {
    let connection = Connection::find(file, context, None).await?;
    print_or_log!("{}: {}", app.name, connection.describe());
    let Connection { mut config, token, .. } = connection;
    clients::name(&mut config, &app.name, app.version.as_deref().unwrap_or(UNVERSIONED));
    let server = config.cluster_url.to_string();
    let client = clients::nonblocking_builder(config).await?.with_layer(&option_layer(token)).build();
    Ok(ReadCluster { client, server })
}

/// Returns the host of an API server as client-go's metrics name it.
fn host(config: &Config) -> String {
    config.cluster_url.authority().map_or_else(|| config.cluster_url.to_string(), ToString::to_string)
}

/// Returns the observer that logs each failed reconcile with what happens next. Conflicts are
/// logged at debug level until they repeat.
///
/// Up to [`CONFLICTS_BEFORE_WARNING`] conflicts in a row are part of optimistic concurrency: the next reconcile reads
/// the newer object. More than that means another program writes the same field, and is logged as an error.
pub(super) fn observer() -> Observer {
    Arc::new(|report| {
        let next = match &report.decision {
            Decision::RateLimited | Decision::RetryAfter(_) | Decision::Outdated { .. } if report.stopping => {
                "not retried, because this process stops".to_owned()
            }
            Decision::RateLimited => "retrying with backoff".to_owned(),
            Decision::RetryAfter(wait) => format!("retrying in {wait:?}"),
            Decision::Outdated { in_a_row } => format!("{in_a_row} conflicts in a row, retrying with backoff"),
            _ => "not retried until the next event or resync".to_owned(),
        };
        let (controller, key, trace_id) = (&report.controller, &report.key, report.trace);
        match &report.outcome {
            Outcome::Failed { text, .. } if matches!(report.decision, Decision::Outdated { in_a_row } if in_a_row > CONFLICTS_BEFORE_WARNING) =>
            {
                tracing::error!(controller, %key, %trace_id, "{text}; {next}");
            }
            // Outdated states are a part of the protocol, not a failure.
            Outcome::Failed { text, .. } if matches!(report.decision, Decision::Outdated { .. }) => {
                tracing::debug!(controller, %key, %trace_id, "{text}");
            }
            Outcome::Failed { text, .. } => tracing::error!(controller, %key, %trace_id, "{text}; {next}"),
            Outcome::Panicked(text) => tracing::error!(controller, %key, %trace_id, "panic: {text}; {next}"),
            Outcome::TimedOut => {
                let limit = report.timeout.unwrap_or_default();
                tracing::error!(controller, %key, %trace_id, "timed out after {limit:?}; {next}");
            }
            Outcome::Done(_) | Outcome::Vanished => tracing::debug!(controller, %key, %trace_id, "reconciled"),
            other => tracing::error!(controller, %key, %trace_id, "{other:?}; {next}"),
        }
    })
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use parking_lot::Mutex;
    use tracing_subscriber::{Layer, filter::LevelFilter, layer::SubscriberExt};

    use super::*;
    use crate::{app::World, prelude::*};

    /// Keeps what is logged.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Each write of this controller is based on an outdated state.
    #[controller(crate = crate)]
    async fn check_outdated(_config: Arc<ConfigMap>, _cx: Context<check_outdated>) -> Result<Action> {
        let status = r#"{"reason":"Conflict","message":"the object has been modified"}"#;
        Err(ApiError::rejected("update ConfigMap default/web", 409, None, status).into())
    }

    #[controller(crate = crate, timeout = "2s")]
    async fn endless(_config: Arc<ConfigMap>, _cx: Context<endless>) -> Result<Action> {
        std::future::pending().await
    }

    #[controller(crate = crate, owns = Secret, concurrency = 3)]
    async fn quiet(_config: Arc<ConfigMap>, _cx: Context<quiet>) -> Result<Action> {
        Ok(Action::await_change())
    }

    #[tokio::test(start_paused = true)]
    async fn start_of_a_controller_is_logged_once() {
        let lines = Lines::default();
        let log = lines.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).without_time().with_writer(move || log.clone());
        let _logged =
            tracing::subscriber::set_default(tracing_subscriber::registry().with(layer.with_filter(LevelFilter::INFO)));
        let _world = World::start(&App::new("quiet").controller::<quiet>()).await.unwrap();
        tracing::callsite::rebuild_interest_cache();
        tokio::time::sleep(Duration::from_secs(100)).await;
        let text = String::from_utf8(lines.0.lock().clone()).unwrap();
        let all = |what: &str| text.lines().filter(|line| line.contains(what)).map(str::to_owned).collect::<Vec<_>>();
        for (what, fields) in [
            ("Starting EventSource", "source=\"ConfigMap, Secret\""),
            ("caches synced", "objects="),
            ("Starting workers", "worker_count=3"),
        ] {
            let found = all(what);
            assert!(
                found.len() == 1 && found[0].contains("controller=\"configmap\"") && found[0].contains(fields),
                "{text}"
            );
        }
    }

    /// Returns the log of an app for 100 s, in which it reconciles the `ConfigMap` `web`.
    async fn log_of(app: App) -> String {
        let lines = Lines::default();
        let log = lines.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).without_time().with_writer(move || log.clone());
        let all = tracing_subscriber::registry().with(layer).with(LevelFilter::INFO);
        let _logged = tracing::subscriber::set_default(all);
        let world = World::start(&app).await.unwrap();
        tracing::callsite::rebuild_interest_cache();
        let mut object = ConfigMap::default();
        object.metadata.name = Some("web".into());
        let configs = crate::kube::Api::default_namespaced(world.client.clone());
        configs.create(&crate::kube::api::PostParams::default(), &object).await.unwrap();
        tokio::time::sleep(Duration::from_secs(100)).await;
        let text = lines.0.lock().clone();
        String::from_utf8(text).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn timeout_is_logged_with_its_limit() {
        let text = log_of(App::new("endless").controller::<endless>()).await;
        assert!(text.contains("timed out after 2s; retrying with backoff controller=\"configmap\""), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn only_unusually_many_conflicts_are_logged() {
        let text = log_of(App::new("outdated").controller::<check_outdated>()).await;
        let errors: Vec<_> = text.lines().filter(|line| line.contains("ERROR")).collect();
        assert!(errors.len() > 2, "{text}");
        for (in_a_row, line) in (CONFLICTS_BEFORE_WARNING + 1..).zip(errors) {
            let end = format!(
                "; {in_a_row} conflicts in a row, retrying with backoff controller=\"configmap\" key=default/web"
            );
            assert!(line.contains("update ConfigMap default/web") && line.contains(&end), "{line}");
        }
    }
}
