//! `run`: the manager against a cluster, until it is told to stop.

use std::{io::IsTerminal, path::PathBuf, sync::Arc};

use kctl_runtime::{
    manager::metrics::RequestCounter,
    reconcile::{Error, Result},
    worker::{Decision, Observer, Outcome},
};
use kube::{
    Client,
    client::ClientBuilder,
    config::{Config, KubeConfigOptions, Kubeconfig},
};

use super::{App, cli::RunOptions, rbac_check};

pub(super) async fn run(mut app: App, mut options: RunOptions) -> Result<()> {
    log(Times::Shown);
    app.namespaces = std::mem::take(&mut options.namespace);
    #[cfg(feature = "webhook")]
    if let Some(webhook) = app.webhook(&options.webhook).await? {
        if app.controllers.is_empty() {
            // Interpreters need no cluster: Karmada comes to them.
            return Ok(webhook.serve(stopped_or_ended()).await?);
        }
        let serve = async { Ok(webhook.serve(stopped()).await?) };
        tokio::try_join!(run_manager(app, options), serve)?;
        return Ok(());
    }
    run_manager(app, options).await
}

async fn run_manager(app: App, options: RunOptions) -> Result<()> {
    let RunOptions { kubeconfig, context, manager: options, .. } = options;
    let (context, config) = config(kubeconfig, context).await?;
    eprintln!("{}: context {context}, server {}", app.name, config.cluster_url);
    let namespace = config.default_namespace.clone();
    // Without kube's retry layer: it repeats a POST after a 504, which may create an object twice.
    let requests = RequestCounter::new(&host(&config));
    let client: Client = ClientBuilder::try_from(config)?.with_layer(&requests).build();
    let election = options.election_grants(&app.name, &namespace)?;
    rbac_check::report(&client, &app.name, &app.specs_in_use(), election).await;
    let manager = app.manager(client).await?;
    requests.register(manager.metrics());
    let manager = options.apply(&app.name, &namespace, manager).await?;
    manager.run(stopped_or_ended()).await?;
    Ok(())
}

/// A client of the cluster that the options name, for commands that ask and do not run; says which one that is.
pub(super) async fn client(app: &App, file: Option<PathBuf>, context: Option<String>) -> Result<Client> {
    let (context, config) = config(file, context).await?;
    eprintln!("{}: context {context}, server {}", app.name, config.cluster_url);
    Ok(ClientBuilder::try_from(config)?.build())
}

/// The host of an API server as client-go's metrics name it.
fn host(config: &Config) -> String {
    config.cluster_url.authority().map_or_else(|| config.cluster_url.to_string(), ToString::to_string)
}

async fn config(file: Option<PathBuf>, context: Option<String>) -> Result<(String, Config)> {
    let named = file.is_some() || context.is_some();
    let kubeconfig = match &file {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    match kubeconfig {
        Ok(kubeconfig) => {
            let context = context.or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
            let wanted = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
            let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &wanted).await;
            Ok((context, config.map_err(|error| no_context(error, &kubeconfig))?))
        }
        Err(error) if named => Err(no_cluster(error)),
        Err(error) => match Config::incluster() {
            Ok(config) => Ok(("(in the cluster)".into(), config)),
            Err(_) => Err(no_cluster(error)),
        },
    }
}

fn no_cluster(error: impl std::fmt::Display) -> Error {
    Error::from(format!(
        "no cluster to run against: {error}\nhelp: set KUBECONFIG, or try it without a cluster: `cargo run -- dev`"
    ))
}

fn no_context(error: impl std::fmt::Display, known: &Kubeconfig) -> Error {
    let names: Vec<_> = known.contexts.iter().map(|context| context.name.as_str()).collect();
    Error::from(format!("{error}\nhelp: the kubeconfig has the contexts {}", names.join(", ")))
}

/// Returns at the first Ctrl-C or SIGTERM. A second one ends the process at once, as in controller-runtime.
async fn stopped_or_ended() {
    stopped().await;
    tracing::info!("stopping: reconciles that run are finished; a second signal ends at once");
    tokio::spawn(async {
        stopped().await;
        tracing::error!("ended by a second signal: the lease is not handed back, and reconciles were cut off");
        std::process::exit(1);
    });
}

/// Returns at a Ctrl-C or SIGTERM.
pub(super) async fn stopped() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _unsupported = interrupt.await;
}

/// Whether lines of the log begin with the time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Shown,
    /// Where the simulated time is another one, and the output the same each time.
    #[cfg_attr(not(feature = "dev"), expect(dead_code, reason = "only `dev` simulates time"))]
    Hidden,
}

pub(super) fn log(times: Times) {
    use tracing_subscriber::EnvFilter;
    // kube's client says each failed request a second time, without its name.
    let usual = "info,kube_client::client=off";
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_unset| EnvFilter::new(usual));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let _already = match times {
        Times::Shown => lines.try_init(),
        Times::Hidden => lines.without_time().try_init(),
    };
}

/// Says what went wrong, and what will happen.
pub(super) fn observer() -> Observer {
    Arc::new(|report| {
        let next = match &report.decision {
            Decision::RateLimited => "tried again with growing waits".to_owned(),
            Decision::RetryAfter(wait) => format!("tried again in {wait:?}"),
            _ => "not tried again until it changes".to_owned(),
        };
        let (controller, key) = (&report.controller, &report.key);
        match &report.outcome {
            // Outdated states are a part of the protocol, not a failure.
            Outcome::Failed { conflict: true, text, .. } => tracing::debug!(controller, %key, "{text}"),
            Outcome::Failed { text, .. } => tracing::error!(controller, %key, "{text}; {next}"),
            Outcome::Panicked(text) => tracing::error!(controller, %key, "panic: {text}; {next}"),
            Outcome::TimedOut => tracing::error!(controller, %key, "took longer than its timeout; {next}"),
            Outcome::Done(_) | Outcome::Vanished => tracing::debug!(controller, %key, "reconciled"),
        }
    })
}
