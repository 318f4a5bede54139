//! `shards`: prints the slots of a sharded program and their owners, from the Leases in the cluster.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    jiff::Timestamp,
};
use kctl_runtime::{
    key::ObjectKey,
    manager::{
        lease::PROCESS,
        shards::{LABEL, ShardConfig, ShardError},
    },
    reconcile::{Result, ResultExt},
    shard::slot_name,
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
    /// The namespace of the Leases [default: the namespace of the kubeconfig's context]
    #[arg(long, value_name = "NS")]
    leader_election_namespace: Option<String>,
    /// Print only the slot of this key, and its owner in a sentence; for a cluster-scoped object the key is its name
    #[arg(long, value_name = "NAMESPACE/NAME")]
    key: Option<ObjectKey>,
}

/// The sentence about a Lease without a holder that its last holder has not released. `/debug/` of a replica names that
/// holder.
const EDITED: &str = "Its Lease was changed without a release, and its former owner may be at work, so no replica takes it for a Lease \
                      duration.";

/// Lists the Leases and returns the table, or the part of it about one key.
///
/// # Errors
/// No cluster is found, the Leases can't be read, or no Lease of a slot exists. For a key also if the Lease of the settings
/// is missing, or names no division that this version of kctl has.
pub(super) async fn shards(app: &App, options: ShardsOptions) -> Result<String> {
    let name = options.leader_election_id.unwrap_or_else(|| app.name.clone());
    let cluster = run::read_cluster(app, options.kubeconfig, options.context).await?;
    let namespace = options.leader_election_namespace.unwrap_or_else(|| cluster.client.default_namespace().to_owned());
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), &namespace);
    let (listed, settings) = cluster
        .read(async {
            let listed = leases.list(&ListParams::default().labels(&format!("{LABEL}={name}"))).await;
            let listed = listed.context(format!("failed to list the Leases of {name} in namespace {namespace}"))?;
            let settings = leases.get_opt(&name).await.context(format!("failed to get Lease {namespace}/{name}"))?;
            Ok((listed, settings))
        })
        .await?;
    let settings = settings.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
    if listed.items.is_empty() && is_leader_identity(&settings) {
        return Err(format!(
            "no Lease of a slot of {name} in namespace {namespace}: Lease {name} is held by {settings}, which runs with --leader-elect"
        )
        .into());
    }
    if listed.items.is_empty() {
        return Err(format!(
            "no Lease of a slot of {name} in namespace {namespace}; if the replicas run with --leader-election-id, like the replicas of a Helm \
             release, give the same here, and another namespace with --leader-election-namespace"
        )
        .into());
    }
    let now = Timestamp::now();
    match options.key {
        None => Ok(overview(&name, &settings, &listed.items, now)),
        Some(key) => explain(&name, &key, &settings, &listed.items, now)
            .context(format!("Lease {namespace}/{name} of the replicas' settings")),
    }
}

/// Returns `true` if a holder of the Lease of the settings is the leader of replicas with leader election.
fn is_leader_identity(settings: &str) -> bool {
    // Settings of another version of kctl look like this, and can't be parsed.
    let is_sharded = settings.starts_with("shards-") && settings.contains("-by-");
    let slots = ShardConfig::slots_of_settings(settings);
    !settings.is_empty() && !is_sharded && matches!(slots, Err(ShardError::Settings(_)))
}

/// Returns the table of all slots of the replicas, and a line about replicas without a slot.
fn overview(app: &str, settings: &str, leases: &[Lease], now: Timestamp) -> String {
    all_slots(app, settings, leases, now) + &replicas_without_slots(app, leases, now)
}

/// Returns a line about the live replicas that have a seat and no slot; empty if each has a slot.
///
/// There are at least as many slots as seats, so such a replica is starting, or it can't work.
fn replicas_without_slots(app: &str, leases: &[Lease], now: Timestamp) -> String {
    let (slots, seats) = (leases_by_number(app, "slot", leases), leases_by_number(app, "seat", leases));
    let is_live = |seat: &Held| has_holder(&seat.spec) && !is_expired(&seat.spec, now);
    let owns_slot = |seat: &Held| slots.values().any(|slot| slot.has_holder_of(seat));
    let idle = seats.iter().filter(|(_, seat)| is_live(seat) && !owns_slot(seat));
    let idle = idle.map(|(n, seat)| format!("{} (seat {n})", seat.spec.holder_identity.as_deref().unwrap_or_default()));
    let idle: Vec<String> = idle.collect();
    if idle.is_empty() {
        return String::new();
    }
    format!(
        "\nWithout a slot: {}. If that lasts for more than a few seconds, /readyz?verbose of the replica has the reason.\n",
        idle.join(", ")
    )
}

/// Returns the table of all slots of the replicas, and a line about Leases of slots that they don't have.
///
/// [`App::sharded`] of this process is not used: the replicas may run with another `--shards`, which the Lease of their
/// settings records.
fn all_slots(app: &str, settings: &str, leases: &[Lease], now: Timestamp) -> String {
    let existing = leases_by_number(app, "slot", leases).into_keys();
    let problem = match ShardConfig::slots_of_settings(settings) {
        Ok(slots) => {
            let others = existing.filter(|slot| !slots.all().contains(slot));
            let others: Vec<String> = others.map(|slot| slot.to_string()).collect();
            let table = table(app, leases, slots.all(), now);
            return match others.len() {
                0 => table,
                1 => format!("{table}\n1 Lease of another slot is left over: {}\n", others.join(", ")),
                n => format!("{table}\n{n} Leases of other slots are left over: {}\n", others.join(", ")),
            };
        }
        Err(_) if settings.is_empty() => "it is missing or has no holder".to_owned(),
        Err(_) if is_leader_identity(settings) => format!("it is held by {settings}, which runs with --leader-elect"),
        Err(error) => error.to_string(),
    };
    let table = table(app, leases, existing, now);
    format!("{table}\nThese Leases exist. Lease {app} does not name the number of slots: {problem}\n")
}

/// Returns the line of a key's slot, and a sentence with its owner.
///
/// The clock of this machine decides if a Lease has expired, and may be wrong. So the sentence about an expired Lease
/// has the time of the last renewal.
///
/// # Errors
/// The settings are empty, or belong to a program without shards or to another version of kctl.
fn explain(app: &str, key: &ObjectKey, settings: &str, leases: &[Lease], now: Timestamp) -> Result<String> {
    if settings.is_empty() {
        return Err("it is missing or has no holder: start the replicas, which create and hold it".into());
    }
    let slot = ShardConfig::slots_of_settings(settings)?.slot_for(key);
    let is_in = format!("{key} is in slot {slot}.");
    let watched = ShardConfig::namespaces_of_settings(settings);
    let is_watched = |name: &str| watched.is_empty() || watched.iter().any(|watched| watched == name);
    if let Some(namespace) = key.namespace.as_deref().filter(|name| !is_watched(name)) {
        return Ok(format!(
            "{is_in} No replica reconciles it: namespace {namespace} is not watched by the replicas, which run with --namespace {}.\n",
            watched.join(" --namespace ")
        ));
    }
    let Some(Held { spec, .. }) = leases_by_number(app, "slot", leases).remove(&slot) else {
        let name = slot_name(app, slot);
        return Ok(format!(
            "{is_in} Its Lease {name} is missing; if an owner runs, it creates the Lease again within seconds.\n"
        ));
    };
    let (is_over, is_released) = (is_over(&spec, now), is_released(&spec));
    let owner: String = match spec.holder_identity.unwrap_or_default() {
        owner if owner.is_empty() && (is_released || is_over) => {
            "It has no owner: no replica reconciles the key until one takes the slot.".into()
        }
        owner if owner.is_empty() => EDITED.into(),
        owner if is_over => format!(
            "Its Lease is held by {owner}, but was last renewed at {} for {}s. If {owner} has crashed, no replica reconciles the key \
             until another replica takes the slot.",
            kctl_apimachinery::time::seconds(spec.renew_time.map(|time| time.0).unwrap_or_default()),
            spec.lease_duration_seconds.unwrap_or_default()
        ),
        owner => format!("Its owner is {owner}, and no other replica reconciles the key."),
    };
    let are_unnamed = watched.is_empty() && settings.contains("-in-");
    let unnamed = if are_unnamed {
        " The replicas run with --namespace, and the Lease does not name so many namespaces: /debug/ of a replica shows whether it \
         watches this one."
    } else {
        ""
    };
    Ok(format!("{}\n{is_in} {owner}{unnamed}\n", table(app, leases, [slot], now)))
}

/// Returns `true` if a Lease with a holder has expired by the clock of this machine.
fn is_expired(spec: &LeaseSpec, now: Timestamp) -> bool {
    has_holder(spec) && is_over(spec, now)
}

/// Returns `true` if the duration of a Lease has passed since its last renewal. Then its last holder has stopped its work,
/// even if a person has removed it.
fn is_over(spec: &LeaseSpec, now: Timestamp) -> bool {
    let duration = Duration::from_secs(spec.lease_duration_seconds.and_then(|n| n.try_into().ok()).unwrap_or_default());
    let renewed = spec.renew_time.as_ref().map(|time| time.0).unwrap_or_default();
    renewed.saturating_add(duration).is_ok_and(|expiry| expiry < now)
}

/// Returns `true` if the last holder released the Lease. A person who removes the holder leaves the duration and the times
/// of the last renewal.
fn is_released(spec: &LeaseSpec) -> bool {
    !has_holder(spec) && spec.lease_duration_seconds == Some(1) && spec.acquire_time == spec.renew_time
}

fn has_holder(spec: &LeaseSpec) -> bool {
    spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty())
}

/// Returns one line per slot: its number, its owner, the seat of the owner, and the last renewal.
fn table(app: &str, leases: &[Lease], slots: impl IntoIterator<Item = u32>, now: Timestamp) -> String {
    let (mut existing, seats) = (leases_by_number(app, "slot", leases), leases_by_number(app, "seat", leases));
    let mut lines = vec![["SLOT", "OWNER", "SEAT", "RENEWED", "MOVES"].map(ToOwned::to_owned)];
    for slot in slots {
        let Some(held) = existing.remove(&slot) else {
            lines.push([slot.to_string(), "(no Lease)".into(), "-".into(), "-".into(), "-".into()]);
            continue;
        };
        let expired = if is_expired(&held.spec, now) { " expired" } else { "" };
        let seat = seats.iter().find(|(_, seat)| held.has_holder_of(seat)).map(|(seat, _)| seat.to_string());
        let spec = held.spec;
        let owner = spec.holder_identity.unwrap_or_default();
        let renewed = spec.renew_time.map(|time| kctl_apimachinery::time::seconds(time.0) + expired);
        let moves = spec.lease_transitions.unwrap_or_default().to_string();
        let owner = if owner.is_empty() { "-".to_owned() } else { owner };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        lines.push([slot.to_string(), owner, or_dash(seat), or_dash(renewed), moves]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..5).map(width).collect();
    let padded = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    });
    padded.collect()
}

/// A Lease of a slot or a seat.
struct Held {
    spec: LeaseSpec,
    /// The number of the process that wrote the Lease last; `None` if another client wrote it.
    process: Option<String>,
}

impl Held {
    /// Returns `true` if this slot has the holder of a seat. Two replicas may have the same name by mistake, so their
    /// processes have to be equal as well.
    fn has_holder_of(&self, seat: &Self) -> bool {
        let is_same = self.spec.holder_identity == seat.spec.holder_identity && self.process == seat.process;
        is_same && has_holder(&self.spec)
    }
}

/// Returns the Leases `APP-PART-N`, by number.
fn leases_by_number(app: &str, part: &str, leases: &[Lease]) -> BTreeMap<u32, Held> {
    let prefix = format!("{app}-{part}-");
    let number = |lease: &Lease| lease.name_any().strip_prefix(&prefix)?.parse().ok();
    let held = |lease: &Lease| Held {
        spec: lease.spec.clone().unwrap_or_default(),
        process: lease.annotations().get(PROCESS).cloned(),
    };
    leases.iter().filter_map(|lease| Some((number(lease)?, held(lease)))).collect()
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

    /// Changes a Lease without a holder to the form in which its last holder has released it.
    fn release(lease: &mut Lease) {
        let spec = lease.spec.get_or_insert_default();
        (spec.lease_duration_seconds, spec.acquire_time) = (Some(1), spec.renew_time.clone());
    }

    fn at(second: u32) -> Timestamp {
        format!("2026-01-01T00:00:{second:02}Z").parse().unwrap()
    }

    #[test]
    fn table_has_every_slot_of_the_settings() {
        let names = [("web-slot-10", "b"), ("web-slot-9", "a"), ("web-slot-0", ""), ("web-seat-1", "b"), ("web", "x")];
        let leases: Vec<_> = names.into_iter().map(|(name, holder)| lease(name, holder)).collect();
        let missing = "\
SLOT  OWNER       SEAT  RENEWED               MOVES
0     -           -     2026-01-01T00:00:00Z  2
1     (no Lease)  -     -                     -

2 Leases of other slots are left over: 9, 10
";
        assert_eq!(overview("web", "shards-2-by-object-v2", &leases, at(1)), missing);
        let all = [lease("web-slot-0", "a"), lease("web-slot-1", "")];
        let expired = "\
SLOT  OWNER  SEAT  RENEWED                       MOVES
0     a      -     2026-01-01T00:00:00Z expired  2
1     -      -     2026-01-01T00:00:00Z          2
";
        assert_eq!(overview("web", "shards-2-by-object-v2", &all, at(16)), expired);
    }

    #[test]
    fn columns_are_as_wide_as_their_letters() {
        let all = [lease("web-slot-0", "größe-1"), lease("web-slot-1", "b")];
        let table = "\
SLOT  OWNER    SEAT  RENEWED               MOVES
0     größe-1  -     2026-01-01T00:00:00Z  2
1     b        -     2026-01-01T00:00:00Z  2
";
        assert_eq!(overview("web", "shards-2-by-object-v2", &all, at(1)), table);
    }

    #[test]
    fn live_replicas_without_a_slot_are_named() {
        let names =
            [("web-slot-0", "a"), ("web-seat-0", "a"), ("web-seat-1", ""), ("web-seat-2", "c"), ("web-seat-3", "d")];
        let mut leases = names.map(|(name, holder)| lease(name, holder));
        let overview = |leases: &[Lease], second| overview("web", "shards-1-by-object-v2", leases, at(second));
        let expected = "\nWithout a slot: c (seat 2), d (seat 3). If that lasts for more than a few seconds, /readyz?verbose of \
                        the replica has the reason.\n";
        assert!(overview(&leases, 1).ends_with(expected), "{}", overview(&leases, 1));
        assert!(!overview(&leases, 16).contains("Without"), "they have crashed");
        // The process in seat 0 has the name of the owner.
        leases[0].annotations_mut().insert(PROCESS.into(), "1".into());
        assert!(overview(&leases, 1).contains("Without a slot: a (seat 0), c"));
    }

    #[test]
    fn seats_of_replicas_with_one_name_differ() {
        let names = [("web-slot-0", "1"), ("web-slot-1", "2"), ("web-seat-0", "2"), ("web-seat-3", "1")];
        let leases = names.map(|(name, process)| {
            let mut lease = lease(name, "a");
            lease.annotations_mut().insert(PROCESS.into(), process.into());
            lease
        });
        let table = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
0     a      3     2026-01-01T00:00:00Z  2
1     a      0     2026-01-01T00:00:00Z  2
";
        assert_eq!(overview("web", "shards-2-by-object-v2", &leases, at(1)), table);
    }

    #[test]
    fn unknown_number_of_slots_is_explained() {
        let leases = [lease("web-slot-10", "b"), lease("web-slot-9", "a"), lease("web-seat-1", "b")];
        let table = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
9     a      -     2026-01-01T00:00:00Z  2
10    b      1     2026-01-01T00:00:00Z  2

These Leases exist. Lease web does not name the number of slots: ";
        let cases = [
            ("", "it is missing or has no holder"),
            ("web-7f4", "it is held by web-7f4, which runs with --leader-elect"),
        ];
        for (settings, problem) in cases {
            assert_eq!(overview("web", settings, &leases, at(1)), format!("{table}{problem}\n"));
        }
    }

    /// The division of these keys is pinned in `kctl_runtime::shard`.
    fn explained(settings: &str, key: &str) -> String {
        let names = [("web-slot-32", "a"), ("web-slot-108", ""), ("web-slot-241", "b"), ("web-seat-1", "b")];
        let mut leases: Vec<_> = names.into_iter().map(|(name, holder)| lease(name, holder)).collect();
        release(&mut leases[1]);
        explain("web", &key.parse().unwrap(), settings, &leases, at(14)).unwrap()
    }

    #[test]
    fn key_is_explained_by_settings_of_the_replicas() {
        let by_object = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
32    a      -     2026-01-01T00:00:00Z  2

default/web is in slot 32. Its owner is a, and no other replica reconciles the key.
";
        assert_eq!(explained("shards-256-by-object-v2", "default/web"), by_object);
        let by_namespace = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
241   b      1     2026-01-01T00:00:00Z  2

default/web is in slot 241. Its owner is b, and no other replica reconciles the key.
";
        assert_eq!(explained("shards-256-by-namespace-v2-for-60s", "default/web"), by_namespace);
    }

    #[test]
    fn key_without_owner_is_explained() {
        let free = "\
SLOT  OWNER  SEAT  RENEWED               MOVES
108   -      -     2026-01-01T00:00:00Z  2

shop is in slot 108. It has no owner: no replica reconciles the key until one takes the slot.
";
        assert_eq!(explained("shards-256-by-object-v2", "shop"), free);
        let missing = "\
default/api is in slot 15. Its Lease web-slot-15 is missing; if an owner runs, it creates the Lease again within seconds.
";
        assert_eq!(explained("shards-256-by-object-v2", "default/api"), missing);
    }

    #[test]
    fn lease_emptied_by_hand_is_not_released() {
        let explained = |lease: Lease, second: u32| {
            explain("web", &"shop".parse().unwrap(), "shards-256-by-object-v2", &[lease], at(second)).unwrap()
        };
        let mut emptied = lease("web-slot-108", "");
        let edited = explained(emptied.clone(), 15);
        let expected = "shop is in slot 108. Its Lease was changed without a release, and its former owner may be";
        assert!(edited.contains(expected), "{edited}");
        let over = explained(emptied.clone(), 16);
        assert!(over.contains("It has no owner"), "{over}");
        release(&mut emptied);
        assert!(explained(emptied, 1).contains("It has no owner"));
    }

    #[test]
    fn key_outside_watched_namespaces_is_explained() {
        let settings = "shards-256-by-object-v2-in-blog,shop";
        assert!(!explained(settings, "shop/web").contains("is not watched"));
        let unwatched = "default/web is in slot 32. No replica reconciles it: namespace default is not watched by the replicas, \
                         which run with --namespace blog --namespace shop.\n";
        assert_eq!(explained(settings, "default/web"), unwatched);
        assert!(explained(settings, "shop").contains("It has no owner"), "a cluster-scoped object has no namespace");
    }

    #[test]
    fn owner_with_expired_lease_may_have_crashed() {
        let explained = |second: u32| {
            let (key, leases) = ("default/web".parse().unwrap(), [lease("web-slot-32", "a")]);
            explain("web", &key, "shards-256-by-object-v2", &leases, at(second)).unwrap()
        };
        assert!(explained(15).contains("Its owner is a, and no other"));
        let expired =
            "Its Lease is held by a, but was last renewed at 2026-01-01T00:00:00Z for 15s. If a has crashed, no";
        assert!(explained(16).contains(expired));
    }

    #[test]
    fn unknown_division_is_an_error_with_remedy() {
        let cases = [
            ("", "it is missing or has no holder: start the replicas"),
            ("web-7f4", "its holder `web-7f4` is not the settings of a sharded program"),
            ("shards-8-by-object-v99", "of another version of kctl, which assigns keys to slots differently"),
        ];
        for (settings, expected) in cases {
            let key = "default/web".parse().unwrap();
            let error = explain("web", &key, settings, &[], at(0)).unwrap_err().to_string();
            assert!(error.contains(expected), "{settings}: {error}");
        }
    }
}
