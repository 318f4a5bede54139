//! Tests the checkers with the events of short runs.

use kctl_runtime::shard::{ShardBy, Slots};
use serde_json::json;

use super::*;

const NOW: Duration = Duration::from_secs(1);
type End = fn(&mut Checks, &ObjectKey);

fn checks() -> Checks {
    let plural = |group: &str, resource: &str| (String::new(), group.to_owned(), resource.to_owned());
    let mut ownership = Ownership::from_specs(&[]);
    ownership.primaries = [plural("apps.example.com", "podsets")].into();
    ownership.owned = [plural("", "pods")].into();
    Checks::new(Vec::new(), ownership)
}

fn change(by: &str, resource: &str, group: &str, before: Option<Value>, after: Option<Value>) -> Change {
    let mut change = Change::default();
    (change.by, change.revision) = (by.into(), 7);
    (change.group, change.resource) = (group.to_owned(), resource.to_owned());
    (change.namespace, change.name) = ("default".to_owned(), "web".to_owned());
    (change.before, change.after) = (before.map(Arc::new), after.map(Arc::new));
    change
}

fn pod(owner: Option<&str>) -> Value {
    let references = owner.map(|uid| json!([{ "kind": "PodSet", "name": "web", "uid": uid }]));
    json!({ "metadata": { "name": "web", "uid": "p", "ownerReferences": references } })
}

fn end(checks: &mut Checks, key: &ObjectKey) {
    assert!(checks.authors.end("app-0.1", "podset", key), "no other process has begun it");
}

#[test]
fn overlapping_reconciles_of_a_key_are_found() {
    let key = ObjectKey::new(Some("default"), "web");
    let cases: [(&str, End, bool); 4] = [
        ("nothing", |_, _| {}, true),
        ("the reconcile of another key ended", |checks, _| end(checks, &ObjectKey::new(None, "web")), true),
        ("it ended", end, false),
        ("its process ended", |checks, _| checks.authors.process_ended("app-0.1"), false),
    ];
    for (meanwhile, end, is_found) in cases {
        let mut checks = checks();
        checks.begin("app-0.1", "podset", &key, "", NOW);
        end(&mut checks, &key);
        checks.begin("app-1.1", "podset", &key, "", NOW);
        let found = checks.found.map(|found| found.checker);
        assert_eq!(found.as_deref(), is_found.then_some("a key never runs twice at once"), "{meanwhile}");
    }
}

#[test]
fn writes_on_owned_kinds_need_an_owner_uid() {
    let set = json!({ "metadata": { "name": "web", "uid": "s" } });
    let cases = [
        ("app-0.1", None, Some(pod(Some("s"))), false),
        ("app-0.1", None, Some(pod(Some("another"))), true),
        ("app-0.1", None, Some(pod(None)), true),
        ("app-0.1", Some(pod(Some("s"))), Some(pod(None)), false),
        ("app-0.1", Some(pod(None)), None, true),
        ("kubelet", Some(pod(None)), None, false),
    ];
    for (by, before, after, is_found) in cases {
        let text = format!("{by}: {before:?} to {after:?}");
        let mut checks = checks();
        checks.change("", &change("user", "podsets", "apps.example.com", None, Some(set.clone())), NOW);
        checks.change("", &change(by, "pods", "", before, after), NOW);
        let found = checks.found.map(|found| found.checker);
        let expected = is_found.then_some("no write on objects that are not owned");
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}

#[test]
fn only_collected_objects_may_be_created_again() {
    for (by, is_found) in [("", false), ("user", true)] {
        let mut checks = checks();
        checks.changes_max = 3;
        checks.change("", &change("user", "podsets", "apps.example.com", None, Some(pod(None))), NOW);
        for round in 0..10 {
            let now = NOW * round;
            checks.change("", &change("app-0.1", "secrets", "", None, Some(pod(None))), now);
            checks.change("", &change(by, "secrets", "", Some(pod(None)), None), now);
        }
        let found = checks.found.map(|found| found.checker);
        assert_eq!(found.as_deref(), is_found.then_some("no hot loop"), "deleted by {by:?}");
    }
}

#[test]
fn object_changed_in_turn_names_both_authors() {
    let mut checks = checks();
    let key = ObjectKey::new(Some("default"), "web");
    for name in ["one", "two"] {
        checks.begin("app-0.1", name, &key, name, NOW);
    }
    for n in 0..=CHANGES_OF_OBJECT_MAX {
        assert_eq!(checks.found, None, "after {n} changes");
        let mut change = change("app-0.1", "secrets", "", Some(pod(None)), Some(pod(None)));
        change.trace = if n % 2 == 0 { "one".into() } else { "two".into() };
        checks.change("", &change, NOW);
    }
    let message = checks.found.unwrap().message;
    let expected = "200 changes of secrets default/web at one moment: app-0.1, one default/web and app-0.1, two default/web \
                    change it in turn";
    assert_eq!(message, expected);
}

#[test]
fn many_objects_may_change_at_one_moment() {
    let mut checks = checks();
    for n in 0..=CHANGES_AT_ONCE_MAX {
        assert_eq!(checks.found, None, "after {n} changes");
        let mut change = change("app-0.1", "secrets", "", None, Some(pod(None)));
        change.name = n.to_string();
        checks.change("", &change, NOW);
    }
    assert!(checks.found.unwrap().message.starts_with("5000 changes at one moment, the last one of secrets "));
}

fn written(by: &str, resource: &str, after: Value) -> Change {
    let mut change = change(by, resource, "", None, Some(after));
    change.revision = 1;
    change
}

/// An event, and the number of the process.
type Steps<'a> = &'a [(&'a str, &'a str)];

fn lease(by: &str, name: &str, holder: &str) -> Change {
    let mut lease = written(by, "leases", json!({ "spec": { "holderIdentity": holder } }));
    (lease.group, lease.name) = (COORDINATION.into(), name.into());
    lease
}

/// Returns the finding when these processes of the app `web` acquire the Lease, or write, in this order.
fn found(steps: Steps<'_>) -> Option<String> {
    let mut checks = Checks::new(Vec::new(), Ownership::from_specs(&[]));
    (checks.owners, checks.elects) = (Owners::new("web", None), true);
    for (what, number) in steps {
        let (by, holder) = (format!("app-{number}"), format!("web-site-{number}"));
        match *what {
            "leads" => checks.change("", &lease(&by, "web", &holder), NOW),
            "deletes" => {
                let mut deleted = lease(&by, "web", &holder);
                deleted.before = deleted.after.take();
                checks.change("", &deleted, NOW);
            }
            "releases" => checks.change("", &lease(&by, "web", ""), NOW),
            "takes a lock" => checks.change("", &lease(&by, "web-lock", &holder), NOW),
            "takes a locker" => {
                let mut locker = lease(&by, "web", &holder);
                locker.group = "gym.example.com".into();
                checks.change("", &locker, NOW);
            }
            resource => {
                checks.authors.begin(&by, "labels", &ObjectKey::new(None, "a"), "t1");
                let mut written = request(&by, "patch", 200, "t1");
                written.resource = resource.into();
                checks.check_request("", &written, NOW);
            }
        }
    }
    checks.found.map(|found| found.message)
}

#[test]
fn only_the_replica_that_holds_the_lease_writes() {
    let (a, again, b) = ("0.1", "0.2", "1.1");
    let write = |by: &str| format!("app-{by}, labels a: patch configmaps default/a although the lease is held by ");
    let late = |by: &str, leader: &str| Some(write(by) + &format!("{leader:?}"));
    let nobody = |by: &str| Some(write(by) + "nobody");
    let cases: [(Steps<'_>, Option<String>); 13] = [
        (&[("configmaps", a)], nobody(a)),
        (&[("configmaps", a), ("leads", a)], nobody(a)),
        (&[("leads", a), ("deletes", b), ("configmaps", a)], None),
        (&[("leads", a), ("deletes", b), ("configmaps", b)], late(b, a)),
        (&[("leads", a), ("configmaps", a), ("leads", b), ("configmaps", b)], None),
        (&[("leads", a), ("leads", b), ("configmaps", a)], late(a, b)),
        (&[("leads", a), ("leads", again), ("configmaps", a)], late(a, again)),
        (&[("leads", a), ("releases", a), ("configmaps", a)], nobody(a)),
        (&[("leads", a), ("leads", b), ("events", a)], None),
        (&[("leads", b), ("configmaps", a)], late(a, b)),
        (&[("leads", a), ("takes a lock", b), ("configmaps", a)], None),
        (&[("leads", a), ("leads", b), ("takes a lock", a), ("configmaps", a)], late(a, b)),
        (&[("leads", a), ("takes a locker", b), ("configmaps", a)], None),
    ];
    for (steps, expected) in cases {
        assert_eq!(found(steps), expected, "{steps:?}");
    }
}

#[test]
fn single_replica_writes_without_a_lease() {
    let mut checks = Checks::new(Vec::new(), Ownership::from_specs(&[]));
    checks.check_request("", &request("app-0.1", "patch", 200, ""), NOW);
    assert_eq!(checks.found, None);
}

#[test]
fn kinds_of_leases_and_events_get_no_faults() {
    let cases = [
        ("coordination.k8s.io", "leases", true),
        ("", "events", true),
        ("events.k8s.io", "events", true),
        ("gym.example.com", "leases", false),
        ("fair.example.com", "events", false),
        ("", "pods", false),
    ];
    for (group, resource, expected) in cases {
        assert_eq!(is_bookkeeping(group, resource), expected, "{resource}.{group}");
    }
}

#[test]
fn writes_of_primaries_without_trace_are_judged() {
    for (by, group, resource, is_found) in [
        ("app-0.1", "apps.example.com", "podsets/status", false),
        ("app-1.1", "apps.example.com", "podsets/status", true),
        ("app-1.1", "apps.example.com", "podsets", true),
        ("app-1.1", "", "pods", false),
    ] {
        let mut checks = checks();
        checks.owners = Owners::new("web", Some(Slots::new(1, ShardBy::Object)));
        checks.change("", &lease("app-0.1", "web-slot-0", "web-0.1"), NOW);
        let mut written = request(by, "patch", 200, "");
        (written.group, written.resource) = (group.into(), resource.into());
        checks.check_request("", &written, NOW);
        let found = checks.found.map(|found| found.checker);
        assert_eq!(found.as_deref(), is_found.then_some("only the owner writes"), "{by}: {resource}");
    }
}

#[test]
fn invariant_is_checked_after_changes_of_leases() {
    let no_lease =
        |snapshot: &Snapshot| snapshot.json(COORDINATION, "leases").next().map_or(Ok(()), |_| Err("held".into()));
    let invariant = Invariant { name: "no Lease".into(), holds: Arc::new(no_lease) };
    let mut checks = Checks::new(vec![invariant], Ownership::from_specs(&[]));
    checks.owners = Owners::new("web", None);
    checks.change("", &lease("app-0.1", "web", "web-0.1"), NOW);
    assert_eq!(checks.found, Some(Violation::new("no Lease", "held")));
    assert_eq!(checks.n_changes, 0, "a renewal does not keep the state from settling");
    checks.change("", &lease("app-0.1", "web-lock", "web-0.1"), NOW);
    assert_eq!(checks.n_changes, 1, "a Lease that a controller owns is a part of the state");
}

fn request(by: &str, verb: &'static str, code: u16, trace: &str) -> RequestRecord {
    let mut record = RequestRecord::default();
    record.client = Some(by.into());
    (record.verb, record.code) = (verb, code);
    record.resource = "configmaps".into();
    record.namespace = "default".into();
    record.name = "a".into();
    record.trace = trace.into();
    record
}

#[test]
fn many_requests_are_hot_unless_changes_allow_them() {
    // One more than the bound at once, and 30 for each change.
    let enough_changes = REQUESTS_MAX / REQUESTS_PER_CHANGE;
    for (n_changes, is_found) in [(enough_changes, false), (10, true)] {
        let mut checks = Checks::new(Vec::new(), Ownership::from_specs(&[]));
        (checks.n_requests, checks.n_changes) = (REQUESTS_MAX, n_changes);
        checks.check_request("", &request("app-0.1", "get", 200, ""), NOW);
        let message = checks.found.map(|found| found.message);
        assert_eq!(message.is_some(), is_found, "{n_changes} changes: {message:?}");
        let expected =
            "20001 requests for 10 changes of the state: more than 30 for each (`.requests_per_change(n)` sets";
        assert!(message.is_none_or(|message| message.starts_with(expected)));
    }
}

#[test]
fn each_write_in_the_final_state_is_needless() {
    let mut checks = Checks::new(Vec::new(), Ownership::from_specs(&[]));
    let key = |name: &str| ObjectKey::new(Some("default"), name);
    checks.begin("app-0.1", "labels", &key("a"), "t1", NOW);
    checks.begin("app-0.1", "labels", &key("b"), "t2", NOW);
    checks.check_request("", &request("app-0.1", "patch", 200, "t1"), NOW);
    checks.needless = Some(NeedlessWrites::default());
    for (verb, code) in [("get", 200), ("watch", 200), ("patch", 409)] {
        checks.check_request("", &request("app-0.1", verb, code, "t1"), NOW);
    }
    let mut dry_run = request("app-0.1", "delete", 200, "t1");
    dry_run.dry_run = true;
    checks.check_request("", &dry_run, NOW);
    let none = checks.needless.as_ref().map(|needless| needless.n_writes);
    assert_eq!(none, Some(0));
    checks.check_request("", &request("app-0.1", "patch", 200, "t1"), NOW);
    checks.change("edge", &written("app-0.1", "configmaps", json!({ "metadata": { "uid": "1" } })), NOW);
    checks.check_request("edge", &request("app-0.1", "update", 200, ""), NOW);
    checks.check_request("", &request("app-1.1", "create", 201, ""), NOW);
    checks.check_request("", &request("app-1.1", "create", 201, ""), NOW);
    let NeedlessWrites { n_writes, first, .. } = checks.needless.unwrap();
    let expected = [
        "app-0.1, labels default/a: patch configmaps default/a, which changes nothing",
        "app-0.1, one of labels default/a, labels default/b: update configmaps default/a on edge",
        "app-1.1, outside of a reconcile: create configmaps default/a, which changes nothing",
    ];
    assert_eq!((n_writes, first), (4, expected.map(str::to_owned).to_vec()));
}

#[test]
fn rejected_write_of_an_idle_app_is_needless() {
    let cases = [
        ("patch", 422, FailingKeys::Found, true),
        ("create", 403, FailingKeys::Found, true),
        ("patch", 422, FailingKeys::Allowed, false),
        ("get", 403, FailingKeys::Found, false),
        ("delete", 404, FailingKeys::Found, false),
        ("patch", 409, FailingKeys::Found, false),
        ("patch", 429, FailingKeys::Found, false),
        ("patch", 500, FailingKeys::Found, false),
    ];
    for (verb, code, failing_keys, is_counted) in cases {
        let mut checks = Checks::new(Vec::new(), Ownership::from_specs(&[]));
        checks.needless = Some(NeedlessWrites { failing_keys, ..NeedlessWrites::default() });
        checks.check_request("", &request("app-0.1", verb, code, ""), NOW);
        let what = format!("app-0.1, outside of a reconcile: {verb} configmaps default/a, answered {code}");
        let expected = if is_counted { vec![what] } else { Vec::new() };
        assert_eq!(checks.needless.unwrap().first, expected, "{verb} {code}");
    }
}

#[test]
fn owner_reference_across_clusters_is_a_violation() {
    let set = json!({ "metadata": { "name": "web", "uid": "s" } });
    for (cluster, is_found) in [("", false), ("edge", true)] {
        let mut checks = checks();
        let pods = (cluster.to_owned(), String::new(), "pods".to_owned());
        checks.ownership.owned = [pods].into();
        checks.change("", &change("user", "podsets", "apps.example.com", None, Some(set.clone())), NOW);
        checks.change(cluster, &change("app-0.1", "pods", "", None, Some(pod(Some("s")))), NOW);
        assert_eq!(checks.found.is_some(), is_found, "on {cluster:?}: {:?}", checks.found);
    }
}
