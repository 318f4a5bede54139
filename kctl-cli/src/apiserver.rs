//! `kctl apiserver`: the embedded API server as a program, for any client.
//!
//! The first line on standard output is `serving URL`: scripts wait for it.
//!
//! ```text
//! kctl apiserver --data state --write-kubeconfig kubeconfig &
//! kubectl --kubeconfig kubeconfig get namespaces
//! ```

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
};

use kctl_apimachinery::validation::is_dns1123_subdomain;
use kctl_apiserver::{ApiServer, ControllerOptions, FeatureGates, ServeOptions};
use kctl_workloads::{Kubelet, Workloads};

use crate::{Failure, faults, wait_for_stop};

/// Options of `kctl apiserver`.
#[derive(clap::Args)]
pub(crate) struct ApiserverOptions {
    /// The port; 0 chooses a free one, or with --data the last one
    #[arg(long, visible_alias = "secure-port", value_name = "N", default_value_t = 0)]
    port: u16,
    /// The address to listen on; clients on the network can connect to an address other than loopback
    #[arg(long, visible_alias = "bind-address", value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Add a DNS name or IP address to the server's certificate; can be repeated. With --bind 0.0.0.0 it already has all
    /// addresses of the machine
    #[arg(long, value_name = "NAME", value_parser = certificate_name)]
    tls_san: Vec<String>,
    /// Write a kubeconfig with the administrator's certificate
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,
    /// Store objects, keys, certificates and port in this folder, and load them at the start: kubeconfigs and tokens remain valid
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The controllers of kube-controller-manager to run, as in its flag: `*` for all, `-NAME` to leave one out, '-*' for none.
    /// Without `serviceaccount-controller`, the admission plugin `ServiceAccount` is off as well
    #[arg(long, value_name = "LIST", default_value = "*", allow_hyphen_values = true)]
    controllers: ControllerOptions,
    /// Switch feature gates, as with the flag of kube-apiserver: `ShardedListAndWatch=true` for the parameter shardSelector of
    /// lists and watches
    #[arg(long, value_name = "NAME=BOOL,...")]
    feature_gates: Option<FeatureGates>,
    /// Schedule pods and simulate running them
    #[arg(long)]
    simulate_kubelet: bool,
    /// Also create the pods of Deployments and Jobs, as the controllers of Kubernetes do
    #[arg(long)]
    simulate_workloads: bool,
    /// Append an audit event to this file for each request, one JSON document per line
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Inject faults into requests and watches by the rules in this file (guide/api-server.md)
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// The seed of random faults (perMille): the same requests get the same faults
    #[arg(long, value_name = "N", default_value_t = 0, requires = "faults")]
    faults_seed: u64,
}

/// Parses a value of `--tls-san`: an IP address, also in brackets, or a DNS name, whose first label may be `*`.
///
/// Unlike in Kubernetes, labels may have underscores and capital letters, because names of containers have them.
///
/// # Errors
/// The text is neither of them, so no client could reach the server by it.
fn certificate_name(text: &str) -> Result<String, String> {
    let is_address = text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let name = text.strip_prefix("*.").unwrap_or(text).to_ascii_lowercase().replace('_', "-");
    if is_address || is_dns1123_subdomain(&name) {
        return Ok(text.to_owned());
    }
    Err("not an IP address or a DNS name, such as 192.0.2.7, api.example.com or *.example.com".to_owned())
}

/// Serves until Ctrl-C or SIGTERM.
///
/// Everything is set up before the port is bound and the line `serving URL` is printed. A client that has read the line
/// finds stored objects, faults and the kubeconfig in place. Controllers and kubelets start afterwards.
///
/// # Errors
/// The data folder or a file can't be read or written, a fault rule is invalid, or the port is in use.
pub(crate) async fn run(options: ApiserverOptions) -> Result<(), Failure> {
    let server = ApiServer::on_system_time();
    server.set_feature_gates(options.feature_gates.unwrap_or_default());
    if let Some(folder) = &options.data {
        server.persist_in(folder).map_err(|error| format!("--data {}: {error}", folder.display()))?;
    }
    if let Some(file) = &options.audit_log {
        server.audit_to(file).map_err(|error| format!("--audit-log {}: {error}", file.display()))?;
    }
    if !options.bind.is_loopback() {
        say!("kctl: {} is not a loopback address: clients on the network can connect to this server", options.bind);
    }
    let faults = options.faults.as_deref().map(|file| faults::read(file, options.faults_seed)).transpose()?;
    let serve = ServeOptions::default().address(options.bind).port(options.port);
    let mut listening = server.listen_as(serve, &options.tls_san).await?;
    if let Some(faults) = &faults {
        listening = listening.with_faults(faults);
    }
    if let Some(file) = &options.write_kubeconfig {
        listening.write_kubeconfig(file).map_err(|error| format!("--write-kubeconfig {}: {error}", file.display()))?;
    }
    tokio::spawn(server.controllers_with(&options.controllers));
    if options.simulate_kubelet || options.simulate_workloads {
        tokio::spawn(Kubelet::for_server(&server).run());
    }
    if options.simulate_workloads {
        tokio::spawn(Workloads::for_server(&server).run());
    }
    let mut out = std::io::stdout();
    writeln!(out, "serving {}", listening.url())?;
    out.flush()?;
    tokio::select! {
        served = listening.serve() => served?,
        () = wait_for_stop() => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_names_are_addresses_or_dns_names() {
        for name in ["192.0.2.7", "2001:db8::1", "[::1]", "api", "API.example.com", "my_app-1", "*.example.com"] {
            assert_eq!(certificate_name(name).as_deref(), Ok(name));
        }
        for name in ["", "???", "*", "*.", "a.*.com", "a..b", "api.example.com.", "a b", "https://api", "api:6443"] {
            assert!(certificate_name(name).is_err(), "{name}");
        }
    }
}
