//! Options of `run`, and the contradictions between them.

use std::path::PathBuf;

use kctl_apimachinery::validation::{LABEL_LEN_MAX, is_dns1123_label};
use kctl_runtime::reconcile::Result;

use super::{client_layers::ClientOptions, log::LogFormat, options::ManagerOptions};

/// Options of `run`.
#[derive(clap::Args)]
pub(super) struct RunOptions {
    /// Read options from this YAML file; keys are flag names without the leading `--`. A flag overrides its environment variable,
    /// which overrides the file
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
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
    /// Connect to the API server through this proxy (http, https, socks5) [default: the proxy of the kubeconfig, or `HTTPS_PROXY` unless
    /// `NO_PROXY` names the server]
    #[arg(long, value_name = "URL")]
    pub(super) proxy_url: Option<String>,
    /// The format of log lines; `RUST_LOG` selects them, such as `debug` or `info,kctl_runtime::source=debug`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(super) log_format: LogFormat,
    #[command(flatten)]
    pub(super) outgoing: ClientOptions,
    #[command(flatten)]
    pub(super) manager: ManagerOptions,
    /// Watch only objects in this namespace; can be repeated. By default the namespaces that the controllers declare
    #[arg(short, long, value_name = "NS", value_parser = namespace)]
    pub(super) namespace: Vec<String>,
    #[cfg(feature = "webhook")]
    #[command(flatten)]
    pub(super) webhook: crate::app::webhook::ServeOptions,
}

impl RunOptions {
    /// Finds contradictions between options before anything starts.
    pub(super) fn check(&self, app: &str) -> Result<()> {
        if let Some(url) = &self.proxy_url {
            crate::app::connection::check_proxy(url)?;
        }
        self.check_dry_run()?;
        self.manager.check(app)
    }

    /// Returns an error if a dry run needs a Lease. [`run`](super::run::run) calls it again with the slots that the app
    /// sets.
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
            return Err("--dry-run does not go with --controller-ring, because a dry run can't write a Lease; leave one of them \
                        out"
                .into());
        }
        Ok(())
    }
}

/// Parses the name of a namespace: a DNS label.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    if is_dns1123_label(text) {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a valid namespace name: lower case letters, digits and dashes, {LABEL_LEN_MAX} at most; leave the option out \
         for those that the controllers declare"
    ))
}
