//! Options of the commands that generate manifests.

use std::path::PathBuf;

use clap::ValueEnum;
use kctl_runtime::{
    manifest::{self, Quantities, RbacOptions, Resources},
    reconcile::Result,
};

use crate::app::{
    App, names,
    options::{SLOTS_DEFAULT, n_slots},
    output::{BreakingOptions, OutputOptions},
};

/// Names in manifests.
#[derive(clap::Args)]
pub(super) struct NameOptions {
    /// The namespace in which the program runs [default: default]
    #[arg(short, long, value_name = "NS", value_parser = names::namespace)]
    pub(super) namespace: Option<String>,
    /// The name of the service account and the roles; by default the name of the app
    #[arg(long, value_name = "NAME", value_parser = names::name)]
    pub(super) name: Option<String>,
}

/// The manifests of the permissions, and where they go.
#[derive(clap::Args)]
pub(super) struct GenerateRbacOptions {
    #[command(flatten)]
    pub(super) names: NameOptions,
    #[command(flatten)]
    pub(super) roles: RoleOptions,
    #[command(flatten)]
    pub(super) deploy: DeployOptions,
    #[command(flatten)]
    pub(super) ring: RingOptions,
    #[command(flatten)]
    pub(super) out: OutputOptions,
    #[command(flatten)]
    pub(super) diff: DiffOptions,
}

/// All manifests.
#[derive(clap::Args)]
pub(super) struct ManifestOptions {
    /// The image of the program
    #[arg(long, value_name = "IMAGE", value_parser = names::image)]
    pub(super) image: Option<String>,
    #[command(flatten)]
    pub(super) names: NameOptions,
    /// Limit the program and its roles to this namespace; can be repeated. By default the namespaces that the controllers declare
    #[arg(long, value_name = "NS", value_parser = names::namespace)]
    pub(super) objects_in: Vec<String>,
    #[cfg(feature = "webhook")]
    #[command(flatten)]
    pub(super) register: crate::app::webhook::RegisterOptions,
    #[command(flatten)]
    pub(super) deploy: DeployOptions,
    #[command(flatten)]
    pub(super) ring: RingOptions,
    #[command(flatten)]
    pub(super) resources: ResourceOptions,
    /// Add manifests for an optional cluster component; can be repeated
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) with: Vec<With>,
    /// Write a Helm chart into this folder, or compare it with --check. Other options become defaults of its values; edits of its
    /// values.yaml are kept
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "namespace"])]
    pub(super) helm: Option<PathBuf>,
    #[command(flatten)]
    pub(super) out: OutputOptions,
    #[command(flatten)]
    pub(super) breaking: BreakingOptions,
}

#[cfg(feature = "webhook")]
impl ManifestOptions {
    /// Returns the error for `--with cert-manager` if the app has no webhooks: the manifests would silently be the same.
    pub(super) fn unused_cert_manager(&self, app: &App) -> Option<&'static str> {
        (self.with.contains(&With::CertManager) && !app.has_webhooks()).then_some(
            "`--with cert-manager` is for the certificate of webhooks, and the app has none: leave it out, or add a webhook, such as \
             a function with `#[admission]`",
        )
    }
}

/// The scope and the form of generated roles.
#[derive(clap::Args)]
pub(super) struct RoleOptions {
    /// Limit the roles to this namespace, as `run --namespace`; can be repeated. By default the namespaces that the controllers declare
    #[arg(long, value_name = "NS", value_parser = names::namespace)]
    pub(super) objects_in: Vec<String>,
    /// Add a label to the roles, for example for aggregation; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = names::label)]
    pub(super) label: Vec<(String, String)>,
    /// Print the roles for another cluster, the one declared with `on = …`. The program's own roles are on the cluster that it is
    /// started against
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["leader_elect", "shards", "metrics", "controller_ring", "with"]
    )]
    pub(super) cluster: Option<String>,
    /// Add rules for an optional cluster component, as in `generate-manifests`; can be repeated
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) with: Vec<With>,
    /// Also print aggregated roles for users: those who may view or edit built-in kinds may do the same with the app's kinds
    #[arg(long)]
    pub(super) user_roles: bool,
}

/// The cluster that manifests are compared with.
#[derive(clap::Args)]
pub(super) struct DiffOptions {
    /// Print only the missing and the excess permissions of the roles in the cluster; fail if there are any
    #[arg(long, conflicts_with_all = ["out", "check", "user_roles"])]
    pub(super) diff_cluster: bool,
    /// The kubeconfig file of the cluster; by default the one that kubectl uses
    #[arg(long, value_name = "FILE", requires = "diff_cluster")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", requires = "diff_cluster")]
    pub(super) context: Option<String>,
}

/// Options for the program in a cluster.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct DeployOptions {
    /// Run two replicas with leader election: adds the flag, and the RBAC rules for the Lease, which has the name of the roles.
    /// `generate-rbac` prints only the rules
    #[arg(long)]
    pub(super) leader_elect: bool,
    /// Split the objects into N slots (1–256; 24 without N) that all replicas share; 0 disables sharding [default: the value of
    /// `App::sharded`, or 0]
    #[arg(
        long,
        value_name = "N",
        value_parser = n_slots,
        num_args = 0..=1,
        default_missing_value = SLOTS_DEFAULT,
        conflicts_with = "leader_elect"
    )]
    pub(super) shards: Option<u32>,
    /// Serve `/metrics` over TLS, only to clients that may `get` the nonresource URL /metrics
    #[arg(long)]
    pub(super) metrics: bool,
}

/// The ring of kubernetes-controller-sharding that the replicas form.
#[derive(clap::Args)]
pub(super) struct RingOptions {
    /// For several replicas that are shards of this ring of kubernetes-controller-sharding; adds the permissions of the sharder
    #[arg(long, value_name = "NAME", conflicts_with_all = ["leader_elect", "shards"])]
    pub(super) controller_ring: Option<String>,
}

impl DeployOptions {
    /// Returns the options of the manager. Without `--shards` the number that the program sets by [`App::sharded`] counts,
    /// as it does for `run`: leader election and a controller ring take its place.
    ///
    /// `Some(0)` turns that number off: the Deployment then needs the argument `--shards=0`.
    pub(super) fn manager(self, app: &App, ring: &RingOptions) -> manifest::ManagerOptions {
        let is_off = self.leader_elect || ring.controller_ring.is_some();
        let declared_slots = app.shards.map(|(slots, _by)| slots).filter(|_| !is_off);
        let shards = self.shards.or(declared_slots).filter(|slots| *slots > 0 || declared_slots.is_some());
        let mut manager = manifest::ManagerOptions::default();
        (manager.leader_elect, manager.metrics, manager.shards) = (self.leader_elect, self.metrics, shards);
        manager.webhooks_alone = app.controllers.is_empty();
        manager
    }
}

/// CPU and memory of the container, with the options of `kubectl set resources`.
#[derive(clap::Args)]
pub(super) struct ResourceOptions {
    /// Resource requests of the container; 0 removes one [default: cpu=10m,memory=32Mi]
    #[arg(long, value_name = "RESOURCE=QUANTITY,…")]
    pub(super) requests: Option<Quantities>,
    /// Resource limits of the container; 0 removes one [default: memory=256Mi]
    #[arg(long, value_name = "RESOURCE=QUANTITY,…")]
    pub(super) limits: Option<Quantities>,
}

impl ResourceOptions {
    /// Returns the defaults with the changes of the options.
    ///
    /// # Errors
    /// A request exceeds its limit, so no API server would accept the Pods.
    pub(super) fn resources(&self) -> Result<Resources> {
        let resources = Resources::default()
            .with_requests(&self.requests.clone().unwrap_or_default())
            .with_limits(&self.limits.clone().unwrap_or_default());
        match resources.problem() {
            Some(problem) => Err(format!(
                "{problem}\nhelp: lower the request with --requests, or raise the limit with --limits; what they leave out keeps its default"
            )
            .into()),
            None => Ok(resources),
        }
    }
}

/// Optional components of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum With {
    /// The Prometheus Operator and Grafana: a `ServiceMonitor`, alerts and a dashboard; includes --metrics
    Monitoring,
    /// cert-manager, which issues the certificate of the webhooks and injects its CA
    #[cfg(feature = "webhook")]
    CertManager,
}

impl NameOptions {
    pub(super) fn into_rbac_options(self, app: &App) -> RbacOptions {
        let name = self.name.unwrap_or_else(|| app.name.clone());
        let namespace = self.namespace.unwrap_or_else(|| "default".into());
        RbacOptions::new(name, namespace)
    }

    #[cfg(feature = "webhook")]
    pub(super) fn webhook_names(&self) -> crate::app::webhook::Named {
        use crate::app::webhook::Named;
        if self.name.is_some() || self.namespace.is_some() { Named::ByOptions } else { Named::ByDefault }
    }
}
