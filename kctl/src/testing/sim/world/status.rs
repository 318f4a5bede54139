//! Reads what a run still has to do: whether it is idle, what fails and what hangs.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kctl_runtime::{
    key::ObjectKey,
    manager::{View, lease::Leadership},
    source::Source,
};
use serde_json::Value;
use tokio::time::Instant;

use super::{Process, World};
use crate::{
    app::Simulation,
    testing::sim::{checks::End, normal, process, snapshot::Id},
};

/// A reconcile that runs for this time while nothing changes does not end.
const HUNG_RECONCILE_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum number of such reconciles that a report names.
const KEYS_MAX: usize = 20;

impl World {
    /// Returns `true` if neither the servers, the simulations nor the app have anything to do.
    ///
    /// No rolling update may be pending. All replicas have to be up, and one of them has to lead, or each slot has to
    /// have an owner. Otherwise a run could end while a replica still waits for a Lease, and the checkers would miss
    /// what the next owner does.
    pub(in crate::testing::sim) fn is_idle(&self) -> bool {
        let server = &self.shared.server;
        let views: Vec<_> = self.shared.processes.lock().values().map(|process| process.view.clone()).collect();
        let leads = |view: &Arc<View>| view.leadership().is_none_or(Leadership::is_leading);
        // During a partition or a freeze, idle caches don't show that events are held back.
        let is_held = self.shared.held_until.lock().is_some_and(|until| Instant::now() < until);
        !is_held
            && self.shared.pending_updates.load(Ordering::Relaxed) == 0
            && server.pending() == 0
            && self.shared.others.iter().all(|(_, other)| other.pending() == 0)
            && self.simulated.iter().all(Simulation::is_idle)
            && views.iter().all(|view| view.as_ref().is_some_and(|view| process::is_idle(view)))
            && views.iter().flatten().any(leads)
            && self.unowned_slots() == 0
    }

    /// Waits until no rolling update is pending.
    pub(in crate::testing::sim) async fn wait_for_updates(&self) {
        while self.shared.pending_updates.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns the views of all replicas that have started.
    fn views(&self) -> Vec<Arc<View>> {
        self.shared.processes.lock().values().filter_map(|process| process.view.clone()).collect()
    }

    /// Returns the number of slots that no replica owns.
    fn unowned_slots(&self) -> usize {
        let n_slots = self.shared.scenario.slots.map_or(0, |slots| slots.count() as usize);
        let processes = self.shared.processes.lock();
        let owned = processes.values().filter_map(|process| Some(process.view.as_ref()?.shards()?.n_owned()));
        n_slots.saturating_sub(owned.sum())
    }

    /// Returns the key that comes due next: its wait and its controller.
    pub(in crate::testing::sim) fn next_requeue(&self) -> Option<(Duration, String)> {
        let views = self.views();
        let due = views.iter().flat_map(|view| view.controllers()).filter_map(|(spec, queue)| {
            let (key, wait) = queue.next_due()?;
            Some((wait, format!("{} {key}", spec.name)))
        });
        due.min()
    }

    /// Describes the keys whose last reconcile failed. Keys that were given up count as long as their object exists.
    pub(in crate::testing::sim) fn failing(&self) -> Vec<String> {
        let views = self.views();
        let ends = self.shared.checks.lock().ends.clone();
        let describe = |((name, key), end): (&(String, ObjectKey), &End)| {
            let (mut n_failures, mut exists) = (None, false);
            for view in &views {
                let controllers = view.controllers().iter().zip(view.primaries());
                for ((_, queue), primaries) in controllers.filter(|((spec, _), _)| spec.name == *name) {
                    n_failures = n_failures.or(queue.failing().into_iter().find(|(failing, _)| failing == key));
                    exists |= primaries.store().get(key).is_some();
                }
            }
            let text = &end.text;
            match n_failures {
                Some((_, n)) => Some(format!("{name} {key} failed {n} times in a row, the last time: {text}")),
                None => exists.then(|| format!("{name} {key} failed and is not tried again: {text}")),
            }
        };
        ends.iter().filter(|(_, end)| end.has_failed).filter_map(describe).collect()
    }

    /// Describes the custom primaries whose `status.observedGeneration` is not their generation, although the app has
    /// written it before.
    ///
    /// Objects that are being deleted, that no controller sees, or whose last reconcile failed are left out. So are
    /// objects whose status depends on time or is ignored.
    pub(in crate::testing::sim) fn stale_generations(&self) -> Vec<String> {
        let views = self.views();
        let checks = self.shared.checks.lock();
        let is_ignored = |id: &Id| {
            let mut ignored =
                self.shared.scenario.ignored.iter().filter_map(|field| normal::pointer_in(field, &id.resource));
            ignored.any(|pointer| ["/status", "/status/observedGeneration"].contains(&pointer))
        };
        let is_current = |id: &Id, object: &Value| {
            let key = ObjectKey::new(Some(&id.namespace).filter(|name| !name.is_empty()).map(String::as_str), &id.name);
            views.iter().all(|view| {
                let mut controllers = view.controllers().iter().zip(view.primaries());
                controllers.all(|((spec, _), primaries)| {
                    let has_failed =
                        || checks.ends.get(&(spec.name.clone(), key.clone())).is_some_and(|end| end.has_failed);
                    let is_seen =
                        spec.crd.is_some() && id.is_of(&spec.primary) && primaries.store().get(&key).is_some();
                    !is_seen || has_failed()
                })
            }) || object["metadata"]["deletionTimestamp"].is_string()
                || checks.timed.has(object)
                || checks.timed.has_status_of(&id.resource)
        };
        let stale = checks.observed.iter().filter_map(|id| {
            let object = &**checks.snapshot.objects.get(id)?;
            let [observed, newest] = [&object["status"]["observedGeneration"], &object["metadata"]["generation"]];
            let differs = observed.is_i64() && newest.is_i64() && observed != newest;
            (differs && !is_ignored(id) && !is_current(id, object))
                .then(|| format!("status.observedGeneration of {id} is {observed}, and its generation {newest}"))
        });
        stale.collect()
    }

    /// Describes the replicas that are not at work: not up, without a complete cache, in a reconcile that does not end, or
    /// all of them without the Lease.
    pub(in crate::testing::sim) fn not_at_work(&self) -> Vec<String> {
        let processes = self.shared.processes.lock().clone();
        let mut texts = Vec::new();
        for (index, process) in &processes {
            let Some(view) = &process.view else {
                let ended = process.ended.as_ref().map_or_else(String::new, |ended| format!(": {ended}"));
                texts.push(format!("app-{index} is not up{ended}"));
                continue;
            };
            let unfilled = view.sources().iter().filter(|source| !source.store().is_synced());
            let text = |source: &Arc<Source>| format!("app-{index} has no list of {}", source.config().kind.plural);
            texts.extend(unfilled.map(text));
            for (spec, queue) in view.controllers() {
                let hanging =
                    queue.keys(KEYS_MAX).running.into_iter().filter(|(_, since)| *since >= HUNG_RECONCILE_TIMEOUT);
                texts.extend(
                    hanging.map(|(key, since)| format!("{} {key} is being reconciled for {since:?}", spec.name)),
                );
            }
        }
        let leads = |process: &Process| process.view.as_ref()?.leadership().map(Leadership::is_leading);
        if self.shared.scenario.elects() && !processes.values().any(|process| leads(process) == Some(true)) {
            texts.push("no replica holds the Lease".into());
        }
        match self.unowned_slots() {
            0 => {}
            n => texts.push(format!("{n} slots have no owner")),
        }
        texts
    }
}
