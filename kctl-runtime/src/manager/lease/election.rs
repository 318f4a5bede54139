//! client-go's leader election as a pure state machine.
//!
//! Its inputs are answers of the API server and the time. Its outputs are the next request or wait, and what that means
//! for this process. Tests and the simulator drive it without a clock.
//!
//! ```text
//! candidate:  Get ─ held by another ─▶ wait (2 s + jitter) ─▶ Get
//!              │
//!              ├─ absent ─▶ Create ─┐
//!              └─ free or expired ─▶ Update ─▶ leader
//!
//! leader:     wait (2 s) ─▶ Update ─ ok ─▶ wait
//!                             └─ failed ─▶ Get ─▶ Update …  until the renew deadline (10 s): lost
//!                                           └─ absent ─▶ Create ─▶ wait
//!
//! stop:       Get ─▶ Update without a holder ─▶ released
//! ```
//!
//! A Lease is expired if this process has not seen its record change for the duration in it. A write that
//! succeeded makes this process the leader until the moment before the request plus that duration.
//!
//! # Invariants
//!
//! - A process considers itself the leader for a shorter time than other processes do. Its term counts from before the
//!   request, theirs from when they see the response.
//! - A candidate never acquires a held Lease whose record it saw change less than its duration ago. That includes a
//!   record with its name from a backup, which took the place of another holder's, and one whose holder was removed
//!   without a release.
//! - `Ended` is the last effect, and comes once.
//!
//! Two processes may still *act* at the same time, because a paused process does not look at its clock. That is what
//! [`WritePermit`](crate::writer::WritePermit) is for.

mod events;
mod failure;
mod holders;
mod observed;
mod release;
mod renew;

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{ElectionConfig, LeaseRequest, Record};
pub use events::{Effect, End, Input, Step};
use failure::Failure;
pub use holders::PROCESS;
use holders::process_number;
pub(in crate::manager) use holders::{Holders, other_process};
use observed::Observed;
use renew::Term;

/// The state of an election between two inputs.
///
/// Perform [`step`](Self::step), pass the result to [`handle`](Self::handle), and repeat until
/// [`Step::Done`]. [`Elector`](super::Elector) does so with a client.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::jiff::Timestamp;
/// use kctl_runtime::manager::lease::{Effect, Election, ElectionConfig, Input, LeaseRequest, Step};
/// use tokio::time::Instant;
///
/// let config = Arc::new(ElectionConfig::new("podset.example.com", "default", "host_1"));
/// let (now, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
/// let mut election = Election::new(config, now);
/// assert!(matches!(election.step(), Step::Send(LeaseRequest::Get, _)));
///
/// // There is no Lease yet, so this candidate creates it.
/// election.handle(Input::Absent, now, wall);
/// let Step::Send(LeaseRequest::Create(lease), _) = election.step().clone() else { panic!("it creates the Lease") };
///
/// let effects = election.handle(Input::Written(lease), now, wall);
/// assert!(effects.iter().any(|effect| matches!(effect, Effect::Leading(_))));
/// ```
#[derive(Debug)]
pub struct Election {
    config: Arc<ElectionConfig>,
    /// State of the random numbers, seeded by [`ElectionConfig::seed`].
    rng_state: u64,
    step: Step,
    /// Start of the last request.
    sent: Instant,
    /// The Lease as this process last wrote it, which a renewal replaces without reading. `None` after a renewal
    /// that failed.
    lease: Option<Value>,
    /// The Lease as this process last saw it.
    observed: Observed,
    /// `true` if no process had renewed the Lease when this one last read it as a candidate.
    is_new: bool,
    /// `None` for a candidate. Invariant: `None` once the election is over.
    leading: Option<Term>,
    /// Deadline of the release, while the Lease is being released.
    releasing: Option<Instant>,
    failure: Option<Failure>,
    holders: Holders,
    /// Start of the last request whose answer showed the last record. A later record was written after it. Invariant:
    /// not after `sent`.
    record_valid_since: Instant,
    /// Annotation of each record that this process writes as the holder.
    annotation: Option<(&'static str, String)>,
    /// Outcome of a candidate's writes that acquire the Lease.
    acquisition: Acquisition,
}

/// The outcome of a candidate's writes that acquire the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acquisition {
    /// Each of them was answered, so this process knows if it holds the Lease.
    Known,
    /// One of them got no response or a 5xx, so this process may hold the Lease.
    Unknown,
}

impl Election {
    /// Creates a candidate whose first step reads the Lease.
    pub fn new(config: Arc<ElectionConfig>, now: Instant) -> Self {
        let deadline = now + config.request_timeout();
        Self {
            rng_state: config.seed,
            config,
            step: Step::Send(LeaseRequest::Get, deadline),
            sent: now,
            lease: None,
            observed: Observed::default(),
            is_new: false,
            leading: None,
            releasing: None,
            failure: None,
            holders: Holders::One,
            record_valid_since: now,
            annotation: None,
            acquisition: Acquisition::Known,
        }
    }

    /// Sets the processes that may hold the Lease under this identity.
    ///
    /// Processes that hold it together read it before they renew it. A record that another process has renewed since
    /// the last read was written after that read began. So this process leads from the start of that read on, and does
    /// not write: one of n holders writes, without a conflict. If each holder renewed the Lease, each would conflict
    /// with the previous one. Each of them does so only if its Lease would otherwise end before its next read.
    pub(super) fn with_holders(mut self, holders: Holders) -> Self {
        self.holders = holders;
        self
    }

    /// Sets the record of the Lease and the time at which this process saw it change. The validity counts from that time,
    /// rather than from the first read.
    pub(super) fn with_observed_record(mut self, record: Record, observed_at: Instant) -> Self {
        self.observed = self.observed.assume(record, observed_at, &self.config.identity);
        self
    }

    /// Sets the last record that a watch of the Lease has shown, and when. If a read finds the same record, its validity counts
    /// from that time, which is up to a retry period earlier.
    pub(super) fn set_watched(&mut self, watched: Option<(Record, Instant)>) {
        self.observed.set_watched(watched);
    }

    /// Sets an annotation of the Lease, which the next write as its holder has.
    pub(super) fn set_annotation(&mut self, name: &'static str, value: String) {
        self.annotation = Some((name, value));
    }

    /// Returns `true` if this process does not lead and the request of this step would make it the holder.
    pub(super) fn is_acquiring(&self) -> bool {
        let writes = matches!(self.step, Step::Send(LeaseRequest::Create(_) | LeaseRequest::Update(_), _));
        writes && self.leading.is_none()
    }

    /// Starts the election with a missing Lease, so that a record counts from its own time rather than from the first read.
    pub(super) fn with_missing_lease(mut self) -> Self {
        self.observed.is_gone = true;
        self
    }

    /// Returns `true` if this process began to lead under a Lease that nothing had renewed yet. It has acquired the
    /// Lease, or others who hold it together have done so since their last retry period. Joining is not a renewal, and
    /// the first holder renews after a retry period.
    pub(super) fn joined_new_lease(&self) -> bool {
        self.is_new
    }

    /// Returns the next request or wait.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Returns the error of the last request that failed, or `None` once its cause is gone.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_ref().map(|failure| failure.text.as_str())
    }

    /// Takes an input and returns its consequences.
    ///
    /// `now` is the local monotonic clock, which all decisions use. `wall` is only written into the Lease.
    pub fn handle(&mut self, input: Input, now: Instant, wall: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.step == Step::Done {
            return effects;
        }
        match input {
            Input::Stop { release: true } => self.release(now, &mut effects),
            Input::Stop { release: false } => self.end(End::Stopped, &mut effects),
            Input::WaitEnded => self.attempt(now, wall, &mut effects),
            Input::Read(lease) => self.handle_lease(&lease, now, wall, &mut effects),
            Input::Absent if self.releasing.is_some() => self.release_missing(now, wall, &mut effects),
            Input::Absent if self.observed.is_deleted_while_held(now) => {
                // The Lease was deleted while another process leads. That process will create it again. The time of its
                // last renewal is unknown, so the lease duration counts from now.
                self.observed.record_deletion(now);
                self.failure = None;
                self.retry_later(now, &mut effects);
            }
            Input::Absent => {
                self.read_succeeded();
                self.acquisition = Acquisition::Known;
                self.is_new |= self.leading.is_none();
                let lease = self.with_annotations(self.initial_record(wall).create(&self.config));
                self.send(LeaseRequest::Create(lease), now);
            }
            Input::Written(lease) => self.write_succeeded(lease, now, &mut effects),
            Input::Failed(error) => self.handle_failure(&error, now, &mut effects),
        }
        self.check(&effects);
        effects
    }

    /// Returns the record of a Lease that this process creates.
    ///
    /// A leader whose Lease was deleted keeps its `acquireTime` and transitions. With an `acquireTime` of now, a process
    /// that joins would take the Lease for new, and conclude that no slot had an owner before.
    fn initial_record(&self, wall: Timestamp) -> Record {
        match self.observed.record() {
            Some(seen) if self.leading.is_some() => {
                let holder_identity = Some(self.config.identity.clone());
                let deleted = Record { holder_identity, ..seen.clone() };
                Record::for_holder(&self.config, &deleted, wall)
            }
            _ => {
                let created = Record::for_holder(&self.config, &Record::default(), wall);
                Record { lease_transitions: Some(0), ..created }
            }
        }
    }

    /// Checks the invariants of the fields after an input with these effects.
    fn check(&self, effects: &[Effect]) {
        let n_ended = effects.iter().filter(|effect| matches!(effect, Effect::Ended(_))).count();
        debug_assert_eq!(n_ended, usize::from(self.step == Step::Done), "the end is reported once");
        debug_assert!(self.step != Step::Done || self.leading.is_none(), "a process does not lead after the end");
        let is_within = |term: Term| term.deadline.is_none_or(|deadline| deadline <= term.until);
        debug_assert!(self.leading.is_none_or(is_within), "a renewal ends before the Lease does");
        self.observed.check();
        debug_assert!(self.record_valid_since <= self.sent, "an answer comes after its request");
    }

    /// Handles a Lease that was read: acquires or renews it, waits for its holder, or releases it.
    ///
    /// A leader that reads another holder's name stops at once. client-go continues trying until its deadline.
    fn handle_lease(&mut self, lease: &Value, now: Instant, wall: Timestamp, effects: &mut Vec<Effect>) {
        let identity = &self.config.identity;
        let record = match self.leading {
            Some(_) => self.holders.record_of_leader(identity, lease),
            None => self.holders.record(identity, lease),
        };
        self.acquisition = Acquisition::Known;
        let is_changed = self.observed.record().is_some_and(|previous| *previous != record);
        let is_own = record.holder() == self.config.identity && !self.shows_earlier_term(&record, now);
        self.observed.note_edit(&record, now);
        self.observed.is_gone = false;
        self.observed.is_own = is_own;
        self.observed.observe(record.clone(), now, effects);
        if self.leading.is_none() {
            self.is_new = !is_own || record.acquire_time == record.renew_time;
        }
        let before = std::mem::replace(&mut self.record_valid_since, self.sent);
        if self.releasing.is_some() {
            return self.release_read(lease, now, wall, effects);
        }
        if self.leading.is_some() && !is_own && !record.holder().is_empty() {
            return self.end(End::Lost(format!("{} is held by {}", self.lease_name(), record.holder())), effects);
        }
        if self.observed.is_held_by_other(now) {
            return self.follow_holder(now, effects);
        }
        self.read_succeeded();
        // A process that joined leaves a new Lease new. Without a renewal by an earlier process it would remain new as
        // long as others join.
        let is_renewed = is_changed && record.acquire_time != record.renew_time;
        if let (Holders::Together, Some(term), true, true) = (self.holders, self.leading, is_own, is_renewed) {
            let until = term.until.max(before + self.config.lease_duration);
            self.failure = None;
            self.lease = Some(lease.clone());
            self.lead_until(until, now, effects);
            if self.next_renewal(now).max(now) + self.config.request_timeout() <= until {
                return;
            }
            // The next read may be too late for the Lease that others renew, so this process renews it now.
            let deadline = Some(until.min(now + self.config.renew_deadline));
            self.leading = Some(Term { until, deadline });
        }
        self.join_or_acquire(lease, &record, now, wall, effects);
    }

    /// Returns `true` if a record that names this process is of an earlier term. Then another process held the Lease at
    /// the last read, and this one has not written it since.
    ///
    /// The API server was restored from a backup. The other process works until it notices that, so the Lease counts as
    /// held for its duration. Processes that hold a Lease together write records for each other, and only one that
    /// acquires the Lease counts a transition.
    fn shows_earlier_term(&self, record: &Record, now: Instant) -> bool {
        let shows = match self.holders {
            Holders::Together => self.observed.is_from_backup(record, now),
            Holders::One | Holders::Numbered { .. } => self.observed.is_held_by_other(now),
        };
        self.leading.is_none() && shows
    }

    /// Waits for another process that holds the Lease.
    fn follow_holder(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.failure = None;
        effects.extend(self.observed.confirm_holder());
        self.retry_later(now, effects);
    }

    /// Adds the annotation that was set, and the one that tells this process from others with the same identity.
    fn with_annotations(&self, mut lease: Value) -> Value {
        if let Holders::Numbered { process } = self.holders {
            lease["metadata"]["annotations"][PROCESS] = process_number(process).into();
        }
        if let Some((name, value)) = &self.annotation {
            lease["metadata"]["annotations"][*name] = value.as_str().into();
        }
        lease
    }

    /// Handles a successful write: this process leads, from the moment before the request was sent.
    fn write_succeeded(&mut self, lease: Value, now: Instant, effects: &mut Vec<Effect>) {
        self.failure = None;
        self.observed.is_own = true;
        self.observed.observe(Record::read(&lease), now, effects);
        self.lease = Some(lease);
        if self.releasing.is_some() {
            return self.end(End::Released, effects);
        }
        self.record_valid_since = self.sent;
        self.lead_until(self.sent + self.config.lease_duration, now, effects);
    }

    fn lease_name(&self) -> String {
        format!("the lease {}/{}", self.config.namespace, self.config.name)
    }

    /// Ends the election. Every later input is ignored.
    fn end(&mut self, end: End, effects: &mut Vec<Effect>) {
        self.leading = None;
        self.step = Step::Done;
        effects.push(Effect::Ended(end));
    }

    /// Sends a request with the earliest of its deadlines: its own, the renewal's, and the release's.
    fn send(&mut self, request: LeaseRequest, now: Instant) {
        let term = self.leading.and_then(|term| term.deadline);
        let latest = now + self.config.request_timeout();
        let deadline = [term, self.releasing].into_iter().flatten().fold(latest, Instant::min);
        self.sent = now;
        self.step = Step::Send(request, deadline);
    }
}

#[cfg(test)]
mod tests;
