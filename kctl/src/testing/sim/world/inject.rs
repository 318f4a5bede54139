//! Injects the faults of a plan into a run.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use kctl_apiserver::faults::{EventFault, RequestFault, RequestSummary, Rule};
use kctl_runtime::shard::slot_name;
use kube::{Api, Client, api::DeleteParams};
use tokio::{task::JoinSet, time::Instant};

use super::Shared;
use crate::testing::sim::{
    checks::{index_of, is_app, is_bookkeeping},
    lease_lapse::{LeaseLapse, longest_write},
    plan::{self, BOOKMARK_INTERVAL, Fault, Freeze, OUTAGE, SLOW_LISTS_DURATION, TimedFault, WriteFault},
};

/// Returns `true` for a write that belongs to the work of the app, unlike writes of Leases and Events.
pub(super) fn is_work(request: &RequestSummary) -> bool {
    request.is_write() && !is_bookkeeping(&request.group, &request.resource)
}

/// Returns the rule for a fault at the nth read of the app.
///
/// The plan chose the fault for the verb that this read has in the run without faults. Earlier faults of the plan
/// change which reads the app sends. So the rule looks at the verb again, and does not act on a read that the fault
/// does not fit.
fn fault_on_read(nth: u64, fault: RequestFault) -> Rule {
    let n_reads = AtomicU64::new(0);
    Rule::request(fault, move |request| {
        let is_read =
            is_app(&request.client) && !request.is_write() && !is_bookkeeping(&request.group, &request.resource);
        is_read && n_reads.fetch_add(1, Ordering::Relaxed) + 1 == nth && plan::fits(request.verb, fault)
    })
}

impl Shared {
    /// Sets up the faults of a plan. Returns the beginning and end of each one that happens at a time.
    pub(super) fn inject(self: &Arc<Self>, plan: &[Fault], tasks: &mut JoinSet<()>) -> Vec<Range<Instant>> {
        let start = Instant::now();
        let mut timed = Vec::new();
        for (index, fault) in plan.iter().enumerate() {
            let begins = self.fault_targets.begins(index);
            match fault.clone() {
                Fault::Write { nth, what } => self.faults.add(self.on_write(what, begins).nth(nth).times(1)),
                Fault::Read { nth, what } => self.faults.add(fault_on_read(nth, what).then(begins)),
                Fault::Event { nth, what } => {
                    let rule = Rule::event(what, |event| {
                        is_app(&event.client) && !is_bookkeeping(&event.group, &event.resource)
                    });
                    self.faults.add(rule.then(begins).nth(nth).times(1));
                }
                Fault::External { nth, what } => self.externals.lock().add(nth, index, what),
                // Below, after the rules of all other faults.
                Fault::Jitter { .. } => {}
                Fault::AtStep { nth } => drop(self.missed_steps.lock().0.insert(nth)),
                Fault::At { time, what } => {
                    timed.push(start + time..self.inject_at(start + time, what));
                    let shared = self.clone();
                    tasks.spawn(async move {
                        tokio::time::sleep_until(start + time).await;
                        shared.inject_timed(what).await;
                    });
                }
            }
        }
        if plan.iter().any(|fault| fault.jitter_seed().is_some()) {
            self.delay_some_requests();
        }
        timed
    }

    /// Sets up the rules of a fault that happens at a time. Returns its end.
    fn inject_at(&self, at: Instant, what: TimedFault) -> Instant {
        match what {
            TimedFault::Partition { instance, length } => self.partition(instance, at, length),
            TimedFault::SlowLists { instance, delay } => {
                self.slow_lists(instance, at, delay);
                at + SLOW_LISTS_DURATION + delay
            }
            TimedFault::Freeze(Freeze { instance, length, .. }) => {
                self.delay_writes_before(instance, at);
                at + length
            }
            TimedFault::Lapse(LeaseLapse { length, write_delay, .. }) => at + length + write_delay,
            TimedFault::RollingUpdate => {
                self.pending_updates.fetch_add(1, Ordering::Relaxed);
                at
            }
            TimedFault::Crash { .. }
            | TimedFault::Stop { .. }
            | TimedFault::ClockJump { .. }
            | TimedFault::LeaseDeleted { .. } => at,
        }
    }

    /// Returns the longest time that a write of this scenario may take.
    pub(super) fn longest_write(&self) -> Duration {
        longest_write(self.scenario.slots.map_or(0, |slots| slots.count()))
    }

    /// Keeps the state from counting as settled until a time: something is held back that would change it.
    pub(super) fn delay_settling_until(&self, end: Instant) {
        let mut until = self.held_until.lock();
        *until = until.max(Some(end));
    }

    /// Returns the rule for a fault at a write of the app, which calls `begins`. Crashes also determine how the next process
    /// starts.
    fn on_write(&self, what: WriteFault, mut begins: impl FnMut() + Send + 'static) -> Rule {
        let fault = match &what {
            WriteFault::Fails(fault) => *fault,
            WriteFault::Crash { moment, .. } | WriteFault::Outage(moment) => RequestFault::Crash(*moment),
            WriteFault::CrashLate(time) => RequestFault::CrashLate(*time),
        };
        let rule = Rule::request(fault, |request| is_app(&request.client) && is_work(request));
        match what {
            WriteFault::Crash { behind: Some(behind), .. } => {
                let next = self.next_behind.clone();
                rule.then(move || {
                    begins();
                    *next.lock() = Some(behind.clone());
                })
            }
            WriteFault::Outage(_) => {
                let next = self.next_start.clone();
                rule.then(move || {
                    begins();
                    *next.lock() = Some(OUTAGE);
                })
            }
            _ => rule.then(begins),
        }
    }

    /// Lets the writes that a replica sends during a partition, or shortly before it, arrive after its end. Their process may
    /// have given them up, or be gone, by then.
    ///
    /// The kernel sends the data of a connection again until the partition is over. A write that would be in flight for
    /// longer than the permit allows for is not among them.
    fn writes_after_partition(&self, instance: usize, end: Instant) {
        let longest = self.longest_write();
        let from = end.checked_sub(longest).unwrap_or(end);
        self.faults.add(Rule::request(RequestFault::Late(longest), move |request| {
            index_of(&request.client) == Some(instance) && is_work(request) && (from..end).contains(&Instant::now())
        }));
    }

    /// Delays all requests and events between a process and the server during a partition by the length of the
    /// partition. Returns the end of the partition, or the time at which the last late write has arrived.
    ///
    /// Other requests and events may arrive later. `held_until` keeps the state from settling before lists, watches and
    /// events do, and a reconcile whose request is delayed is still running.
    fn partition(&self, instance: usize, from: Instant, length: Duration) -> Instant {
        let mut end = from + length;
        // Without a Lease a process cannot know what is still in flight.
        if self.scenario.instances > 1 {
            self.writes_after_partition(instance, end);
            end += self.longest_write();
        }
        let is_from_instance = move |client: &str| client.starts_with(&format!("app-{instance}."));
        let now = move || (from..from + length).contains(&Instant::now());
        let holds = || {
            let held_until = self.held_until.clone();
            move || {
                let mut until = held_until.lock();
                *until = until.max(Some(Instant::now() + length));
            }
        };
        let delay = RequestFault::Delay(length);
        let fills = |request: &RequestSummary| ["list", "watch"].contains(&request.verb);
        let cache_requests =
            Rule::request(delay, move |request| is_from_instance(&request.client) && fills(request) && now());
        self.faults.add(cache_requests.then(holds()));
        self.faults.add(Rule::request(delay, move |request| is_from_instance(&request.client) && now()));
        let events = Rule::event(EventFault::Hold(length), move |event| is_from_instance(&event.client) && now());
        self.faults.add(events.then(holds()));
        end
    }

    /// Delays the responses of the lists that fill the caches of a process. Its watches continue and get many
    /// bookmarks.
    fn slow_lists(&self, instance: usize, from: Instant, delay: Duration) {
        let now = move || (from..from + SLOW_LISTS_DURATION).contains(&Instant::now());
        let bookmarks = RequestFault::Bookmarks { every: BOOKMARK_INTERVAL, lasts: SLOW_LISTS_DURATION };
        for (verb, fault) in [("list", RequestFault::DelayResponse(delay)), ("watch", bookmarks)] {
            let fills_cache = move |request: &RequestSummary| {
                let is_own = request.client.starts_with(&format!("app-{instance}."));
                is_own && request.verb == verb && !is_bookkeeping(&request.group, &request.resource)
            };
            self.faults.add(Rule::request(fault, move |request| fills_cache(request) && now()));
        }
    }

    /// Deletes the Lease of a slot, as an administrator would with kubectl.
    async fn delete_lease(&self, slot: u32) {
        let name = slot_name((self.scenario.app)().name(), slot);
        self.log("fault", format!("the Lease {name} is deleted by hand"));
        let leases = Api::<Lease>::default_namespaced(Client::new(self.server.service(), "default"));
        // A Lease that does not exist yet needs no deletion, so a 404 is ignored.
        drop(leases.delete(&name, &DeleteParams::default()).await);
    }

    /// Injects a fault that is bound to a time rather than to a request.
    async fn inject_timed(self: Arc<Self>, what: TimedFault) {
        match what {
            TimedFault::LeaseDeleted { slot } => self.delete_lease(slot).await,
            TimedFault::RollingUpdate => self.update_replicas().await,
            TimedFault::Freeze(freeze) => self.freeze(freeze).await,
            TimedFault::Crash { instance } => self.crash(instance),
            TimedFault::Stop { instance, downtime } => self.stop(instance, downtime),
            TimedFault::Partition { instance, length } => {
                self.log("fault", format!("app-{instance} does not reach the server for {length:?}"));
            }
            TimedFault::SlowLists { instance, delay } => {
                self.log("fault", format!("the lists of app-{instance} {}", plan::slow_lists(delay)));
                self.crash(instance);
            }
            TimedFault::Lapse(lapse) => {
                let lease = lapse.leases.slot().map(|slot| slot_name((self.scenario.app)().name(), slot));
                let holder = match lapse.leases.slot() {
                    Some(slot) => self.checks.lock().owner(slot),
                    None => self.checks.lock().leader(),
                };
                if let Some(instance) = holder {
                    self.log("fault", format!("{instance}: {lapse}"));
                    lapse.begin(&self.faults, &instance, lease);
                }
            }
            TimedFault::ClockJump { instance, seconds } => {
                self.log("fault", format!("the clock of app-{instance} jumps by {seconds} s"));
                if let Some(offset) = self.clock_offsets.get(instance) {
                    offset.fetch_add(seconds, Ordering::Relaxed);
                }
            }
        }
    }
}
