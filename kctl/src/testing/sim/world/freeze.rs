//! Freezes a replica, or the leader, as SIGSTOP does: none of its tasks runs, while the servers and the other replicas
//! continue.

use std::time::Duration;

use kctl_apiserver::faults::{RequestFault, Rule};
use tokio::time::{Instant, sleep};

use super::{Shared, inject::is_work};
use crate::testing::sim::{checks::index_of, plan::Freeze};

/// Writes that are sent within this time before a freeze are in flight when it begins.
const IN_FLIGHT_DURATION: Duration = Duration::from_secs(1);

impl Shared {
    /// Lets the writes that a replica sends shortly before a freeze arrive while it is frozen. The response waits for the
    /// process. With `None` the replica is the leader, which is the only one that writes.
    pub(super) fn delay_writes_before(&self, instance: Option<usize>, freeze: Instant) {
        let from = freeze.checked_sub(IN_FLIGHT_DURATION).unwrap_or(freeze);
        let late = RequestFault::Late(self.longest_write());
        self.faults.add(Rule::request(late, move |request| {
            let is_own = instance.is_none() || index_of(&request.client) == instance;
            is_own && is_work(request) && (from..freeze).contains(&Instant::now())
        }));
    }

    /// Freezes the process of a replica, or of the leader, if it runs, and lets it continue after a time.
    pub(super) async fn freeze(&self, Freeze { instance, length, order }: Freeze) {
        let leader = || self.checks.lock().leader().and_then(|replica| replica.strip_prefix("app-")?.parse().ok());
        let Some((process, freezer)) = instance.or_else(leader).and_then(|instance| self.freezer(instance)) else {
            return;
        };
        self.log("fault", format!("{process} is frozen for {length:?}"));
        // Its queues and caches look idle, although they do not know of later changes.
        self.delay_settling_until(Instant::now() + length);
        self.checks.lock().authors.freeze(&process);
        freezer.freeze();
        sleep(length).await;
        if self.is_running(&process) {
            self.log("fault", format!("{process} continues"));
        }
        // The process counts as frozen until all of its tasks have continued: some do not know yet that a Lease has
        // expired.
        freezer.thaw(order).await;
        self.checks.lock().authors.thaw(&process);
    }
}
