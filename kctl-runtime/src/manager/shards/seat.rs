//! Seats: the Leases that announce replicas, and the notes of the live seats that each replica sees.
//!
//! No work is done under a seat, so the seat of a replica that has crashed is released by another replica. A replica
//! that starts later would count it as live for a Lease duration.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::{Notify, oneshot, watch},
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    ShardConfig,
    coordinator::Coordinator,
    division::{Division, Seats},
    observed_leases::SeatNote,
    view::Shared,
};
use crate::{
    freezer,
    manager::lease::{Holders, LeaseAnnotation, release_expired},
    shard::{SLOTS_MAX, seat_name},
};

/// Annotation of the Lease of a seat: the live seats as its holder sees them, such as `0,1,3`.
const LIVE_SEATS: &str = "kctl.dev/live-seats";
/// Follows the live seats if the holder asks for slots although its caches are incomplete.
const INCOMPLETE: &str = " incomplete";
/// Wait before the next seat is tried after one that was held was lost.
const SEAT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// The end of a try to hold a seat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeatEnd {
    /// Another replica was faster.
    Taken,
    /// The seat was lost, or this replica leaves.
    Over,
}

/// The release of expired seats by this replica.
#[derive(Default)]
pub(super) struct Sweep {
    running: JoinSet<()>,
    /// The time of the last try, by the name of the Lease. At most one entry per seat.
    tried: BTreeMap<String, Instant>,
}

/// Returns the note of the holder of a seat; `None` without a valid note. A holder with an empty note asks for no slot.
///
/// Replicas note seats in order, so a valid note names at most [`SLOTS_MAX`]. A longer one, which another client wrote, would
/// cost each replica a sort of its seats for all slots.
pub(super) fn note_of(lease: &Value) -> Option<SeatNote> {
    let text = lease["metadata"]["annotations"][LIVE_SEATS].as_str()?;
    if text.is_empty() {
        return Some(SeatNote { live: Vec::new(), has_complete_caches: false });
    }
    let incomplete = text.strip_suffix(INCOMPLETE);
    let (seats, has_complete_caches) = (incomplete.unwrap_or(text), incomplete.is_none());
    let live: Vec<u32> = seats.split(',').map(|seat| seat.parse().ok()).collect::<Option<_>>()?;
    let is_valid = live.is_sorted_by(|seat, next| seat < next) && live.iter().all(|seat| *seat < SLOTS_MAX);
    is_valid.then_some(SeatNote { live, has_complete_caches })
}

/// Returns the seats that count as held, including the one of this replica. A seat that this replica has lost does not
/// count.
fn live(shared: &Shared, config: &ShardConfig, own: Option<u32>, now: Instant) -> Vec<u32> {
    let holder = |seat: u32| shared.observed_leases.holder(&seat_name(config.name(), seat), now);
    let is_live = |seat: &u32| own == Some(*seat) || holder(*seat).is_some_and(|holder| holder != config.identity());
    config.slots().all().filter(is_live).collect()
}

impl Coordinator {
    /// Returns the seats as this replica sees them, if they differ from those that were `known`.
    pub(super) fn seats_if_changed(&self, known: &Seats, now: Instant) -> Option<Seats> {
        let shared = self.shared.lock();
        let live = live(&shared, &self.config, shared.seat, now);
        let n_notes = shared.observed_leases.n_notes();
        let asks = shared.asks_for_slots;
        if known.own == shared.seat && known.live == live && known.n_notes == n_notes && known.asks == asks {
            return None;
        }
        let note = |seat: u32| shared.observed_leases.note(&seat_name(self.config.name(), seat));
        if let Some(own) = shared.seat {
            let noted = note(own).map(|note| &note.live);
            let is_news = known.live != live || known.noted.get(&own) != noted;
            if asks && is_news && noted.is_some_and(|noted| *noted != live) {
                self.note_changed.notify_one();
            }
        }
        let noted = live.iter().filter_map(|seat| Some((*seat, note(*seat)?.live.clone()))).collect();
        // A holder without a note asks for slots, too.
        let can_work = |seat: u32| note(seat).is_none_or(|note| note.has_complete_caches);
        let has_complete_peer = live.iter().any(|seat| shared.seat != Some(*seat) && can_work(*seat));
        Some(Seats { own: shared.seat, live, noted, n_notes, asks, has_complete_peer })
    }

    /// Asks for the slots of this replica, and continues to ask from then on.
    ///
    /// With incomplete caches it waits while another replica can work on the slots. Otherwise it asks for them, so that
    /// the controllers whose caches are complete work on them.
    pub(super) fn ask_for_slots(&self, division: &mut Division, now: Instant) {
        {
            let mut shared = self.shared.lock();
            let waits = !shared.has_complete_caches && division.seats().has_complete_peer;
            if waits || std::mem::replace(&mut shared.asks_for_slots, true) {
                return;
            }
        }
        self.note_changed.notify_one();
        if let Some(seats) = self.seats_if_changed(division.seats(), now) {
            division.divide(seats);
        }
    }

    /// Records that the caches are complete, so that this replica asks for slots and its note tells the others.
    pub(super) fn note_complete_caches(&self) {
        self.shared.lock().has_complete_caches = true;
        self.note_changed.notify_one();
    }

    /// Starts to release seats that this replica has seen expire, and returns when to try again.
    ///
    /// The replica with the lowest live seat does it at once, the others after a retry period, and each tries it once per
    /// Lease duration. A seat that was renewed in the meantime is left alone.
    pub(super) fn sweep(&self, sweep: &mut Sweep, seats: &Seats, now: Instant) -> Option<Instant> {
        while sweep.running.try_join_next().is_some() {}
        let own = seats.own?;
        let wait = if seats.live.first() == Some(&own) { Duration::ZERO } else { self.config.retry_period() };
        let (shared, mut again) = (self.shared.lock(), None::<Instant>);
        for seat in self.config.slots().all() {
            let name = seat_name(self.config.name(), seat);
            let Some((record, expiry)) = shared.observed_leases.expired_record(&name, now) else { continue };
            let tried = sweep.tried.get(&name).map(|tried| *tried + self.config.lease_duration());
            let at = tried.unwrap_or(expiry + wait).max(expiry + wait);
            if at > now {
                again = Some(again.map_or(at, |again| again.min(at)));
                continue;
            }
            let (client, config, record) = (self.client.clone(), self.config.seat(seat), record.clone());
            let lease = format!("{}/{name}", self.config.namespace());
            let (holders, wall) = (Holders::Numbered { process: self.config.process() }, (self.clock)());
            freezer::spawn(&mut sweep.running, async move {
                let holder = record.holder();
                match release_expired(&client, &config, holders, &record, wall).await {
                    Ok(true) => {
                        tracing::info!(lease, holder, "released the expired Lease of a seat");
                    }
                    Ok(false) => {}
                    Err(error) => tracing::debug!(lease, %error, "failed to release the expired Lease of a seat"),
                }
            });
            sweep.tried.insert(name, now);
            debug_assert!(sweep.tried.len() <= self.config.slots().all().len(), "there are as many seats as slots");
            let next = now + self.config.lease_duration();
            again = Some(again.map_or(next, |again| again.min(next)));
        }
        again
    }

    /// Holds a seat until `left` is `true`, then releases it. A seat that is lost is replaced.
    ///
    /// If another replica was faster, the next seat is tried at once: replicas that start together wait for each other's seats
    /// only for a moment.
    pub(super) async fn keep_seat(&self, mut left: watch::Receiver<bool>) {
        // Seats that others have just taken. The watch may not show it yet.
        let mut taken = BTreeSet::new();
        while !*left.borrow() {
            let Some(seat) = self.free_seat(&taken, Instant::now()) else {
                // More replicas than slots: this one waits until a seat is free.
                taken.clear();
                drop(timeout(Duration::from_secs(1), left.wait_for(|left| *left)).await);
                continue;
            };
            let end = self.hold_seat(seat, left.clone()).await;
            {
                let mut shared = self.shared.lock();
                shared.seat = None;
                shared.elections.remove(&seat_name(self.config.name(), seat));
            }
            self.changed.notify_one();
            if end == SeatEnd::Taken {
                taken.insert(seat);
                continue;
            }
            taken.clear();
            drop(timeout(SEAT_RETRY_DELAY, left.wait_for(|left| *left)).await);
        }
    }

    /// Returns the seat that this process has lost if no other replica has taken it, otherwise the first free one.
    ///
    /// With another seat, its slots would move twice. Replicas that replace others during a rolling update take over
    /// their seats, and with them the slots.
    fn free_seat(&self, taken: &BTreeSet<u32>, now: Instant) -> Option<u32> {
        let mut seats = self.config.slots().all().filter(|seat| !taken.contains(seat));
        let lost = seats.clone().find(|seat| self.is_own_record(&seat_name(self.config.name(), *seat)));
        lost.or_else(|| seats.find(|seat| self.is_free(&seat_name(self.config.name(), *seat), now)))
    }

    /// Returns `true` if the last record of a Lease has this process as its holder. The holder of a record by another
    /// process with the same identity has another name, see [`Holders::record`].
    fn is_own_record(&self, lease: &str) -> bool {
        let shared = self.shared.lock();
        shared.observed_leases.last(lease).is_some_and(|(record, _)| record.holder() == self.config.identity())
    }

    fn live_seats_annotation(&self, seat: u32) -> LeaseAnnotation {
        let (shared, config) = (self.shared.clone(), self.config.clone());
        let value = move || {
            let shared = shared.lock();
            if !shared.asks_for_slots {
                return String::new();
            }
            let live = live(&shared, &config, Some(seat), Instant::now());
            let note = live.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            if shared.has_complete_caches { note } else { note + INCOMPLETE }
        };
        LeaseAnnotation { name: LIVE_SEATS, value: Box::new(value), changed: self.note_changed.clone() }
    }

    /// Holds one seat until it is lost, another replica was faster, or `left` is `true`.
    ///
    /// The election runs on the runtime of the coordinator, which hands over slots. If that is blocked, the seat expires,
    /// so that no replica waits for this one to take a free slot. It keeps its own slots until it hands them over.
    async fn hold_seat(&self, seat: u32, mut left: watch::Receiver<bool>) -> SeatEnd {
        let free = std::sync::Arc::new(Notify::new());
        let Some(elector) = self.elector(self.config.seat(seat), &free, None) else { return SeatEnd::Over };
        let elector = elector.with_annotation(self.live_seats_annotation(seat));
        let (leadership, own) = (elector.leadership(), self.config.identity().to_owned());
        let (stop, stopped) = oneshot::channel();
        let mut election = Box::pin(elector.run(async { stopped.await.unwrap_or(false) }));
        let held = async {
            let mut holder = leadership.holder_changes();
            tokio::select! {
                biased;
                _left = left.wait_for(|left| *left) => return SeatEnd::Over,
                _taken = holder.wait_for(|holder| !holder.is_empty() && *holder != own) => return SeatEnd::Taken,
                led = leadership.wait_until_leading() => if !led { return SeatEnd::Over },
            }
            let before = self.shared.lock().seat.replace(seat);
            debug_assert!(before.is_none(), "a replica with two seats would get twice its share of the slots");
            self.changed.notify_one();
            drop(left.wait_for(|left| *left).await);
            SeatEnd::Over
        };
        let end = tokio::select! {
            biased;
            _lost = &mut election => return SeatEnd::Over,
            end = held => end,
        };
        // No write depends on a seat, so it is released at once.
        let _sent = stop.send(true);
        election.await;
        end
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_or_invalid_note_is_ignored() {
        let lease = |note: Value| json!({ "metadata": { "annotations": { LIVE_SEATS: note } } });
        let note = |live: &[u32], has_complete_caches| Some(SeatNote { live: live.to_vec(), has_complete_caches });
        assert_eq!(note_of(&lease("0,3".into())), note(&[0, 3], true));
        assert_eq!(note_of(&lease("0,3 incomplete".into())), note(&[0, 3], false));
        assert_eq!(note_of(&lease("".into())), note(&[], false));
        for note in [",", "0,x", "3,0", "0,0", "0,256", "0 complete", " incomplete"] {
            assert_eq!(note_of(&lease(note.into())), None, "{note}");
        }
        for lease in [lease(Value::Null), json!({})] {
            assert_eq!(note_of(&lease), None);
        }
    }
}
