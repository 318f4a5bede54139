//! Tests of elections whose Lease is watched, or held by several processes.

use std::{collections::BTreeSet, time::Duration};

use serde_json::json;

use super::*;
use crate::writer::{ApiError, Operation};

fn config() -> Arc<ElectionConfig> {
    Arc::new(ElectionConfig::new("podset", "default", "a"))
}

/// Returns the error of a Lease that the API server refuses to create.
fn rejection(code: u16) -> ApiError {
    ApiError::Rejected {
        operation: Operation::from("create the lease default/podset"),
        code,
        reason: String::new(),
        message: String::new(),
        details: Box::default(),
        retry_after: None,
    }
}

#[test]
fn validity_counts_from_the_watch_of_the_lease() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let at = |seconds| start + Duration::from_secs(seconds);
    let spec = json!({ "holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": "2" });
    let lease = json!({ "metadata": { "resourceVersion": "7" }, "spec": spec });
    let record = Record::read(&lease);
    let earlier = Record { renew_time: Some("1".into()), ..record.clone() };
    for (watched, is_taken) in [(None, false), (Some((record, at(0))), true), (Some((earlier, at(0))), false)] {
        let mut election = Election::new(config(), at(3));
        election.handle(Input::Read(lease.clone()), at(3), wall);
        election.set_watched(watched.clone());
        election.handle(Input::WaitEnded, at(15), wall);
        election.handle(Input::Read(lease.clone()), at(15), wall);
        assert_eq!(election.is_acquiring(), is_taken, "{watched:?}");
    }
}

/// Performs the requests of an election until it waits. The Lease is what the API server has.
fn perform(election: &mut Election, lease: &mut Option<Value>, now: Instant, wall: Timestamp) {
    while let Step::Send(request, _) = election.step().clone() {
        let input = match request {
            LeaseRequest::Get => lease.clone().map_or(Input::Absent, Input::Read),
            LeaseRequest::Create(written) | LeaseRequest::Update(written) => {
                *lease = Some(written.clone());
                Input::Written(written)
            }
        };
        election.handle(input, now, wall);
    }
}

#[test]
fn joining_processes_keep_lease_new_one_retry_period() {
    let (start, mut lease, mut elections) = (Instant::now(), None, Vec::<Election>::new());
    for tick in 0..100 {
        let (now, wall) = (start + Duration::from_millis(100) * tick, i64::from(tick) * 100);
        let wall = Timestamp::from_millisecond(wall).unwrap();
        if tick % 15 == 0 && elections.len() < 5 {
            elections.push(Election::new(config(), now).with_holders(Holders::Together));
        }
        for election in &mut elections {
            if matches!(election.step(), Step::Wait(until) if *until <= now) {
                election.handle(Input::WaitEnded, now, wall);
            }
            perform(election, &mut lease, now, wall);
        }
    }
    assert!(elections.iter().all(|election| election.leading.is_some()), "all of them hold it");
    let joined_new: Vec<_> = elections.iter().map(Election::joined_new_lease).collect();
    assert_eq!(joined_new, [true, true, false, false, false], "they joined 1.5 s apart, and the retry period is 2 s");
}

#[test]
fn leases_acquired_together_are_renewed_apart() {
    let (now, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let renewals = |holders: Holders| -> BTreeSet<Duration> {
        let waits = (0..24).map(|slot| {
            let config = Arc::new(ElectionConfig::new(&format!("podset-slot-{slot}"), "default", "a"));
            let mut election = Election::new(config, now).with_holders(holders);
            perform(&mut election, &mut None, now, wall);
            let Step::Wait(first) = *election.step() else { panic!("it waits for the first renewal") };
            election.handle(Input::WaitEnded, first, wall);
            let Step::Send(LeaseRequest::Update(lease), _) = election.step().clone() else { panic!("it renews") };
            election.handle(Input::Written(lease), first, wall);
            assert_eq!(election.step(), &Step::Wait(first + Duration::from_secs(2)), "then once a retry period");
            first - now
        });
        waits.collect()
    };
    let apart = renewals(Holders::Numbered { process: 1 });
    assert!(apart.len() > 12, "24 Leases have few of 64 times in common: {apart:?}");
    assert!(apart.iter().all(|wait| (Duration::from_millis(1)..=Duration::from_secs(2)).contains(wait)), "{apart:?}");
    assert_eq!(renewals(Holders::One), BTreeSet::from([Duration::from_secs(2)]));
}

/// A renewal by another process counts from the read before the one that shows it, and is over at the next read.
#[test]
fn shared_lease_outlasts_a_long_retry_period() {
    let config = Arc::new(ElectionConfig { retry_period: Duration::from_secs(8), ..Arc::unwrap_or_clone(config()) });
    assert_eq!(config.check(), Ok(()));
    let (start, mut lease, mut elections) = (Instant::now(), None, Vec::<Election>::new());
    for seconds in 0_u32..60 {
        let now = start + Duration::from_secs(seconds.into());
        let wall = Timestamp::from_second(seconds.into()).unwrap();
        if elections.len() < 2 {
            elections.push(Election::new(config.clone(), now).with_holders(Holders::Together));
        }
        for (number, election) in elections.iter_mut().enumerate() {
            if matches!(election.step(), Step::Wait(until) if *until <= now) {
                election.handle(Input::WaitEnded, now, wall);
            }
            perform(election, &mut lease, now, wall);
            assert!(election.leading.is_some(), "process {number} after {seconds} s: {:?}", election.step());
        }
    }
}

/// Without the effect, a replica would wait for a seat that looked free to it, while another seat really is free.
#[test]
fn live_holder_of_seemingly_free_lease_is_published() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let lease = |renewed: &str| {
        let spec = json!({ "holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": renewed });
        json!({ "metadata": { "resourceVersion": renewed }, "spec": spec })
    };
    let now = start + Duration::from_secs(20);
    let mut election = Election::new(config(), now).with_observed_record(Record::read(&lease("1")), start);
    let effects = election.handle(Input::Read(lease("2")), now, wall);
    assert_eq!(effects, [Effect::Holder("b".into())], "it has renewed the Lease since");
    let again = now + Duration::from_secs(5);
    election.handle(Input::WaitEnded, again, wall);
    assert_eq!(election.handle(Input::Read(lease("3")), again, wall), [], "once");
}

/// Before the restore of a backup of etcd, `b` had renewed the Lease. It works until it reads the Lease again.
#[test]
fn own_record_of_a_backup_is_not_acquired() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let at = |seconds| start + Duration::from_secs(seconds);
    let lease = |holder: &str, renewed: &str| {
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed });
        json!({ "metadata": { "resourceVersion": renewed }, "spec": spec })
    };
    let read = |election: &mut Election, holder: &str, renewed: &str, seconds: u64| {
        election.handle(Input::WaitEnded, at(seconds), wall);
        election.handle(Input::Read(lease(holder, renewed)), at(seconds), wall);
        election.is_acquiring()
    };
    let mut election = Election::new(config(), start);
    election.handle(Input::Read(lease("b", "5")), start, wall);
    for seconds in [3, 10, 17] {
        assert!(!read(&mut election, "a", "1", seconds), "{seconds} s");
    }
    assert!(read(&mut election, "a", "1", 18), "15 s after it was seen first");
    // A holder that has released the Lease, or let it expire, has ended its work.
    for (holder, seconds) in [("", 3), ("b", 15)] {
        let before = Record::read(&lease(holder, "5"));
        let mut election = Election::new(config(), start).with_observed_record(before, start);
        assert!(read(&mut election, "a", "1", seconds), "`{holder}`");
    }
}

/// In the backup, replicas with the settings `a` held the Lease. Since then, replicas with the settings `b` have acquired it.
#[test]
fn shared_lease_of_a_backup_is_not_joined() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let at = |seconds| start + Duration::from_secs(seconds);
    let lease = |holder: &str, transitions: u64, renewed: &str| {
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": "0", "renewTime": renewed,
            "leaseTransitions": transitions,
        });
        json!({ "metadata": { "resourceVersion": renewed }, "spec": spec })
    };
    let waiting = || {
        let mut election = Election::new(config(), start).with_holders(Holders::Together);
        election.handle(Input::Read(lease("b", 3, "5")), start, wall);
        election
    };
    let read = |election: &mut Election, transitions: u64, renewed: &str, seconds: u64| {
        election.handle(Input::WaitEnded, at(seconds), wall);
        election.handle(Input::Read(lease("a", transitions, renewed)), at(seconds), wall);
        election.is_acquiring()
    };
    assert!(read(&mut waiting(), 4, "6", 3), "another replica with these settings has acquired it");
    let mut election = waiting();
    // Another replica with these settings renews it at the end, and does not restart the wait.
    for (renewed, seconds) in [("1", 3), ("1", 10), ("20", 17)] {
        assert!(!read(&mut election, 2, renewed, seconds), "{seconds} s");
    }
    assert!(read(&mut election, 2, "21", 18), "15 s after it was seen first");
    assert!(read(&mut waiting(), 2, "1", 15), "the other settings have expired");
}

/// A person has removed the holder, or shortened the Lease. The holder works until its next renewal.
#[test]
fn edited_lease_counts_for_its_former_duration() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let at = |seconds| start + Duration::from_secs(seconds);
    let lease = |holder: &str, duration: u64, acquired: &str, renewed: &str| {
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": duration, "acquireTime": acquired, "renewTime": renewed,
        });
        json!({ "metadata": { "resourceVersion": "7" }, "spec": spec })
    };
    let held = lease("b", 15, "0", "5");
    let no_holder = [lease("", 15, "0", "5"), lease("", 1, "0", "5"), json!({ "metadata": {}, "spec": {} })];
    let shorter = [lease("b", 1, "0", "5")];
    for holders in [Holders::One, Holders::Together, Holders::Numbered { process: 1 }] {
        for edited in no_holder.iter().chain(&shorter) {
            let mut election = Election::new(config(), start).with_holders(holders);
            election.handle(Input::Read(held.clone()), start, wall);
            // Its last renewal may have been just before the edit.
            for (seconds, is_taken) in [(2, false), (16, false), (17, true)] {
                election.handle(Input::WaitEnded, at(seconds), wall);
                election.handle(Input::Read(edited.clone()), at(seconds), wall);
                assert_eq!(election.is_acquiring(), is_taken, "{holders:?}, {edited} after {seconds} s");
            }
        }
        // A longer duration counts until its holder restores it.
        let mut election = Election::new(config(), start).with_holders(holders);
        for (lease, seconds, is_taken) in [
            (lease("b", 100_000, "0", "5"), 0, false),
            (lease("b", 15, "0", "7"), 2, false),
            (lease("b", 15, "0", "7"), 18, true),
        ] {
            election.handle(Input::WaitEnded, at(seconds), wall);
            election.handle(Input::Read(lease.clone()), at(seconds), wall);
            assert_eq!(election.is_acquiring(), is_taken, "{holders:?}, {lease} after {seconds} s");
        }
        // A holder that releases the Lease has ended its work, also after an edit.
        let mut election = Election::new(config(), start).with_holders(holders);
        for (lease, seconds, is_taken) in
            [(&held, 0, false), (&no_holder[0], 2, false), (&lease("", 1, "9", "9"), 4, true)]
        {
            election.handle(Input::WaitEnded, at(seconds), wall);
            election.handle(Input::Read(lease.clone()), at(seconds), wall);
            assert_eq!(election.is_acquiring(), is_taken, "{holders:?}, {lease} after {seconds} s");
        }
    }
}

/// The candidate did not read the Lease for longer than its duration, and the holder may have renewed it until it was deleted.
#[test]
fn expired_observation_does_not_free_deleted_lease() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let spec = json!({ "holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": "2" });
    let mut election = Election::new(config(), start);
    election.handle(Input::Read(json!({ "metadata": {}, "spec": spec })), start, wall);
    for (seconds, is_taken) in [(20, false), (34, false), (35, true)] {
        let now = start + Duration::from_secs(seconds);
        election.handle(Input::WaitEnded, now, wall);
        election.handle(Input::Absent, now, wall);
        assert_eq!(election.is_acquiring(), is_taken, "after {seconds} s");
    }
}

#[test]
fn leader_reads_lease_soon_that_another_process_created() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let (mut leader, mut lease) = (Election::new(config(), start), None);
    perform(&mut leader, &mut lease, start, wall);
    let now = start + Duration::from_secs(2);
    leader.handle(Input::WaitEnded, now, wall);
    let operation = Operation::from("create the lease default/podset");
    leader.handle(Input::Failed(ApiError::NoResponse { operation, cause: "reset".into() }), now, wall);
    leader.handle(Input::Absent, now, wall);
    leader.handle(Input::Failed(rejection(409)), now, wall);
    let Step::Wait(until) = leader.step() else { panic!("{:?}", leader.step()) };
    assert!(*until < now + Duration::from_millis(100), "{:?}", *until - now);
}

#[test]
fn process_number_removed_from_lease_ends_no_leader() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let numbered = || Election::new(config(), start).with_holders(Holders::Numbered { process: 1 });
    let (mut leader, mut lease) = (numbered(), None);
    perform(&mut leader, &mut lease, start, wall);
    let mut edited = lease.unwrap();
    edited["metadata"]["annotations"].as_object_mut().unwrap().remove(PROCESS);
    // An earlier process of this identity may have written it.
    let mut candidate = numbered();
    candidate.handle(Input::Read(edited.clone()), start, wall);
    assert!(!candidate.is_acquiring());

    let later = start + Duration::from_secs(2);
    leader.handle(Input::WaitEnded, later, wall);
    let operation = Operation::from("update the lease default/podset");
    leader.handle(Input::Failed(ApiError::NoResponse { operation, cause: "reset".into() }), later, wall);
    leader.handle(Input::Read(edited), later, wall);
    let Step::Send(LeaseRequest::Update(renewed), _) = leader.step() else { panic!("{:?}", leader.step()) };
    assert_eq!(renewed["metadata"]["annotations"][PROCESS], process_number(1));
}

/// At its start, this process counted the missing Lease as held, for longer than the one that it then joined.
#[test]
fn leader_restores_an_emptied_lease_at_once() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let holder_identity = Some("unknown".to_owned());
    let unknown = Record { holder_identity, lease_duration_seconds: Some(30), ..Record::default() };
    let election = Election::new(config(), start).with_holders(Holders::Together);
    let mut election = election.with_observed_record(unknown, start).with_missing_lease();
    let mut lease = Some(json!({ "metadata": {}, "spec": {
        "holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": "0", "renewTime": "1", "leaseTransitions": 4,
    }}));
    perform(&mut election, &mut lease, start, wall);
    assert!(election.leading.is_some());
    let mut lease = lease.map(|mut lease| {
        lease["spec"]["holderIdentity"] = "".into();
        lease
    });
    let next = start + Duration::from_secs(2);
    election.handle(Input::WaitEnded, next, wall);
    perform(&mut election, &mut lease, next, wall);
    let restored = Record::read(&lease.unwrap_or_default());
    assert_eq!(restored.holder(), "a");
    // With an `acquireTime` of now, a process that joins would take the Lease for new.
    assert_eq!((restored.acquire_time.as_deref(), restored.lease_transitions), (Some("0"), Some(4)));
}

/// Without the release, a candidate that saw the edit would wait for the former duration, although the leader has ended.
#[test]
fn emptied_lease_is_released_at_stop() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let (mut election, mut lease) = (Election::new(config(), start), None);
    perform(&mut election, &mut lease, start, wall);
    let mut candidate = Election::new(Arc::new(ElectionConfig::new("podset", "default", "b")), start);
    candidate.handle(Input::Read(lease.clone().unwrap()), start, wall);
    for (seconds, stops, is_taken) in [(1, false, false), (2, true, true)] {
        let now = start + Duration::from_secs(seconds);
        lease.as_mut().unwrap()["spec"]["holderIdentity"] = "".into();
        if stops {
            election.handle(Input::Stop { release: true }, now, wall);
            perform(&mut election, &mut lease, now, wall);
            assert_eq!(election.step(), &Step::Done);
        }
        candidate.handle(Input::WaitEnded, now, wall);
        candidate.handle(Input::Read(lease.clone().unwrap()), now, wall);
        assert_eq!(candidate.is_acquiring(), is_taken, "after {seconds} s");
    }
}

/// The API server answers with 504 if etcd is slow, and the Lease may have been created.
#[test]
fn lease_with_unknown_outcome_is_released_at_stop() {
    let (now, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    for (code, is_released) in [(504, true), (409, false)] {
        let mut election = Election::new(config(), now);
        election.handle(Input::Absent, now, wall);
        let Step::Send(LeaseRequest::Create(created), _) = election.step().clone() else {
            panic!("{:?}", election.step())
        };
        election.handle(Input::Failed(rejection(code)), now, wall);
        election.handle(Input::Stop { release: true }, now, wall);
        let mut lease = Some(created);
        perform(&mut election, &mut lease, now, wall);
        assert_eq!(election.step(), &Step::Done);
        assert_eq!(Record::read(&lease.unwrap_or_default()).holder().is_empty(), is_released, "{code}");
    }
}

/// With fewer transitions, a candidate that has seen the deleted Lease would count the release as one of a backup.
#[test]
fn deleted_lease_is_released_with_its_transitions() {
    let (now, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let mut election = Election::new(config(), now);
    let mut lease = Some(json!({ "metadata": {}, "spec": { "holderIdentity": "", "leaseTransitions": 3 } }));
    perform(&mut election, &mut lease, now, wall);
    assert!(election.leading.is_some());
    election.handle(Input::Stop { release: true }, now, wall);
    election.handle(Input::Absent, now, wall);
    let Step::Send(LeaseRequest::Create(released), _) = election.step() else { panic!("{:?}", election.step()) };
    assert_eq!((&released["spec"]["holderIdentity"], &released["spec"]["leaseTransitions"]), (&json!(""), &json!(4)));
}

/// With a wait after each read, replicas would lose the Lease while each of their requests takes 2.8 s.
#[test]
fn slow_reads_of_shared_lease_follow_each_other() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let lease = |renewed: &str| {
        let spec =
            json!({ "holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": "0", "renewTime": renewed });
        json!({ "metadata": { "resourceVersion": renewed }, "spec": spec })
    };
    for (holders, waits) in [(Holders::Together, 0), (Holders::One, 2)] {
        let mut election = Election::new(config(), start).with_holders(holders);
        election.handle(Input::Read(lease("1")), start, wall);
        election.handle(Input::Written(lease("2")), start, wall);
        election.handle(Input::WaitEnded, start + Duration::from_secs(2), wall);
        let now = start + Duration::from_secs(5);
        let answer = if holders == Holders::One { Input::Written } else { Input::Read };
        election.handle(answer(lease("3")), now, wall);
        let Step::Wait(until) = election.step() else { panic!("{holders:?}: {:?}", election.step()) };
        assert_eq!(until.saturating_duration_since(now), Duration::from_secs(waits), "{holders:?}");
    }
}
