//! Options of `dev`.

use std::path::PathBuf;

use clap::ValueEnum;
use k8s_openapi::jiff::SignedDuration;
use kctl_runtime::reconcile::Result;

/// Options of `dev`.
#[derive(clap::Args)]
pub(super) struct DevOptions {
    /// YAML or JSON to apply once the server is up: files, folders, or `-` for standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub(super) files: Vec<PathBuf>,
    /// Stop when the controllers are idle, and print a table of the objects. The exit status is 1 if a reconcile failed
    /// and is not retried
    #[arg(long)]
    pub(super) until_idle: bool,
    /// With --until-idle: give up after this time, such as 90s or 2m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time, requires = "until_idle")]
    pub(super) timeout: std::time::Duration,
    /// Serve the API server on this loopback port, for kubectl; 0 chooses a free one, or with --data the last one
    #[arg(long, value_name = "N")]
    pub(super) port: Option<u16>,
    /// Write a kubeconfig for the API server; a file that kctl did not write is never replaced
    #[arg(long, value_name = "FILE")]
    pub(super) write_kubeconfig: Option<PathBuf>,
    /// Store the objects in this folder, and load them at the start
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Create the pods of Deployments and Jobs, as the controllers of Kubernetes do
    #[arg(long)]
    pub(super) simulate_workloads: bool,
    #[command(flatten)]
    pub(super) debug: crate::app::debug::DebugOptions,
    /// With --until-idle: the format in which objects are printed
    #[arg(short, long, value_enum, default_value_t = Format::Table, requires = "until_idle")]
    pub(super) output: Format,
    #[cfg(feature = "webhook")]
    #[command(flatten)]
    pub(super) webhook: crate::app::webhook::ServeOptions,
}

/// Formats of printed objects.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A line for each object
    Table,
    /// A YAML stream
    Yaml,
    /// One JSON array
    Json,
}

pub(super) fn time(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse::<u64>().map(std::time::Duration::from_secs);
    let time = seconds.or_else(|_unit| text.parse::<SignedDuration>()?.try_into());
    time.map_err(|_| format!("`{text}` is not a time: write for example `60s` or `2m`"))
}
