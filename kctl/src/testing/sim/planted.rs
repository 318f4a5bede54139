//! Tests that certain faults reveal a bug in leader election or in the protocol of slots, and that others do not.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kctl_runtime::{
    __private_0_1::{Planted, ThawOrder},
    key::ObjectKey,
    reconcile::Result,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};

use super::{
    Scenario,
    checks::{Violation, index_of},
    lease_lapse::{LapsedLeases, LeaseLapse, Renewals, longest_write},
    plan::{Fault, Freeze, TimedFault},
    run::{prepare, run},
    world::Servers,
};
use crate::prelude::{Action, App, Context, controller};

/// The seed of uids and generated names.
const SEED: u64 = 0;

/// Copies the color of its object into a label. The object says how many seconds that takes.
#[controller(crate = crate, primary(patch))]
async fn slowly(config: Arc<ConfigMap>, cx: Context<slowly>) -> Result<Action> {
    let field = |name: &str| config.data.as_ref().and_then(|data| data.get(name));
    let color = field("color");
    if config.metadata.labels.as_ref().and_then(|labels| labels.get("color")) != color {
        let takes = field("takes").and_then(|seconds| seconds.parse().ok()).unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(takes)).await;
        cx.patch(crate::json!({ "metadata": { "labels": { "color": color } } })).await?;
    }
    Ok(Action::await_change())
}

/// A change of all objects.
#[derive(Clone, Copy)]
struct Change {
    /// The time since the previous change, or the start.
    after: Duration,
    color: &'static str,
    /// The number of seconds that a reconcile takes then.
    takes: &'static str,
}

/// The first change. All slots have owners by then.
const RED: Change = Change { after: Duration::from_secs(20), color: "red", takes: "2" };

/// Returns three replicas that share `ConfigMap`s with these names.
fn scenario(names: &'static [&'static str], changes: &[Change]) -> Scenario {
    replicas(names, changes).sharded()
}

/// Returns three replicas with leader election, which reconcile `ConfigMap`s with these names.
fn replicas(names: &'static [&'static str], changes: &[Change]) -> Scenario {
    let object = |name: &&str| {
        let data = "{color: blue, takes: '2'}";
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {data}}}")
    };
    let objects: Vec<_> = names.iter().map(object).collect();
    let app = || App::new("slowly").controller::<slowly>();
    let scenario = Scenario::new(app).objects(&objects.join("\n---\n")).instances(3);
    changes.iter().fold(scenario, |scenario, &Change { after, color, takes }| {
        scenario.step_at(after, color, move |client| async move {
            let change = Patch::Merge(crate::json!({ "data": { "color": color, "takes": takes } }));
            for name in names {
                let configs = Api::<ConfigMap>::default_namespaced(client.clone());
                configs.patch(name, &PatchParams::default(), &change).await?;
            }
            Ok(())
        })
    })
}

/// Returns when the object `a` is first reconciled after `after`, and the replica, in the run without faults.
fn first_reconcile(scenario: &Scenario, servers: &Servers, after: Duration) -> (Duration, usize) {
    let outcome = run(scenario, servers, SEED, &[], None);
    assert_eq!(outcome.found, None);
    let reconciles_a = |what: &str| what.starts_with("reconciles ") && what.ends_with(" default/a");
    let begun =
        outcome.lines.iter().find(|line| line.at >= after && reconciles_a(&line.what)).expect("it is reconciled");
    (begun.at, index_of(&begun.who).expect("a replica reconciles it"))
}

/// Returns the finding of a run with one fault.
fn run_with_fault(scenario: &Scenario, servers: &Servers, time: Duration, what: TimedFault) -> Option<Violation> {
    run(scenario, servers, SEED, &[Fault::At { time, what }], None).found
}

/// Checks that a fault reveals a bug, and that the protocol without the bug survives it.
fn check_found(bug: Planted, twin: &Scenario, time: Duration, what: TimedFault, checker: &str) {
    let servers = prepare(twin).unwrap();
    assert_eq!(run_with_fault(twin, &servers, time, what), None, "{what:?}");
    let finding = run_with_fault(&twin.clone().plant(bug), &servers, time, what);
    assert_eq!(finding.as_ref().map(|found| found.checker.as_str()), Some(checker), "{finding:?}, {what:?}");
}

/// Returns a lapse of the Lease of the slot of object `a`.
fn slot_lapse(scenario: &Scenario) -> TimedFault {
    let slots = scenario.slots.unwrap();
    let (slot, write_delay) = (slots.slot_for(&ObjectKey::new(Some("default"), "a")), longest_write(slots.count()));
    let (renewals, length) = (Renewals::Rejected, Duration::from_secs(20));
    TimedFault::Lapse(LeaseLapse { renewals, length, write_delay, leases: LapsedLeases::Slot(slot) })
}

/// The reconcile has to continue before the election, so it has to be woken after it. The second time is for an election
/// that renews just when the process is frozen the first time.
#[test]
fn clock_that_stops_with_its_process_is_found() {
    for seconds in [20, 21] {
        let change = Change { after: Duration::from_secs(seconds), ..RED };
        let twin = scenario(&["a"], &[change]);
        let (servers, bug) = (prepare(&twin).unwrap(), twin.clone().plant(Planted::FrozenClock));
        let (begun, instance) = first_reconcile(&twin, &servers, change.after);
        let (time, length) = (begun + Duration::from_millis(100), Duration::from_secs(30));
        let freeze = TimedFault::Freeze(Freeze { instance: Some(instance), length, order: ThawOrder::Reversed });
        assert_eq!(run_with_fault(&twin, &servers, time, freeze), None);
        let Some(finding) = run_with_fault(&bug, &servers, time, freeze) else { continue };
        assert_eq!(finding.checker, "only the owner writes", "{finding:?}");
        for other in [TimedFault::Partition { instance, length }, slot_lapse(&twin)] {
            assert_eq!(run_with_fault(&bug, &servers, time, other), None, "{other:?}");
        }
        return;
    }
    panic!("the freeze does not reveal the bug");
}

/// The reconcile has to continue before the election here as well, and the two times have the same reason.
#[test]
fn frozen_leader_without_a_permit_is_found() {
    for seconds in [20, 21] {
        let change = Change { after: Duration::from_secs(seconds), ..RED };
        let twin = replicas(&["a"], &[change]);
        let (servers, bug) = (prepare(&twin).unwrap(), twin.clone().without_fencing());
        let (begun, instance) = first_reconcile(&twin, &servers, change.after);
        let (time, length) = (begun + Duration::from_millis(100), Duration::from_secs(30));
        let freeze = TimedFault::Freeze(Freeze { instance: None, length, order: ThawOrder::Reversed });
        assert_eq!(run_with_fault(&twin, &servers, time, freeze), None);
        let Some(finding) = run_with_fault(&bug, &servers, time, freeze) else { continue };
        assert_eq!(finding.checker, "only the leader writes", "{finding:?}");
        assert_eq!(run_with_fault(&bug, &servers, time, TimedFault::Crash { instance }), None);
        return;
    }
    panic!("the freeze does not reveal the bug");
}

/// The write is sent 8.9 s after the partition began: shortly before its replica gives up the slot, after at least 10 s. It
/// arrives 9.55 s later, when the partition is over and another replica owns the slot, after at most 16 s.
#[test]
fn write_after_a_partition_needs_the_permit() {
    let change = Change { takes: "9", ..RED };
    let twin = scenario(&["a"], &[change]);
    let (begun, instance) = first_reconcile(&twin, &prepare(&twin).unwrap(), change.after);
    let partition = TimedFault::Partition { instance, length: Duration::from_secs(16) };
    let time = begun + Duration::from_millis(100);
    check_found(Planted::PermitGrants, &twin, time, partition, "only the owner writes");
}

/// A replica that loses the Lease of the settings ends, so only the Lease of the slot may be lost.
#[test]
fn work_on_a_lost_slot_is_found() {
    let blue = Change { after: Duration::from_secs(40), color: "blue", ..RED };
    let twin = scenario(&["a"], &[RED, blue]);
    // The first change is done, and another replica owns the slot before the second one.
    let time = RED.after + Duration::from_millis(2_500);
    check_found(Planted::LossIgnored, &twin, time, slot_lapse(&twin), "a key never runs twice at once");
    let servers = prepare(&twin).unwrap();
    let (_begun, instance) = first_reconcile(&twin, &servers, RED.after);
    let (length, order) = (Duration::from_secs(20), ThawOrder::Reversed);
    let slot = twin.slots.unwrap().slot_for(&ObjectKey::new(Some("default"), "a"));
    let others = [
        TimedFault::Crash { instance },
        TimedFault::Partition { instance, length },
        TimedFault::Freeze(Freeze { instance: Some(instance), length, order }),
        TimedFault::LeaseDeleted { slot },
    ];
    for other in others {
        let bug = twin.clone().plant(Planted::LossIgnored);
        assert_eq!(run_with_fault(&bug, &servers, time, other), None, "{other:?}");
    }
}

/// A third of the seeds have a Lease of a slot that lapses.
#[test]
fn seeds_find_work_on_a_lost_slot() {
    let blue = Change { after: Duration::from_secs(40), color: "blue", ..RED };
    let bug = scenario(&["a", "b", "c", "d"], &[RED, blue]).plant(Planted::LossIgnored);
    let servers = prepare(&bug).unwrap();
    let points = run(&bug, &servers, SEED, &[], None).points;
    let finding = (0..64).find_map(|seed| run(&bug, &servers, SEED, &points.choose_faults(seed), None).found);
    let finding = finding.expect("no seed reveals the bug");
    assert_eq!(finding.checker, "a key never runs twice at once", "{finding:?}");
}
