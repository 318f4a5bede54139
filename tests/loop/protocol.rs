//! Lists and watches of a source against a scripted API server.

use std::collections::BTreeSet;

use kctl::prelude::*;

use crate::{
    script::{
        FOREVER, Scripted, ScriptedResponse, bookmark, event, idle_watch, list, object, reject, state_is_whole, status,
        watch,
    },
    world::advance_seconds,
};

/// The response to a list from a version that the server has not reached.
const TOO_LARGE: &str = r#"{"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version: 7, current: 3","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#;

/// Compares the requests and the wait before each, which may be up to a quarter longer than expected.
fn check_requests(scripted: &Scripted, expected: &[(u64, &str)]) {
    let lines = scripted.requests();
    let requests: Vec<(u64, &str)> =
        lines.iter().filter_map(|line| line.split_once(' ')).map(|(at, what)| (at.parse().unwrap(), what)).collect();
    let mut last = 0;
    for (n, (at, what)) in requests.iter().enumerate() {
        let (wait, expected) = *expected.get(n).unwrap_or_else(|| panic!("one request too many: {lines:?}"));
        assert_eq!(*what, expected, "{lines:?}");
        assert!((wait..=wait * 5 / 4).contains(&(at - last)), "{expected} after {wait} ms: {lines:?}");
        last = *at;
    }
    assert_eq!(requests.len(), expected.len(), "{lines:?}");
}

/// Runs a script on a server that only lists in pages, and checks requests and changes.
async fn check(responses: Vec<ScriptedResponse>, requests: &[(u64, &str)], changes: &[&str]) {
    let scripted = Scripted::paged(responses).await;
    // Shorter than the timeout of the silent watch at the end.
    advance_seconds(290).await;
    check_requests(&scripted, requests);
    assert_eq!(scripted.changes(), changes);
}

fn error(code: u16) -> String {
    event("ERROR", &status(code, "no"))
}

fn a(version: &str) -> String {
    object("a", version)
}

const LISTED: [(u64, &str); 2] = [(0, "list"), (0, "watch from 7")];
const INITIAL: [&str; 1] = ["initial +a@5"];

/// Runs a script on a server that has already listed `a`.
async fn check_listed(responses: Vec<ScriptedResponse>, requests: &[(u64, &str)], changes: &[&str]) {
    let responses = std::iter::once(list("7", &[&a("5")], "")).chain(responses).chain([idle_watch()]).collect();
    check(responses, &[&LISTED, requests].concat(), &[&INITIAL, changes].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn relist_after_410_requests_last_seen_resource_version() {
    check_listed(
        vec![watch(&[event("MODIFIED", &a("8")), error(410)], 0), list("9", &[&a("8")], "")],
        &[(0, "list from 8"), (0, "watch from 9")],
        &["~a@8"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn expired_list_is_repeated_for_the_newest_state() {
    let ahead = || ScriptedResponse::Full(504, TOO_LARGE.into());
    for rejection in [reject(410), ahead()] {
        check_listed(
            vec![watch(&[error(410)], 0), rejection, list("9", &[&a("5")], "")],
            &[(0, "list from 7"), (0, "list"), (0, "watch from 9")],
            &[],
        )
        .await;
    }
    // A list of the newest state can't be ahead of the server, so its error counts as a failure.
    check_listed(
        vec![watch(&[error(410)], 0), ahead(), ahead(), list("9", &[&a("5")], "")],
        &[(0, "list from 7"), (0, "list"), (800, "list"), (0, "watch from 9")],
        &[],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn ended_watch_resumes_from_its_last_event() {
    check_listed(vec![watch(&[event("MODIFIED", &a("8"))], 10)], &[(10_000, "watch from 8")], &["~a@8"]).await;
}

#[tokio::test(start_paused = true)]
async fn ended_watch_resumes_from_its_last_bookmark() {
    check_listed(vec![watch(&[bookmark("20")], 10)], &[(10_000, "watch from 20")], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn failed_watch_is_retried_without_a_list() {
    let broken = (0..7).map(|_| ScriptedResponse::ConnectionError).chain([list("7", &[&a("5")], "")]).collect();
    // The watch starts at the version in the first successful response.
    let waits = [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000].map(|wait| (wait, "probe"));
    check_listed(broken, &[&waits[..], &[(0, "watch from 7")]].concat(), &[]).await;
}

/// Runs a script on a server that has listed `a` and `b` at version 70 and was then unreachable.
async fn check_restored(responses: Vec<ScriptedResponse>, requests: &[(u64, &str)], changes: &[&str]) {
    let first = list("70", &[&a("5"), &object("b", "60")], "");
    let responses =
        [first, ScriptedResponse::ConnectionError].into_iter().chain(responses).chain([idle_watch()]).collect();
    let requests = [&[(0, "list"), (0, "watch from 70"), (800, "probe")], requests].concat();
    check(responses, &requests, &[&["initial +a@5", "initial +b@60"], changes].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn state_restored_from_a_backup_is_accepted() {
    // The backup was taken at version 20, before `b` existed. Since then `c` was created and `a` changed.
    let now = || list("22", &[&a("22"), &object("c", "21")], "");
    let requests = [(0, "list"), (800, "list"), (0, "watch from 22")];
    check_restored(vec![now(), now(), now()], &requests, &["-b@60", "~a@22", "+c@21"]).await;
    // Later events are applied, although their versions are lower than the last one before the restore.
    let later = watch(&[event("MODIFIED", &a("23")), event("ADDED", &object("b", "24"))], 200);
    check_restored(
        vec![now(), now(), now(), later],
        &[&requests[..], &[(200_000, "watch from 24")]].concat(),
        &["-b@60", "~a@22", "+c@21", "~a@23", "+b@24"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn stale_list_is_retried_until_server_catches_up() {
    let old = || list("22", &[&a("5")], "");
    let new = list("71", &[&a("71"), &object("b", "60")], "");
    let requests = [(0, "list"), (800, "list"), (0, "watch from 71")];
    check_restored(vec![old(), old(), new], &requests, &["~a@71"]).await;
}

#[tokio::test(start_paused = true)]
async fn incomparable_versions_say_nothing_about_the_past() {
    let opaque = |version: &str| list(version, &[&object("a", "x")], "");
    check(
        vec![opaque("zz"), ScriptedResponse::ConnectionError, opaque("aa"), idle_watch()],
        &[(0, "list"), (0, "watch from zz"), (800, "probe"), (0, "watch from zz")],
        &["initial +a@x"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn throttled_watch_waits_without_a_list() {
    check_listed(vec![reject(429), watch(&[error(429)], 0)], &[(800, "watch from 7"), (1_600, "watch from 7")], &[])
        .await;
}

#[tokio::test(start_paused = true)]
async fn watch_error_event_triggers_backoff_and_relist() {
    check_listed(
        vec![watch(&[error(500)], 0), list("9", &[&a("5")], "")],
        &[(800, "list from 7"), (0, "watch from 9")],
        &[],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn immediately_ended_empty_watch_backs_off() {
    let ends = |_| watch(&[], 0);
    let waits = [800, 1_600, 3_200];
    check_listed((0..3).map(ends).collect(), &waits.map(|wait| (wait, "watch from 7")), &[]).await;
    // A watch that delivered an event counts as successful.
    let works = watch(&[event("MODIFIED", &a("8"))], 0);
    check_listed(vec![works], &[(0, "watch from 8")], &["~a@8"]).await;
}

#[tokio::test(start_paused = true)]
async fn watch_with_only_ignored_lines_backs_off() {
    let waits = [800, 1_600, 3_200].map(|wait| (wait, "watch from 7"));
    for ignored in [event("FANCY", &a("8")), event("BOOKMARK", "{}"), String::new()] {
        let ends = |_| watch(std::slice::from_ref(&ignored), 0);
        check_listed((0..3).map(ends).collect(), &waits, &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_watch_events_are_skipped() {
    let odd = [
        event("NEWS", &a("6")),
        event("ADDED", r#"{"metadata":{"name":3}}"#),
        event("ADDED", r#"{"metadata":{"namespace":"default","name":"b","uid":"b","resourceVersion":"6"},"spec":3}"#),
        event("BOOKMARK", "{}"),
        String::new(),
    ];
    for odd in odd {
        let lines = [odd.clone(), event("MODIFIED", &a("8"))];
        check_listed(vec![watch(&lines, 10)], &[(10_000, "watch from 8")], &["~a@8"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_event_ends_the_watch() {
    check_listed(vec![watch(&["<html>".into()], 10)], &[(800, "watch from 7")], &[]).await;
}

/// Returns `true` if list and watch work.
fn is_healthy(scripted: &Scripted) -> bool {
    scripted.source.health().failure.is_none()
}

#[tokio::test(start_paused = true)]
async fn watch_failure_lasts_until_a_watch_works() {
    let page = || ScriptedResponse::WatchLines(vec![(Duration::from_millis(500), "<html>".into())], Duration::ZERO);
    let listed = || list("7", &[&a("5")], "");
    let rounds: [Vec<ScriptedResponse>; 2] =
        [vec![page(), page(), page()], vec![reject(500), listed(), reject(500), listed(), reject(500), listed()]];
    for round in rounds {
        let scripted =
            Scripted::paged([vec![listed()], round, vec![idle_watch()]].into_iter().flatten().collect()).await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        // The heads of the responses and the lists succeed. The last of three retries begins after 5.6 s at the earliest.
        for _ in 0..50 {
            assert!(!is_healthy(&scripted), "the watch has not worked since");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        advance_seconds(5).await;
        assert!(is_healthy(&scripted), "a watch is open");
    }
}

/// Returns the failure of a source whose first three watches get this response, after each of them. A minute later a watch
/// is open.
async fn failures_by_watch(response: fn() -> ScriptedResponse) -> Vec<Option<String>> {
    let responses = [list("7", &[], ""), response(), response(), response(), idle_watch()];
    let scripted = Scripted::paged(responses.into()).await;
    let failure = || scripted.source.health().failure.map(|error| error.to_string());
    let mut failures = vec![failure()];
    // The watches begin after 0 s, at least 0.8 s and at least 2.4 s. The last wait is 3.2 s at least.
    for millis in [1_100, 2_000, 60_000] {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        failures.push(failure());
    }
    failures
}

#[tokio::test(start_paused = true)]
async fn repeated_short_watches_without_events_are_a_failure() {
    let ends = "watch pods: the response cannot be read: the API server ends the watch at once, without an event";
    let expected = [None, None, Some(ends.to_owned()), None];
    assert_eq!(failures_by_watch(|| watch(&[], 0)).await, expected);
    for body in ["", "<html>no newline</html>", r#"{"type":"ADDED","obj"#] {
        let responses =
            [list("7", &[], "")].into_iter().chain((0..3).map(|_| ScriptedResponse::Full(200, body.into())));
        let scripted = Scripted::paged(responses.collect()).await;
        advance_seconds(5).await;
        assert_eq!(scripted.source.health().failure.map(|error| error.to_string()).as_deref(), Some(ends), "{body}");
    }
    let healthy = |version: &str| watch(&[bookmark(version)], 0);
    let responses = vec![list("7", &[], ""), healthy("8"), healthy("9"), healthy("10"), healthy("11"), idle_watch()];
    let scripted = Scripted::paged(responses).await;
    assert!(is_healthy(&scripted), "each watch had a bookmark");
}

#[tokio::test(start_paused = true)]
async fn endless_line_of_a_watch_is_a_failure() {
    let failures = failures_by_watch(|| ScriptedResponse::Full(200, "x".repeat((16 << 20) + 1))).await;
    let too_long = "watch pods: the response cannot be read: an event is longer than 16777216 bytes";
    let failed = Some(too_long.to_owned());
    assert_eq!(failures, [failed.clone(), failed.clone(), failed, None]);
}

#[tokio::test(start_paused = true)]
async fn first_event_ends_the_watch_failure() {
    let scripted =
        Scripted::paged(vec![list("7", &[], ""), reject(429), watch(&[bookmark("8")], 1_000), idle_watch()]).await;
    assert!(!is_healthy(&scripted));
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert!(is_healthy(&scripted), "less than a second after the watch was opened");
}

/// Returns a watch that ends with a server error after this many seconds.
fn broken_after(seconds: u64) -> ScriptedResponse {
    ScriptedResponse::WatchLines(vec![(Duration::from_secs(seconds), error(429))], Duration::ZERO)
}

#[tokio::test(start_paused = true)]
async fn two_minutes_of_watching_reset_the_failures() {
    for (lasts, next) in [(119, 3_200), (120, 800)] {
        check_listed(
            vec![reject(429), reject(429), broken_after(lasts)],
            &[(800, "watch from 7"), (1_600, "watch from 7"), (lasts * 1000 + next, "watch from 7")],
            &[],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn successful_lists_do_not_reset_watch_failures() {
    let listed = || list("7", &[&a("5")], "");
    check_listed(
        vec![reject(500), listed(), reject(500), listed(), reject(500), listed()],
        &[(800, "list from 7"), LISTED[1], (1_600, "list from 7"), LISTED[1], (3_200, "list from 7"), LISTED[1]],
        &[],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn lists_are_paged_and_may_come_whole() {
    check(
        vec![
            list("7", &[&a("5")], "t1"),
            list("7", &[&object("b", "2")], "t2"),
            list("7", &[&object("c", "3")], ""),
            watch(&[error(410)], 0),
            list("9", &[&a("5"), &object("b", "8")], ""),
            idle_watch(),
        ],
        &[
            (0, "list"),
            (0, "list page t1"),
            (0, "list page t2"),
            (0, "watch from 7"),
            (0, "list from 7"),
            (0, "watch from 9"),
        ],
        &["initial +a@5", "initial +b@2", "initial +c@3", "-c@3", "~b@8"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn expired_page_restarts_the_list_from_nothing() {
    check(
        vec![list("7", &[&a("5")], "t"), reject(410), list("9", &[&object("b", "8")], ""), idle_watch()],
        &[(0, "list"), (0, "list page t"), (0, "list"), (0, "watch from 9")],
        &["initial +b@8"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn streamed_state_is_applied_at_its_last_bookmark() {
    let lines = vec![
        (Duration::ZERO, event("ADDED", &a("5"))),
        (Duration::ZERO, bookmark("6")),
        (Duration::ZERO, event("ADDED", &object("b", "4"))),
        (Duration::from_secs(5), state_is_whole("7")),
        (Duration::ZERO, event("MODIFIED", &a("8"))),
    ];
    let scripted = Scripted::streaming(vec![ScriptedResponse::WatchLines(lines, FOREVER)]).await;
    advance_seconds(4).await;
    assert!(scripted.changes().is_empty() && !scripted.source.store().is_synced());
    advance_seconds(2).await;
    assert!(scripted.source.store().is_synced());
    assert_eq!(scripted.changes(), ["initial +a@5", "initial +b@4", "~a@8"]);
    check_requests(&scripted, &[(0, "stream")]);
}

#[tokio::test(start_paused = true)]
async fn rejected_watch_list_falls_back_to_list() {
    for code in [400, 405, 422] {
        let responses = vec![reject(code), list("7", &[&a("5")], ""), idle_watch()];
        let scripted = Scripted::streaming(responses).await;
        advance_seconds(1).await;
        check_requests(&scripted, &[(0, "stream"), (0, "whole"), (0, "watch from 7")]);
        assert!(scripted.source.store().is_synced(), "{code}");
    }
}

/// Checks that an incomplete stream followed by a complete one leaves no state behind.
async fn check_half_a_stream(lines: &[String], wait: u64) {
    let whole = watch(&[event("ADDED", &object("b", "8")), state_is_whole("10")], 10);
    let scripted = Scripted::streaming(vec![watch(lines, 1), whole, idle_watch()]).await;
    advance_seconds(100).await;
    check_requests(&scripted, &[(0, "stream"), (wait, "stream"), (10_000, "watch from 10")]);
    assert_eq!(scripted.changes(), ["initial +b@8"], "nothing of the first stream is left");
}

#[tokio::test(start_paused = true)]
async fn truncated_stream_leaves_no_state_behind() {
    check_half_a_stream(&[event("ADDED", &a("9")), event("ADDED", &object("c", "4"))], 1_800).await;
}

#[tokio::test(start_paused = true)]
async fn expired_stream_restarts_with_the_newest_state() {
    check_half_a_stream(&[event("ADDED", &a("9")), error(410)], 800).await;
}

#[tokio::test(start_paused = true)]
async fn state_is_requested_whole_and_may_come_paged() {
    let whole = Scripted::unpaged(vec![list("7", &[&a("5")], ""), idle_watch()]).await;
    advance_seconds(1).await;
    check_requests(&whole, &[(0, "whole"), (0, "watch from 7")]);
    let responses = vec![list("7", &[&a("5")], "t"), list("7", &[&object("b", "2")], ""), idle_watch()];
    let pages = Scripted::unpaged(responses).await;
    advance_seconds(1).await;
    check_requests(&pages, &[(0, "whole"), (0, "list page t"), (0, "watch from 7")]);
    assert_eq!(pages.changes(), ["initial +a@5", "initial +b@2"]);
}

#[tokio::test(start_paused = true)]
async fn rejected_whole_list_is_requested_in_pages() {
    for code in [400, 405, 413, 422] {
        let responses = vec![reject(code), list("7", &[&a("5")], ""), idle_watch()];
        let scripted = Scripted::unpaged(responses).await;
        advance_seconds(1).await;
        check_requests(&scripted, &[(0, "whole"), (0, "list"), (0, "watch from 7")]);
        assert!(scripted.source.store().is_synced(), "{code}");
    }
}

/// Returns a list that is truncated after its first item.
fn half_a_list() -> ScriptedResponse {
    ScriptedResponse::Full(200, format!(r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{},"#, a("9")))
}

#[tokio::test(start_paused = true)]
async fn truncated_lists_are_discarded_and_switch_to_paging() {
    let responses = vec![half_a_list(), half_a_list(), list("10", &[&object("b", "8")], ""), idle_watch()];
    let scripted = Scripted::unpaged(responses).await;
    advance_seconds(1).await;
    assert!(
        scripted.source.health().failure.is_some_and(|error| error.to_string().contains("truncated list response"))
    );
    advance_seconds(99).await;
    check_requests(&scripted, &[(0, "whole"), (800, "whole"), (1_600, "list"), (0, "watch from 10")]);
    assert_eq!(scripted.changes(), ["initial +b@8"], "nothing of the first lists is left");
}

#[tokio::test(start_paused = true)]
async fn watches_last_five_to_ten_minutes_at_random() {
    let responses = (0..50).map(|_| watch(&[event("MODIFIED", &a("8"))], 2));
    let scripted = Scripted::paged(std::iter::once(list("7", &[&a("5")], "")).chain(responses).collect()).await;
    advance_seconds(200).await;
    let timeouts = scripted.timeouts();
    assert!(timeouts.len() > 50 && timeouts.iter().all(|timeout| (300..=600).contains(timeout)), "{timeouts:?}");
    let n_different = timeouts.iter().collect::<BTreeSet<_>>().len();
    assert!(n_different > 30, "{timeouts:?}");
}

#[tokio::test(start_paused = true)]
async fn silence_beyond_the_watch_timeout_ends_the_connection() {
    let scripted = Scripted::paged(vec![list("7", &[], ""), idle_watch(), idle_watch()]).await;
    advance_seconds(304).await;
    assert_eq!(scripted.requests().len(), 2);
    advance_seconds(302).await;
    let requests = scripted.requests();
    assert!(requests.len() == 1 && requests[0].ends_with(" watch from 7"), "{requests:?}");
}

/// An open connection may never respond, for example behind a proxy that lost its server, or with too many concurrent
/// streams.
#[tokio::test(start_paused = true)]
async fn unanswered_watch_is_retried_after_a_minute() {
    let responses =
        vec![ScriptedResponse::Pending, list("7", &[&a("5")], ""), watch(&[event("MODIFIED", &a("8"))], 1000)];
    check_listed(responses, &[(60_800, "probe"), (0, "watch from 7")], &["~a@8"]).await;
}
