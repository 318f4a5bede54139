//! `shards`: prints the slots of a sharded program and their owners, from the Leases in the cluster.

use std::path::PathBuf;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kctl_runtime::{
    manager::shards::LABEL,
    reconcile::{Result, ResultExt},
};
use kube::{Api, ResourceExt, api::ListParams};

use super::{App, run};

/// The options of `shards`.
#[derive(clap::Args)]
pub(super) struct ShardsOptions {
    /// The kubeconfig file; by default the one that kubectl uses
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The first part of the names of the Leases [default: the name of the app]
    #[arg(long, value_name = "NAME")]
    leader_election_id: Option<String>,
    /// The namespace of the Leases [default: that of the kubeconfig's context]
    #[arg(long, value_name = "NS")]
    leader_election_namespace: Option<String>,
}

/// Lists the Leases and returns the table.
///
/// # Errors
/// No cluster is found, the Leases can't be listed, or no Lease exists.
pub(super) async fn shards(app: &App, options: ShardsOptions) -> Result<String> {
    let name = options.leader_election_id.unwrap_or_else(|| app.name.clone());
    let client = run::client(app, options.kubeconfig, options.context).await?;
    let namespace = options.leader_election_namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let leases: Api<Lease> = Api::namespaced(client, &namespace);
    let listed = leases.list(&ListParams::default().labels(&format!("{LABEL}={name}"))).await;
    let listed = listed.context(format!("failed to list the Leases of {name} in namespace {namespace}"))?;
    if listed.items.is_empty() {
        return Err(format!(
            "no Lease of a slot of {name} in namespace {namespace}; if the replicas run with --leader-election-id, as those of a Helm \
             release do, give the same here, and another namespace by --leader-election-namespace"
        )
        .into());
    }
    Ok(table(&name, &listed.items))
}

/// Returns one line per slot: its number, its owner, the seat of the owner, and the last renewal.
fn table(app: &str, leases: &[Lease]) -> String {
    let seats = numbered(app, "seat", leases);
    let mut lines = vec![["SLOT", "OWNER", "SEAT", "RENEWED", "MOVES"].map(ToOwned::to_owned)];
    for (slot, spec) in numbered(app, "slot", leases) {
        let owner = spec.holder_identity.unwrap_or_default();
        let of_owner = |(_, seat): &&(u32, LeaseSpec)| seat.holder_identity.as_deref() == Some(&*owner);
        let seat = seats.iter().filter(|_| !owner.is_empty()).find(of_owner).map(|(seat, _)| seat.to_string());
        let renewed = spec.renew_time.map(|time| kctl_apimachinery::time::seconds(time.0));
        let moves = spec.lease_transitions.unwrap_or_default().to_string();
        let owner = if owner.is_empty() { "-".to_owned() } else { owner };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        lines.push([slot.to_string(), owner, or_dash(seat), or_dash(renewed), moves]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..5).map(width).collect();
    let padded = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    });
    padded.collect()
}

/// Returns the Leases `APP-PART-N`, by number.
fn numbered(app: &str, part: &str, leases: &[Lease]) -> Vec<(u32, LeaseSpec)> {
    let prefix = format!("{app}-{part}-");
    let number = |lease: &Lease| lease.name_any().strip_prefix(&prefix)?.parse().ok();
    let found = leases.iter().filter_map(|lease| Some((number(lease)?, lease.spec.clone().unwrap_or_default())));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(number, _)| *number);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(name: &str, holder: &str) -> Lease {
        let spec = json!({
            "holderIdentity": holder, "leaseTransitions": 2, "renewTime": "2026-01-01T00:00:00.000000Z",
        });
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    }

    #[test]
    fn shard_table_lists_slots_in_numeric_order() {
        let names = [("web-slot-10", "b"), ("web-slot-9", "a"), ("web-slot-0", ""), ("web-seat-1", "b"), ("web", "x")];
        let leases: Vec<_> = names.into_iter().map(|(name, holder)| lease(name, holder)).collect();
        let expected = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
0     -      -     2026-01-01T00:00:00Z  2
9     a      -     2026-01-01T00:00:00Z  2
10    b      1     2026-01-01T00:00:00Z  2
";
        assert_eq!(table("web", &leases), expected);
    }
}
