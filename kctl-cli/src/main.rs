//! The `kctl` tool: an embedded API server, simulated kubelets, interpreters on files, and project templates.
//!
//! Each command has a module with its options and a `run` function. Results go to standard output, and messages for people to
//! standard error. A failure ends the program with status 1, wrong usage with clap's status 2.

/// Prints a line to standard error. A closed standard error is not a failure of the command.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _unread = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod add;
mod apiserver;
mod completions;
mod faults;
mod interpret;
mod kubelet;
mod new;

use std::{
    io::{ErrorKind, IsTerminal, Write},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, Subcommand};

/// mimalloc, because the API server allocates many small strings and maps per request.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// Not a doc comment: clap would print it as the long help.
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
    Apiserver(apiserver::ApiserverOptions),
    /// Schedule pods and simulate running them, on an embedded or real API server
    Kubelet(kubelet::KubeletOptions),
    /// Run one resource interpreter operation on files
    Interpret(interpret::InterpretOptions),
    /// Create a project with one kind and its controller
    New(new::Options),
    /// Add a controller, webhooks or a version of a kind to a project
    Add(add::Options),
    /// Print a script that completes commands and options in a shell
    Completions(completions::CompletionsOptions),
    /// Write a man page for each command
    Man(completions::ManOptions),
}

/// The error of a command, whose message and sources `main` prints.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Parses the command line, sets up logging, and runs one command.
///
/// It runs on one thread. Requests of the API server run under one lock, and a second thread that waits for it costs more CPU
/// than it gains (`benches/README.md`).
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    // kube's client logs each failed request a second time, without its name.
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
        Command::Add(options) => add::run(&options),
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

/// Joins an error with its sources. A source whose message the error already ends with is left out.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source()).map(ToString::to_string);
    causes.fold(error.to_string(), |text, cause| if text.ends_with(&cause) { text } else { format!("{text}: {cause}") })
}

/// Writes the result of a command to standard output. A reader that has read enough, such as `head`, is not a failure.
fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Waits for Ctrl-C or SIGTERM.
///
/// Containers and service managers stop a program by SIGTERM; on other systems than Unix there is only Ctrl-C.
async fn wait_for_stop() {
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
    struct WithSource {
        text: &'static str,
        source: std::io::Error,
    }

    #[test]
    fn source_is_printed_once() {
        for text in ["cannot read", "cannot read: gone"] {
            let error = WithSource { text, source: std::io::Error::other("gone") };
            assert_eq!(with_causes(&error), "cannot read: gone");
        }
    }
}
