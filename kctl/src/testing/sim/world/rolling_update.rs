//! A rolling update of the replicas, as a Deployment does with `maxSurge: 1` and `maxUnavailable: 0`, except that each
//! replica keeps its index.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::Shared;
use crate::testing::sim::process::{End, run_once, wait_after_crash};

/// Longest wait until a new replica is ready. A partition may keep it from that; the update then continues.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Simulated time between two readiness probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

impl Shared {
    /// Replaces each replica: one more starts, then one after the other is stopped and started again, and the one more
    /// ends. An update waits for the one before.
    pub(super) async fn update_replicas(self: Arc<Self>) {
        let mut n_incarnations = self.surge_incarnations.lock().await;
        self.log("fault", "all replicas are replaced, one at a time");
        let surge = self.scenario.instances;
        let is_over = AtomicBool::new(false);
        tokio::join!(self.run_surge(surge, &mut n_incarnations, &is_over), self.replace_each(surge, &is_over));
        self.pending_updates.fetch_sub(1, Ordering::Relaxed);
    }

    /// Runs the additional replica until it is stopped. It starts again after a crash.
    async fn run_surge(self: &Arc<Self>, index: usize, n_incarnations: &mut u32, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            *n_incarnations += 1;
            let wait = match run_once(self, index, *n_incarnations).await {
                End::Stopped(downtime) => downtime,
                End::Crashed | End::ByItself => wait_after_crash(self),
            };
            sleep(wait).await;
        }
        self.remove(index);
    }

    async fn replace_each(&self, surge: usize, is_over: &AtomicBool) {
        self.wait_until_ready(surge, None).await;
        for index in 0..self.scenario.instances {
            let former = self.process_name(index);
            self.stop(index, Duration::ZERO);
            self.wait_until_ready(index, former.as_deref()).await;
        }
        is_over.store(true, Ordering::Relaxed);
        self.stop(surge, Duration::ZERO);
    }

    /// Waits until another process than the former one is ready.
    async fn wait_until_ready(&self, index: usize, former: Option<&str>) {
        let begun = Instant::now();
        while begun.elapsed() < READY_TIMEOUT {
            if self.ready(index).is_some_and(|process| former != Some(process.as_str())) {
                return;
            }
            sleep(PROBE_INTERVAL).await;
        }
    }
}
