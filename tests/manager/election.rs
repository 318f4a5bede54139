//! Behaviours of client-go's leader election (`tools/leaderelection`), one per test.

use kctl::{
    Json, json,
    kube::{
        Api,
        api::{DeleteParams, PostParams},
    },
    prelude::*,
};
use kctl_runtime::{
    manager::lease::{Effect, Election, ElectionConfig, ElectionError, ElectionState, End, Input, LeaseRequest, Step},
    writer::ApiError,
};
use kctl_tests::Fault;
use tokio::time::Instant;

use crate::{
    lease_candidates::{Contest, advance_seconds, config},
    trace::capture_log,
};

fn about_leases(request: &kctl_tests::RequestSummary) -> bool {
    request.path.contains("/leases")
}

fn writes_leases(request: &kctl_tests::RequestSummary) -> bool {
    about_leases(request) && request.method != "GET"
}

#[tokio::test(start_paused = true)]
async fn candidate_creates_missing_lease_and_leads() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    assert!(candidate.leadership.wait_until_leading().await);
    assert_eq!(contest.lease_state().await, ("a".into(), 15, 0));
    assert_eq!(candidate.leadership.holder(), "a");
    assert!(candidate.leadership.is_leading());
}

/// Returns the seconds until a candidate takes the Lease of a dead holder. The times in the Lease must not matter.
async fn seconds_until_taken(duration: u64, renew_time: &str) -> u64 {
    let contest = Contest::new();
    let spec = json!({
        "holderIdentity": "gone", "leaseDurationSeconds": duration, "leaseTransitions": 4,
        "acquireTime": renew_time, "renewTime": renew_time,
    });
    contest.create(spec).await;
    let candidate = contest.start(config("a"));
    let mut passed = 0;
    while !candidate.leadership.is_leading() {
        assert_eq!(candidate.leadership.state(), ElectionState::Standby);
        advance_seconds(1).await;
        passed += 1;
    }
    assert_eq!(contest.lease_state().await, ("a".into(), 15, 5), "the holder changed once more");
    passed
}

#[tokio::test(start_paused = true)]
async fn lease_is_taken_after_its_duration_without_change() {
    for duration in [5, 15, 40] {
        let passed = seconds_until_taken(duration, "2026-01-01T00:00:00.000000Z").await;
        // A try starts 2 to 4.4 s after the previous one (jitter factor 1.2).
        assert!((duration..=duration + 5).contains(&passed), "{duration} s: taken after {passed} s");
    }
}

#[tokio::test(start_paused = true)]
async fn times_of_other_clocks_do_not_count() {
    for time in ["1999-01-01T00:00:00.000000Z", "2199-01-01T00:00:00.000000Z"] {
        let passed = seconds_until_taken(15, time).await;
        assert!((15..=20).contains(&passed), "{time}: taken after {passed} s");
    }
}

#[tokio::test(start_paused = true)]
async fn changing_lease_is_not_taken() {
    let contest = Contest::new();
    contest.create(json!({ "holderIdentity": "other", "leaseDurationSeconds": 15 })).await;
    let candidate = contest.start(config("a"));
    for n in 0..20 {
        advance_seconds(9).await;
        // The other holder's clock hardly advances. Only the change of `renewTime` matters, not its value.
        let time = format!("2001-01-01T00:00:00.{n:06}Z");
        contest.change(json!({ "spec": { "renewTime": time } })).await;
    }
    assert_eq!(candidate.leadership.state(), ElectionState::Standby);
    assert_eq!(candidate.leadership.holder(), "other");
}

#[tokio::test(start_paused = true)]
async fn free_lease_is_taken_at_once() {
    for holder in [json!(""), json!(null)] {
        let contest = Contest::new();
        contest.create(json!({ "leaseDurationSeconds": 15, "leaseTransitions": 2 })).await;
        if holder.is_string() {
            contest.change(json!({ "spec": { "holderIdentity": "x" } })).await;
            contest.change(json!({ "spec": { "holderIdentity": null } })).await;
        }
        let begun = Instant::now();
        let candidate = contest.start(config("a"));
        assert!(candidate.leadership.wait_until_leading().await);
        assert_eq!(begun.elapsed(), Duration::ZERO, "{holder}");
        assert_eq!(contest.lease_state().await, ("a".into(), 15, 3));
    }
}

/// A person has removed the holder. It may be at work until its next renewal, and does not reach the API server.
#[tokio::test(start_paused = true)]
async fn emptied_lease_is_taken_after_its_duration() {
    let contest = Contest::new();
    let (leader, standby) = (contest.start(config("a")), contest.start(config("b")));
    advance_seconds(5).await;
    leader.running.abort();
    contest.change(json!({ "spec": { "holderIdentity": "" } })).await;
    advance_seconds(14).await;
    assert!(!standby.leadership.is_leading(), "the leader may be at work");
    advance_seconds(6).await;
    assert!(standby.leadership.is_leading());
}

#[tokio::test(start_paused = true)]
async fn leader_renews_without_reading() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    advance_seconds(7).await;
    assert_eq!(contest.requests(), ["get 404", "create 201", "update 200", "update 200", "update 200"]);
    assert_eq!(contest.lease_state().await, ("a".into(), 15, 0));
    assert_eq!(candidate.leadership.slow_renewals(), 0);
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_a_leader_reads_and_renews() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    advance_seconds(1).await;
    contest.change(json!({ "metadata": { "annotations": { "seen-by": "somebody" } } })).await;
    advance_seconds(2).await;
    let requests = contest.requests();
    assert_eq!(requests[2..], ["patch 200", "update 409", "get 200", "update 200"]);
    assert!(candidate.leadership.is_leading());
    assert_eq!(candidate.leadership.slow_renewals(), 1);
    let lease = contest.lease().await;
    assert_eq!(
        lease.metadata.annotations.unwrap_or_default()["seen-by"],
        "somebody",
        "the annotation of another client is kept"
    );
}

#[tokio::test(start_paused = true)]
async fn leader_with_forbidden_updates_reads_once_per_period() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    advance_seconds(1).await;
    candidate.faults.add(Fault::Reject(403), writes_leases);
    let before = contest.requests().len();
    advance_seconds(8).await;
    // Tries start after 2, 4, 6 and 8 seconds.
    assert_eq!(contest.requests()[before..], ["get 200"; 4]);
    assert!(candidate.leadership.is_leading());
    candidate.faults.clear();
    advance_seconds(2).await;
    assert_eq!(contest.requests()[before + 4..], ["get 200", "update 200"]);
    assert_eq!(candidate.leadership.failure(), None);
}

#[tokio::test(start_paused = true)]
async fn failing_election_is_logged_once_a_minute() {
    let (lines, _logged) = capture_log();
    let contest = Contest::new();
    let mut nowhere = config("a");
    nowhere.namespace = "nope".into();
    // Another test may have used the callsites for the first time while `capture_log` started.
    tracing::callsite::rebuild_interest_cache();
    let candidate = contest.start(nowhere);
    let found = |what: &str| -> Vec<String> {
        lines.text().lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
    };
    for n_warned in [1, 2] {
        advance_seconds(59).await;
        let warned = found("create the lease nope/podset: ");
        assert_eq!(warned.len(), n_warned, "{warned:?}");
        let (remedy, state) = ("--leader-election-namespace", "this replica cannot lead until this works again");
        assert!(warned.iter().all(|line| line.contains("WARN") && line.contains(remedy) && line.contains(state)));
    }
    assert_eq!(found("leader election works again"), [""; 0]);
    tracing::callsite::rebuild_interest_cache();
    let namespace: Namespace = kctl::from_json(json!({ "metadata": { "name": "nope" } })).unwrap();
    Api::all(contest.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    advance_seconds(5).await;
    assert!(candidate.leadership.is_leading());
    assert_eq!(found("leader election works again").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn outage_within_renew_deadline_keeps_lease() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    advance_seconds(1).await;
    for fault in [Fault::Break, Fault::Reject(500), Fault::LoseResponse] {
        candidate.faults.add(fault, about_leases);
        advance_seconds(9).await;
        assert!(candidate.leadership.failure().is_some(), "{fault:?}");
        assert!(candidate.leadership.is_leading(), "{fault:?}");
        candidate.faults.clear();
        advance_seconds(5).await;
        assert_eq!(candidate.leadership.failure(), None);
    }
    assert_eq!(contest.lease_state().await, ("a".into(), 15, 0));
}

#[tokio::test(start_paused = true)]
async fn leader_that_misses_the_renew_deadline_has_lost() {
    for fault in [Fault::Break, Fault::Reject(403), Fault::Delay(Duration::from_secs(60))] {
        let contest = Contest::new();
        let candidate = contest.start(config("a"));
        advance_seconds(1).await;
        let begun = Instant::now();
        candidate.faults.add(fault, about_leases);
        let end = candidate.running.await.unwrap();
        let End::Lost(cause) = &end else { panic!("{fault:?}: {end:?}") };
        assert!(cause.starts_with("the lease default/podset was not renewed within 10s: "), "{cause}");
        assert!(cause.contains("default/podset"), "{cause}");
        // The next renewal was due a second later, with a deadline of 10 s.
        assert_eq!(begun.elapsed().as_secs(), 11, "{fault:?}");
        assert_eq!(candidate.leadership.state(), ElectionState::Over(end));
        assert!(!candidate.leadership.is_leading() && !candidate.leadership.wait_until_leading().await);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_lease_names_the_last_rejection() {
    for retry_after in [1, 5, 100] {
        let contest = Contest::new();
        let candidate = contest.start(config("a"));
        advance_seconds(1).await;
        candidate.faults.add(Fault::RejectFor(429, retry_after), about_leases);
        let End::Lost(cause) = candidate.running.await.unwrap() else { panic!("it can't renew the Lease") };
        assert!(cause.contains(": get the lease default/podset: "), "{cause}");
        assert!(!cause.contains("no response"), "{cause}");
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_read_is_not_called_a_renewal() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    candidate.faults.add(Fault::Delay(Duration::from_secs(60)), about_leases);
    advance_seconds(6).await;
    let expected = "get the lease default/podset: no response from the API server: nothing within 5s";
    assert_eq!(candidate.leadership.failure().as_deref(), Some(expected));
}

#[tokio::test(start_paused = true)]
async fn leader_that_sees_another_holder_stops_at_once() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    advance_seconds(1).await;
    contest.change(json!({ "spec": { "holderIdentity": "b" } })).await;
    let begun = Instant::now();
    let end = candidate.running.await.unwrap();
    assert_eq!(end, End::Lost("the lease default/podset is held by b".into()));
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(contest.lease_state().await.0, "b");
}

#[tokio::test(start_paused = true)]
async fn deleted_lease_remains_with_its_leader() {
    let contest = Contest::new();
    let (leader, standby) = (contest.start(config("a")), contest.start(config("b")));
    // Deletions are shifted relative to the tries, so the standby is often the first to see that the Lease is gone.
    for n in 0..20 {
        tokio::time::sleep(Duration::from_millis(1_000 + n * 170)).await;
        contest.leases().delete("podset", &DeleteParams::default()).await.unwrap();
        advance_seconds(3).await;
        assert_eq!(contest.lease_state().await, ("a".into(), 15, 0));
        assert_eq!((leader.leadership.is_leading(), standby.leadership.is_leading()), (true, false));
    }
    leader.running.abort();
    contest.leases().delete("podset", &DeleteParams::default()).await.unwrap();
    advance_seconds(14).await;
    assert!(!standby.leadership.is_leading(), "the leader's time is not over");
    // The standby notices the deletion within 4.4 s, and acquires the Lease up to 4.4 s after it expired.
    advance_seconds(11).await;
    assert!(standby.leadership.is_leading());
}

#[tokio::test(start_paused = true)]
async fn stopping_leader_releases_the_lease() {
    let contest = Contest::new();
    let (first, second) = (contest.start(config("a")), contest.start(config("b")));
    advance_seconds(5).await;
    assert_eq!((first.leadership.is_leading(), second.leadership.is_leading()), (true, false));
    let begun = Instant::now();
    assert_eq!(first.stop(true).await, End::Released);
    assert!(second.leadership.wait_until_leading().await);
    assert!(begun.elapsed() < Duration::from_millis(100), "the watch tells it, not its next try");
    assert_eq!(contest.lease_state().await, ("b".into(), 15, 1));
    assert_eq!(second.stop(true).await, End::Released);
    assert_eq!(contest.lease_state().await, (String::new(), 1, 1));
}

#[tokio::test(start_paused = true)]
async fn without_watch_permission_a_released_lease_is_polled() {
    let contest = Contest::new();
    let (first, second) = (contest.start(config("a")), contest.start(config("b")));
    second.faults.add(Fault::Reject(403), |request| request.reads("leases"));
    second.faults.cut_watches();
    advance_seconds(5).await;
    assert_eq!(first.stop(true).await, End::Released);
    let begun = Instant::now();
    assert!(second.leadership.wait_until_leading().await);
    assert!(begun.elapsed() < Duration::from_millis(4_401), "a try comes after 2 s to 4.4 s");
}

#[tokio::test(start_paused = true)]
async fn lease_is_handed_back_again_after_a_conflict() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    advance_seconds(1).await;
    candidate.faults.add(Fault::Reject(409), writes_leases);
    let faults = candidate.faults.clone();
    let (end, ()) = tokio::join!(candidate.stop(true), async {
        advance_seconds(1).await;
        faults.clear();
    });
    assert_eq!(end, End::Released);
    assert_eq!(contest.lease_state().await.0, "");
}

#[tokio::test(start_paused = true)]
async fn lease_release_gives_up_after_renew_deadline() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    advance_seconds(1).await;
    candidate.faults.add(Fault::Break, about_leases);
    let begun = Instant::now();
    assert_eq!(candidate.stop(true).await, End::Stopped);
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert_eq!(contest.lease_state().await.0, "a");
}

#[tokio::test(start_paused = true)]
async fn lease_of_another_holder_is_not_released() {
    let contest = Contest::new();
    let candidate = contest.start(config("a"));
    advance_seconds(1).await;
    contest.change(json!({ "spec": { "holderIdentity": "b" } })).await;
    assert_eq!(candidate.stop(true).await, End::Stopped);
    assert_eq!(contest.lease_state().await, ("b".into(), 15, 0));
}

#[tokio::test(start_paused = true)]
async fn disabled_release_or_uncertain_write_keeps_lease() {
    for (release_on_stop, release) in [(false, true), (true, false)] {
        let contest = Contest::new();
        let mut config = config("a");
        config.release_on_stop = release_on_stop;
        let candidate = contest.start(config);
        advance_seconds(1).await;
        assert_eq!(candidate.stop(release).await, End::Stopped);
        assert_eq!(contest.lease_state().await.0, "a");
    }
}

#[test]
fn invalid_election_durations_and_names_are_rejected() {
    let times = |lease, renew, retry| {
        let mut config = config("a");
        config.lease_duration = Duration::from_millis(lease);
        config.renew_deadline = Duration::from_millis(renew);
        config.retry_period = Duration::from_millis(retry);
        config.check().map_err(|error| error.to_string())
    };
    let no = |text: &str| Err(format!("leader election: {text}"));
    assert_eq!(times(15_000, 10_000, 2_000), Ok(()));
    assert_eq!(times(11_000, 10_000, 8_333), Ok(()));
    let renew = "--leader-elect-renew-deadline";
    let lease = format!("--leader-elect-lease-duration (10s) has to be longer than {renew} (10s)");
    assert_eq!(times(10_000, 10_000, 2_000), no(&lease));
    let period = format!("{renew} (12s) has to be longer than 1.2 times --leader-elect-retry-period (12s)");
    assert_eq!(times(15_000, 12_000, 10_000), no(&period));
    let whole = "--leader-elect-lease-duration (15.5s) has to be whole seconds, at least one";
    assert_eq!(times(15_500, 10_000, 2_000), no(whole));
    assert_eq!(times(15_000, 10_000, 0), no("--leader-elect-retry-period has to be longer than zero"));
    let longest = u64::from(i32::MAX.unsigned_abs()) * 1000;
    assert_eq!(times(longest, 10_000, 2_000), Ok(()));
    let long = "--leader-elect-lease-duration (2147483648s) has to be at most 2147483647s";
    assert_eq!(times(longest + 1000, 10_000, 2_000), no(long));
    let mut endless = config("a");
    endless.retry_period = Duration::MAX;
    assert!(matches!(endless.check(), Err(ElectionError::Order { .. })), "and it does not panic");
    for (name, namespace, identity) in [("", "b", "c"), ("a", "", "c"), ("a", "b", ""), (&"a".repeat(254), "b", "c")] {
        let rejected = ElectionConfig::new(name, namespace, identity).check();
        assert!(matches!(rejected, Err(ElectionError::Name { .. })), "{rejected:?}");
    }
    let cases =
        [("A B", "b", "name", "id"), ("a", "A B", "namespace", "namespace"), ("a", "b.c", "namespace", "namespace")];
    for (name, namespace, field, flag) in cases {
        let error = ElectionConfig::new(name, namespace, "Host_1 c").check().unwrap_err().to_string();
        assert!(error.starts_with(&format!("leader election: the {field} of the lease cannot be `")), "{error}");
        assert!(error.ends_with(&format!("set `--leader-election-{flag}`")), "{error}");
    }
    assert_eq!(ElectionConfig::new("podset.example.com", "b", "Host_1 c").check(), Ok(()));
}

#[test]
fn end_is_reported_once_also_without_leadership() {
    let (now, wall) = (Instant::now(), kctl::k8s::jiff::Timestamp::UNIX_EPOCH);
    let mut election = Election::new(Arc::new(config("a")), now);
    assert_eq!(election.handle(Input::Stop { release: true }, now, wall), [Effect::Ended(End::Stopped)]);
    assert_eq!(election.handle(Input::Stop { release: true }, now, wall), []);
    assert_eq!(election.handle(Input::WaitEnded, now, wall), []);
}

/// A process that joins a Lease with equal times takes it for new.
#[test]
fn leader_recreates_deleted_lease_with_its_acquire_time() {
    let (start, wall) = (Instant::now(), kctl::k8s::jiff::Timestamp::UNIX_EPOCH);
    let (later, later_wall) = (start + Duration::from_secs(2), kctl::k8s::jiff::Timestamp::from_second(2).unwrap());
    let created = |election: &Election| -> Json {
        let Step::Send(LeaseRequest::Create(lease), _) = election.step() else { panic!("{:?}", election.step()) };
        lease.clone()
    };
    let mut election = Election::new(Arc::new(config("a")), start);
    election.handle(Input::Absent, start, wall);
    let first = created(&election);
    assert_eq!(first["spec"]["acquireTime"], first["spec"]["renewTime"]);
    election.handle(Input::Written(first.clone()), start, wall);
    election.handle(Input::WaitEnded, later, later_wall);
    let gone = ApiError::rejected("update Lease default/podset", 404, None, "{}");
    election.handle(Input::Failed(gone), later, later_wall);
    assert!(matches!(election.step(), Step::Send(LeaseRequest::Get, _)), "{:?}", election.step());
    election.handle(Input::Absent, later, later_wall);
    let again = created(&election);
    assert_eq!(again["spec"]["holderIdentity"], "a");
    for kept in ["acquireTime", "leaseTransitions"] {
        assert_eq!(again["spec"][kept], first["spec"][kept], "{kept}");
    }
    assert_ne!(again["spec"]["renewTime"], first["spec"]["renewTime"]);
}

#[test]
fn new_leader_is_reported_once_per_change() {
    let (now, wall) = (Instant::now(), kctl::k8s::jiff::Timestamp::UNIX_EPOCH);
    let mut election = Election::new(Arc::new(config("a")), now);
    let holder = |name: &str, transitions: u32| {
        Input::Read(json!({ "spec": {
            "holderIdentity": name, "leaseDurationSeconds": 15, "leaseTransitions": transitions,
        }}))
    };
    assert_eq!(election.handle(holder("b", 0), now, wall), [Effect::Holder("b".into())]);
    assert_eq!(election.handle(holder("b", 0), now, wall), []);
    assert_eq!(election.handle(holder("b", 1), now, wall), [], "the same holder again");
    assert_eq!(election.handle(holder("c", 2), now, wall), [Effect::Holder("c".into())]);
    assert_eq!(election.handle(holder("", 2), now, wall), [Effect::Holder(String::new())]);
    let failed = ApiError::no_response("update", "gone");
    assert_eq!(election.handle(Input::Failed(failed), now, wall), []);
    assert_eq!(election.failure(), Some("update: no response from the API server: gone"));
}

#[tokio::test(start_paused = true)]
async fn hanging_leader_is_unhealthy_and_candidate_always_healthy() {
    let contest = Contest::new();
    let (leader, standby) = (contest.start(config("a")), contest.start(config("b")));
    let tolerance = Duration::from_secs(20);
    advance_seconds(1).await;
    // Neither candidate is polled any more, as on a blocked thread.
    leader.running.abort();
    standby.running.abort();
    // The last renewal was in the first second, and was valid for 15 s.
    advance_seconds(33).await;
    assert_eq!(leader.leadership.check(tolerance), Ok(()));
    advance_seconds(3).await;
    assert_eq!(leader.leadership.check(tolerance), Err("the lease ran out 22 s ago and was not renewed".into()));
    assert_eq!(standby.leadership.check(tolerance), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn lease_gets_its_labels_on_creation_and_renewal() {
    let labelled = || {
        let mut config = config("a");
        config.labels.insert("app".into(), "podset".into());
        config
    };
    for exists in [false, true] {
        let contest = Contest::new();
        if exists {
            contest.create(json!({ "leaseDurationSeconds": 1 })).await;
        }
        let candidate = contest.start(labelled());
        assert!(candidate.leadership.wait_until_leading().await);
        assert_eq!(contest.lease().await.metadata.labels.unwrap_or_default()["app"], "podset", "exists: {exists}");
        contest.change(json!({ "metadata": { "labels": { "app": null, "mine": "1" } } })).await;
        advance_seconds(3).await;
        let labels = contest.lease().await.metadata.labels.unwrap_or_default();
        assert_eq!((labels["app"].as_str(), labels["mine"].as_str()), ("podset", "1"));
    }
}

#[tokio::test(start_paused = true)]
async fn candidates_of_one_lease_never_lead_together() {
    let contest = Contest::new();
    let candidates: Vec<_> = (0..5)
        .map(|n| {
            let mut config = config(&format!("candidate-{n}"));
            config.seed = n;
            contest.start(config)
        })
        .collect();
    let mut led = std::collections::BTreeSet::new();
    for second in 0..600 {
        let leading: Vec<_> = candidates.iter().filter(|candidate| candidate.leadership.is_leading()).collect();
        assert!(leading.len() <= 1, "{} lead in second {second}", leading.len());
        if let Some(leader) = leading.first() {
            led.insert(leader.leadership.holder());
            if second % 60 == 30 {
                leader.faults.add(Fault::Break, about_leases);
            }
        }
        advance_seconds(1).await;
    }
    assert_eq!(led.len(), 5, "each has led and was cut off: {led:?}");
}

/// The request that acquires the Lease is in flight when the candidate is stopped.
#[tokio::test(start_paused = true)]
async fn candidate_stopped_while_it_acquires_leaves_no_holder() {
    for fault in [Fault::Delay(Duration::from_secs(1)), Fault::DelayResponse(Duration::from_secs(1))] {
        let contest = Contest::new();
        let candidate = contest.start(config("a"));
        candidate.faults.add(fault, writes_leases);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(candidate.stop(true).await, End::Released);
        advance_seconds(5).await;
        assert_eq!(contest.lease_state().await.0, "", "nothing would work under it until it expires");
    }
}
