//! Tests the requests for recorded events: `+note` creates an Event, and `note×n` sets the count of its series to n.

use std::time::Duration;

use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use tokio::time::Instant;

use super::correlate::{Correlator, EventWrite, REMEMBERED_MAX};

fn event(object: &str, reason: &str, note: &str) -> Event {
    let uid = Some(object.to_owned());
    Event {
        regarding: Some(ObjectReference { uid, ..ObjectReference::default() }),
        event_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
        reason: Some(reason.into()),
        note: Some(note.into()),
        ..Event::default()
    }
}

fn format_writes(steps: Vec<EventWrite>) -> Vec<String> {
    let one = |step| match step {
        EventWrite::Create(event) => format!("+{}", event.note.unwrap()),
        EventWrite::Patch(event) => format!("{}×{}", event.note.unwrap(), event.series.unwrap().count),
    };
    steps.into_iter().map(one).collect()
}

/// Records events at times in seconds, advances to `end`, and compares the requests with `expected`.
fn check(events: &[(u64, &str, &str, String)], end: u64, expected: &[&str]) {
    let (mut correlator, begin, mut seen) = (Correlator::new(), Instant::now(), Vec::new());
    for (at, object, reason, note) in events {
        seen.extend(format_writes(correlator.observe(event(object, reason, note), begin + Duration::from_secs(*at))));
    }
    seen.extend(format_writes(correlator.tick(begin + Duration::from_secs(end))));
    seen.push("end".into());
    seen.extend(format_writes(correlator.finish(begin + Duration::from_secs(end))));
    assert_eq!(seen, expected);
}

fn same(at: impl IntoIterator<Item = u64>) -> Vec<(u64, &'static str, &'static str, String)> {
    at.into_iter().map(|at| (at, "web", "Failed", "no".to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn repeated_event_becomes_a_series() {
    check(&same([0]), 1, &["+no", "end"]);
    check(&same([0, 1]), 1, &["+no", "no×2", "end"]);
    check(&same([0, 1, 2, 3]), 10, &["+no", "no×2", "end", "no×4"]);
    check(&same([0, 1, 2, 3]), 362, &["+no", "no×2", "end", "no×4"]);
    check(&same([0, 1, 2, 3]), 363, &["+no", "no×2", "no×4", "end"]);
    check(&same([0, 359, 718]), 718, &["+no", "no×2", "end", "no×3"]);
    check(&same([0, 360]), 360, &["+no", "+no", "end"]);
    check(&same([0, 1, 2, 400]), 400, &["+no", "no×2", "no×3", "+no", "end"]);
}

#[tokio::test(start_paused = true)]
async fn running_series_sends_its_count_half_hourly() {
    check(&same((0..=1_860).step_by(60)), 1_860, &["+no", "no×2", "no×32", "end"]);
}

#[tokio::test(start_paused = true)]
async fn tenth_note_combines_similar_events() {
    let notes = |n: u64, apart: u64| -> Vec<_> {
        (0..n).map(|note| (note * apart, "web", "Failed", format!("disk {note}"))).collect()
    };
    let nine: Vec<String> = (0..9).map(|note| format!("+disk {note}")).collect();
    let list = |rest: &[&'static str]| -> Vec<String> {
        nine.iter().cloned().chain(rest.iter().map(ToString::to_string)).collect()
    };
    let combined = "+(combined from similar events): disk 9";
    let counted = "(combined from similar events): disk 9×2";
    let cases = [
        (notes(9, 1), list(&["end"])),
        (notes(10, 1), list(&[combined, "end"])),
        (notes(11, 1), list(&[combined, counted, "end"])),
        (notes(10, 600), list(&[combined, "end"])),
        (notes(10, 601), list(&["+disk 9", "end"])),
    ];
    for (events, expected) in cases {
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(&events, events.last().unwrap().0, &expected);
    }
}

#[tokio::test(start_paused = true)]
async fn other_related_objects_start_other_series() {
    let (mut correlator, now) = (Correlator::new(), Instant::now());
    let reference = |name: &str| ObjectReference { name: Some(name.into()), ..ObjectReference::default() };
    let mut tell = |related: &str, action: &str| {
        let event = Event {
            related: Some(reference(related)),
            action: Some(action.into()),
            ..event("web", "Replaced", "it is old")
        };
        let steps = correlator.observe(event, now);
        let related = |step: &EventWrite| match step {
            EventWrite::Create(event) | EventWrite::Patch(event) => {
                event.related.as_ref().and_then(|object| object.name.clone())
            }
        };
        let names: Vec<_> = steps.iter().map(related).collect();
        (format_writes(steps), names)
    };
    let named = |text: &str, name: &str| (vec![text.to_owned()], vec![Some(name.to_owned())]);
    assert_eq!(tell("a", "Replace"), named("+it is old", "a"));
    assert_eq!(tell("a", "Replace"), named("it is old×2", "a"));
    assert_eq!(tell("b", "Replace"), named("+it is old", "b"), "another object");
    assert_eq!(tell("a", "Delete"), named("+it is old", "a"), "another action");
    for n in 3..9 {
        assert_eq!(tell(&n.to_string(), "Replace"), named("+it is old", &n.to_string()));
    }
    let all = (vec!["+(combined from similar events): it is old".to_owned()], vec![None]);
    assert_eq!(tell("the tenth", "Replace"), all);
}

/// Returns how many of `n` events are sent. Each has another reason; all are about one object, `apart` seconds apart.
fn n_sent(n: u64, apart: u64) -> usize {
    let (mut correlator, begin) = (Correlator::new(), Instant::now());
    let sent = (0..n).map(|at| {
        let event = event("web", &format!("Reason{at}"), "note");
        correlator.observe(event, begin + Duration::from_secs(at * apart)).len()
    });
    sent.sum()
}

#[tokio::test(start_paused = true)]
async fn events_of_an_object_are_rate_limited() {
    let cases = [
        (25, 0, 25),
        (26, 0, 25),
        (100, 0, 25),
        (100, 300, 100),
        (31, 299, 31),
        (600, 1, 26),
        (301, 1, 26),
        (300, 1, 25),
    ];
    for (n, apart, sent) in cases {
        assert_eq!(n_sent(n, apart), sent, "{n} events, {apart} s apart");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_do_not_take_from_each_other() {
    let (mut correlator, now) = (Correlator::new(), Instant::now());
    for n in 0..30 {
        correlator.observe(event("noisy", &format!("Reason{n}"), "note"), now);
    }
    assert_eq!(format_writes(correlator.observe(event("quiet", "Failed", "note"), now)), ["+note"]);
}

#[tokio::test(start_paused = true)]
async fn evicted_series_sends_its_count() {
    let (mut correlator, now) = (Correlator::new(), Instant::now());
    for _ in 0..3 {
        correlator.observe(event("web", "Failed", "no"), now);
    }
    for n in 0..REMEMBERED_MAX - 1 {
        assert_eq!(correlator.observe(event(&format!("other-{n}"), "Failed", "no"), now).len(), 1);
    }
    assert_eq!(format_writes(correlator.observe(event("last", "Failed", "yes"), now)), ["+yes", "no×3"]);
    assert_eq!(format_writes(correlator.observe(event("web", "Failed", "no"), now)), ["+no"], "it is known no longer");
}

#[test]
fn long_note_is_cut_with_an_ellipsis() {
    let cases = [
        ("a".repeat(1_024), "a".repeat(1_024)),
        ("a".repeat(1_025), "a".repeat(1_021) + "…"),
        // Each character has two bytes, and the last one does not fit.
        ("ü".repeat(2_000), "ü".repeat(510) + "…"),
    ];
    for (note, expected) in cases {
        assert_eq!(super::truncate_note(note.clone()), expected, "{} bytes", note.len());
    }
}
