//! The `kctl` tool.

mod apiserver;
mod interpret;
mod kubelet;
mod new;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "kctl", version, about = "A Kubernetes API server without a cluster, and what goes with it")]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an API server on loopback: in memory, ready in milliseconds
    Apiserver(apiserver::Options),
    /// Schedule and "run" the pods of an API server, embedded or real
    Kubelet(kubelet::Options),
    /// Run one operation of the resource interpreters on files
    Interpret(interpret::Options),
    /// Make a project with one kind and its controller
    New(new::Options),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_unset| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let done = match cli.command {
        Command::Apiserver(options) => apiserver::run(options).await,
        Command::Kubelet(options) => kubelet::run(options).await,
        Command::Interpret(options) => interpret::run(options).await,
        Command::New(options) => new::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kctl: {}", with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Returns the text of an error and of what caused it.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Returns at Ctrl-C or SIGTERM.
async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _unsupported = tokio::signal::ctrl_c().await;
}
