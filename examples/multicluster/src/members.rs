//! `Cluster`: whether a member is there.

use kctl::prelude::*;

use crate::{
    clusters::{Member1, Member2},
    kinds::{ClusterStatus, MemberCluster},
};

/// How often it is asked.
const ASKED_EVERY: Duration = Duration::from_secs(10);
/// An answer that takes longer is none.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// A namespace that every cluster has.
const NAMESPACE: &str = "kube-system";

/// Asks the API server of each member for something small, again and again.
#[controller(
    reads = Namespace(live, on = Member1),
    reads = Namespace(live, on = Member2),
    name = "members",
    concurrency = 2
)]
pub(crate) async fn members(cluster: Arc<MemberCluster>, cx: Context<members>) -> Result<Action> {
    let name = cluster.name_any();
    let answer = match name.as_str() {
        Member1::NAME => {
            tokio::time::timeout(ANSWERS_WITHIN, cx.cluster(Member1).live::<Namespace>().get(NAMESPACE).into_future())
                .await
        }
        Member2::NAME => {
            tokio::time::timeout(ANSWERS_WITHIN, cx.cluster(Member2).live::<Namespace>().get(NAMESPACE).into_future())
                .await
        }
        _ => {
            let message =
                format!("no cluster of this name is connected: name it {} or {}", Member1::NAME, Member2::NAME);
            cx.patch_status(ClusterStatus { ready: false, message }).await?;
            return Ok(Action::await_change());
        }
    };
    let message = match answer {
        Ok(Ok(_namespace)) => String::new(),
        Ok(Err(error)) => error.to_string(),
        Err(_elapsed) => format!("no answer within {ANSWERS_WITHIN:?}"),
    };
    let ready = message.is_empty();
    if cluster.status.as_ref().is_none_or(|status| status.ready != ready) {
        let (kind, reason) = if ready { (Normal, "Ready") } else { (Warning, "NotReady") };
        cx.event(kind, reason, if ready { "it answers" } else { message.as_str() });
    }
    cx.patch_status(ClusterStatus { ready, message }).await?;
    Ok(Action::requeue(ASKED_EVERY))
}

/// Whether a member was there the last time.
pub(crate) fn is_ready<C: Reads<MemberCluster>>(cx: &Context<C>, name: &str) -> bool {
    let cluster = cx.store::<MemberCluster>().get(&Key::cluster(name));
    cluster.is_some_and(|cluster| cluster.status.as_ref().is_some_and(|status| status.ready))
}
