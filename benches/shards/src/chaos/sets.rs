//! The sets of a chaos run: they are created, changed, and compared with their Pods at the end.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use kctl::kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::json;

use super::{ChaosOptions, Counts, NAMESPACE, Rng};
use crate::{
    Failure,
    server::{Server, resource},
};

/// Maximum number of concurrent create requests for sets.
const CREATES_MAX: usize = 16;

/// The cluster, and the number of Pods that each set should have.
pub(super) struct Cluster {
    pub(super) sets: Api<DynamicObject>,
    pods: Api<DynamicObject>,
    /// Wanted number of Pods, indexed by the number of the set.
    pub(super) wanted: Vec<usize>,
}

impl Cluster {
    /// Creates the clients for sets and Pods. It creates no objects.
    pub(super) fn new(server: &Server, options: &ChaosOptions) -> Self {
        let client = server.client.clone();
        Self {
            sets: Api::namespaced_with(client.clone(), NAMESPACE, &podset()),
            pods: Api::namespaced_with(client, NAMESPACE, &resource("", "v1", "Pod", "pods")),
            wanted: vec![options.pods; options.sets],
        }
    }

    /// Scales a random set up or down, or deletes one of its Pods. It skips a set that does not exist yet.
    pub(super) async fn change(&mut self, rng: &mut Rng, counts: &mut Counts) -> Result<(), Failure> {
        let (set, by) = (rng.index(self.wanted.len()), 1 + rng.index(4));
        let wanted = match rng.below(3) {
            0 => self.wanted[set] + by,
            1 => self.wanted[set].saturating_sub(by),
            _ => {
                let of_set = ListParams::default().labels(&format!("set={}", name(set))).limit(1);
                if let Some(pod) = self.pods.list(&of_set).await?.items.into_iter().next() {
                    let gone = self.pods.delete(&pod.metadata.name.unwrap_or_default(), &DeleteParams::default()).await;
                    counts.deleted += u32::from(found(gone)?.is_some());
                }
                return Ok(());
            }
        };
        let patch = Patch::Merge(json!({ "spec": { "replicas": wanted } }));
        if found(self.sets.patch(&name(set), &PatchParams::default(), &patch).await)?.is_some() {
            let grows = wanted > self.wanted[set];
            counts.grown += u32::from(grows);
            counts.shrunk += u32::from(wanted < self.wanted[set]);
            self.wanted[set] = wanted;
        }
        Ok(())
    }

    /// Returns one message per problem with a set or a Pod.
    ///
    /// A set is right if it has exactly the wanted number of Pods that are not being deleted, and if its status is
    /// about its newest generation. A Pod without a set is also a problem.
    pub(super) async fn wrong(&self) -> Result<Vec<String>, Failure> {
        let all = ListParams::default();
        let (sets, pods) = (self.sets.list(&all).await?.items, self.pods.list(&all).await?.items);
        let mut of: BTreeMap<String, usize> = BTreeMap::new();
        let mut wrong = Vec::new();
        for pod in &pods {
            let owners = pod.metadata.owner_references.iter().flatten();
            match owners.into_iter().find(|owner| owner.controller == Some(true)) {
                Some(owner) if pod.metadata.deletion_timestamp.is_none() => {
                    *of.entry(owner.uid.clone()).or_default() += 1;
                }
                _ => wrong.push(format!(
                    "Pod {} has no set or is being deleted",
                    pod.metadata.name.clone().unwrap_or_default()
                )),
            }
        }
        for set in &sets {
            let name = set.metadata.name.clone().unwrap_or_default();
            let number =
                name.strip_prefix("set-").and_then(|number| number.parse::<usize>().ok()).unwrap_or(usize::MAX);
            let wanted = self.wanted.get(number).copied().unwrap_or_default();
            let has = of.remove(&set.metadata.uid.clone().unwrap_or_default()).unwrap_or_default();
            let status = &set.data["status"];
            let is_current = status["observedGeneration"].as_i64() == set.metadata.generation;
            if has != wanted || set.data["spec"]["replicas"] != wanted || status["replicas"] != wanted || !is_current {
                wrong.push(format!("{name} wants {wanted}, has {has}, and its status is {status}"));
            }
        }
        if sets.len() != self.wanted.len() || !of.is_empty() {
            wrong.push(format!("{} of {} sets exist, and {} others own Pods", sets.len(), self.wanted.len(), of.len()));
        }
        Ok(wrong)
    }

    /// Returns the `resourceVersion` of every object by uid. Two equal results mean that nothing was written in
    /// between.
    pub(super) async fn versions(&self) -> Result<BTreeMap<Option<String>, Option<String>>, Failure> {
        let all = ListParams::default();
        let (sets, pods) = (self.sets.list(&all).await?.items, self.pods.list(&all).await?.items);
        let metas = sets.into_iter().chain(pods).map(|object| object.metadata);
        Ok(metas.map(|meta| (meta.uid, meta.resource_version)).collect())
    }
}

/// Creates all sets.
pub(super) async fn create(sets: &Api<DynamicObject>, options: &ChaosOptions) -> Result<(), Failure> {
    let creates = (0..options.sets).map(|number| async move {
        let labels = json!({ "set": name(number) });
        let container = json!({ "name": "app", "image": "registry.example.com/app:1" });
        let set: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "apps.example.com/v1",
            "kind": "PodSet",
            "metadata": { "name": name(number) },
            "spec": {
                "replicas": options.pods,
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
            },
        }))?;
        sets.create(&PostParams::default(), &set).await?;
        Ok::<_, Failure>(())
    });
    futures::stream::iter(creates).buffer_unordered(CREATES_MAX).try_collect::<()>().await
}

/// Returns the `ApiResource` of `PodSet`.
pub(super) fn podset() -> ApiResource {
    resource("apps.example.com", "v1", "PodSet", "podsets")
}

/// Returns the name of a set.
fn name(number: usize) -> String {
    format!("set-{number}")
}

/// Returns `None` if an object does not exist.
fn found<T>(answer: kctl::kube::Result<T>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kctl::kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}
