//! Decides which events are sent, and in which form. Pure: the time is an input.
//!
//! An event that repeats becomes a series. Many that differ only in details become one. An object with too
//! many events is rate limited. The numbers are client-go's (`tools/record/events_cache.go`, and
//! `tools/events/event_broadcaster.go` for series).
//!
//! | Observed | Sent |
//! |---|---|
//! | a new event | created |
//! | the same again within 6 minutes | count 2 is patched at once |
//! | again and again | the count every 30 minutes, and once more when it ends |
//! | the tenth note of one kind without a pause of 10 minutes | "(combined from similar events)", then its count |
//! | more than 25 requests about one object | dropped; one more every 5 minutes |

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

use super::lru_map::LruMap;

/// Maximum number of objects, of event kinds and of series that are remembered, each. The least recently used one is
/// dropped first.
pub(super) const REMEMBERED_MAX: usize = 4_096;
/// The tenth detail of one kind, each within [`SIMILAR_EVENTS_INTERVAL`] of the last, starts a combined event.
const NOTES_MAX: usize = 10;
/// Pause after which the count of details restarts.
const SIMILAR_EVENTS_INTERVAL: Duration = Duration::from_secs(600);
/// Maximum number of requests about one object in a burst.
const BURST: u32 = 25;
/// Time after which a used-up burst allows one more request.
const REFILL_AFTER: Duration = Duration::from_secs(300);
/// A series ends when its event has not repeated for this time; its final count is sent then.
const SERIES_ENDS_AFTER: Duration = Duration::from_secs(360);
/// The count of a running series is sent at most once in this time.
const REFRESH_AFTER: Duration = Duration::from_secs(1_800);
/// Begins the note of a combined event.
const COMBINED: &str = "(combined from similar events): ";

/// Uid of the object, type and reason: events with the same kind are similar.
type Kind = (String, String, String);

/// Note, action and related object: they distinguish events of one kind.
type Detail = (String, String, String);

/// Identifies a series. A combined event has no detail.
type Identity = (Kind, Option<Detail>);

/// A request to send.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EventWrite {
    /// Creates an Event, because no recent one is equal.
    Create(Event),
    /// Updates the series of an event that exists.
    Patch(Event),
}

/// The memory of recent events.
pub(super) struct Correlator {
    /// The rate limit of each object, by uid.
    objects: LruMap<String, TokenBucket>,
    /// The details seen of each kind of event, to find those that differ only in their note.
    similar: LruMap<Kind, AggregateRecord>,
    /// Touched at each repetition, so the first entry is the one that ended first.
    series: LruMap<Identity, Series>,
}

struct TokenBucket {
    /// Requests that may be sent now, at most [`BURST`].
    left: u32,
    /// The tokens were last refilled up to this time.
    since: Instant,
}

/// The details of one kind that were seen since the last long pause.
struct AggregateRecord {
    /// At most [`NOTES_MAX`] less one: the next detail starts the combined event.
    details: HashSet<Detail>,
    last: Instant,
}

/// A repeating event, with the count that happened and the one that the API server has.
struct Series {
    /// The event as it was created. Patches need its name.
    event: Event,
    /// Number of occurrences.
    count: i32,
    /// The count that the API server has.
    sent: i32,
    /// Time of the last request for it.
    sent_at: Instant,
    last: Instant,
    last_time: MicroTime,
}

impl Series {
    /// Returns the patch that updates the series in the API server.
    fn step(&mut self, now: Instant) -> EventWrite {
        (self.sent, self.sent_at) = (self.count, now);
        let series = EventSeries { count: self.count, last_observed_time: self.last_time.clone() };
        self.event.series = Some(series);
        EventWrite::Patch(self.event.clone())
    }
}

impl Correlator {
    /// Creates an empty memory. After a restart Events start again, under new names.
    pub(super) fn new() -> Self {
        let (objects, similar) = (LruMap::new(REMEMBERED_MAX), LruMap::new(REMEMBERED_MAX));
        Self { objects, similar, series: LruMap::new(REMEMBERED_MAX) }
    }

    /// Returns `true` while no series is open, so that no timer is needed.
    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Takes an event that happened now, and returns the requests to send.
    ///
    /// The steps are in the order in which they must be sent. They may contain the final count of an older series,
    /// which ended or was forgotten to make room.
    pub(super) fn observe(&mut self, mut event: Event, now: Instant) -> Vec<EventWrite> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let object = event.regarding.as_ref().map(|object| text(&object.uid)).unwrap_or_default();
        let kind: Kind = (object.clone(), text(&event.type_), text(&event.reason));
        let detail =
            (text(&event.note), text(&event.action), event.related.as_ref().map(related_id).unwrap_or_default());
        let combined = self.is_aggregated(&kind, &detail, now);
        if combined {
            event.note = Some(super::truncate_note(format!("{COMBINED}{}", detail.0)));
            // The combined Event covers several related objects.
            event.related = None;
        }
        let identity: Identity = (kind, (!combined).then_some(detail));
        let mut steps = self.tick(now);
        let last_time = event.event_time.clone().unwrap_or(MicroTime(Timestamp::UNIX_EPOCH));
        if let Some(series) = self.series.get_mut(&identity) {
            (series.count, series.last, series.last_time) = (series.count.saturating_add(1), now, last_time);
            let first = series.sent == 1;
            if (first || now.duration_since(series.sent_at) >= REFRESH_AFTER)
                && take_token(&mut self.objects, &object, now)
            {
                steps.push(series.step(now));
            }
            return steps;
        }
        if !take_token(&mut self.objects, &object, now) {
            tracing::debug!(reason = event.reason, "Event dropped: too many about its object");
            return steps;
        }
        steps.push(EventWrite::Create(event.clone()));
        let series = Series { event, count: 1, sent: 1, sent_at: now, last: now, last_time };
        steps.extend(self.series.insert(identity, series).and_then(|gone| final_count(gone, now)));
        steps
    }

    /// Returns the final counts of series that ended.
    ///
    /// Call it at least once a minute while [`is_empty`](Self::is_empty) is `false`, or a final count comes late.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<EventWrite> {
        let over = self.series.evict_while(|series| now.duration_since(series.last) >= SERIES_ENDS_AFTER);
        over.into_iter().filter_map(|series| final_count(series, now)).collect()
    }

    /// Returns the unsent counts of all series, when the process stops.
    pub(super) fn finish(&mut self, now: Instant) -> Vec<EventWrite> {
        self.series.evict_while(|_| true).into_iter().filter_map(|series| final_count(series, now)).collect()
    }

    /// Returns `true` if the event goes into the combined event of its kind.
    ///
    /// An event that repeats exactly continues its own series, even if nine similar ones exist.
    fn is_aggregated(&mut self, key: &Kind, detail: &Detail, now: Instant) -> bool {
        let fresh = || AggregateRecord { details: HashSet::new(), last: now };
        if self.similar.get_mut(key).is_none_or(|similar| now.duration_since(similar.last) > SIMILAR_EVENTS_INTERVAL) {
            self.similar.insert(key.clone(), fresh());
        }
        let Some(similar) = self.similar.get_mut(key) else { return false };
        similar.last = now;
        if similar.details.contains(detail) {
            // An event with known details continues its own series.
            return false;
        }
        if similar.details.len() + 1 >= NOTES_MAX {
            return true;
        }
        similar.details.insert(detail.clone());
        debug_assert!(similar.details.len() < NOTES_MAX, "the next detail starts the combined event");
        false
    }
}

/// Identifies a related object by its uid, or by its name if it has none.
fn related_id(object: &ObjectReference) -> String {
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

/// Returns the final count of a series, if the API server lacks it.
fn final_count(mut series: Series, now: Instant) -> Option<EventWrite> {
    (series.count > series.sent).then(|| series.step(now))
}

/// Takes a token of the object's bucket; `false` if it is empty.
///
/// Each object has its own bucket, so a noisy one does not silence the rest.
fn take_token(objects: &mut LruMap<String, TokenBucket>, object: &str, now: Instant) -> bool {
    let object = object.to_owned();
    if objects.get_mut(&object).is_none() {
        objects.insert(object.clone(), TokenBucket { left: BURST, since: now });
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
    debug_assert!(bucket.left < BURST, "a refill never exceeds the burst, and one token was taken");
    some
}
