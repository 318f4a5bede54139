//! Tests of the requests that follow each sequence of responses.

use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::{object::Kind, transport::ApiError};

fn page(version: &str, token: Option<&str>) -> Input {
    Input::Page { objects: Vec::new(), version: version.into(), token: token.map(Into::into) }
}

fn rejection(code: u16) -> Input {
    Input::Failed(ApiError::rejected("list pods", code, None, "{}"))
}

fn closed_after(seconds: u64) -> Input {
    Input::Closed { lasted: Duration::from_secs(seconds), any: false }
}

/// Feeds inputs to a reflector, and compares its requests and waits with `expected`.
fn check_from_start(inputs: Vec<Input>, expected: &str) {
    check_on(Reflector::default(), inputs, expected);
}

/// Does the same with a server that rejects whole lists, so that it is listed in pages.
fn check(inputs: Vec<Input>, expected: &str) {
    let mut reflector = Reflector::default();
    reflector.handle(rejection(422));
    check_on(reflector, inputs, expected);
}

fn check_on(mut reflector: Reflector, inputs: Vec<Input>, expected: &str) {
    let mut seen = Vec::new();
    for input in inputs {
        for effect in reflector.handle(input) {
            match effect {
                Effect::Wait(wait) => seen.push(format!("wait {}", wait.as_millis())),
                Effect::Emit(Delta::Incomplete(_)) => seen.push("open".into()),
                Effect::Emit(Delta::Clear(_)) => seen.push("clear".into()),
                Effect::Emit(Delta::Absent(_)) => seen.push("absent".into()),
                Effect::Emit(Delta::Restore(..)) => seen.push("restore".into()),
                Effect::Emit(_) | Effect::Next => {}
            }
        }
        seen.push(match reflector.request() {
            Request::List { version, token } => {
                format!("list {} {}", version.as_deref().unwrap_or("-"), token.as_deref().unwrap_or("-"))
            }
            Request::Stream => "stream".into(),
            Request::Whole { version } => format!("whole {}", version.as_deref().unwrap_or("-")),
            Request::Probe => "probe".into(),
            Request::Watch { version } => format!("watch {version}"),
        });
    }
    assert_eq!(seen.join(", "), expected);
}

/// Does the same with an initial state that is requested as a stream.
fn check_streaming(inputs: Vec<Input>, expected: &str) {
    check_on(Reflector::streaming(None), inputs, expected);
}

#[test]
fn optional_kind_is_absent_after_repeated_404s() {
    let mut inputs: Vec<Input> = (0..3).map(|_| rejection(404)).collect();
    inputs.push(page("7", None));
    inputs.extend((0..6).map(|_| rejection(404)));
    check_on(
        Reflector::default().with_presence(Presence::Optional),
        inputs,
        "wait 1000, whole -, absent, wait 2000, whole -, wait 4000, whole -, watch 7, open, wait 1000, whole -, wait 2000, whole -, \
         wait 4000, whole -, wait 5000, whole -, absent, wait 5000, whole -, wait 5000, whole -",
    );
}

#[test]
fn initial_stream_continues_as_a_watch() {
    check_streaming(vec![Input::Synced("7".into()), closed_after(300)], "watch 7, watch 7");
}

#[test]
fn server_that_rejects_to_stream_is_listed() {
    let inputs = vec![rejection(422), page("7", None), rejection(410)];
    check_streaming(inputs, "whole -, watch 7, whole 7");
    check_streaming(vec![rejection(422), rejection(422), page("7", None)], "whole -, list - -, watch 7");
}

#[test]
fn server_that_never_ends_the_state_is_listed() {
    check_streaming(vec![closed_after(10)], "whole -");
}

#[test]
fn broken_or_throttled_stream_is_retried() {
    check_streaming(
        vec![closed_after(1), rejection(403), rejection(503)],
        "wait 800, stream, wait 1600, stream, wait 3200, stream",
    );
}

#[test]
fn expired_watch_streams_the_state_again() {
    check_streaming(vec![Input::Synced("7".into()), rejection(410)], "watch 7, stream");
}

#[test]
fn stream_detects_a_restored_server() {
    let inputs = vec![Input::Synced("70".into()), connection_lost(), page("7", None), Input::Synced("7".into())];
    check_streaming(inputs, "watch 70, wait 800, probe, stream, wait 800, stream");
}

#[test]
fn initial_state_is_one_list_and_never_older() {
    check_from_start(
        vec![page("7", None), closed_after(300), rejection(410), page("9", None)],
        "watch 7, watch 7, whole 7, watch 9",
    );
    check_from_start(vec![page("7", None), rejection(410), rejection(410)], "watch 7, whole 7, whole -");
}

#[test]
fn rejected_whole_list_falls_back_to_pages() {
    for code in [400, 405, 413, 422] {
        check_from_start(vec![rejection(code), page("7", None), rejection(410)], "list - -, watch 7, list 7 -");
    }
    check_from_start(vec![page("7", None), rejection(410), rejection(413)], "watch 7, whole 7, list 7 -");
}

#[test]
fn rejected_version_is_not_requested_forever() {
    check_from_start(
        vec![page("x", None), rejection(400), rejection(400), rejection(400), page("7", None)],
        "watch x, wait 800, whole x, list x -, wait 1600, list - -, watch 7",
    );
    check(vec![page("7", None), rejection(410), rejection(413)], "watch 7, list 7 -, wait 800, list 7 -");
}

#[test]
fn whole_list_cut_twice_falls_back_to_pages() {
    let cut = || Input::ListInterrupted(ApiError::NoResponse { operation: "list pods".into(), cause: "broken".into() });
    check_from_start(vec![cut(), cut(), cut()], "wait 800, whole -, wait 1600, list - -, wait 3200, list - -");
    let between = vec![cut(), page("7", None), rejection(410), cut()];
    check_from_start(between, "wait 800, whole -, watch 7, whole 7, wait 1600, whole 7");
}

#[test]
fn throttled_whole_list_is_retried() {
    check_from_start(vec![rejection(403), rejection(503)], "wait 800, whole -, wait 1600, whole -");
}

#[test]
fn watch_starts_at_the_version_of_the_pages() {
    check(vec![page("7", Some("t")), page("7", None)], "list - t, watch 7");
}

#[test]
fn expired_watch_lists_from_last_version_then_newest() {
    check(
        vec![page("7", None), rejection(410), rejection(410), rejection(410)],
        "watch 7, list 7 -, list - -, wait 800, list - -",
    );
}

#[test]
fn expired_page_starts_a_full_list() {
    check(vec![page("7", Some("t")), rejection(410)], "list - t, list - -");
}

#[test]
fn pages_that_always_expire_back_off() {
    let expired = || [page("7", Some("t")), rejection(410)];
    let mut inputs: Vec<Input> = [expired(), expired(), expired()].into_iter().flatten().collect();
    inputs.extend([page("9", None), rejection(503), page("9", Some("t")), rejection(410)]);
    check(
        inputs,
        "list - t, list - -, list - t, wait 800, list - -, list - t, wait 1600, list - -, \
         watch 9, wait 3200, list 9 -, list - t, list - -",
    );
}

#[test]
fn list_without_a_version_is_repeated_without_one() {
    // The server of `metrics.k8s.io` returns no version, and has no watch.
    check_from_start(vec![page("", None), rejection(405), page("", None)], "watch , wait 800, whole -, watch ");
    check(vec![page("", None), rejection(405), page("", None)], "watch , wait 800, list - -, watch ");
}

#[test]
fn ended_watch_continues_without_a_list() {
    check(vec![page("7", None), closed_after(300)], "watch 7, watch 7");
}

#[test]
fn watch_that_ends_at_once_backs_off() {
    check(
        vec![page("7", None), closed_after(0), closed_after(0), closed_after(0)],
        "watch 7, wait 800, watch 7, wait 1600, watch 7, wait 3200, watch 7",
    );
}

#[test]
fn three_short_watches_in_a_row_fail() {
    let millis = |lasted, any| Input::Closed { lasted: Duration::from_millis(lasted), any };
    let short = || millis(999, false);
    let others = [millis(1_000, false), millis(0, true), Input::Bookmark("8".into()), rejection(429)];
    for other in others {
        let mut reflector = Reflector::default();
        reflector.handle(page("7", None));
        for (n, input) in [short(), short(), other, short(), short(), short(), short()].into_iter().enumerate() {
            reflector.handle(input);
            assert_eq!(reflector.has_short_watches(), n >= 5, "after {} inputs", n + 1);
        }
        reflector.handle(millis(0, true));
        assert!(!reflector.has_short_watches(), "a watch had an event");
    }
}

#[test]
fn throttled_watch_waits_and_does_not_list() {
    check(vec![page("7", None), rejection(429)], "watch 7, wait 800, watch 7");
}

#[test]
fn long_retry_after_waits_a_minute_at_most() {
    let throttled = |seconds| {
        let wait = Some(Duration::from_secs(seconds));
        Input::Failed(ApiError::rejected("watch pods", 429, wait, "{}"))
    };
    check(
        vec![page("7", None), throttled(59), throttled(60), throttled(61), throttled(100_000)],
        "watch 7, wait 59000, watch 7, wait 60000, watch 7, wait 60000, watch 7, wait 60000, watch 7",
    );
}

#[test]
fn bookmark_moves_the_version_of_the_next_watch() {
    check(vec![page("7", None), Input::Bookmark("20".into()), closed_after(300)], "watch 7, watch 20, watch 20");
}

#[test]
fn event_without_a_version_keeps_the_last_one() {
    let pod = || Arc::new(Stored::accept(&Kind::of::<Pod>(), r#"{"metadata":{"name":"a"}}"#).unwrap());
    for event in [Input::Applied(pod()), Input::Deleted(pod()), Input::Bookmark(String::new())] {
        check_from_start(vec![page("7", None), event], "watch 7, watch 7");
    }
}

fn connection_lost() -> Input {
    let cause = "connection refused".into();
    Input::Failed(ApiError::NoResponse { operation: "watch pods".into(), cause })
}

#[test]
fn watch_after_an_outage_probes_the_version_first() {
    let away = vec![page("7", None), connection_lost(), connection_lost(), page("7", None), closed_after(300)];
    check(away, "watch 7, wait 800, probe, wait 1600, probe, watch 7, watch 7");
    let ahead = vec![page("7", None), connection_lost(), page("900", None)];
    check(ahead, "watch 7, wait 800, probe, watch 7");
}

#[test]
fn older_state_is_applied_after_two_lists() {
    let restored = vec![page("70", None), connection_lost(), page("7", None), page("7", None), page("8", None)];
    check(restored, "watch 70, wait 800, probe, list - -, wait 800, list - -, restore, watch 8");
    let once = vec![page("70", None), connection_lost(), page("7", None), page("7", None), page("71", None)];
    check(once, "watch 70, wait 800, probe, list - -, wait 800, list - -, watch 71");
    let whole = vec![page("70", None), connection_lost(), page("7", None), page("7", None), page("7", None)];
    check_from_start(whole, "watch 70, wait 800, probe, whole -, wait 800, whole -, restore, watch 7");
    let opaque = vec![page("x", None), connection_lost(), page("a", None), closed_after(300)];
    check(opaque, "watch x, wait 800, probe, watch x, watch x");
}

#[test]
fn missing_kind_is_probed_then_counts_as_deleted() {
    check(
        (0..5).map(|_| rejection(404)).collect(),
        "wait 1000, list - -, wait 2000, list - -, wait 4000, list - -, wait 5000, list - -, wait 5000, list - -",
    );
    let mut inputs = vec![page("7", None)];
    inputs.extend((0..6).map(|_| rejection(404)));
    inputs.extend([page("9", None), rejection(404)]);
    check(
        inputs,
        "watch 7, open, wait 1000, list - -, wait 2000, list - -, wait 4000, list - -, wait 5000, list - -, \
         clear, wait 5000, list - -, wait 5000, list - -, watch 9, open, wait 1000, list - -",
    );
}

#[test]
fn failed_list_after_404_lists_newest_state() {
    // The cache may be newer than the last version of the watch, so an older list would not complete it.
    check_from_start(
        vec![
            page("90", None),
            rejection(404),
            rejection(503),
            rejection(422),
            rejection(503),
            page("95", None),
            rejection(503),
        ],
        "watch 90, open, wait 1000, whole -, wait 800, whole -, list - -, wait 1600, list - -, watch 95, wait 3200, list 95 -",
    );
}

#[test]
fn watch_that_always_expires_backs_off() {
    let expired = || [rejection(410), page("7", None)];
    let mut inputs = vec![page("7", None)];
    inputs.extend([expired(), expired()].into_iter().flatten());
    inputs.push(rejection(410));
    inputs.extend([page("8", None), Input::Bookmark("9".into()), rejection(410)]);
    check_from_start(
        inputs,
        "watch 7, whole 7, watch 7, wait 800, whole 7, watch 7, wait 1600, whole 7, watch 8, watch 9, whole 9",
    );
}

#[test]
fn failing_list_backs_off_to_half_a_minute() {
    let inputs = (0..8).map(|_| rejection(503)).collect();
    check(
        inputs,
        "wait 800, list - -, wait 1600, list - -, wait 3200, list - -, wait 6400, list - -, wait 12800, list - -, \
         wait 25600, list - -, wait 30000, list - -, wait 30000, list - -",
    );
}
