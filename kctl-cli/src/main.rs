//! The `kctl` tool.

/// Says something to people. A reader that went away is not an error of the program.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _unread = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod apiserver;
mod completions;
mod faults;
mod interpret;
mod kubelet;
mod new;

use std::{io::IsTerminal, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};

/// Requests are many small texts and maps, which this one makes and frees faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(
    name = "kctl",
    version,
    about = "An embedded Kubernetes API server, simulated kubelets, and tools for kctl projects"
)]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an API server on loopback: in memory, ready in milliseconds
    Apiserver(apiserver::Options),
    /// Schedule pods and simulate running them, on an embedded or real API server
    Kubelet(kubelet::Options),
    /// Run one resource interpreter operation on files
    Interpret(interpret::Options),
    /// Create a project with one kind and its controller
    New(new::Options),
    /// Print a script that completes commands and options in a shell
    Completions(completions::Options),
    /// Write a man page for each command
    Man(completions::ManOptions),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// On one thread: requests of the API server run under one lock, and a second thread that waits for it takes more CPU than it
/// gives (`benches/README.md`).
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    // kube's client says each failed request a second time, without its name.
    let filter = filter.unwrap_or_else(|_unset| tracing_subscriber::EnvFilter::new("info,kube_client::client=off"));
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colored = std::io::stderr().is_terminal() && !no_color;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colored)
        .log_internal_errors(false)
        .init();
    let done = match cli.command {
        Command::Apiserver(options) => apiserver::run(options).await,
        Command::Kubelet(options) => kubelet::run(options).await,
        Command::Interpret(options) => interpret::run(options).await,
        Command::New(options) => new::run(&options),
        Command::Completions(options) => completions::run(&options, Cli::command()),
        Command::Man(options) => completions::man(&options, Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("kctl: {}", with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Returns the text of an error and of what caused it; some errors end with the text of their cause already.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source()).map(ToString::to_string);
    causes.fold(error.to_string(), |text, cause| if text.ends_with(&cause) { text } else { format!("{text}: {cause}") })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Told {
        text: &'static str,
        source: std::io::Error,
    }

    #[test]
    fn a_cause_is_told_once() {
        for text in ["cannot read", "cannot read: gone"] {
            let told = Told { text, source: std::io::Error::other("gone") };
            assert_eq!(with_causes(&told), "cannot read: gone");
        }
    }
}
