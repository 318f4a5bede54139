//! The replicas of the app: what each has reached, and how it is ended.

use std::{sync::Arc, time::Duration};

use kctl_apiserver::faults::Connection;
use kctl_runtime::{__private_0_1::Freezer, manager::View};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::Shared;
use crate::testing::sim::plan::MISSED_STEP_DELAY;

/// A replica of the app, as far as it has started: first it connects, then its manager exists. Both are
/// `None` between its end and the next start.
#[derive(Clone, Default)]
pub(super) struct Process {
    pub(super) connection: Option<Connection>,
    /// Shared, because each poll of a run looks at all views.
    pub(super) view: Option<Arc<View>>,
    /// The last process of the replica that has ended, and how.
    pub(super) ended: Option<String>,
    /// Tells the process to stop, as SIGTERM does.
    stop: Arc<Notify>,
    /// Stops all tasks of the process, as SIGSTOP does.
    freezer: Freezer,
    /// The downtime after a stop; `None` unless a fault has stopped the process.
    stopped_for: Option<Duration>,
}

impl Shared {
    /// Records that a replica has a connection, so that a finding can cut it. Its manager does not exist yet.
    ///
    /// Returns the signal that stops it, and what freezes it.
    pub(in crate::testing::sim) fn record_connection(
        &self,
        index: usize,
        connection: &Connection,
    ) -> (Arc<Notify>, Freezer) {
        let mut processes = self.processes.lock();
        let process = processes.entry(index).or_default();
        process.connection = Some(connection.clone());
        process.freezer = Freezer::for_process(connection.client());
        (process.stop.clone(), process.freezer.clone())
    }

    /// Records that the manager of a replica exists; from now on it counts for [`World::is_idle`](super::World::is_idle).
    pub(in crate::testing::sim) fn record_start(&self, index: usize, view: View) {
        self.processes.lock().entry(index).or_default().view = Some(Arc::new(view));
    }

    /// Records the end of a replica: by a crash, a stop, or by itself. Its running reconciles have ended with it.
    ///
    /// Returns the downtime if it was stopped.
    pub(in crate::testing::sim) fn record_end(&self, index: usize, name: &str, how: &str) -> Option<Duration> {
        let ended = Process { ended: Some(format!("{name} {how}")), ..Process::default() };
        let before = self.processes.lock().insert(index, ended);
        self.check(|checks, _| checks.authors.process_ended(name));
        before?.stopped_for
    }

    /// Forgets a replica that does not start again.
    pub(super) fn remove(&self, index: usize) {
        self.processes.lock().remove(&index);
    }

    /// Ends a process, if it runs.
    pub(super) fn crash(&self, index: usize) {
        let connection = self.processes.lock().get(&index).and_then(|process| process.connection.clone());
        if let Some(connection) = connection {
            self.log("fault", format!("{} crashes", connection.client()));
            connection.disconnect();
        }
    }

    /// Ends all processes if the plan makes them miss this step.
    pub(in crate::testing::sim) async fn begin_step(&self, nth: usize) {
        let is_missed = {
            let (steps, until) = &mut *self.missed_steps.lock();
            let is_missed = steps.contains(&nth);
            if is_missed {
                *until = Some(Instant::now() + MISSED_STEP_DELAY);
            }
            is_missed
        };
        if is_missed {
            let indexes: Vec<_> = self.processes.lock().keys().copied().collect();
            for index in indexes {
                self.crash(index);
            }
            // The processes end when they are polled next.
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Stops a process, if it runs: it finishes its reconciles, releases its Leases and ends.
    pub(super) fn stop(&self, index: usize, downtime: Duration) {
        let mut processes = self.processes.lock();
        let Some(process) = processes.get_mut(&index) else { return };
        let Some(connection) = &process.connection else { return };
        self.log("fault", format!("{} is stopped", connection.client()));
        process.stopped_for = Some(downtime);
        process.stop.notify_one();
    }

    /// Returns the name of the process of a replica with what freezes it, if it runs.
    pub(super) fn freezer(&self, index: usize) -> Option<(String, Freezer)> {
        let processes = self.processes.lock();
        let process = processes.get(&index)?;
        Some((process.connection.as_ref()?.client().to_owned(), process.freezer.clone()))
    }

    /// Returns the connection of a process, if it runs.
    pub(super) fn connection(&self, process: &str) -> Option<Connection> {
        let processes = self.processes.lock();
        let mut connections = processes.values().filter_map(|started| started.connection.as_ref());
        connections.find(|connection| connection.client() == process).cloned()
    }

    /// Returns the name of the process of a replica, if it runs.
    pub(super) fn process_name(&self, index: usize) -> Option<String> {
        let processes = self.processes.lock();
        processes.get(&index)?.connection.as_ref().map(|connection| connection.client().to_owned())
    }

    /// Returns the name of the process of a replica once its caches are complete, as a readiness probe sees it.
    pub(super) fn ready(&self, index: usize) -> Option<String> {
        let process = self.processes.lock().get(&index).cloned()?;
        let is_synced = process.view?.sources().iter().all(|source| source.store().is_synced());
        process.connection.filter(|_| is_synced).map(|connection| connection.client().to_owned())
    }

    /// Returns `true` for a process that still runs. Tasks of an ended process may be polled once
    /// more before they are dropped.
    pub(super) fn is_running(&self, process: &str) -> bool {
        let processes = self.processes.lock();
        processes.values().filter_map(|started| started.connection.as_ref()).any(|started| started.client() == process)
    }
}
