//! `shards`: prints the slots of a sharded program and their owners, from the Leases in the cluster.

use std::{path::PathBuf, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    jiff::Timestamp,
};
use kctl_runtime::{
    key::ObjectKey,
    manager::shards::{LABEL, ShardConfig},
    reconcile::{Result, ResultExt},
    shard::{Slots, slot_name},
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
    /// Print only the slot of this key, and its owner in a sentence; for a cluster-scoped object the key is its name
    #[arg(long, value_name = "NAMESPACE/NAME")]
    key: Option<ObjectKey>,
}

/// Lists the Leases and returns the table, or the part of it about one key.
///
/// # Errors
/// No cluster is found, the Leases can't be listed, or no Lease exists. For a key also if the Lease of the settings can't
/// be read, or names no division that this version of kctl has.
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
    let Some(key) = options.key else { return Ok(table(&name, &listed.items, None)) };
    let settings = leases.get_opt(&name).await.context(format!("failed to get Lease {namespace}/{name}"))?;
    let slots = slots_in_use(settings).context(format!("Lease {namespace}/{name} of the replicas' settings"))?;
    Ok(explain(&name, &key, slots, &listed.items, Timestamp::now()))
}

/// Returns the slots of the replicas, from the Lease of their settings.
///
/// [`App::sharded`] of this process is not used: the replicas may run with another `--shards`, which the Lease records.
fn slots_in_use(settings: Option<Lease>) -> Result<Slots> {
    let holder = settings.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
    if holder.is_empty() {
        return Err("it is missing or has no holder: start the replicas, which create and hold it".into());
    }
    Ok(ShardConfig::slots_of_settings(&holder)?)
}

/// Returns the line of a key's slot, and a sentence with its owner. Whether the Lease has expired depends on the clock of
/// this machine, so the sentence has the time of the last renewal.
fn explain(app: &str, key: &ObjectKey, slots: Slots, leases: &[Lease], now: Timestamp) -> String {
    let slot = slots.slot_for(key);
    let is_in = format!("{key} is in slot {slot}.");
    let Some((_, spec)) = numbered(app, "slot", leases).into_iter().find(|(number, _)| *number == slot) else {
        let name = slot_name(app, slot);
        return format!(
            "{is_in} Its Lease {name} is missing; if an owner runs, it creates the Lease again within seconds.\n"
        );
    };
    let duration = Duration::from_secs(spec.lease_duration_seconds.and_then(|n| n.try_into().ok()).unwrap_or_default());
    let renewed = spec.renew_time.as_ref().map(|time| time.0).unwrap_or_default();
    let owner: String = match spec.holder_identity.unwrap_or_default() {
        owner if owner.is_empty() => "It has no owner: no replica reconciles the key until one takes the slot.".into(),
        owner if renewed.saturating_add(duration).is_ok_and(|expiry| expiry < now) => format!(
            "Its Lease is held by {owner}, but was last renewed at {} for {duration:?}. If {owner} has crashed, no replica \
             reconciles the key until another one takes the slot.",
            kctl_apimachinery::time::seconds(renewed)
        ),
        owner => format!("Its owner is {owner}, and no other replica reconciles the key."),
    };
    format!("{}\n{is_in} {owner}\n", table(app, leases, Some(slot)))
}

/// Returns one line per slot, or for `only` one: its number, its owner, the seat of the owner, and the last renewal.
fn table(app: &str, leases: &[Lease], only: Option<u32>) -> String {
    let seats = numbered(app, "seat", leases);
    let mut lines = vec![["SLOT", "OWNER", "SEAT", "RENEWED", "MOVES"].map(ToOwned::to_owned)];
    let slots = numbered(app, "slot", leases).into_iter();
    for (slot, spec) in slots.filter(|(slot, _)| only.is_none_or(|only| only == *slot)) {
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
            "leaseDurationSeconds": 15,
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
        assert_eq!(table("web", &leases, None), expected);
    }

    /// The division of these keys is pinned in `kctl_runtime::shard`.
    fn explained(settings: &str, key: &str) -> String {
        let names = [("web-slot-32", "a"), ("web-slot-108", ""), ("web-slot-241", "b"), ("web-seat-1", "b")];
        let leases: Vec<_> = names.into_iter().map(|(name, holder)| lease(name, holder)).collect();
        let slots = slots_in_use(Some(lease("web", settings))).unwrap();
        explain("web", &key.parse().unwrap(), slots, &leases, "2026-01-01T00:00:14Z".parse().unwrap())
    }

    #[test]
    fn key_is_explained_by_settings_of_the_replicas() {
        let by_object = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
32    a      -     2026-01-01T00:00:00Z  2

default/web is in slot 32. Its owner is a, and no other replica reconciles the key.
";
        assert_eq!(explained("shards-256-by-object", "default/web"), by_object);
        let by_namespace = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
241   b      1     2026-01-01T00:00:00Z  2

default/web is in slot 241. Its owner is b, and no other replica reconciles the key.
";
        assert_eq!(explained("shards-256-by-namespace-for-60s", "default/web"), by_namespace);
    }

    #[test]
    fn key_without_owner_is_explained() {
        let free = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
108   -      -     2026-01-01T00:00:00Z  2

shop is in slot 108. It has no owner: no replica reconciles the key until one takes the slot.
";
        assert_eq!(explained("shards-256-by-object", "shop"), free);
        let missing = "\
default/api is in slot 15. Its Lease web-slot-15 is missing; if an owner runs, it creates the Lease again within seconds.
";
        assert_eq!(explained("shards-256-by-object", "default/api"), missing);
    }

    #[test]
    fn owner_with_expired_lease_may_have_crashed() {
        let slots = slots_in_use(Some(lease("web", "shards-256-by-object"))).unwrap();
        let explained = |now: &str| {
            let (key, leases) = ("default/web".parse().unwrap(), [lease("web-slot-32", "a")]);
            explain("web", &key, slots, &leases, now.parse().unwrap())
        };
        assert!(explained("2026-01-01T00:00:15Z").contains("Its owner is a, and no other"));
        let expired =
            "Its Lease is held by a, but was last renewed at 2026-01-01T00:00:00Z for 15s. If a has crashed, no";
        assert!(explained("2026-01-01T00:00:16Z").contains(expired));
    }

    #[test]
    fn unknown_division_is_an_error_with_remedy() {
        let cases = [
            (None, "it is missing or has no holder: start the replicas"),
            (Some(""), "it is missing or has no holder: start the replicas"),
            (Some("web-7f4"), "its holder `web-7f4` is not the settings of a sharded program"),
            (Some("shards-8-by-object-v99"), "of another version of kctl, which assigns keys to slots differently"),
        ];
        for (holder, expected) in cases {
            let error = slots_in_use(holder.map(|holder| lease("web", holder))).unwrap_err().to_string();
            assert!(error.contains(expected), "{holder:?}: {error}");
        }
    }
}
