//! A rolling update of the replicas, as a Deployment with `maxSurge: 1` and `maxUnavailable: 0` makes it.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::Shared;
use crate::testing::sim::process::run_once;

/// Longest wait until a new replica is ready. A partition may keep it from that; the update then goes on.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Simulated time between two readiness probes.
const PROBED_EVERY: Duration = Duration::from_millis(250);

impl Shared {
    /// Replaces each replica: one more starts, then one after the other is stopped and started again, and the additional
    /// one ends.
    pub(super) async fn update_replicas(self: Arc<Self>) {
        let mut n_updates = self.n_updates.lock().await;
        *n_updates += 1;
        self.log("fault", "all replicas are replaced, one at a time");
        let additional = self.scenario.instances;
        let surge = async {
            run_once(&self, additional, *n_updates).await;
            self.remove(additional);
        };
        tokio::join!(surge, self.replace_each(additional));
    }

    async fn replace_each(&self, additional: usize) {
        self.wait_until_ready(additional, None).await;
        for index in 0..self.scenario.instances {
            let former = self.ready(index);
            self.stop(index, Duration::ZERO);
            self.wait_until_ready(index, former.as_deref()).await;
        }
        self.stop(additional, Duration::ZERO);
    }

    /// Waits until another process than the former one is ready.
    async fn wait_until_ready(&self, index: usize, former: Option<&str>) {
        let begun = Instant::now();
        while begun.elapsed() < READY_WITHIN {
            if self.ready(index).is_some_and(|process| former != Some(process.as_str())) {
                return;
            }
            sleep(PROBED_EVERY).await;
        }
    }
}
