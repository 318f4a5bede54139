//! Which events are sent, and as what: pure, with the time as an input. The same event again becomes a series, many that differ
//! in details alone become one, and an object about which too many are told has to wait.
//!
//! The numbers are client-go's (`tools/record/events_cache.go` and, for series, `tools/events/event_broadcaster.go`).

use std::{collections::HashSet, time::Duration};

use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use tokio::time::Instant;

use super::recent::Recent;

/// Objects, kinds of events and series that are remembered, of each so many.
pub(super) const REMEMBERED_MAX: usize = 4_096;
/// The tenth detail within this time after the last one makes one event of all that follow.
const NOTES_MAX: usize = 10;
const SIMILAR_WITHIN: Duration = Duration::from_secs(600);
/// Requests about one object at once, and the time after which there may be one more.
const BURST: u32 = 25;
const REFILL_AFTER: Duration = Duration::from_secs(300);
/// A series ends when its event did not happen for so long.
const SERIES_ENDS_AFTER: Duration = Duration::from_secs(360);
/// The count of a series that goes on is sent once in this time.
const REFRESH_AFTER: Duration = Duration::from_secs(1_800);
/// In front of the note of an event that stands for many.
const COMBINED: &str = "(combined from similar events): ";

/// Of which object, of which type, and for which reason.
type Kind = (String, String, String);

/// What sets events of one kind apart: the note, the action, and the object that is named beside it.
type Detail = (String, String, String);

/// What a series is of; one of events that stand for many has no detail.
type Identity = (Kind, Option<Detail>);

/// What has to be sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Create(Event),
    /// Its series is another one than the API server knows.
    Patch(Event),
}

/// What has been told.
pub(super) struct Correlator {
    objects: Recent<String, Bucket>,
    similar: Recent<Kind, Similar>,
    /// Used whenever its event happens, so that the one that ended first comes first.
    series: Recent<Identity, Series>,
}

struct Bucket {
    left: u32,
    /// Up to when what came back is counted.
    since: Instant,
}

struct Similar {
    details: HashSet<Detail>,
    last: Instant,
}

struct Series {
    event: Event,
    count: i32,
    /// What the API server knows.
    sent: i32,
    sent_at: Instant,
    last: Instant,
    last_time: MicroTime,
}

impl Series {
    /// As the API server should know it.
    fn step(&mut self, now: Instant) -> Step {
        (self.sent, self.sent_at) = (self.count, now);
        let series = EventSeries { count: self.count, last_observed_time: self.last_time.clone() };
        self.event.series = Some(series);
        Step::Patch(self.event.clone())
    }
}

impl Correlator {
    pub(super) fn new() -> Self {
        let (objects, similar) = (Recent::new(REMEMBERED_MAX), Recent::new(REMEMBERED_MAX));
        Self { objects, similar, series: Recent::new(REMEMBERED_MAX) }
    }

    /// Whether [`tick`](Self::tick) has nothing to do for ever.
    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// An event that happened now.
    pub(super) fn observe(&mut self, mut event: Event, now: Instant) -> Vec<Step> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let object = event.regarding.as_ref().map(|object| text(&object.uid)).unwrap_or_default();
        let kind: Kind = (object.clone(), text(&event.type_), text(&event.reason));
        let detail = (text(&event.note), text(&event.action), event.related.as_ref().map(which).unwrap_or_default());
        let combined = self.is_one_of_many(&kind, &detail, now);
        if combined {
            event.note = Some(super::fitting(format!("{COMBINED}{}", detail.0)));
            // It is about all of them.
            event.related = None;
        }
        let identity: Identity = (kind, (!combined).then_some(detail));
        let mut steps = self.tick(now);
        let last_time = event.event_time.clone().unwrap_or(MicroTime(Timestamp::UNIX_EPOCH));
        if let Some(series) = self.series.get_mut(&identity) {
            (series.count, series.last, series.last_time) = (series.count.saturating_add(1), now, last_time);
            let first = series.sent == 1;
            if (first || now.duration_since(series.sent_at) >= REFRESH_AFTER) && spend(&mut self.objects, &object, now)
            {
                steps.push(series.step(now));
            }
            return steps;
        }
        if !spend(&mut self.objects, &object, now) {
            tracing::debug!(reason = event.reason, "an event is left out: there were many about its object");
            return steps;
        }
        steps.push(Step::Create(event.clone()));
        let series = Series { event, count: 1, sent: 1, sent_at: now, last: now, last_time };
        steps.extend(self.series.put(identity, series).and_then(|gone| closing(gone, now)));
        steps
    }

    /// The counts of series that are over, or were not sent for long.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<Step> {
        let over = self.series.take_while(|series| now.duration_since(series.last) >= SERIES_ENDS_AFTER);
        over.into_iter().filter_map(|series| closing(series, now)).collect()
    }

    /// The counts of all series, as far as they were not sent.
    pub(super) fn finish(&mut self, now: Instant) -> Vec<Step> {
        self.series.take_while(|_| true).into_iter().filter_map(|series| closing(series, now)).collect()
    }

    /// Whether an event goes up in the one that stands for many.
    fn is_one_of_many(&mut self, key: &Kind, detail: &Detail, now: Instant) -> bool {
        let fresh = || Similar { details: HashSet::new(), last: now };
        if self.similar.get_mut(key).is_none_or(|similar| now.duration_since(similar.last) > SIMILAR_WITHIN) {
            self.similar.put(key.clone(), fresh());
        }
        let Some(similar) = self.similar.get_mut(key) else { return false };
        similar.last = now;
        if similar.details.contains(detail) {
            // It goes on as the series that it is.
            return false;
        }
        if similar.details.len() + 1 >= NOTES_MAX {
            return true;
        }
        similar.details.insert(detail.clone());
        false
    }
}

/// An object in a reference, as one text: by its uid, or by its name where it has none.
fn which(object: &ObjectReference) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let by = object.uid.clone().unwrap_or_else(|| {
        format!(
            "{} {} {}/{}",
            text(&object.api_version),
            text(&object.kind),
            text(&object.namespace),
            text(&object.name)
        )
    });
    format!("{by} {}", text(&object.field_path))
}

fn closing(mut series: Series, now: Instant) -> Option<Step> {
    (series.count > series.sent).then(|| series.step(now))
}

/// Takes a request from what an object has left.
fn spend(objects: &mut Recent<String, Bucket>, object: &str, now: Instant) -> bool {
    let object = object.to_owned();
    if objects.get_mut(&object).is_none() {
        objects.put(object.clone(), Bucket { left: BURST, since: now });
    }
    let Some(bucket) = objects.get_mut(&object) else { return true };
    let back = now.duration_since(bucket.since).as_secs() / REFILL_AFTER.as_secs();
    let back = u32::try_from(back).unwrap_or(BURST).min(BURST);
    bucket.since += REFILL_AFTER * back;
    bucket.left = (bucket.left + back).min(BURST);
    if bucket.left == BURST {
        bucket.since = now;
    }
    let some = bucket.left > 0;
    bucket.left = bucket.left.saturating_sub(1);
    some
}
