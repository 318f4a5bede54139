//! The command line of every app.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, error::ErrorKind};
use k8s_openapi::jiff::SignedDuration;
use kctl_apimachinery::validation::{LABEL_LEN_MAX, is_dns1123_label};
use kctl_runtime::{
    manifest::{self, Descriptions, GraphFormat, Quantities, RbacOptions, Resources},
    reconcile::Result,
};

use super::{
    App,
    client_layers::ClientOptions,
    helm,
    log::{self, LogFormat},
    names,
    options::ManagerOptions,
    output::{
        BreakingOptions, CrdFiles, OWN_FOLDERS, OWN_SUFFIXES, OutputOptions, Owned, reject_breaking,
        reject_breaking_in, write_manifests,
    },
    run, settings,
    signals::BLOCKED_HELP,
};

/// Grace of a failed run before the process exits by force.
const ENDS_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);

#[derive(Parser)]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controllers against a cluster (the default without a command). Each option can also be an environment
    /// variable, such as `KCTL_LEADER_ELECT=true`, or a line in the file of --config
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
        names: NameOptions,
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
        #[arg(long, value_enum, default_value_t = Picture::Mermaid)]
        format: Picture,
    },
}

/// Names in manifests.
#[derive(clap::Args)]
struct NameOptions {
    /// The namespace in which the program runs [default: default]
    #[arg(short, long, value_name = "NS", value_parser = names::namespace)]
    namespace: Option<String>,
    /// The name of the service account and the roles; by default that of the app
    #[arg(long, value_name = "NAME", value_parser = names::name)]
    name: Option<String>,
}

/// The manifests of the permissions, and where they go.
#[derive(clap::Args)]
struct GenerateRbacOptions {
    #[command(flatten)]
    names: NameOptions,
    #[command(flatten)]
    roles: RoleOptions,
    #[command(flatten)]
    deploy: DeployOptions,
    #[command(flatten)]
    ring: RingOptions,
    #[command(flatten)]
    out: OutputOptions,
    #[command(flatten)]
    diff: DiffOptions,
}

/// All manifests.
#[derive(clap::Args)]
struct ManifestOptions {
    /// The image of the program
    #[arg(long, value_name = "IMAGE", value_parser = names::image)]
    image: Option<String>,
    #[command(flatten)]
    names: NameOptions,
    #[cfg(feature = "webhook")]
    #[command(flatten)]
    register: super::webhook::RegisterOptions,
    #[command(flatten)]
    deploy: DeployOptions,
    #[command(flatten)]
    ring: RingOptions,
    #[command(flatten)]
    resources: ResourceOptions,
    /// Add manifests for an optional cluster component; can be repeated
    #[arg(long, value_enum, value_name = "WHAT")]
    with: Vec<With>,
    /// Write a Helm chart into this folder, or compare it with --check. Other options become defaults of its values; edits of its
    /// values.yaml are kept
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "namespace"])]
    helm: Option<PathBuf>,
    #[command(flatten)]
    out: OutputOptions,
    #[command(flatten)]
    breaking: BreakingOptions,
}

/// The scope and the form of generated roles.
#[derive(clap::Args)]
struct RoleOptions {
    /// Limit the roles to this namespace, as `run --namespace`; can be repeated. By default the namespaces that the controllers declare
    #[arg(long, value_name = "NS", value_parser = names::namespace)]
    objects_in: Vec<String>,
    /// Add a label to the roles, for example for aggregation; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = names::label)]
    label: Vec<(String, String)>,
    /// Print the roles for another cluster, the one declared with `on = …`
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Add rules for an optional cluster component, as in `generate-manifests`; can be repeated
    #[arg(long, value_enum, value_name = "WHAT")]
    with: Vec<With>,
    /// Also print aggregated roles for users: those who may view or edit built-in kinds may do the same with the app's kinds
    #[arg(long)]
    user_roles: bool,
}

/// The cluster that manifests are compared with.
#[derive(clap::Args)]
struct DiffOptions {
    /// Print only the missing and the excess permissions of the roles in the cluster; fail if there are any
    #[arg(long, conflicts_with = "out")]
    diff_cluster: bool,
    /// The kubeconfig file of the cluster; by default the one that kubectl uses
    #[arg(long, value_name = "FILE", requires = "diff_cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", requires = "diff_cluster")]
    context: Option<String>,
}

/// Options for the program in a cluster.
#[derive(clap::Args, Clone, Copy)]
struct DeployOptions {
    /// Run two replicas with leader election: adds the flag, a `PodDisruptionBudget`, and the RBAC rules for the Lease, which has the
    /// name of the roles. `generate-rbac` prints only the rules
    #[arg(long)]
    leader_elect: bool,
    /// Split the objects into N slots (1–256) that all replicas share; 0 disables sharding [default: the value of `App::sharded`, or 0]
    #[arg(long, value_name = "N", value_parser = super::options::n_slots(), conflicts_with = "leader_elect")]
    shards: Option<u32>,
    /// Serve `/metrics` over TLS, only to clients that may `get` the nonresource URL /metrics
    #[arg(long)]
    metrics: bool,
}

/// The ring of kubernetes-controller-sharding that the replicas form.
#[derive(clap::Args)]
struct RingOptions {
    /// For several replicas that are shards of this ring of kubernetes-controller-sharding; adds the permissions of the sharder
    #[arg(long, value_name = "NAME", conflicts_with_all = ["leader_elect", "shards"])]
    controller_ring: Option<String>,
}

impl DeployOptions {
    /// Returns the options of the manager. Without `--shards` the number that the program sets by [`App::sharded`] counts,
    /// as it does for `run`.
    ///
    /// `Some(0)` turns that number off, which the manifests have to say too.
    fn manager(self, app: &App) -> manifest::ManagerOptions {
        let of_app = app.shards.map(|(slots, _by)| slots).filter(|_| !self.leader_elect);
        let shards = self.shards.or(of_app).filter(|slots| *slots > 0 || of_app.is_some());
        let mut manager = manifest::ManagerOptions::default();
        (manager.leader_elect, manager.metrics, manager.shards) = (self.leader_elect, self.metrics, shards);
        manager.webhooks_alone = app.controllers.is_empty();
        manager
    }
}

/// CPU and memory of the container, with the options of `kubectl set resources`.
#[derive(clap::Args)]
struct ResourceOptions {
    /// Resource requests of the container; 0 removes one [default: cpu=10m,memory=32Mi]
    #[arg(long, value_name = "RESOURCE=QUANTITY,…")]
    requests: Option<Quantities>,
    /// Resource limits of the container; 0 removes one [default: memory=256Mi]
    #[arg(long, value_name = "RESOURCE=QUANTITY,…")]
    limits: Option<Quantities>,
}

impl ResourceOptions {
    /// Returns the defaults with the changes of the options.
    ///
    /// # Errors
    /// A request exceeds its limit, so no API server would accept the Pods.
    fn resources(&self) -> Result<Resources> {
        let resources = Resources::default()
            .with_requests(&self.requests.clone().unwrap_or_default())
            .with_limits(&self.limits.clone().unwrap_or_default());
        match resources.problem() {
            Some(problem) => Err(format!("{problem}\nhelp: write both --requests and --limits").into()),
            None => Ok(resources),
        }
    }
}

/// Optional components of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum With {
    /// The Prometheus Operator and Grafana: a `ServiceMonitor`, alerts and a dashboard; includes --metrics
    Monitoring,
    /// cert-manager, which issues the certificate of the webhooks and injects its CA
    #[cfg(feature = "webhook")]
    CertManager,
}

/// Formats of the graph.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Picture {
    /// Mermaid, which GitHub renders
    Mermaid,
    /// Graphviz
    Dot,
    /// For browsers
    Svg,
}

/// Options of `run`.
#[derive(clap::Args)]
pub(super) struct RunOptions {
    /// Read options from this YAML file; keys are flag names without the leading `--`. A flag overrides its environment variable,
    /// which overrides the file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The kubeconfig file; by default the one that kubectl uses
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// Act as this user; needs the permission to impersonate it
    #[arg(long = "as", value_name = "USER")]
    pub(super) as_user: Option<String>,
    /// With --as: act as in this group; can be repeated
    #[arg(long, value_name = "GROUP", requires = "as_user")]
    pub(super) as_group: Vec<String>,
    /// Connect to the API server through this proxy (http, https, socks5) [default: that of the kubeconfig, or `HTTPS_PROXY` unless
    /// `NO_PROXY` names the server]
    #[arg(long, value_name = "URL")]
    pub(super) proxy_url: Option<String>,
    /// The format of log lines; `RUST_LOG` selects them, such as `debug` or `info,kctl_runtime::source=debug`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    log_format: LogFormat,
    #[command(flatten)]
    pub(super) outgoing: ClientOptions,
    #[command(flatten)]
    pub(super) manager: ManagerOptions,
    /// Watch only objects in this namespace; can be repeated. By default the namespaces that the controllers declare
    #[arg(short, long, value_name = "NS", value_parser = namespace)]
    pub(super) namespace: Vec<String>,
    #[cfg(feature = "webhook")]
    #[command(flatten)]
    pub(super) webhook: super::webhook::ServeOptions,
}

impl RunOptions {
    /// Finds contradictions between options before anything starts.
    fn check(&self, app: &str) -> Result<()> {
        if let Some(url) = &self.proxy_url {
            super::connection::check_proxy(url)?;
        }
        self.check_dry_run()?;
        self.manager.check(app)
    }

    /// Returns an error if a dry run needs a Lease. [`run`](run::run) calls it again with the slots that the app sets.
    pub(super) fn check_dry_run(&self) -> Result<()> {
        if self.outgoing.dry_run && self.manager.elects() {
            return Err(
                "--dry-run does not go with --leader-elect, because a dry run can't write a Lease; add --leader-elect=false".into(),
            );
        }
        if self.outgoing.dry_run && self.manager.slots().is_some() {
            return Err(
                "--dry-run does not go with --shards, because a dry run can't write a Lease; add --shards=0".into()
            );
        }
        if self.outgoing.dry_run && self.manager.controller_ring().is_some() {
            return Err("--dry-run does not go with --controller-ring, because a dry run can't write a Lease".into());
        }
        Ok(())
    }
}

/// Parses the name of a namespace: a DNS label.
fn namespace(text: &str) -> Result<String, String> {
    if is_dns1123_label(text) {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a valid namespace name: lower case letters, digits and dashes, {LABEL_LEN_MAX} at most; leave the option out \
         for those that the controllers declare"
    ))
}

/// Options of `dev`.
#[derive(clap::Args)]
pub(super) struct DevOptions {
    /// YAML or JSON to apply once the server is up: files, folders, or `-` for standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub(super) files: Vec<PathBuf>,
    /// Stop when the controllers are idle, and print a table of the objects
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
    pub(super) debug: super::debug::DebugOptions,
    /// With --until-idle: the format in which objects are printed
    #[arg(short, long, value_enum, default_value_t = Format::Table, requires = "until_idle")]
    pub(super) output: Format,
    #[cfg(feature = "webhook")]
    #[command(flatten)]
    pub(super) webhook: super::webhook::ServeOptions,
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

fn time(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse::<u64>().map(std::time::Duration::from_secs);
    let time = seconds.or_else(|_unit| text.parse::<SignedDuration>()?.try_into());
    time.map_err(|_| format!("`{text}` is not a time: write for example `60s` or `2m`"))
}

/// Returns the version and commit that `--version` prints after the name.
fn version(app: &App) -> String {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let commit = app.commit.as_deref().map_or(String::new(), |commit| format!("commit {commit}"));
    let versions: Vec<_> = app.version.iter().chain(Some(&commit)).filter(|text| !text.is_empty()).cloned().collect();
    let of_the_app = if versions.is_empty() { String::new() } else { format!("{}\n", versions.join(", ")) };
    format!("{of_the_app}kctl {}, {build} build for {arch} {os}", env!("CARGO_PKG_VERSION"))
}

/// Parses the arguments, and checks what clap can't express.
fn parse(mut command: clap::Command, arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let cli = Cli::from_arg_matches(&command.try_get_matches_from_mut(arguments)?)?;
    let out = match &cli.command {
        Command::Run(options) => {
            let checked = options.check(command.get_name());
            checked.map_err(|error| command.error(ErrorKind::ValueValidation, format!("{error:#}")))?;
            return Ok(cli);
        }
        Command::GenerateCrds { out, .. } | Command::GenerateRbac(GenerateRbacOptions { out, .. }) => out,
        Command::GenerateManifests(options) if options.helm.is_some() => {
            if options.out.folder().is_some() {
                let text = "--check has no folder beside --helm, which names it: `--helm DIR --check`";
                return Err(command.error(ErrorKind::ArgumentConflict, text));
            }
            if options.ring.controller_ring.is_some() {
                let text = "--helm does not go with --controller-ring: a chart has no values for the ring and the role of its \
                            sharder; print them with --controller-ring and --out DIR";
                return Err(command.error(ErrorKind::ArgumentConflict, text));
            }
            return Ok(cli);
        }
        Command::GenerateManifests(options) => &options.out,
        #[cfg(feature = "dev")]
        Command::Dev(_) => return Ok(cli),
        Command::Shards(_) | Command::Graph { .. } => return Ok(cli),
    };
    if out.lacks_folder() {
        let text = "--check needs a folder: `--check DIR`, or --out beside it";
        return Err(command.error(ErrorKind::MissingRequiredArgument, text));
    }
    Ok(cli)
}

/// Prints an error of usage with the origin of the wrong value, and exits.
fn refuse(error: &clap::Error, typed: &[OsString]) -> ! {
    // If standard error is closed, the exit status still reports the failure.
    let _printed = error.print();
    if let Some(origin) = settings::origin(error, typed, |name| std::env::var_os(name).is_some()) {
        say!("{origin}");
    }
    std::process::exit(error.exit_code())
}

/// Runs the command of the command line.
pub(super) async fn main(app: App) -> Result<()> {
    let command = settings::with_environment(Cli::command().name(app.name.clone()).version(version(&app)));
    let typed: Vec<OsString> = std::env::args_os().collect();
    let arguments = settings::arguments(&command, typed.clone());
    let arguments = arguments.unwrap_or_else(|error| command.clone().error(ErrorKind::InvalidValue, error).exit());
    let documented = command.clone();
    match parse(command, arguments).unwrap_or_else(|error| refuse(&error, &typed)).command {
        Command::Run(options) => {
            log::begin(&app.name, options.log_format);
            let variables = std::env::vars_os().filter_map(|(name, _value)| name.into_string().ok());
            for line in settings::misspelt(&documented, variables) {
                say!("{}: {line}", app.name);
            }
            let ran = Box::pin(run::run(app, *options)).await;
            #[cfg(feature = "otel")]
            super::otel::flush();
            if let Err(error) = &ran {
                let error = format!("{error:?}");
                if log::is_json() {
                    // `main` would print an error that it returns as plain text.
                    log::say_error(&error);
                    std::process::exit(1);
                }
                end_soon(error);
            }
            ran
        }
        #[cfg(feature = "dev")]
        Command::Dev(options) => {
            super::environment::deny_clusters()?;
            let ran = super::dev::dev(app, options).await;
            if let Err(error) = &ran {
                end_soon(format!("Error: {error:?}"));
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
            #[cfg_attr(not(feature = "webhook"), expect(unused_mut, reason = "nobody converts"))]
            let mut manifests = manifest::crd_manifests(&app.kinds(), descriptions)?;
            #[cfg(feature = "webhook")]
            {
                let is_named = names.named();
                app.convert_by_service(&names.into_rbac_options(&app), is_named, &mut manifests)?;
            }
            reject_breaking(&manifests, &out, &breaking)?;
            write_manifests(&manifests, &out, &Owned { name: &app.name, suffixes: &OWN_SUFFIXES, folders: &[] })
        }
        Command::GenerateRbac(options) => generate_rbac(app, options).await,
        Command::GenerateManifests(options) => generate_manifests(&app, options),
        Command::Shards(options) => print(&super::shards::shards(&app, options).await?),
        Command::Graph { format } => {
            let format = match format {
                Picture::Mermaid => GraphFormat::Mermaid,
                Picture::Dot => GraphFormat::Dot,
                Picture::Svg => GraphFormat::Svg,
            };
            print(&manifest::graph(&app.specs(), format))
        }
    }
}

/// Ends the process by force if it still exists after [`ENDS_WITHIN`].
///
/// A reconcile or interpreter that blocks its thread can't be cancelled: dropping the runtime would
/// wait for it, and a program that no longer leads must exit.
fn end_soon(error: String) {
    let wait = move || {
        #[expect(clippy::disallowed_methods, reason = "the runtime may be gone, and its time with it")]
        std::thread::sleep(ENDS_WITHIN);
        log::say_error(&error);
        say!("{BLOCKED_HELP}");
        std::process::exit(1);
    };
    // If the thread can't be started, the program waits for its blocked threads without a limit.
    let _waits = std::thread::Builder::new().name("end".into()).spawn(wait);
}

impl NameOptions {
    fn into_rbac_options(self, app: &App) -> RbacOptions {
        let name = self.name.unwrap_or_else(|| app.name.clone());
        let namespace = self.namespace.unwrap_or_else(|| "default".into());
        RbacOptions::new(name, namespace)
    }

    #[cfg(feature = "webhook")]
    fn named(&self) -> super::webhook::Named {
        use super::webhook::Named;
        if self.name.is_some() || self.namespace.is_some() { Named::ByOptions } else { Named::ByDefault }
    }
}

/// Prints or writes all manifests of the app.
fn generate_manifests(app: &App, options: ManifestOptions) -> Result<()> {
    if let Some(folder) = &options.helm {
        return generate_chart(app, folder, &options);
    }
    let ManifestOptions { image, names, mut deploy, ring, resources, with, out, breaking, .. } = options;
    let monitoring = with.contains(&With::Monitoring);
    deploy.metrics |= monitoring;
    let manager = deploy.manager(app);
    let specs = app.specs();
    let names = names.into_rbac_options(app);
    let image = image.unwrap_or_else(|| format!("{}:latest", app.name));
    let mut all = manifest::crd_manifests(&app.kinds(), Descriptions::Own)?;
    all.extend(manifest::rbac(&specs, &names)?);
    all.extend(manifest::manager_rbac(&names, manager)?);
    let deployment = manifest::deployment(&names, manager, &resources.resources()?, &image)?;
    match &ring.controller_ring {
        Some(ring) => {
            all.extend(app.ring_rbac(&names, ring)?);
            all.push(manifest::controller_ring(&specs, ring)?);
            all.push(manifest::deployment_in_ring(deployment, ring)?);
        }
        None => all.push(deployment),
    }
    if deploy.metrics {
        all.push(manifest::metrics_service(&names)?);
    }
    if monitoring {
        all.extend(manifest::monitoring(&names, manager)?);
    }
    #[cfg(feature = "webhook")]
    {
        use super::webhook::Issued;
        let issued = if with.contains(&With::CertManager) { Issued::Elsewhere } else { Issued::Here };
        app.webhook_manifests(&names, &options.register, issued, &mut all)?;
    }
    names::check_services(&all)?;
    reject_breaking(&all, &out, &breaking)?;
    all.push(manifest::disruption_budget(&names)?);
    if out.folder().is_some() {
        all.push(manifest::kustomization(&all)?);
    }
    write_manifests(&all, &out, &Owned { name: &names.name, suffixes: &OWN_SUFFIXES, folders: &OWN_FOLDERS })
}

/// Writes the chart of the app, or compares it.
fn generate_chart(app: &App, folder: &Path, options: &ManifestOptions) -> Result<()> {
    let monitoring = options.with.contains(&With::Monitoring);
    let mut deploy = options.deploy;
    deploy.metrics |= monitoring;
    #[cfg(feature = "webhook")]
    let cert_manager = options.with.contains(&With::CertManager);
    #[cfg(not(feature = "webhook"))]
    let cert_manager = false;
    let chart = helm::chart(
        app,
        helm::ChartOptions {
            name: options.names.name.clone().unwrap_or_else(|| app.name.clone()),
            image: options.image.clone(),
            manager: deploy.manager(app),
            resources: options.resources.resources()?,
            monitoring,
            cert_manager,
        },
    )?;
    let crds = CrdFiles { folder: &helm::crd_folder(folder), parse: helm::parse_crd };
    reject_breaking_in(&chart.definitions, &crds, &options.breaking)?;
    let mode = if options.out.is_check() { helm::Mode::Check } else { helm::Mode::Write };
    helm::write_chart(&chart, folder, mode)
}

/// Prints or writes the role of the app, or compares it with that in a cluster.
#[cfg_attr(not(feature = "webhook"), allow(unused_mut, reason = "webhooks have grants of their own"))]
async fn generate_rbac(mut app: App, options: GenerateRbacOptions) -> Result<()> {
    let GenerateRbacOptions { names, roles, mut deploy, ring, out, diff } = options;
    let mut options = names.into_rbac_options(&app);
    options.labels = roles.label.into_iter().collect();
    if let Some(cluster) = roles.cluster {
        app.check_cluster(&cluster)?;
        options.cluster = cluster;
    }
    app.namespaces = roles.objects_in;
    deploy.metrics |= roles.with.contains(&With::Monitoring);
    let specs = app.specs_in_use();
    let mut manifests = manifest::rbac(&specs, &options)?;
    let mut permissions = manifest::permissions(&specs, &options.cluster);
    if options.cluster.is_empty() {
        manifests.extend(manifest::manager_rbac(&options, deploy.manager(&app))?);
        if let Some(ring) = &ring.controller_ring {
            manifests.extend(app.ring_rbac(&options, ring)?);
        }
        #[cfg(feature = "webhook")]
        if app.makes_certificate() && !roles.with.contains(&With::CertManager) {
            let own = app.own_certificate(&options)?;
            manifests.extend(manifest::webhook_rbac(&options, &own)?);
            permissions.extend(own);
        }
    }
    if diff.diff_cluster {
        let client = run::client(&app, diff.kubeconfig, diff.context).await?;
        return super::diff_cluster::diff(&client, &permissions, &manifests, &options).await;
    }
    if roles.user_roles {
        manifests.extend(manifest::user_roles(&specs, &options)?);
    }
    let suffixes = [&OWN_SUFFIXES[..], &["-view", "-edit"]].concat();
    write_manifests(&manifests, &out, &Owned { name: &options.name, suffixes: &suffixes, folders: &[] })
}

/// Writes to standard output. A closed pipe is not an error.
pub(super) fn print(text: &str) -> Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kctl_runtime::{
        reconcile::{Action, Context},
        shard::ShardBy,
    };
    use serde_json::Value;

    use super::*;

    #[test]
    fn version_lists_the_app_before_kctl_and_build() {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        let kctl = format!("kctl {}, debug build for {arch} {os}", env!("CARGO_PKG_VERSION"));
        let app = || App::new("web");
        let cases = [
            (app(), String::new()),
            (app().version("1.2.3"), "1.2.3\n".to_owned()),
            (app().commit(Some("abc1234")), "commit abc1234\n".to_owned()),
            (app().version("1.2.3").commit(Some("abc1234")), "1.2.3, commit abc1234\n".to_owned()),
            // A build without version and commit.
            (app().version("1.2.3").commit(Some("")), "1.2.3\n".to_owned()),
        ];
        for (app, expected) in cases {
            let command = Cli::command().name(app.name.clone()).version(version(&app));
            assert_eq!(command.render_version(), format!("web {expected}{kctl}\n"));
        }
    }

    #[test]
    fn contradicting_options_are_wrong_usage() {
        let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
        let cases = [
            ("--leader-elect --leader-elect-lease-duration=5s", "--leader-elect-lease-duration (5s) has to be longer"),
            ("--metrics-bind-address=here", "--metrics-bind-address=here: not an address"),
            ("--proxy-url=ftp://proxy.corp", "--proxy-url: `ftp` is not a proxy scheme"),
            ("--namespace=", "`` is not a valid namespace name"),
            ("--namespace=Shop", "`Shop` is not a valid namespace name"),
        ];
        for (options, part) in cases {
            let error = parse(Cli::command(), arguments(&format!("app run {options}"))).err().unwrap();
            assert_eq!(error.exit_code(), 2, "{options}");
            assert!(error.to_string().contains(part), "{options}: {error}");
        }
    }

    #[test]
    fn namespaces_are_given_as_to_kubectl() {
        let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
        let cli = parse(Cli::command(), arguments("app run -n shop -n bar")).unwrap();
        let Command::Run(options) = cli.command else { panic!("another command") };
        assert_eq!(options.namespace, ["shop", "bar"]);
        assert!(parse(Cli::command(), arguments("app generate-rbac -n ops")).is_ok());
    }

    #[test]
    fn a_namespace_is_a_label() {
        let longest = "a".repeat(LABEL_LEN_MAX);
        for (text, good) in
            [("a", true), ("a-1", true), (&longest, true), ("", false), ("a_b", false), ("-a", false), ("a-", false)]
        {
            assert_eq!(namespace(text).is_ok(), good, "{text}");
        }
        assert!(namespace(&"a".repeat(LABEL_LEN_MAX + 1)).is_err());
    }

    #[test]
    fn chart_has_its_folder_and_no_namespace() {
        let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
        let parsed =
            |options: &str| parse(Cli::command(), arguments(&format!("app generate-manifests --helm chart {options}")));
        for options in ["--check", "--leader-elect --requests cpu=1 --limits memory=1Gi", "--shards 4 --since main"] {
            assert!(parsed(options).is_ok(), "{options}");
        }
        for (options, part) in [
            ("--check other", "--check has no folder beside --helm"),
            ("--out other", "cannot be used with"),
            ("--namespace web", "cannot be used with"),
            ("--controller-ring web", "a chart has no values for the ring"),
            ("--limits memory=1GB", "`1GB` is not a quantity of memory"),
        ] {
            let error = parsed(options).err().unwrap();
            assert!(error.exit_code() == 2 && error.to_string().contains(part), "{options}: {error}");
        }
    }

    #[crate::controller(crate = crate)]
    async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
        Ok(Action::await_change())
    }

    fn manager_of(app: &App, options: &str) -> (Value, Vec<String>) {
        let line = format!("app generate-manifests{options}");
        let cli = parse(Cli::command(), line.split(' ').map(OsString::from).collect()).unwrap();
        let Command::GenerateManifests(options) = cli.command else { panic!("another command") };
        let (names, manager) = (options.names.into_rbac_options(app), options.deploy.manager(app));
        let deployment = manifest::deployment(&names, manager, &Resources::default(), "web:1").unwrap().object;
        let roles = manifest::manager_rbac(&names, manager).unwrap().into_iter().map(|manifest| manifest.file);
        (deployment["spec"].clone(), roles.filter(|file| file.starts_with("rbac/role-")).collect())
    }

    #[test]
    fn manifests_use_app_shards_unless_options_override() {
        let plain = App::new("web").controller::<idle>();
        let sharded = App::new("web").controller::<idle>().sharded(8, ShardBy::Namespace);
        let (shards, elects) = ("rbac/role-web-shards.default.yaml", "rbac/role-web-leader-election.default.yaml");
        for (app, options, replicas, arg, role) in [
            (&plain, "", 1, None, None),
            (&plain, " --shards 0", 1, None, None),
            (&plain, " --shards 4", 2, Some("--shards=4"), Some(shards)),
            (&sharded, "", 2, Some("--shards=8"), Some(shards)),
            (&sharded, " --shards 4", 2, Some("--shards=4"), Some(shards)),
            (&sharded, " --shards 0", 1, Some("--shards=0"), None),
            (&sharded, " --leader-elect", 2, Some("--leader-elect"), Some(elects)),
        ] {
            let (deployment, roles) = manager_of(app, options);
            assert_eq!(deployment["replicas"], replicas, "{options:?}");
            let args = deployment["template"]["spec"]["containers"][0]["args"].to_string();
            assert!(arg.is_none_or(|arg| args.contains(&format!("{arg:?}"))), "{options:?}: {args}");
            assert_eq!(args.contains("shards"), arg.is_some_and(|arg| arg.contains("shards")), "{options:?}: {args}");
            assert_eq!(roles, role.into_iter().collect::<Vec<_>>(), "{options:?}");
        }
    }

    #[tokio::test]
    async fn dry_run_of_sharded_app_is_refused() {
        let app = App::new("web").controller::<idle>().sharded(8, ShardBy::Namespace);
        let arguments = ["app", "run", "--dry-run"].map(OsString::from).to_vec();
        let Command::Run(options) = parse(Cli::command(), arguments).unwrap().command else {
            panic!("another command")
        };
        let error = Box::pin(run::run(app, *options)).await.unwrap_err().to_string();
        assert!(error.contains("--dry-run does not go with --shards") && error.contains("--shards=0"), "{error}");
    }

    #[test]
    fn webhooks_alone_have_two_replicas_without_election() {
        let (deployment, roles) = manager_of(&App::new("web"), "");
        assert!(deployment["replicas"] == 2 && deployment["strategy"]["type"] == "RollingUpdate", "{deployment}");
        assert!(roles.is_empty(), "{roles:?}");
    }

    /// `GOLDEN=overwrite` writes the manifests again.
    #[test]
    fn manifests_of_sharded_app_match_golden_files() {
        // `cargo package` writes this file: a published crate has no golden files.
        if Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.cargo_vcs_info.json")).exists() {
            return say!("skipped: the published crate has no golden files");
        }
        let all = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");
        let app = App::new("web").controller::<idle>().sharded(8, ShardBy::Namespace);
        let overwrite = std::env::var("GOLDEN").is_ok_and(|mode| mode == "overwrite");
        let flag = if overwrite { "--allow-breaking --out" } else { "--check" };
        let line = format!("app generate-manifests --with monitoring --image web:1 {flag} {all}/sharded");
        let cli = parse(Cli::command(), line.split(' ').map(OsString::from).collect()).unwrap();
        let Command::GenerateManifests(options) = cli.command else { panic!("another command") };
        generate_manifests(&app, options).unwrap();
    }

    #[test]
    fn check_needs_a_folder() {
        let arguments = |line: &str| line.split(' ').map(OsString::from).collect();
        for command in ["generate-crds", "generate-rbac", "generate-manifests"] {
            let error = parse(Cli::command(), arguments(&format!("app {command} --check"))).err().unwrap();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("--check needs a folder: `--check DIR`, or --out beside it"), "{error}");
            for line in ["--check deploy", "--check --out deploy", "--out deploy"] {
                assert!(parse(Cli::command(), arguments(&format!("app {command} {line}"))).is_ok(), "{command} {line}");
            }
        }
    }
}
