//! Tests of the rules of the cache, one delta at a time.

use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::object::Kind;

pub(super) fn pod(name: &str, uid: &str, version: u64) -> Arc<Stored> {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"a","uid":"{uid}","resourceVersion":"{version}",
        "ownerReferences":[{{"apiVersion":"v1","kind":"Set","name":"s","uid":"owner","controller":true}}]}}}}"#
    );
    Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
}

/// Applies deltas, and compares the changes, printed as `+name@version`, `~name@version` or
/// `-name@version`, with `expected`.
pub(super) fn check(deltas: Vec<Delta>, expected: &str) -> Cache {
    let mut cache = Cache::default();
    let mut seen = Vec::new();
    for delta in deltas {
        for change in cache.apply(delta) {
            seen.push(match change {
                Change::Added(new) => format!("+{}@{}", new.meta().name(), new.meta().resource_version),
                Change::Updated { new, .. } => format!("~{}@{}", new.meta().name(), new.meta().resource_version),
                Change::Deleted { last } => format!("-{}@{}", last.meta().name(), last.meta().resource_version),
            });
        }
    }
    assert_eq!(seen.join(" "), expected);
    assert_eq!(cache.n_bytes, cache.all().map(|object| object.n_bytes()).sum::<usize>());
    cache
}

pub(super) fn list(objects: &[Arc<Stored>], version: &str) -> Delta {
    Delta::Replace(None, objects.to_vec(), version.into())
}

#[test]
fn older_events_do_not_undo_own_writes() {
    let cache = check(
        vec![
            list(&[pod("x", "1", 5)], "5"),
            Delta::Written(pod("x", "1", 9)),
            Delta::Apply(pod("x", "1", 7)),
            Delta::Apply(pod("x", "1", 9)),
        ],
        "+x@5 ~x@9",
    );
    assert_eq!(cache.owned_by(&"owner".into()).len(), 1);
}

#[test]
fn older_events_do_not_undo_own_deletes() {
    let key = pod("x", "1", 5).key().clone();
    let cache = check(
        vec![
            list(&[pod("x", "1", 5)], "5"),
            Delta::Gone(key, "1".into()),
            Delta::Apply(pod("x", "1", 6)),
            Delta::Delete(pod("x", "1", 8)),
            Delta::Apply(pod("x", "2", 9)),
        ],
        "+x@5 -x@5 +x@9",
    );
    assert_eq!(cache.n_tombstones(), 0);
}

#[test]
fn object_missing_from_a_relist_is_deleted() {
    check(vec![list(&[pod("x", "1", 5), pod("y", "2", 4)], "5"), list(&[pod("y", "2", 4)], "9")], "+x@5 +y@4 -x@5");
}

#[test]
fn list_of_one_namespace_visits_its_objects_alone() {
    let object = |namespace: &str, name: &str| {
        let meta =
            format!(r#"{{"name":"{name}","namespace":"{namespace}","uid":"{namespace}","resourceVersion":"5"}}"#);
        Arc::new(Stored::accept(&Kind::of::<Pod>(), &format!(r#"{{"metadata":{meta}}}"#)).unwrap())
    };
    let mut cache = Cache::default();
    let objects = [("a", "x"), ("b", "x"), ("b", "y"), ("bb", "x"), ("c", "x")].map(|(ns, name)| object(ns, name));
    cache.apply(list(&objects, "5"));
    let visited =
        |scope: NamespaceScope| cache.iter_listable(&scope).map(|object| object.key().to_string()).collect::<Vec<_>>();
    assert_eq!(visited(Some("b".into())), ["b/x", "b/y"]);
    assert_eq!(visited(None).len(), 5);
}

#[test]
fn relist_deletes_in_order_of_keys() {
    let names = ["i", "c", "g", "a", "h", "e", "b", "f", "d"];
    let pods: Vec<_> = names.iter().map(|name| pod(name, name, 5)).collect();
    let gone = "-a@5 -b@5 -c@5 -d@5 -e@5 -f@5 -g@5 -h@5 -i@5";
    let there = names.map(|name| format!("+{name}@5")).join(" ");
    check(vec![list(&pods, "5"), list(&[], "9")], &format!("{there} {gone}"));
}

#[test]
fn own_write_after_the_list_survives_the_relist() {
    check(vec![list(&[], "5"), Delta::Written(pod("x", "1", 12)), list(&[], "10")], "+x@12");
}

#[test]
fn older_delete_event_keeps_an_own_write() {
    // Another client removes the selected label at 6, and this process restores it at 7.
    let relabelled =
        vec![list(&[pod("x", "1", 5)], "5"), Delta::Written(pod("x", "1", 7)), Delta::Delete(pod("x", "1", 6))];
    check(relabelled, "+x@5 ~x@7");
}

#[test]
fn earlier_selector_exit_keeps_an_own_delete() {
    // The object leaves the selector at version 6 and returns at 7. This process deletes it at 8 without having seen
    // either event.
    let late = [Delta::Delete(pod("x", "1", 6)), Delta::Apply(pod("x", "1", 7)), Delta::Delete(pod("x", "1", 8))];
    let short = [list(&[pod("x", "1", 5)], "5"), Delta::Gone(pod("x", "1", 5).key().clone(), "1".into())];
    assert_eq!(check(short.into_iter().chain(late).collect(), "+x@5 -x@5").n_tombstones(), 0);
}

#[test]
fn own_delete_of_an_unreported_object_is_kept() {
    let short = [list(&[], "5"), Delta::Gone(pod("x", "1", 6).key().clone(), "1".into())];
    let late = [Delta::Apply(pod("x", "1", 6)), Delta::Delete(pod("x", "1", 7)), Delta::Apply(pod("x", "2", 8))];
    check(short.into_iter().chain(late).collect(), "+x@8");
}

#[test]
fn unreported_delete_ends_the_predecessor_too() {
    let short = [list(&[pod("x", "1", 5)], "5"), Delta::Gone(pod("x", "2", 7).key().clone(), "2".into())];
    let late = [list(&[pod("x", "2", 7)], "7"), Delta::Delete(pod("x", "2", 8))];
    check(short.into_iter().chain(late).collect(), "+x@5 -x@5");
}

#[test]
fn deletion_of_an_unseen_successor_ends_the_predecessor() {
    check(vec![list(&[pod("x", "1", 5)], "5"), Delta::Delete(pod("x", "2", 8))], "+x@5 -x@5");
    // An event from before the cached object proves nothing about it.
    check(vec![list(&[pod("x", "2", 8)], "8"), Delta::Delete(pod("x", "1", 7))], "+x@8");
}

#[test]
fn list_older_than_cache_completes_reopened_scope() {
    let begin = || vec![list(&[], "5"), Delta::Listing(None), Delta::Join(None, vec![pod("x", "1", 9)], "10".into())];
    let older = list(&[], "7");
    let cache = check([begin(), vec![Delta::Incomplete(None), older.clone()]].concat(), "+x@9");
    assert!(cache.is_complete() && !cache.blocks_writes(Some("a")) && cache.revision() == 10);
    for end in [Delta::Clear(None), Delta::Absent(None)] {
        let cache = check([begin(), vec![end, Delta::Incomplete(None), older.clone()]].concat(), "+x@9 -x@9");
        assert!(!cache.is_complete(), "the objects are gone, and the list has too few of them");
    }
}

#[test]
fn closed_scope_forgets_its_own_deletes() {
    let key = |name| ObjectKey::new(Some("a"), name);
    let mut cache = Cache::new([Some("a".into()), Some("b".into())]);
    let scope = || Some("a".into());
    for delta in [
        Delta::Replace(scope(), vec![pod("x", "1", 5)], "5".into()),
        Delta::Gone(key("x"), "1".into()),
        Delta::Close(Some("b".into())),
    ] {
        cache.apply(delta);
    }
    assert_eq!(cache.n_tombstones(), 1);
    cache.apply(Delta::Close(scope()));
    assert_eq!(cache.n_tombstones(), 0, "no watch will report them");
    cache.apply(Delta::Incomplete(scope()));
    let late = Delta::Replace(scope(), vec![pod("x", "1", 5)], "6".into());
    assert!(cache.apply(late).is_empty(), "a uid does not come back");
}

#[test]
fn list_older_than_the_object_keeps_its_tombstone() {
    let short = [Delta::Written(pod("x", "1", 7)), Delta::Gone(pod("x", "1", 7).key().clone(), "1".into())];
    let late = [list(&[], "6"), Delta::Apply(pod("x", "1", 7)), Delta::Delete(pod("x", "1", 8))];
    let cache = check([list(&[], "5")].into_iter().chain(short).chain(late).collect(), "+x@7 -x@7");
    assert_eq!(cache.n_tombstones(), 0);
}

#[test]
fn late_response_for_deleted_object_keeps_successor() {
    let short = [list(&[pod("x", "1", 5)], "5"), Delta::Gone(pod("x", "2", 7).key().clone(), "2".into())];
    let cache = check(
        short.into_iter().chain([Delta::Written(pod("x", "2", 7)), Delta::Apply(pod("x", "3", 9))]).collect(),
        "+x@5 -x@5 +x@9",
    );
    assert_eq!(cache.len(), 1);
}

#[test]
fn predecessor_of_a_deleted_object_does_not_return() {
    let short = [Delta::Written(pod("x", "2", 8)), Delta::Gone(pod("x", "2", 8).key().clone(), "2".into())];
    let late = [Delta::Apply(pod("x", "1", 6)), Delta::Delete(pod("x", "1", 7)), Delta::Apply(pod("x", "2", 8))];
    check([list(&[], "5")].into_iter().chain(short).chain(late).collect(), "+x@8 -x@8");
}

#[test]
fn tombstone_outside_the_selector_ends_with_the_watch() {
    let short = [Delta::Written(pod("x", "1", 7)), Delta::Gone(pod("x", "1", 7).key().clone(), "1".into())];
    let cache = check([list(&[], "5")].into_iter().chain(short).collect(), "+x@7 -x@7");
    assert_eq!(cache.n_tombstones(), 1);
    let short = [Delta::Written(pod("x", "1", 7)), Delta::Gone(pod("x", "1", 7).key().clone(), "1".into())];
    let passed = [list(&[], "5")].into_iter().chain(short).chain([Delta::Bookmark(None, "9".into())]);
    assert_eq!(check(passed.collect(), "+x@7 -x@7").n_tombstones(), 0);
}

#[test]
fn relist_older_than_what_was_seen_changes_nothing() {
    check(
        vec![
            list(&[pod("x", "1", 5)], "5"),
            Delta::Delete(pod("x", "1", 8)),
            list(&[pod("x", "1", 5)], "6"),
            Delta::Apply(pod("x", "1", 7)),
        ],
        "+x@5 -x@8",
    );
}

#[test]
fn recreated_object_is_a_delete_and_an_add() {
    check(vec![list(&[pod("x", "1", 5)], "5"), list(&[pod("x", "2", 8)], "9")], "+x@5 -x@5 +x@8");
}

#[test]
fn late_response_does_not_revive_a_deleted_object() {
    check(
        vec![
            list(&[], "5"),
            Delta::Apply(pod("x", "1", 6)),
            Delta::Delete(pod("x", "1", 7)),
            Delta::Written(pod("x", "1", 6)),
        ],
        "+x@6 -x@7",
    );
}

#[test]
fn own_write_passed_by_the_watch_leaves_cache() {
    let bookmark = |version: &str| Delta::Bookmark(None, version.into());
    let begin = || list(&[pod("y", "2", 4)], "5");
    check(vec![begin(), Delta::Written(pod("x", "1", 6)), bookmark("5")], "+y@4 +x@6");
    check(vec![begin(), Delta::Written(pod("x", "1", 6)), bookmark("6")], "+y@4 +x@6 -x@6");
    check(vec![begin(), Delta::Written(pod("x", "1", 6)), Delta::Apply(pod("y", "2", 7))], "+y@4 +x@6 ~y@7 -x@6");
    // An object that the watch has reported is kept, and so is a later write to it.
    check(vec![begin(), Delta::Written(pod("x", "1", 6)), Delta::Apply(pod("x", "1", 6)), bookmark("9")], "+y@4 +x@6");
    let twice = [Delta::Written(pod("x", "1", 6)), Delta::Written(pod("x", "1", 8)), bookmark("7")];
    check([vec![begin()], twice.into()].concat(), "+y@4 +x@6 ~x@8");
    // A list that contains the object counts as a report.
    let listed = list(&[pod("x", "1", 6), pod("y", "2", 4)], "7");
    check(vec![begin(), Delta::Written(pod("x", "1", 6)), listed, bookmark("9")], "+y@4 +x@6");
}

#[test]
fn dropped_own_write_hides_no_events_below_it() {
    let x = pod("x", "1", 105);
    let cache = check(
        vec![
            list(&[pod("x", "1", 90), pod("w", "2", 91)], "100"),
            Delta::Written(x.clone()),
            Delta::Written(pod("w", "2", 103)),
            Delta::Drop(x),
            Delta::Apply(pod("w", "2", 103)),
            Delta::Apply(pod("y", "3", 104)),
        ],
        "+x@90 +w@91 ~x@105 ~w@103 -x@105 +y@104",
    );
    assert_eq!(cache.revision(), 104, "the watch is not past the dropped version");
}

#[test]
fn object_is_dropped_in_its_newest_state() {
    let first = pod("x", "1", 5);
    let successor =
        vec![list(std::slice::from_ref(&first), "5"), Delta::Apply(pod("x", "2", 7)), Delta::Drop(first.clone())];
    check(successor, "+x@5 -x@5 +x@7");
    check(
        vec![list(std::slice::from_ref(&first), "5"), Delta::Apply(pod("x", "1", 7)), Delta::Drop(first)],
        "+x@5 ~x@7 -x@7",
    );
}

#[test]
fn empty_sets_leave_the_indexes() {
    let cache = check(vec![list(&[pod("x", "1", 5)], "5"), Delta::Delete(pod("x", "1", 8))], "+x@5 -x@8");
    assert!(cache.owners.is_empty() && cache.sorted.is_empty());
}

#[test]
fn bytes_count_the_present_objects() {
    let (x, y) = (pod("x", "1", 5), pod("y", "2", 4));
    let (n_x, n_y, n_newer) = (x.n_bytes(), y.n_bytes(), pod("x", "1", 12345).n_bytes());
    let steps = [
        (vec![list(&[x.clone(), y.clone()], "5")], n_x + n_y),
        (vec![Delta::Apply(pod("x", "1", 12345))], n_newer + n_y),
        (vec![Delta::Delete(pod("y", "2", 12346))], n_newer),
        (vec![Delta::Clear(None)], 0),
    ];
    let mut cache = Cache::default();
    for (deltas, expected) in steps {
        for delta in deltas {
            cache.apply(delta);
        }
        assert_eq!(cache.n_bytes(), expected);
    }
}

#[test]
fn objects_of_other_namespaces_are_ignored() {
    let mut cache = Cache::new([Some("b".into())]);
    for delta in [
        Delta::Written(pod("x", "1", 5)),
        Delta::Apply(pod("x", "1", 6)),
        Delta::Replace(Some("a".into()), vec![pod("x", "1", 6)], "6".into()),
        Delta::Delete(pod("x", "1", 7)),
    ] {
        assert!(cache.apply(delta).is_empty());
    }
    assert!(!cache.is_complete() && cache.revision() == 0);
}

#[test]
fn scope_takes_writes_only_while_complete() {
    let mut cache = Cache::new([Some("a".into())]);
    assert!(!cache.is_complete() && !cache.blocks_writes(Some("a")));
    let scope = || Some("a".into());
    let steps = [
        (Delta::Replace(scope(), vec![pod("x", "1", 5)], "5".into()), true, false),
        (Delta::Incomplete(scope()), false, true),
        (Delta::Replace(scope(), vec![pod("x", "1", 5)], "6".into()), true, false),
        (Delta::Clear(scope()), true, false),
        (Delta::Absent(scope()), true, true),
        (Delta::Replace(scope(), Vec::new(), "7".into()), true, false),
        (Delta::Close(scope()), true, true),
        (Delta::Incomplete(scope()), false, true),
        (Delta::Restore(scope(), Vec::new(), "2".into()), true, false),
    ];
    for (delta, complete, blocked) in steps {
        let text = format!("{delta:?}");
        cache.apply(delta);
        assert_eq!((cache.is_complete(), cache.blocks_writes(Some("a"))), (complete, blocked), "{text}");
        assert!(!cache.blocks_writes(Some("b")), "a namespace that is not followed is not blocked");
    }
}

#[test]
fn restored_state_replaces_whole_known_state() {
    let restore = |objects: &[Arc<Stored>], version: &str| Delta::Restore(None, objects.to_vec(), version.into());
    let begin = || list(&[pod("x", "1", 50), pod("y", "2", 60)], "70");
    let key = pod("y", "2", 60).key().clone();
    let cases = [
        (vec![begin(), restore(&[pod("x", "1", 50)], "55")], "+x@50 +y@60 -y@60"),
        (vec![begin(), restore(&[pod("x", "1", 40), pod("y", "2", 60)], "65")], "+x@50 +y@60 ~x@40"),
        (vec![begin(), restore(&[pod("x", "3", 40)], "45")], "+x@50 +y@60 -y@60 -x@50 +x@40"),
        // An own delete is undone, and an own write that no watch reported is removed.
        (
            vec![begin(), Delta::Gone(key, "2".into()), restore(&[pod("x", "1", 50), pod("y", "2", 60)], "65")],
            "+x@50 +y@60 -y@60 +y@60",
        ),
        (vec![begin(), Delta::Written(pod("z", "4", 80)), restore(&[], "30")], "+x@50 +y@60 +z@80 -x@50 -y@60 -z@80"),
        // A restored server assigns versions again that were seen before.
        (vec![begin(), restore(&[], "30"), Delta::Apply(pod("x", "5", 31))], "+x@50 +y@60 -x@50 -y@60 +x@31"),
    ];
    for (deltas, expected) in cases {
        check(deltas, expected);
    }
}

/// With `etcdutl snapshot restore --bump-revision`, objects have earlier versions again, and lists have later ones.
#[test]
fn later_list_of_earlier_versions_is_a_backup() {
    let begin = || list(&[pod("x", "1", 50), pod("y", "2", 60), pod("z", "3", 61)], "70");
    let backup = || list(&[pod("x", "1", 40), pod("z", "4", 30)], "1000");
    let (added, key) = ("+x@50 +y@60 +z@61", pod("z", "3", 61).key().clone());
    let cases = [
        (vec![begin(), backup(), Delta::Apply(pod("x", "1", 1001))], "-y@60 ~x@40 -z@61 +z@30 ~x@1001"),
        // An own delete is undone.
        (
            vec![begin(), Delta::Gone(key, "3".into()), list(&[pod("x", "1", 40), pod("z", "3", 30)], "1000")],
            "-z@61 -y@60 ~x@40 +z@30",
        ),
        // Own writes after the list are kept.
        (vec![begin(), Delta::Written(pod("x", "1", 1002)), backup()], "~x@1002 -y@60 -z@61 +z@30"),
        (vec![begin(), Delta::Written(pod("w", "5", 1003)), backup()], "+w@1003 -y@60 ~x@40 -z@61 +z@30"),
    ];
    for (deltas, expected) in cases {
        assert_eq!(check(deltas, &format!("{added} {expected}")).n_restores(), 1);
    }
    let older = list(&[pod("x", "1", 50), pod("y", "2", 60), pod("z", "3", 61)], "71");
    let unchanged = check(vec![begin(), Delta::Written(pod("x", "1", 72)), older], &format!("{added} ~x@72"));
    assert_eq!(unchanged.n_restores(), 0, "the list is older than the own write");
}

#[test]
fn refresh_adds_and_deletes_by_version() {
    let read = |objects: &[Arc<Stored>], version: &str| {
        Delta::ListDuringWatch(Some("a".into()), objects.to_vec(), version.into())
    };
    let begin = || list(&[pod("x", "1", 5), pod("y", "2", 4)], "5");
    // Watch events older than the read change nothing, and later ones are applied.
    let late = [
        Delta::Apply(pod("x", "1", 6)),
        Delta::Apply(pod("z", "4", 9)),
        Delta::Apply(pod("x", "3", 12)),
        Delta::Delete(pod("x", "3", 13)),
    ];
    let gone = read(&[pod("y", "2", 4), pod("z", "4", 9)], "10");
    check([vec![begin(), gone.clone()], late.to_vec()].concat(), "+x@5 +y@4 -x@5 +z@9 +x@12 -x@13");
    // A list older than the read changes nothing either.
    let lists = [list(&[pod("x", "1", 6), pod("y", "2", 4)], "7"), list(&[pod("y", "2", 4), pod("z", "4", 9)], "11")];
    let cache = check([vec![begin(), gone], lists.to_vec()].concat(), "+x@5 +y@4 -x@5 +z@9");
    assert!(cache.reads_ahead.is_empty(), "the list has come to where the read was");
    // An object newer than the read is kept.
    check(vec![begin(), Delta::Apply(pod("x", "1", 11)), read(&[], "10")], "+x@5 +y@4 ~x@11 -y@4");
    // A read of another namespace changes nothing here.
    let elsewhere = Delta::ListDuringWatch(Some("b".into()), Vec::new(), "10".into());
    let cache = check(vec![begin(), elsewhere.clone(), Delta::Apply(pod("z", "4", 6))], "+x@5 +y@4 +z@6");
    assert_eq!(cache.reads_ahead.len(), 1);
    let cache = check(vec![begin(), elsewhere.clone(), Delta::Bookmark(None, "10".into())], "+x@5 +y@4");
    assert!(cache.reads_ahead.is_empty(), "the watch has");
    for end in [Delta::Clear(None), Delta::Close(None), Delta::Restore(None, Vec::new(), "3".into())] {
        assert!(check(vec![begin(), elsewhere.clone(), end], "+x@5 +y@4 -x@5 -y@4").reads_ahead.is_empty());
    }
}
