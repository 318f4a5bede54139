//! The controller `members`: checks whether members respond, and keeps a leaving Cluster until its works are gone.

use std::collections::BTreeSet;

use kctl::{object::Object, prelude::*};

use crate::{
    clusters::{Member1, Member2},
    kinds::{ClusterStatus, MemberCluster, Work},
};

/// Interval between two checks of a member.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Timeout of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of consecutive failed checks after which a member is not ready. A single lost response must not move its
/// objects.
const CHECKS_UNTIL_NOT_READY: u32 = 3;
/// Pause between these checks.
const RECHECK_DELAY: Duration = Duration::from_secs(1);
/// A namespace that exists in every cluster.
const NAMESPACE: &str = "kube-system";

/// Reads a namespace of each member every [`CHECK_INTERVAL`] as a health check.
///
/// A finalizer keeps a leaving Cluster until its works are gone, because execution needs the Cluster to delete their objects.
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
    /// Checks the member, and requeues it after [`CHECK_INTERVAL`].
    async fn reconcile(&self, cluster: Arc<MemberCluster>, cx: Context<Self>) -> Result<Action> {
        let is_known = check(&cluster, &cx).await?;
        Ok(if is_known { Action::requeue(CHECK_INTERVAL) } else { Action::await_change() })
    }
}

impl Finalize for Members {
    /// Waits until no work names the cluster. It keeps the status up to date, because the execution controllers depend
    /// on it.
    async fn finalize(&self, cluster: Arc<MemberCluster>, cx: Context<Self>) -> Result<()> {
        // The controller that deletes the member's objects has to know whether the member is reachable.
        check(&cluster, &cx).await?;
        let name = cluster.name_any();
        let n_works = cx.store::<Work>().iter().filter(|work| work.spec.cluster == name).count();
        if n_works > 0 {
            let wait: Result<()> = Err(format!("{n_works} works still name {name}").into());
            return wait.retry_after(CHECK_INTERVAL);
        }
        Ok(())
    }
}

/// Checks a member and updates its status. Returns `false` if no cluster of this name is connected.
async fn check(cluster: &MemberCluster, cx: &Context<Members>) -> Result<bool> {
    let mut message = probe(cluster, cx).await;
    for _ in 1..CHECKS_UNTIL_NOT_READY {
        if message.as_ref().is_none_or(String::is_empty) {
            break;
        }
        tokio::time::sleep(RECHECK_DELAY).await;
        message = probe(cluster, cx).await;
    }
    let Some(message) = message else {
        let message = format!("no cluster of this name is connected: name it {} or {}", Member1::NAME, Member2::NAME);
        cx.patch_status(ClusterStatus { ready: false, message }).await?;
        return Ok(false);
    };
    let ready = message.is_empty();
    if cluster.status.as_ref().is_none_or(|status| status.ready != ready) {
        let (kind, reason) = if ready { (Normal, "Ready") } else { (Warning, "NotReady") };
        cx.event(kind, reason, if ready { "the member responds" } else { message.as_str() });
    }
    cx.patch_status(ClusterStatus { ready, message }).await?;
    Ok(true)
}

/// Returns the key of the Cluster of a work.
fn cluster_of(work: &Work, _clusters: &Store<MemberCluster>) -> Vec<Key<MemberCluster>> {
    vec![Key::cluster_scoped(&work.spec.cluster)]
}

/// Returns the reason why a member does not respond, an empty string if it responds, or `None` if no member has that
/// name.
async fn probe(cluster: &MemberCluster, cx: &Context<Members>) -> Option<String> {
    let answer = match cluster.name_any().as_str() {
        Member1::NAME => cx.cluster(Member1).live::<Namespace>().get(NAMESPACE),
        Member2::NAME => cx.cluster(Member2).live::<Namespace>().get(NAMESPACE),
        _ => return None,
    };
    Some(match tokio::time::timeout(CHECK_TIMEOUT, answer.into_future()).await {
        Ok(Ok(_namespace)) => String::new(),
        Ok(Err(error)) => error.to_string(),
        Err(_elapsed) => format!("no response within {CHECK_TIMEOUT:?}"),
    })
}

/// Returns `true` if a member is ready according to its last check.
pub(crate) fn is_ready<C: Reads<MemberCluster>>(cx: &Context<C>, name: &str) -> bool {
    let cluster = cx.store::<MemberCluster>().get(&Key::cluster_scoped(name));
    cluster.is_some_and(|cluster| cluster.status.as_ref().is_some_and(|status| status.ready))
}

/// Returns a message for each name that no Cluster has.
pub(crate) fn unknown<'a>(
    names: impl Iterator<Item = &'a String>,
    members: &Store<MemberCluster>,
) -> impl Iterator<Item = String> {
    let unknown: BTreeSet<_> = names.filter(|name| members.get(&Key::cluster_scoped(name)).is_none()).collect();
    unknown.into_iter().map(|name| format!("there is no Cluster {name}: create it, or name another cluster"))
}

/// Returns the keys of all objects of a kind that refers to clusters, because a changed Cluster may affect any of them.
pub(crate) fn all<K: Object>(_cluster: &MemberCluster, objects: &Store<K>) -> Vec<Key<K>> {
    objects.keys()
}

/// Returns `true` if a Cluster is being deleted.
pub(crate) fn is_leaving(cluster: &MemberCluster) -> bool {
    cluster.metadata.deletion_timestamp.is_some()
}
