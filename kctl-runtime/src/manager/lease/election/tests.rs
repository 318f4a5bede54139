//! Tests of elections whose Lease is watched, or held by several processes.

use serde_json::json;

use super::*;

fn config() -> Arc<ElectionConfig> {
    Arc::new(ElectionConfig::new("podset", "default", "a"))
}

#[test]
fn validity_counts_from_the_watch_of_the_lease() {
    let (start, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
    let at = |seconds| start + Duration::from_secs(seconds);
    let spec = json!({ "holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": "2" });
    let lease = json!({ "metadata": { "resourceVersion": "7" }, "spec": spec });
    let record = Record::read(&lease);
    let earlier = Record { renew_time: Some("1".into()), ..record.clone() };
    for (watched, is_taken) in [(None, false), (Some((record, at(0))), true), (Some((earlier, at(0))), false)] {
        let mut election = Election::new(config(), at(3));
        election.handle(Input::Found(lease.clone()), at(3), wall);
        election.set_watched(watched.clone());
        election.handle(Input::Woke, at(15), wall);
        election.handle(Input::Found(lease.clone()), at(15), wall);
        assert_eq!(election.is_acquiring(), is_taken, "{watched:?}");
    }
}
