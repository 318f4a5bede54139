//! The sets of a chaos run: they are created, changed, and compared with their Pods at the end.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use kctl::kube::{
    Api, Client,
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

/// The namespaces of the sets, each with as many sets as the others, or one more.
#[derive(Clone)]
pub(super) struct Namespaces {
    client: Client,
    names: Vec<String>,
}

impl Namespaces {
    /// Creates `n` namespaces, or returns the one that exists for a single one.
    ///
    /// Their names differ at the beginning: FNV-1a hardly spreads names that differ only at the end.
    pub(super) async fn create(server: &Server, n: usize) -> Result<Self, Failure> {
        let client = server.client.clone();
        if n == 1 {
            return Ok(Self { client, names: vec![NAMESPACE.to_owned()] });
        }
        let names: Vec<_> = (0..n).map(|number| format!("{:08x}-team", Rng(number as u64).below(1 << 32))).collect();
        let kind = resource("", "v1", "Namespace", "namespaces");
        let namespaces = Api::<DynamicObject>::all_with(client.clone(), &kind);
        for name in &names {
            let namespace: DynamicObject = serde_json::from_value(json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": name },
            }))?;
            namespaces.create(&PostParams::default(), &namespace).await?;
        }
        Ok(Self { client, names })
    }

    /// Returns the objects of a kind in the namespace of a set.
    fn of_set(&self, number: usize, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.names[number % self.names.len()], kind)
    }

    /// Creates all sets.
    pub(super) async fn create_sets(&self, options: &ChaosOptions) -> Result<(), Failure> {
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
            self.of_set(number, &podset()).create(&PostParams::default(), &set).await?;
            Ok::<_, Failure>(())
        });
        futures::stream::iter(creates).buffer_unordered(CREATES_MAX).try_collect::<()>().await
    }
}

/// The cluster, and the number of Pods that each set should have.
pub(super) struct Cluster {
    namespaces: Namespaces,
    /// The sets and the Pods of all namespaces.
    sets: Api<DynamicObject>,
    pods: Api<DynamicObject>,
    /// Wanted number of Pods, indexed by the number of the set.
    pub(super) wanted: Vec<usize>,
}

impl Cluster {
    /// Creates the clients for sets and Pods. It creates no objects.
    pub(super) fn new(server: &Server, namespaces: Namespaces, options: &ChaosOptions) -> Self {
        let client = server.client.clone();
        Self {
            namespaces,
            sets: Api::all_with(client.clone(), &podset()),
            pods: Api::all_with(client, &pod()),
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
                let first_pod = ListParams::default().labels(&format!("set={}", name(set))).limit(1);
                let pods = self.namespaces.of_set(set, &pod());
                if let Some(pod) = pods.list(&first_pod).await?.items.into_iter().next() {
                    let gone = pods.delete(&pod.metadata.name.unwrap_or_default(), &DeleteParams::default()).await;
                    counts.deleted += u32::from(not_found_to_none(gone)?.is_some());
                }
                return Ok(());
            }
        };
        let patch = Patch::Merge(json!({ "spec": { "replicas": wanted } }));
        let sets = self.namespaces.of_set(set, &podset());
        if not_found_to_none(sets.patch(&name(set), &PatchParams::default(), &patch).await)?.is_some() {
            let grows = wanted > self.wanted[set];
            counts.grown += u32::from(grows);
            counts.shrunk += u32::from(wanted < self.wanted[set]);
            self.wanted[set] = wanted;
        }
        Ok(())
    }

    /// Deletes Pods that are being deleted and were never scheduled, as kube-controller-manager does
    /// (`gcUnscheduledTerminating` in `pkg/controller/podgc/gc_controller.go`). Returns their number.
    ///
    /// kube-apiserver sets `deletionTimestamp` in one write to etcd and removes the Pod in the next one (`Store.Delete` in
    /// `registry/generic/registry/store.go`). If the client is killed in between, the second write does not happen.
    pub(super) async fn collect_terminating(&self) -> Result<u32, Failure> {
        let mut n = 0;
        for pod in self.pods.list(&ListParams::default()).await?.items {
            if pod.metadata.deletion_timestamp.is_none() || !pod.data["spec"]["nodeName"].is_null() {
                continue;
            }
            let (name, namespace) = (pod.metadata.name.unwrap_or_default(), pod.metadata.namespace.unwrap_or_default());
            let pods = Api::<DynamicObject>::namespaced_with(self.namespaces.client.clone(), &namespace, &self::pod());
            n += u32::from(
                not_found_to_none(pods.delete(&name, &DeleteParams::default().grace_period(0)).await)?.is_some(),
            );
        }
        Ok(n)
    }

    /// Returns one message per problem with a set or a Pod.
    ///
    /// A set is right if it has exactly the wanted number of Pods that are not being deleted, and if its status is
    /// about its newest generation. A Pod without a set is also a problem.
    pub(super) async fn problems(&self) -> Result<Vec<String>, Failure> {
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

/// Returns the `ApiResource` of `PodSet`.
pub(super) fn podset() -> ApiResource {
    resource("apps.example.com", "v1", "PodSet", "podsets")
}

/// Returns the `ApiResource` of `Pod`.
fn pod() -> ApiResource {
    resource("", "v1", "Pod", "pods")
}

/// Returns the name of a set.
fn name(number: usize) -> String {
    format!("set-{number}")
}

/// Returns `None` if an object does not exist.
fn not_found_to_none<T>(response: kctl::kube::Result<T>) -> Result<Option<T>, Failure> {
    match response {
        Ok(object) => Ok(Some(object)),
        Err(kctl::kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}
