//! The command line of every app.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use kctl_runtime::{manifest, reconcile::Result};

use super::{App, run};

#[derive(Parser)]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controllers against a cluster (this is also what happens without a command)
    Run(RunOptions),
    /// Run the controllers against an embedded API server with a simulated kubelet: no cluster is needed
    #[cfg(feature = "dev")]
    Dev(DevOptions),
    /// Print the definitions (CRDs) of the controllers' kinds
    GenerateCrds,
}

/// Where to run.
#[derive(clap::Args, Default)]
pub(super) struct RunOptions {
    /// The kubeconfig file; by default as kubectl finds it
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
}

/// How to run without a cluster.
#[derive(clap::Args)]
pub(super) struct DevOptions {
    /// YAML or JSON to apply once the server is up: files, folders, or `-` for standard input
    #[arg(short, value_name = "FILE|DIR|-")]
    pub(super) files: Vec<PathBuf>,
    /// Stop when nothing is left to do and print the objects
    #[arg(long)]
    pub(super) until_idle: bool,
    /// With --until-idle: give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "60s", value_parser = seconds)]
    pub(super) timeout: std::time::Duration,
    /// How objects are printed
    #[arg(short, value_enum, default_value_t = Format::Yaml)]
    pub(super) output: Format,
}

/// How objects are printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A YAML stream
    Yaml,
    /// One JSON array
    Json,
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let seconds = number.parse().map_err(|_| format!("`{text}` is not a time: write for example `60s`"))?;
    Ok(std::time::Duration::from_secs(seconds))
}

pub(super) async fn main(app: App) -> Result<()> {
    let cli = Cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.unwrap_or_else(|error| error.exit());
    match cli.command.unwrap_or_else(|| Command::Run(RunOptions::default())) {
        Command::Run(options) => run::run(app, options).await,
        #[cfg(feature = "dev")]
        Command::Dev(options) => super::dev::dev(app, options).await,
        Command::GenerateCrds => {
            let crds = manifest::crds(&app.specs()).into_iter().map(serde_json::to_value);
            let crds = crds.collect::<Result<Vec<_>, _>>()?;
            print(&manifest::yaml(&crds)?)
        }
    }
}

/// Writes to standard output; a reader that went away is not an error of the program.
pub(super) fn print(text: &str) -> Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
