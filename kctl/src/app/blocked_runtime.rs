//! Logs a warning when no task could run for a while. A reconcile that blocks the only thread delays all others, the
//! webhooks and the hand-over of slots.

use std::time::Duration;

use tokio::time::Instant;

/// Interval of the checks; shorter stalls may go unseen.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Minimum delay that is reported. A process with a CPU limit is throttled for a tenth of a second
/// at a time.
const LATE_MIN: Duration = Duration::from_secs(1);
/// Minimum time between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Checks as long as the runtime lives, in `run` and `dev`.
pub(super) async fn watch() {
    check_stalls(CHECK_INTERVAL).await;
}

async fn check_stalls(every: Duration) {
    let mut reported_at: Option<Instant> = None;
    loop {
        let asleep = Instant::now();
        tokio::time::sleep(every).await;
        let late = asleep.elapsed().saturating_sub(every);
        if late >= LATE_MIN && reported_at.is_none_or(|reported_at| reported_at.elapsed() >= WARNING_INTERVAL) {
            reported_at = Some(Instant::now());
            tracing::warn!(
                "no task ran for {:.1} s: something blocks the threads (make long work `async`, or move it to \
                 `tokio::task::spawn_blocking`), or the process got no CPU",
                late.as_secs_f64()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::log::tests::capture_logs, *};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the thread has to be blocked")]
    fn blocked_thread_is_logged_once() {
        let messages = capture_logs(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let look = check_stalls(Duration::from_millis(1));
                let block = async {
                    for _ in 0..2 {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        std::thread::sleep(LATE_MIN + Duration::from_millis(50));
                    }
                };
                tokio::select! {
                    () = look => {}
                    () = block => {}
                }
            });
        });
        let [message] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(message["message"].as_str().unwrap().starts_with("no task ran for 1."), "{message}");
    }
}
