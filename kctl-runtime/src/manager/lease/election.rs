//! client-go's leader election as a pure state machine.
//!
//! Its inputs are answers of the API server and the time; its outputs are the next request or wait, and what
//! that means for this process. Tests and the simulator drive it without a clock.
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
//! - A candidate never acquires a held Lease whose record it saw change less than its duration ago.
//! - `Ended` is the last effect, and comes once.
//!
//! Two processes may still *act* at the same time, because a paused process does not look at its clock. That is what
//! [`WritePermit`](crate::writer::WritePermit) is for.

mod holders;

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{ElectionConfig, LeaseRequest, Record, config::JITTER};
use crate::writer::ApiError;
pub(in crate::manager) use holders::{Holders, other_process};
use holders::{PROCESS, process_number};

/// Wait before the Lease is read again after a conflict (client-go, `retry.DefaultRetry`).
const CONFLICT_AGAIN_AFTER: Duration = Duration::from_millis(10);
/// Random part of that wait, as a multiple of it.
const CONFLICT_JITTER: f64 = 4.0;

/// A response or another event that drives an [`Election`].
///
/// A driver passes one input per step, and [`Stop`](Self::Stop) at any time.
#[derive(Debug)]
pub enum Input {
    /// The Lease was read.
    Found(Value),
    /// The Lease does not exist.
    Absent,
    /// The Lease was created or updated; this is the response.
    Written(Value),
    /// The request failed, or its outcome is unknown.
    Failed(ApiError),
    /// The time of [`Step::Wait`] has come, or the Lease was released.
    Woke,
    /// The process stops.
    Stop {
        /// `true` to release the Lease: no write of this process can be on its way any more.
        release: bool,
    },
}

/// The next request or wait of an [`Election`].
///
/// [`Election::step`] returns it. A step stays the same until the next input.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Send this request, and give up at this instant.
    Send(LeaseRequest, Instant),
    /// Wait until this instant.
    Wait(Instant),
    /// The election is over.
    Done,
}

/// A consequence for this process.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Another process holds the Lease than before; an empty string if it is free.
    Holder(String),
    /// This process leads, at least until this instant of the local clock.
    Leading(Instant),
    /// A leader had to read the Lease before it could renew it (`leader_election_slowpath_total`).
    SlowPath,
    /// This process does not lead and will not again. Comes exactly once, even if it never led.
    Ended(End),
}

/// The reason why an election is over.
///
/// ```
/// use kctl_runtime::manager::lease::End;
///
/// fn exit_code(end: &End) -> u8 {
///     match end {
///         End::Stopped | End::Released => 0,
///         End::Lost(why) => {
///             eprintln!("leader election lost: {why}");
///             1
///         }
///         _ => 1,
///     }
/// }
/// assert_eq!(exit_code(&End::Released), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The process stopped. A Lease that it held expires.
    Stopped,
    /// The process stopped and released the Lease.
    Released,
    /// The process led and could not renew the Lease; the string is the reason.
    Lost(String),
}

/// State of the news about the holder of the last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Publication {
    Done,
    /// The record came from elsewhere and may be outdated, so a read has to confirm it first.
    Pending,
}

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
    chance: u64,
    step: Step,
    /// Start of the last request.
    sent: Instant,
    /// The Lease as this process last wrote it, which a renewal replaces without reading. `None` after a renewal
    /// that failed.
    lease: Option<Value>,
    /// Its record, and when this process saw it change.
    seen: Option<(Record, Instant)>,
    /// The last record that a watch of the Lease has shown, and when. It may be older or newer than the last read.
    watched: Option<(Record, Instant)>,
    /// Tells if the holder of `seen` was published.
    publication: Publication,
    /// `true` if the record of `seen` is one that this process wrote. Invariant: `false` before a record was seen.
    seen_is_own: bool,
    /// `true` if the Lease did not exist at the last read.
    gone: bool,
    /// `true` if no process had renewed the Lease when this one last read it as a candidate.
    is_new: bool,
    /// `None` for a candidate. Invariant: `None` once the election is over.
    leading: Option<Term>,
    /// Deadline of the release, while the Lease is being released.
    releasing: Option<Instant>,
    failure: Option<Failure>,
    holders: Holders,
    /// Start of the last request whose answer showed the record in `seen`. A later record was written after it. Invariant:
    /// not after `sent`.
    shown: Instant,
    /// Annotation of each record that this process writes as the holder.
    annotation: Option<(&'static str, String)>,
    /// Outcome of the writes by which a candidate acquires the Lease.
    acquisition: Acquisition,
}

/// The outcome of the writes by which a candidate acquires the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acquisition {
    /// Each of them got a response, so this process knows if it holds the Lease.
    Known,
    /// One of them got no response, so this process may hold the Lease.
    Unknown,
}

/// The last failed request.
///
/// It is forgotten once its cause is gone: after a write, and after a read if a read failed. It is also
/// forgotten when another process turns out to hold the Lease, since a standby has nothing to write.
#[derive(Debug)]
struct Failure {
    /// The message, for readiness and for the reason of a lost Lease.
    text: String,
    request: FailedRequest,
}

/// The request that failed, which decides when the failure is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailedRequest {
    Read,
    Write,
}

/// The time for which this process leads.
#[derive(Debug, Clone, Copy)]
struct Term {
    /// End of the Lease by the local clock. Counted from before the request, because others may have seen the
    /// record that early.
    until: Instant,
    /// Deadline of the renewal that is under way. Invariant: not after `until`.
    deadline: Option<Instant>,
}

impl Election {
    /// Creates a candidate whose first step reads the Lease.
    pub fn new(config: Arc<ElectionConfig>, now: Instant) -> Self {
        let deadline = now + config.request_timeout();
        Self {
            chance: config.seed,
            config,
            step: Step::Send(LeaseRequest::Get, deadline),
            sent: now,
            lease: None,
            seen: None,
            watched: None,
            publication: Publication::Done,
            seen_is_own: false,
            gone: false,
            is_new: false,
            leading: None,
            releasing: None,
            failure: None,
            holders: Holders::One,
            shown: now,
            annotation: None,
            acquisition: Acquisition::Known,
        }
    }

    /// Sets the processes that may hold the Lease under this identity.
    ///
    /// Processes that hold it together read it before they renew it. A record that another one has renewed since the
    /// last read was written after that read began, so this process leads from then on, without writing. So one of n
    /// holders writes, without a conflict. If each holder renewed the Lease, each would conflict with the previous one.
    pub(super) fn with_holders(mut self, holders: Holders) -> Self {
        self.holders = holders;
        self
    }

    /// Makes it count the validity of the Lease from when this process saw this record change, rather than from its own
    /// first read.
    pub(super) fn with_observed_record(mut self, record: Record, observed_at: Instant) -> Self {
        self.seen_is_own = record.holder() == self.config.identity;
        self.publication = Publication::Pending;
        self.seen = Some((record, observed_at));
        self
    }

    /// Sets the last record that a watch of the Lease has shown, and when. If a read finds the same record, its validity counts
    /// from that time, which is up to a retry period earlier.
    pub(super) fn set_watched(&mut self, watched: Option<(Record, Instant)>) {
        self.watched = watched;
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

    /// Makes it start with the knowledge that the Lease is missing, so that the record counts from its own time rather than from
    /// the first read.
    pub(super) fn with_missing_lease(mut self) -> Self {
        self.gone = true;
        self
    }

    /// Returns `true` if this process began to lead under a Lease that nothing had renewed yet. It has acquired the
    /// Lease, or others who hold it together have done so since their last retry period. Joining is not a renewal, and
    /// the first holder renews after a retry period.
    pub(super) fn is_of_new_lease(&self) -> bool {
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
            Input::Woke => self.attempt(now, wall, &mut effects),
            Input::Found(lease) => self.found(&lease, now, wall, &mut effects),
            Input::Absent if self.releasing.is_some() && self.leading.is_none() => self.end(End::Stopped, &mut effects),
            Input::Absent if self.releasing.is_some() => {
                // The held Lease was deleted by hand. Without a record, a process that starts later could not know that
                // it is free.
                let transitions = Record { lease_transitions: Some(0), ..Record::default() };
                let released = Record::released(&transitions, wall);
                self.send(LeaseRequest::Create(released.create(&self.config)), now);
            }
            Input::Absent if self.is_held(now) => {
                // The Lease was deleted while another process leads. That process will create it again. The time of its
                // last renewal is unknown, so the lease duration counts from now.
                if let Some((_, observed_at)) = self.seen.as_mut().filter(|_| !self.gone) {
                    *observed_at = now;
                }
                self.gone = true;
                self.failure = None;
                self.retry_later(now, &mut effects);
            }
            Input::Absent => {
                self.read_succeeded();
                self.acquisition = Acquisition::Known;
                self.is_new |= self.leading.is_none();
                let lease = self.with_annotations(self.created(wall).create(&self.config));
                self.send(LeaseRequest::Create(lease), now);
            }
            Input::Written(lease) => self.write_succeeded(lease, now, &mut effects),
            Input::Failed(error) => self.failed(&error, now, &mut effects),
        }
        self.check(&effects);
        effects
    }

    /// Returns the record of a Lease that this process creates.
    ///
    /// A leader whose Lease was deleted keeps its `acquireTime` and transitions. With an `acquireTime` of now, a process
    /// that joins would take the Lease for new, and conclude that no slot had an owner before.
    fn created(&self, wall: Timestamp) -> Record {
        match &self.seen {
            Some((seen, _)) if self.leading.is_some() => {
                let holder_identity = Some(self.config.identity.clone());
                let deleted = Record { holder_identity, ..seen.clone() };
                Record::held(&self.config, &deleted, wall)
            }
            _ => {
                let created = Record::held(&self.config, &Record::default(), wall);
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
        debug_assert!(!self.seen_is_own || self.seen.is_some(), "a record that was written was seen");
        debug_assert!(self.shown <= self.sent, "an answer comes after its request");
    }

    /// Starts a try (`tryAcquireOrRenew`): a leader renews without reading, a candidate reads.
    ///
    /// A leader sends its update with the `resourceVersion` of its last one. That saves a read per renewal, and fails
    /// with a conflict if anything else wrote the Lease.
    fn attempt(&mut self, now: Instant, wall: Timestamp, effects: &mut Vec<Effect>) {
        if self.releasing.is_some() {
            return self.send(LeaseRequest::Get, now);
        }
        let renewal = now + self.config.renew_deadline;
        let Some(term) = &mut self.leading else { return self.send(LeaseRequest::Get, now) };
        let deadline = *term.deadline.get_or_insert(renewal.min(term.until));
        if now >= deadline {
            return self.lose(effects);
        }
        match (&self.lease, &self.seen) {
            (Some(lease), Some((record, _))) if self.holders != Holders::Together => {
                let next = Record::held(&self.config, record, wall).update(&self.config, lease);
                self.send(LeaseRequest::Update(self.with_annotations(next)), now);
            }
            _ => self.send(LeaseRequest::Get, now),
        }
    }

    /// Handles a Lease that was read: acquires or renews it, waits for its holder, or releases it.
    ///
    /// A leader that reads another holder's name stops at once. client-go continues trying until its deadline.
    fn found(&mut self, lease: &Value, now: Instant, wall: Timestamp, effects: &mut Vec<Effect>) {
        let record = self.holders.record(&self.config.identity, lease);
        self.gone = false;
        self.acquisition = Acquisition::Known;
        let is_renewed = self.seen.as_ref().is_some_and(|(previous, _)| *previous != record);
        let mine = record.holder() == self.config.identity;
        self.seen_is_own = mine;
        self.observe(record.clone(), now, effects);
        if self.leading.is_none() {
            self.is_new = !mine || record.acquire_time == record.renew_time;
        }
        let before = std::mem::replace(&mut self.shown, self.sent);
        if self.releasing.is_some() {
            if !mine {
                // Another process holds the Lease by now, so it is not released.
                return self.end(End::Stopped, effects);
            }
            let next = Record::released(&record, wall).update(&self.config, lease);
            return self.send(LeaseRequest::Update(next), now);
        }
        if self.leading.is_some() && !mine && !record.holder().is_empty() {
            return self.end(End::Lost(format!("{} is held by {}", self.lease(), record.holder())), effects);
        }
        if self.is_held(now) {
            self.failure = None;
            // Whoever chose this Lease because it seemed free has to learn that its holder lives.
            if std::mem::replace(&mut self.publication, Publication::Done) == Publication::Pending {
                effects.push(Effect::Holder(self.seen_holder().into()));
            }
            return self.retry_later(now, effects);
        }
        self.read_succeeded();
        // A process that joined leaves a new Lease new. Without a renewal by an earlier one it would stay so as long as others
        // join.
        let is_renewed = is_renewed && record.acquire_time != record.renew_time;
        if let (Holders::Together, Some(term), true, true) = (self.holders, self.leading, mine, is_renewed) {
            self.failure = None;
            self.lease = Some(lease.clone());
            return self.lead_until(term.until.max(before + self.config.lease_duration), now, effects);
        }
        if self.leading.is_some() && self.holders != Holders::Together {
            effects.push(Effect::SlowPath);
        }
        let mut next = Record::held(&self.config, &record, wall);
        if self.holders == Holders::Together && self.leading.is_none() && self.is_new {
            // Joining does not renew the Lease: for the next process that joins, it is as new as for this one.
            next.acquire_time.clone_from(&next.renew_time);
        }
        self.send(LeaseRequest::Update(self.with_annotations(next.update(&self.config, lease))), now);
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
        self.seen_is_own = true;
        self.observe(Record::read(&lease), now, effects);
        self.lease = Some(lease);
        if self.releasing.is_some() {
            return self.end(End::Released, effects);
        }
        self.shown = self.sent;
        self.lead_until(self.sent + self.config.lease_duration, now, effects);
    }

    /// Notes that this process leads until this instant, and waits for the next renewal.
    fn lead_until(&mut self, until: Instant, now: Instant, effects: &mut Vec<Effect>) {
        debug_assert!(self.leading.is_none_or(|term| term.until <= until), "a renewal does not shorten the Lease");
        self.leading = Some(Term { until, deadline: None });
        effects.push(Effect::Leading(until));
        self.step = Step::Wait(now + self.config.retry_period);
    }

    /// Forgets a failed read. A failed write is remembered until the write that follows.
    fn read_succeeded(&mut self) {
        self.failure.take_if(|failure| failure.request == FailedRequest::Read);
    }

    /// Handles a failed request.
    ///
    /// A renewal that failed is tried again at once, with a read first, whatever the reason. If that fails too, the
    /// next try comes after the retry period (`tryAcquireOrRenew`), or soon after a conflict. Replicas that hold a
    /// Lease together conflict with each other, most of all when they start together.
    ///
    /// A candidate that lost a race for the Lease has no failure. One of several replicas that share work reads the
    /// holder soon: it joins it, or takes another Lease.
    fn failed(&mut self, error: &ApiError, now: Instant, effects: &mut Vec<Effect>) {
        let updating = matches!(self.step, Step::Send(LeaseRequest::Update(_), _));
        let conflict = updating && error.is_conflict();
        let creating = matches!(self.step, Step::Send(LeaseRequest::Create(_), _));
        // Another candidate was faster. The next read returns the holder.
        let lost_race = self.leading.is_none() && (conflict || (creating && error.code() == Some(409)));
        if self.is_acquiring() && error.code().is_none() {
            self.acquisition = Acquisition::Unknown;
        }
        if lost_race {
            self.failure = None;
        } else {
            let request = if updating || creating { FailedRequest::Write } else { FailedRequest::Read };
            self.failure = Some(Failure { text: error.to_string(), request });
        }
        if let Some(deadline) = self.releasing {
            if now >= deadline {
                return self.end(End::Stopped, effects);
            }
            let wait = if conflict { CONFLICT_AGAIN_AFTER } else { self.config.retry_period };
            self.step = Step::Wait((now + wait).min(deadline));
            return;
        }
        // A renewal that skipped the read may have failed because the Lease changed, so the next try reads it. Processes
        // that hold a Lease together always read it. Two that renew it at the same time would do so each time, so the one
        // that lost waits for a moment.
        let meets_others = self.holders == Holders::Together && conflict;
        let fast = self.leading.is_some() && updating && self.lease.is_some() && !meets_others;
        if fast && self.leading.is_some_and(|term| term.deadline.is_none_or(|deadline| now < deadline)) {
            self.lease = None;
            return self.send(LeaseRequest::Get, now);
        }
        self.retry_later(now, effects);
        let reads_soon = lost_race && self.holders != Holders::One;
        if matches!(self.step, Step::Wait(_)) && (reads_soon || (conflict && self.leading.is_some())) {
            // Several replicas may have lost at the same time. Without the random part they would meet again.
            let again = CONFLICT_AGAIN_AFTER.mul_f64(1.0 + CONFLICT_JITTER * self.random());
            let Step::Wait(until) = &mut self.step else { return };
            *until = (*until).min(now + again);
        }
    }

    fn seen_holder(&self) -> &str {
        self.seen.as_ref().map_or("", |(record, _)| record.holder())
    }

    /// Returns `true` if another process held the Lease and it has not expired since (`isLeaseValid`).
    fn is_held(&self, now: Instant) -> bool {
        self.expiry_of_other().is_some_and(|expiry| expiry > now)
    }

    /// Returns when the Lease of another process expires or has expired, `None` without such a holder.
    fn expiry_of_other(&self) -> Option<Instant> {
        let (record, observed_at) = self.seen.as_ref()?;
        let is_other = !record.holder().is_empty() && !self.seen_is_own;
        is_other.then(|| *observed_at + record.duration())
    }

    /// Waits for the next try. Candidates add a random part, so that they don't all try at once.
    ///
    /// Without the random part all candidates of a Deployment that was scaled up would read the Lease in the same
    /// moment. Those that will hold it together do not compete for it, so they try when it expires.
    fn retry_later(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let period = self.config.retry_period;
        let Some(term) = self.leading else {
            let jittered = now + period + period.mul_f64(JITTER * self.random());
            let expiry = self.expiry_of_other().filter(|expiry| self.holders == Holders::Together && *expiry > now);
            self.step = Step::Wait(expiry.map_or(jittered, |expiry| expiry.min(jittered)));
            return;
        };
        let deadline = term.deadline.unwrap_or(term.until);
        if now >= deadline {
            return self.lose(effects);
        }
        self.step = Step::Wait((now + period).min(deadline));
    }

    /// Ends the election. Releases the Lease first, if this process leads and may release it.
    ///
    /// A Lease that is not released is taken over after `lease_duration`; a released one at once. A candidate whose write
    /// may have acquired the Lease releases it too: nothing would work under it.
    fn release(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let is_unknown = self.acquisition == Acquisition::Unknown || self.is_acquiring();
        let may_hold = self.leading.is_some() || is_unknown;
        if !may_hold || !self.config.release_on_stop {
            return self.end(End::Stopped, effects);
        }
        self.releasing = Some(now + self.config.renew_deadline);
        self.send(LeaseRequest::Get, now);
    }

    /// Ends the election because the renew deadline has passed.
    fn lose(&mut self, effects: &mut Vec<Effect>) {
        let within = self.config.renew_deadline;
        let cause = self.failure.take().map_or_else(|| "no answer".into(), |failure| failure.text);
        self.end(End::Lost(format!("{} was not renewed within {within:?}: {cause}", self.lease())), effects);
    }

    fn lease(&self) -> String {
        format!("the lease {}/{}", self.config.namespace, self.config.name)
    }

    /// Ends the election. Every later input is ignored.
    fn end(&mut self, end: End, effects: &mut Vec<Effect>) {
        self.leading = None;
        self.step = Step::Done;
        effects.push(Effect::Ended(end));
    }

    /// Sends a request with the earliest of its deadlines: its own, that of the renewal, that of the release.
    fn send(&mut self, request: LeaseRequest, now: Instant) {
        let term = self.leading.and_then(|term| term.deadline);
        let latest = now + self.config.request_timeout();
        let deadline = [term, self.releasing].into_iter().flatten().fold(latest, Instant::min);
        self.sent = now;
        self.step = Step::Send(request, deadline);
    }

    /// Notes a record if it changed. Only the local time of the change counts; the times in it are those of
    /// another clock.
    fn observe(&mut self, record: Record, now: Instant, effects: &mut Vec<Effect>) {
        let watched = self.watched.as_ref().filter(|(watched, _)| *watched == record);
        let observed_at = watched.map_or(now, |(_, watched_at)| now.min(*watched_at));
        if let Some((_, seen_at)) = self.seen.as_mut().filter(|(previous, _)| *previous == record) {
            *seen_at = observed_at.min(*seen_at);
            return;
        }
        if self.seen.as_ref().map(|(previous, _)| previous.holder()) != Some(record.holder()) {
            self.publication = Publication::Done;
            effects.push(Effect::Holder(record.holder().into()));
        }
        self.seen = Some((record, observed_at));
    }

    /// Returns the next random number in `0.0..=1.0` (splitmix64).
    fn random(&mut self) -> f64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let top = u32::try_from(mixed >> 32).unwrap_or(u32::MAX);
        f64::from(top) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests;
