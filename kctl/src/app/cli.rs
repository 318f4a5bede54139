//! The command line of every app.

mod generate;
mod manifest_options;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, error::ErrorKind};
use kctl_runtime::{
    manifest::{self, Descriptions},
    reconcile::Result,
};

use self::{
    generate::{generate_manifests, generate_rbac},
    manifest_options::{GenerateRbacOptions, ManifestOptions},
};
#[cfg(feature = "dev")]
use super::dev_options::DevOptions;
use super::{
    App, log,
    output::{BreakingOptions, OWN_SUFFIXES, OutputOptions, Owned, reject_breaking, write_manifests},
    run,
    run_options::RunOptions,
    settings,
    signals::BLOCKED_HELP,
    stdout::print,
};

/// Grace of a failed run before the process exits by force.
const EXIT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

#[derive(Parser)]
// The usage line shows `[COMMAND]`: `run` is the default.
#[command(disable_help_subcommand = true, subcommand_required = false)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controllers against a cluster (the default without a command, also for `--leader-elect` alone). Each option can
    /// also be an environment variable, such as `KCTL_LEADER_ELECT=true`, or a line in the file of --config
    Run(Box<RunOptions>),
    /// Run the controllers against an embedded API server with a simulated kubelet: no cluster is needed
    #[cfg(feature = "dev")]
    Dev(DevOptions),
    /// Print the CRDs of the controllers' kinds
    GenerateCrds {
        /// Keep the descriptions of built-in types, which make the output several times as long
        #[arg(long)]
        descriptions: bool,
        #[cfg(feature = "webhook")]
        #[command(flatten)]
        names: manifest_options::NameOptions,
        #[command(flatten)]
        out: OutputOptions,
        #[command(flatten)]
        breaking: BreakingOptions,
    },
    /// Print the service account, the roles and the bindings that the controllers need: exactly what they declare
    GenerateRbac(GenerateRbacOptions),
    /// Print all manifests: CRDs, RBAC, a Deployment, and webhook configurations
    GenerateManifests(ManifestOptions),
    /// Print the slots of a program that runs with --shards, and their owners
    Shards(super::shards::ShardsOptions),
    /// Print a graph of the kinds and controllers and the relations between them
    Graph {
        /// The format of the graph
        #[arg(long, value_enum, default_value_t = GraphFormat::Mermaid)]
        format: GraphFormat,
    },
}

/// Formats of `graph`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// Mermaid, which GitHub renders
    Mermaid,
    /// Graphviz
    Dot,
    /// For browsers
    Svg,
}

/// Returns the version and commit that `--version` prints after the name.
fn version(app: &App) -> String {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let commit = app.commit.as_deref().map_or(String::new(), |commit| format!("commit {commit}"));
    let versions: Vec<_> = app.version.iter().chain(Some(&commit)).filter(|text| !text.is_empty()).cloned().collect();
    let app_line = if versions.is_empty() { String::new() } else { format!("{}\n", versions.join(", ")) };
    format!("{app_line}kctl {}, {build} build for {arch} {os}", env!("CARGO_PKG_VERSION"))
}

/// Parses the arguments, and checks what clap can't express.
fn parse(mut command: clap::Command, arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let matches = command.try_get_matches_from_mut(arguments)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let name = matches.subcommand_name().unwrap_or_default();
    if let Command::Run(options) = &cli.command {
        let checked = options.check(command.get_name());
        checked.map_err(|error| wrong_usage(&command, name, ErrorKind::ValueValidation, format!("{error:#}")))?;
    }
    match cli.command.misuse() {
        Some((kind, text)) => Err(wrong_usage(&command, name, kind, text)),
        None => Ok(cli),
    }
}

/// Returns an error that shows the usage of a subcommand, as errors of clap do, rather than the program's.
fn wrong_usage(
    program: &clap::Command,
    subcommand: &str,
    kind: ErrorKind,
    message: impl std::fmt::Display,
) -> clap::Error {
    let mut program = program.clone();
    // clap sets the names that the usage shows only when it parses the subcommand, or here.
    program.build();
    let mut command = program.find_subcommand(subcommand).cloned().unwrap_or(program);
    command.error(kind, message)
}

impl Command {
    /// Returns the first mistake in the combination of options: its kind, and the error message.
    fn misuse(&self) -> Option<(ErrorKind, String)> {
        let conflict = |text: &str| Some((ErrorKind::ArgumentConflict, text.to_owned()));
        let (out, breaking) = match self {
            Self::GenerateCrds { out, breaking, .. } => (out, Some(breaking)),
            Self::GenerateRbac(options) => (&options.out, None),
            Self::GenerateManifests(options) if options.helm.is_some() && options.out.folder().is_some() => {
                return conflict("--check takes no folder with --helm, which names it: `--helm DIR --check`");
            }
            Self::GenerateManifests(options) if options.helm.is_some() && options.ring.controller_ring.is_some() => {
                return conflict(
                    "--helm does not go with --controller-ring: a chart has no values for the ring and the role of its \
                     sharder; print them with --controller-ring and --out DIR",
                );
            }
            Self::GenerateManifests(options) if options.helm.is_some() => return None,
            #[cfg(feature = "webhook")]
            Self::GenerateManifests(options)
                if options.register.has_authority() && options.with.contains(&manifest_options::With::CertManager) =>
            {
                return conflict(
                    "--webhook-ca-file does not go with `--with cert-manager`, which injects the CA of its certificate",
                );
            }
            Self::GenerateManifests(options) => (&options.out, Some(&options.breaking)),
            #[cfg(all(feature = "dev", feature = "webhook"))]
            Self::Dev(options) if options.webhook.has_secret() => {
                return conflict(
                    "--webhook-secret is for `run`: `dev` creates its certificate itself; --data DIR keeps it",
                );
            }
            #[cfg(feature = "dev")]
            Self::Dev(_) => return None,
            Self::Run(_) | Self::Shards(_) | Self::Graph { .. } => return None,
        };
        let missing = |text: String| Some((ErrorKind::MissingRequiredArgument, text));
        if out.lacks_folder() {
            return missing("--check needs a folder: write `--check DIR`, or add --out".to_owned());
        }
        let option = breaking.and_then(BreakingOptions::option).filter(|_| out.folder().is_none())?;
        missing(format!("{option} needs the folder with the older files: add `--check DIR` or `--out DIR`"))
    }
}

/// Prints an error of usage with the origin of the wrong value, and exits.
///
/// `all` are the typed arguments and the arguments from the `--config` file.
fn reject(command: &clap::Command, error: &clap::Error, typed: &[OsString], all: &[OsString]) -> ! {
    // If standard error is closed, the exit status still reports the failure.
    let _printed = error.print();
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let origin = settings::origin(command, error, typed, is_set);
    if let Some(origin) = origin.or_else(|| settings::set_elsewhere(command, error, typed, all, is_set)) {
        print_or_log!("{origin}");
    }
    std::process::exit(error.exit_code())
}

/// Runs the command of the command line.
pub(super) async fn main(app: App) -> Result<()> {
    let command = settings::with_environment(Cli::command().name(app.name.clone()).version(version(&app)));
    let typed: Vec<OsString> = std::env::args_os().collect();
    let arguments = settings::arguments(&command, typed.clone());
    let arguments =
        arguments.unwrap_or_else(|error| wrong_usage(&command, settings::RUN, ErrorKind::InvalidValue, error).exit());
    let (documented, all) = (command.clone(), arguments.clone());
    match parse(command, arguments).unwrap_or_else(|error| reject(&documented, &error, &typed, &all)).command {
        Command::Run(options) => run_logged(app, *options, &documented).await,
        #[cfg(feature = "dev")]
        Command::Dev(options) => {
            super::environment::deny_clusters()?;
            let ran = super::dev::dev(app, options).await;
            if let Err(error) = &ran {
                force_exit(format!("{error:?}"));
            }
            ran
        }
        Command::GenerateCrds {
            descriptions,
            #[cfg(feature = "webhook")]
            names,
            out,
            breaking,
        } => {
            let descriptions = if descriptions { Descriptions::All } else { Descriptions::Own };
            #[cfg_attr(
                not(feature = "webhook"),
                expect(unused_mut, reason = "without webhooks there are no conversions")
            )]
            let mut manifests = manifest::crd_manifests(&app.kinds(), descriptions)?;
            #[cfg(feature = "webhook")]
            {
                let is_named = names.webhook_names();
                app.convert_by_service(&names.into_rbac_options(&app), is_named, &mut manifests)?;
            }
            reject_breaking(&manifests, &out, &breaking)?;
            write_manifests(&manifests, &out, &Owned { name: &app.name, suffixes: &OWN_SUFFIXES, folders: &[] })
        }
        Command::GenerateRbac(options) => generate_rbac(app, options).await,
        Command::GenerateManifests(options) => {
            #[cfg(feature = "webhook")]
            if let Some(error) = options.unused_cert_manager(&app) {
                wrong_usage(&documented, "generate-manifests", ErrorKind::ArgumentConflict, error).exit();
            }
            generate_manifests(app, options)
        }
        Command::Shards(options) => print(&super::shards::shards(&app, options).await?),
        Command::Graph { format } => {
            let format = match format {
                GraphFormat::Mermaid => manifest::GraphFormat::Mermaid,
                GraphFormat::Dot => manifest::GraphFormat::Dot,
                GraphFormat::Svg => manifest::GraphFormat::Svg,
            };
            print(&manifest::graph(&app.specs(), format))
        }
    }
}

/// Runs the controllers, and logs the error that ends them.
async fn run_logged(app: App, options: RunOptions, command: &clap::Command) -> Result<()> {
    log::begin(&app.name, options.log_format);
    let variables = std::env::vars_os().filter_map(|(name, _value)| name.into_string().ok());
    for line in settings::misspelt(command, variables) {
        log::print_or_log_warning(format_args!("{}: {line}", app.name));
    }
    let ran = Box::pin(run::run(app, options)).await;
    #[cfg(feature = "otel")]
    super::otel::flush().await;
    if let Err(error) = &ran {
        let error = format!("{error:?}");
        if log::is_json() {
            // `main` would print an error that it returns as plain text.
            log::print_or_log_error(&error);
            std::process::exit(1);
        }
        force_exit(error);
    }
    ran
}

/// Ends the process by force if it still exists after [`EXIT_TIMEOUT`].
///
/// A reconcile or interpreter that blocks its thread can't be cancelled. Dropping the runtime would wait for it, and a
/// program that no longer leads must exit.
fn force_exit(error: String) {
    let wait = move || {
        #[expect(clippy::disallowed_methods, reason = "the runtime may be gone, and its time with it")]
        std::thread::sleep(EXIT_TIMEOUT);
        log::print_or_log_error(&error);
        print_or_log!("{BLOCKED_HELP}");
        std::process::exit(1);
    };
    // If the thread can't be started, the program waits for its blocked threads without a limit.
    let _waits = std::thread::Builder::new().name("end".into()).spawn(wait);
}
