//! Decides how long past states can be listed, like kube-apiserver's compaction of etcd (`compact.go` of
//! `k8s.io/apiserver/pkg/storage/etcd3`).
//!
//! Every five minutes the state of five minutes ago becomes the oldest one. So a `continue` token lasts between five
//! and ten minutes after the next write of any object, and without limit before that write. It ends earlier when the
//! history no longer reaches back to it: after [`HISTORY_LEN_MAX`](super::HISTORY_LEN_MAX) more events of its resource.
//! No timer runs: elapsed ticks are computed when a list or a write needs them.
//!
//! This limits only pages and exact versions, and drops nothing. The history for watches is limited by its length, as
//! the watch cache of kube-apiserver is; `Store::compact` drops it. `Journal::compact_if_needed` shortens a file.

use jiff::{SignedDuration, Timestamp};

/// The default of kube-apiserver's `--etcd-compaction-interval`. The first tick is one interval after the start, and
/// compacts nothing yet.
const INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// The state of the compaction after the ticks so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compaction {
    /// The last tick, or the start. Always the start plus whole intervals.
    tick: Timestamp,
    /// The newest revision at the last tick; the next one compacts up to it.
    seen: u64,
    /// The oldest revision that can be listed. Invariant: at most `seen`, and it only grows.
    pub(super) compacted: u64,
}

impl Compaction {
    /// Creates the state of a server that starts now. Nothing is compacted yet.
    pub(super) fn from(start: Timestamp) -> Self {
        Self { tick: start, seen: 0, compacted: 0 }
    }

    /// Returns the state after all ticks until now. `newest` has been the newest revision since the last write. Nothing
    /// was written between the elapsed ticks, so all of them saw `newest`. If there are several, the last but one saw
    /// it too, which makes it the oldest revision that is left. If the clock goes back, nothing changes.
    pub(super) fn advance(mut self, now: Timestamp, newest: u64) -> Self {
        let passed = now.duration_since(self.tick).as_secs() / INTERVAL.as_secs();
        if passed <= 0 {
            return self;
        }
        let before = self.compacted;
        self.compacted = if passed == 1 { self.seen } else { newest };
        self.seen = newest;
        debug_assert!(before <= self.compacted, "a revision that was compacted cannot be listed again");
        debug_assert!(self.compacted <= self.seen, "the revision of the last tick can be listed");
        let since = INTERVAL.saturating_mul(i32::try_from(passed).unwrap_or(i32::MAX));
        self.tick = self.tick.saturating_add(since).unwrap_or(now);
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::ApiServer;

    #[test]
    fn tick_compacts_to_revision_of_previous_tick() {
        let start = Timestamp::UNIX_EPOCH;
        let after = |minutes: i64| start + SignedDuration::from_mins(minutes);
        let fresh = Compaction::from(start);
        for (writes, now, compacted) in [
            (&[][..], 4, 0),
            (&[(1, 10)], 6, 0),
            (&[(1, 10)], 11, 10),
            (&[(1, 10), (7, 20)], 11, 10),
            (&[(1, 10), (7, 20), (12, 30)], 14, 10),
            (&[(1, 10), (7, 20), (12, 30)], 16, 20),
            (&[(1, 10)], 600, 10),
        ] {
            let mut newest = 0;
            let mut compaction = fresh;
            for (minute, revision) in writes {
                compaction = compaction.advance(after(*minute), newest);
                newest = *revision;
            }
            assert_eq!(compaction.advance(after(now), newest).compacted, compacted, "{writes:?} at {now}");
        }
    }

    async fn get(server: &ApiServer, query: &str) -> (u16, Value) {
        server.send_json("GET", &format!("/api/v1/namespaces?limit=1{query}"), &Value::Null).await
    }

    #[tokio::test(start_paused = true)]
    async fn continue_tokens_expire_as_states_are_compacted() {
        let server = ApiServer::new();
        let (_, page) = get(&server, "").await;
        let token = format!("&continue={}", page["metadata"]["continue"].as_str().unwrap());
        let version = format!(
            "&resourceVersionMatch=Exact&resourceVersion={}",
            page["metadata"]["resourceVersion"].as_str().unwrap()
        );
        // Nothing has been written since, so a token of any age still works.
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(get(&server, &token).await.0, 200);
        let namespace = json!({ "metadata": { "name": "a" } });
        assert_eq!(server.send_json("POST", "/api/v1/namespaces", &namespace).await.0, 201);
        tokio::time::sleep(Duration::from_secs(290)).await;
        assert_eq!((get(&server, &token).await.0, get(&server, &version).await.0), (200, 200));
        tokio::time::sleep(Duration::from_secs(310)).await;
        let (code, rejected) = get(&server, &token).await;
        assert_eq!((code, &rejected["reason"]), (410, &json!("Expired")));
        let (code, too_old) = get(&server, &version).await;
        assert_eq!((code, &too_old["reason"]), (410, &json!("Expired")));
        let going_on = format!("&continue={}", rejected["metadata"]["continue"].as_str().unwrap());
        let (code, next) = get(&server, &going_on).await;
        assert_eq!(
            (code, &next["items"][0]["metadata"]["name"]),
            (200, &json!("kube-node-lease")),
            "the list continues"
        );
    }
}
