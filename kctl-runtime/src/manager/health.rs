//! Is the process ready, and does it live? Read from what can be seen of the manager, at the moment somebody asks.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    View,
    lease::{Leadership, Standing},
    metrics::Metrics,
};
use crate::{key::ObjectKey, queue::WorkQueue, source::Source};

/// A leader may be so late to notice that its lease ran out (controller-runtime passes the same to client-go's check).
const LEASE_TOLERANCE: Duration = Duration::from_secs(20);
/// Something that has work and does none for so long is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(60);

/// One of the things that have to be in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, which is a part of a path.
    pub name: String,
    /// A note, or what is wrong.
    pub result: Result<String, String>,
}

/// Answers the probes of a kubelet.
pub struct Health {
    view: View,
    metrics: Metrics,
    /// What seemed stuck when it was last asked: how far it had come, and since when.
    suspects: Mutex<HashMap<String, (u64, Instant)>>,
}

impl Health {
    /// The health of a manager.
    pub fn new(view: View, metrics: Metrics) -> Self {
        Self { view, metrics, suspects: Mutex::default() }
    }

    /// Whether this process does, or could at once do, what it is there for: its caches are full and followed, its webhooks have
    /// a certificate, and it leads or waits for the lease. A standby is ready: otherwise a rolling update would wait for ever.
    pub fn ready(&self) -> Vec<Check> {
        let sources = self.view.sources();
        let caches = names(sources).into_iter().zip(sources);
        let mut checks: Vec<Check> =
            caches.map(|(name, source)| Check { name: format!("cache-{name}"), result: cache(source) }).collect();
        let opened = self.opened();
        let watches = names(&opened).into_iter().zip(&opened);
        checks.extend(watches.map(|(name, source)| Check { name: format!("watch-{name}"), result: watch(source) }));
        if let Some(leadership) = self.view.leadership() {
            checks.push(Check { name: "leader-election".into(), result: election(leadership) });
        }
        let others = self.view.others_ready.iter();
        checks.extend(others.map(|other| Check { name: other.name.into(), result: (other.is_ready)() }));
        checks.push(Check { name: "ping".into(), result: Ok(String::new()) });
        checks
    }

    /// Whether this process lives: to start it again would not help against anything that is reported by
    /// [`ready`](Self::ready), and is the only help against these.
    pub fn live(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        let sources = self.view.sources();
        let opened = self.opened();
        let of_controllers = names(sources).into_iter().map(|name| format!("store-{name}")).zip(sources);
        let at_run_time = names(&opened).into_iter().map(|name| format!("store-watch-{name}")).zip(&opened);
        for (name, source) in of_controllers.chain(at_run_time) {
            let store = source.store();
            let stuck = self.stuck(&name, store.backlog() > 0, store.applied());
            checks.push((name, "deltas wait and none is taken", stuck));
        }
        for (n, aside) in self.view.asides().iter().enumerate() {
            let name = format!("handler-{}-{}", aside.controller(), n + 1);
            let stuck = self.stuck(&name, aside.waiting() > 0, aside.n_handled());
            checks.push((name, "`map` or `when` of a relation does not return", stuck));
        }
        let mut checks: Vec<Check> =
            checks.into_iter().map(|(name, what, stuck)| stuck_or_ok(name, what, stuck)).collect();
        for ((spec, queue), caches) in self.view.controllers().iter().zip(self.view.awaited()) {
            let stats = queue.stats();
            let idle = stats.depth > 0 && stats.processing == 0 && self.works(caches);
            let name = format!("controller-{}", spec.name);
            let stuck = self.stuck(&name, idle, self.metrics.reconciled(&spec.name));
            let mut check = stuck_or_ok(name, "keys wait and no worker takes one", stuck);
            if check.result.is_ok() {
                check.result = longest(queue, spec.timeout);
            }
            checks.push(check);
        }
        if let Some(leadership) = self.view.leadership() {
            let result = leadership.check(LEASE_TOLERANCE).map(|()| String::new());
            checks.push(Check { name: "leader-election".into(), result });
        }
        checks.push(Check { name: "ping".into(), result: Ok(String::new()) });
        checks
    }

    /// The informers that were opened at run time, beside those of controllers, in an order that stays.
    fn opened(&self) -> Vec<Arc<Source>> {
        let declared = |source: &Arc<Source>| self.view.sources().iter().any(|own| Arc::ptr_eq(own, source));
        let open = self.view.informers.open().into_iter().map(|(source, _users)| source);
        let mut opened: Vec<_> = open.filter(|source| !declared(source)).collect();
        opened.sort_by(|a, b| a.identity().cmp(b.identity()));
        opened
    }

    /// Whether the workers of a controller with these caches should be at work: a standby has none, and neither has a
    /// controller whose caches are not full. Those of others delay nobody.
    fn works(&self, caches: &[Arc<Source>]) -> bool {
        self.view.leadership().is_none_or(Leadership::is_leading)
            && caches.iter().all(|source| source.store().is_synced())
    }

    /// How long something has been suspect without coming any further, once that is too long.
    fn stuck(&self, name: &str, suspect: bool, progress: u64) -> Option<Duration> {
        let mut suspects = self.suspects.lock();
        if !suspect {
            suspects.remove(name);
            return None;
        }
        let now = Instant::now();
        let (known, since) = suspects.entry(name.into()).or_insert((progress, now));
        if *known != progress {
            (*known, *since) = (progress, now);
        }
        Some(now.duration_since(*since)).filter(|since| *since >= STUCK_AFTER)
    }
}

fn stuck_or_ok(name: String, what: &str, stuck: Option<Duration>) -> Check {
    let result = stuck.map_or(Ok(String::new()), |since| Err(format!("{what}, for {} s", since.as_secs())));
    Check { name, result }
}

/// The reconcile that has been running for longest, once that is long. It may be right to take so long; beyond its timeout it
/// is not: what cannot be ended blocks its thread.
fn longest(queue: &WorkQueue<ObjectKey>, timeout: Option<Duration>) -> Result<String, String> {
    let mut running = queue.processing_for(STUCK_AFTER).into_iter();
    let Some((key, since)) = running.next() else { return Ok(String::new()) };
    let others = match running.len() {
        0 => String::new(),
        others => format!(", and {others} more for a minute or longer"),
    };
    let told = format!("{key} has been reconciled for {} s{others}", since.as_secs());
    match timeout {
        Some(timeout) if since >= timeout.saturating_add(STUCK_AFTER) => {
            Err(format!("{told}, although its timeout is {timeout:?}: it blocks its thread"))
        }
        _ => Ok(told),
    }
}

/// The kinds of sources as parts of paths. Those of one kind, in other namespaces or with other selectors, are numbered.
fn names(sources: &[Arc<Source>]) -> Vec<String> {
    let kind = |source: &Arc<Source>| {
        let kind = &source.identity().kind;
        if kind.group.is_empty() { kind.plural.clone() } else { format!("{}.{}", kind.plural, kind.group) }
    };
    let kinds: Vec<String> = sources.iter().map(kind).collect();
    let numbered =
        kinds.iter().enumerate().map(|(index, kind)| match kinds[..index].iter().filter(|k| *k == kind).count() {
            0 => kind.clone(),
            n_before => format!("{kind}-{}", n_before + 1),
        });
    numbered.collect()
}

/// What was opened at run time may name a kind that is not there, or a cluster that is away: both are told, and the others work.
fn watch(source: &Source) -> Result<String, String> {
    let elsewhere = !source.identity().cluster.is_empty();
    let missing = source.health().failure.is_some_and(|failure| failure.is_not_found());
    let waits = !source.store().is_synced() && source.health().failure.is_none();
    match cache(source) {
        Err(why) if elsewhere || missing || waits => Ok(why),
        told => told,
    }
}

fn cache(source: &Source) -> Result<String, String> {
    if source.is_absent() {
        return Ok("optional, and not served by the API server now".into());
    }
    if let Some(failure) = source.health().failure {
        let kind = &source.identity().kind;
        let lacks = if failure.is_forbidden() {
            format!("; give its service account `list` and `watch` on `{}`: generate-rbac prints the role", kind.plural)
        } else {
            String::new()
        };
        return Err(format!("{failure}{lacks}"));
    }
    if !source.store().is_synced() {
        return Err("the first list is not complete yet".into());
    }
    Ok(format!("{} objects", source.store().len()))
}

fn election(leadership: &Leadership) -> Result<String, String> {
    if let Some(failure) = leadership.failure() {
        return Err(failure);
    }
    match leadership.standing() {
        Standing::Leading(_) => Ok("leads".into()),
        Standing::Standby if leadership.holder().is_empty() => Ok("standby; nobody leads yet".into()),
        Standing::Standby => Ok(format!("standby; {} leads", leadership.holder())),
        Standing::Over(_) => Err("this process no longer leads, and ends".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QueueConfig;

    #[tokio::test(start_paused = true)]
    async fn a_long_reconcile_is_told_and_one_beyond_its_timeout_is_a_failure() {
        let queue = WorkQueue::new(QueueConfig::default());
        let timeout = Some(Duration::from_secs(30));
        queue.add(ObjectKey::new(Some("default"), "web"));
        let _web = queue.get().await.unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(longest(&queue, timeout), Ok(String::new()));
        tokio::time::advance(Duration::from_secs(1)).await;
        let told = "default/web has been reconciled for 60 s";
        assert_eq!(longest(&queue, None), Ok(told.into()));
        assert_eq!(longest(&queue, timeout), Ok(told.into()), "it may just have ended");

        queue.add(ObjectKey::new(Some("default"), "api"));
        let _api = queue.get().await.unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
        let told = "default/web has been reconciled for 120 s, and 1 more for a minute or longer";
        assert_eq!(longest(&queue, None), Ok(told.into()));
        let failed = format!("{told}, although its timeout is 30s: it blocks its thread");
        assert_eq!(longest(&queue, timeout), Err(failed));
    }
}
