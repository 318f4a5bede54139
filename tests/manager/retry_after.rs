//! An API server that rejects watches with `Retry-After`: the manager logs a warning when the rejection repeats, or
//! when the wait is long.

use std::sync::atomic::{AtomicUsize, Ordering};

use kctl::prelude::*;
use kctl_tests::{Fault, Faults, RequestSummary};

use crate::{
    lease_candidates::{Contest, advance_seconds},
    trace::capture_log,
};

#[controller]
async fn idles(_config: Arc<ConfigMap>, _cx: Context<idles>) -> Result<Action> {
    Ok(Action::await_change())
}

/// Returns the log lines about watches when the server rejects the first `n_rejected`, each with this `Retry-After` in
/// seconds.
async fn watch_log_lines(n_rejected: usize, retry_after: u32) -> Vec<String> {
    let (lines, _logged) = capture_log();
    let (contest, faults) = (Contest::new(), Faults::default());
    let n_watches = Arc::new(AtomicUsize::new(0));
    let counted = n_watches.clone();
    faults.add(Fault::RejectFor(429, retry_after), move |request: &RequestSummary| {
        request.is_watch && counted.fetch_add(1, Ordering::Relaxed) < n_rejected
    });
    let manager = App::new("idles").controller::<idles>().manager(faults.client(&contest.server)).await.unwrap();
    tokio::spawn(manager.run(std::future::pending()));
    advance_seconds(30).await;
    assert_eq!(n_watches.load(Ordering::Relaxed), n_rejected + 1, "it watches in the end");
    let text = lines.text();
    let about = text.lines().filter(|line| line.contains("watch configmaps"));
    about.map(|line| line.split_once("condition: ").unwrap().1.to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn watch_rejection_is_logged_when_it_repeats() {
    assert_eq!(watch_log_lines(1, 5).await, [""; 0]);
    let (warned, works) = ("; the cache is not updated until this works again", "watch configmaps: works again");
    // A long wait is logged at once, because the cache is stale for so long.
    for (n_rejected, retry_after) in [(2, 1), (3, 1), (1, 6)] {
        let lines = watch_log_lines(n_rejected, retry_after).await;
        assert_eq!((lines.len(), lines[0].ends_with(warned), lines[1].as_str()), (2, true, works), "{lines:?}");
    }
}
