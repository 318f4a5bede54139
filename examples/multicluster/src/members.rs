//! `Cluster`: whether a member is there.

use std::collections::BTreeSet;

use kctl::{object::Object, prelude::*};

use crate::{
    clusters::{Member1, Member2},
    kinds::{ClusterStatus, MemberCluster, Work},
};

/// How often it is asked.
const ASKED_EVERY: Duration = Duration::from_secs(10);
/// An answer that takes longer is none.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// So many times in a row no answer is one too few: one alone is lost now and then, and its objects would be divided anew.
const ASKED_TIMES: u32 = 3;
/// The pause between these.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A namespace that every cluster has.
const NAMESPACE: &str = "kube-system";

/// Asks the API server of each member for something small, again and again. A cluster that leaves the fleet stays until its
/// works are gone, and with them what they brought there: once it is gone, nobody knows the way to it.
#[controller(
    of = MemberCluster,
    watches = Work(map = cluster_of),
    reads = Namespace(live, on = Member1),
    reads = Namespace(live, on = Member2),
    finalizer = "fleet.example.com/cluster",
    name = "members",
    concurrency = 2
)]
pub(crate) struct Members;

impl Reconcile for Members {
    async fn reconcile(&self, cluster: Arc<MemberCluster>, cx: Context<Self>) -> Result<Action> {
        let is_known = tell(&cluster, &cx).await?;
        Ok(if is_known { Action::requeue(ASKED_EVERY) } else { Action::await_change() })
    }
}

impl Finalize for Members {
    async fn finalize(&self, cluster: Arc<MemberCluster>, cx: Context<Self>) -> Result<()> {
        // Who takes its works off it has to know whether it can be reached.
        tell(&cluster, &cx).await?;
        let name = cluster.name_any();
        let n_works = cx.store::<Work>().iter().filter(|work| work.spec.cluster == name).count();
        if n_works > 0 {
            let wait: Result<()> = Err(format!("{n_works} works have still to leave {name}").into());
            return wait.retry_after(ASKED_EVERY);
        }
        Ok(())
    }
}

/// Has a cluster say whether it is there; `false` where no cluster of this name is connected.
async fn tell(cluster: &MemberCluster, cx: &Context<Members>) -> Result<bool> {
    let mut message = ask(cluster, cx).await;
    for _ in 1..ASKED_TIMES {
        if message.as_ref().is_none_or(String::is_empty) {
            break;
        }
        tokio::time::sleep(ASKED_AGAIN_AFTER).await;
        message = ask(cluster, cx).await;
    }
    let Some(message) = message else {
        let message = format!("no cluster of this name is connected: name it {} or {}", Member1::NAME, Member2::NAME);
        cx.patch_status(ClusterStatus { ready: false, message }).await?;
        return Ok(false);
    };
    let ready = message.is_empty();
    if cluster.status.as_ref().is_none_or(|status| status.ready != ready) {
        let (kind, reason) = if ready { (Normal, "Ready") } else { (Warning, "NotReady") };
        cx.event(kind, reason, if ready { "it answers" } else { message.as_str() });
    }
    cx.patch_status(ClusterStatus { ready, message }).await?;
    Ok(true)
}

fn cluster_of(work: &Work, _clusters: &Store<MemberCluster>) -> Vec<Key<MemberCluster>> {
    vec![Key::cluster(&work.spec.cluster)]
}

/// Why a member does not answer; empty when it does, and nothing when there is none of that name.
async fn ask(cluster: &MemberCluster, cx: &Context<Members>) -> Option<String> {
    let answer = match cluster.name_any().as_str() {
        Member1::NAME => cx.cluster(Member1).live::<Namespace>().get(NAMESPACE),
        Member2::NAME => cx.cluster(Member2).live::<Namespace>().get(NAMESPACE),
        _ => return None,
    };
    Some(match tokio::time::timeout(ANSWERS_WITHIN, answer.into_future()).await {
        Ok(Ok(_namespace)) => String::new(),
        Ok(Err(error)) => error.to_string(),
        Err(_elapsed) => format!("no answer within {ANSWERS_WITHIN:?}"),
    })
}

/// Whether a member was there the last time.
pub(crate) fn is_ready<C: Reads<MemberCluster>>(cx: &Context<C>, name: &str) -> bool {
    let cluster = cx.store::<MemberCluster>().get(&Key::cluster(name));
    cluster.is_some_and(|cluster| cluster.status.as_ref().is_some_and(|status| status.ready))
}

/// What to say of names that no cluster of the fleet has.
pub(crate) fn unknown<'a>(
    names: impl Iterator<Item = &'a String>,
    members: &Store<MemberCluster>,
) -> impl Iterator<Item = String> {
    let unknown: BTreeSet<_> = names.filter(|name| members.get(&Key::cluster(name)).is_none()).collect();
    unknown.into_iter().map(|name| format!("there is no Cluster {name}: create it, or name another one"))
}

/// Everything there is, for what names clusters: one may have come or gone.
pub(crate) fn all<K: Object>(_cluster: &MemberCluster, objects: &Store<K>) -> Vec<Key<K>> {
    objects.keys()
}

/// Whether a member leaves the fleet.
pub(crate) fn is_leaving(cluster: &MemberCluster) -> bool {
    cluster.metadata.deletion_timestamp.is_some()
}
