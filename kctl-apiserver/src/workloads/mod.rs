//! Simulated Deployments and `ReplicaSets`: as far as pods come and go by them, and their status says so.
//!
//! A client like the simulated kubelet, so it works on a real API server as well. Whatever changes, everything is listed
//! and compared: each list is the newest state, so no pod is created twice.

mod deployment;
mod replica_set;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, ObjectList, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;

use crate::clock::Clock;

/// A failed pass is made again after this.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The controllers of Deployments and `ReplicaSets` of one cluster.
#[derive(Clone)]
pub struct Workloads {
    client: Client,
    clock: Clock,
    /// The resourceVersion up to which everything was compared and found as it should be.
    seen: Arc<AtomicU64>,
}

/// All that there is.
struct Lists {
    deployments: Vec<Deployment>,
    sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    /// Where watches go on from.
    versions: [String; 3],
}

impl Workloads {
    /// Controllers that work through this client.
    pub fn new(client: Client) -> Self {
        Self::on(client, Clock::System)
    }

    pub(crate) fn on(client: Client, clock: Clock) -> Self {
        Self { client, clock, seen: Arc::default() }
    }

    /// The resourceVersion up to which nothing is left to do.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// Works until it is dropped.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.work().await {
                tracing::warn!(%error, "Deployments and ReplicaSets rest for a moment");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }

    /// Compares, then waits for changes, until a watch ends.
    async fn work(&self) -> kube::Result<()> {
        let versions = self.pass().await?.versions;
        let [deployments, sets, pods] = &versions;
        let mut changes = stream::select_all([
            self.changes::<Deployment>(deployments).await?,
            self.changes::<ReplicaSet>(sets).await?,
            self.changes::<Pod>(pods).await?,
        ]);
        while let Some(change) = changes.next().await {
            change?;
            // What is there already is part of the same pass.
            while let Some(change) = changes.next().now_or_never() {
                let Some(change) = change else { return Ok(()) };
                change?;
            }
            self.pass().await?;
        }
        Ok(())
    }

    /// Compares everything once. What it writes are changes, and those are followed by the next pass.
    async fn pass(&self) -> kube::Result<Lists> {
        let lists = self.lists().await?;
        let mut n_writes = 0;
        for deployment in lists.deployments.iter().filter(|object| is_alive(*object)) {
            n_writes += deployment::sync(self, deployment, &lists).await?;
        }
        for set in lists.sets.iter().filter(|object| is_alive(*object)) {
            n_writes += replica_set::sync(self, set, &lists).await?;
        }
        if n_writes == 0 {
            let oldest = lists.versions.iter().filter_map(|version| version.parse().ok()).min();
            self.seen.store(oldest.unwrap_or(0), Ordering::Release);
        }
        Ok(lists)
    }

    async fn lists(&self) -> kube::Result<Lists> {
        let (deployments, first) = self.list().await?;
        let (sets, second) = self.list().await?;
        let (pods, third) = self.list().await?;
        Ok(Lists { deployments, sets, pods, versions: [first, second, third] })
    }

    async fn list<K>(&self) -> kube::Result<(Vec<K>, String)>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let ObjectList { items, metadata, .. } =
            Api::<K>::all(self.client.clone()).list(&ListParams::default()).await?;
        Ok((items, metadata.resource_version.unwrap_or_default()))
    }

    /// Says that something of a kind has changed.
    async fn changes<K>(&self, version: &str) -> kube::Result<stream::BoxStream<'static, kube::Result<()>>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let events = Api::<K>::all(self.client.clone()).watch(&WatchParams::default(), version).await?;
        let change = |event| async move {
            match event {
                Ok(WatchEvent::Bookmark(_)) => None,
                Ok(WatchEvent::Error(status)) => Some(Err(kube::Error::Api(status))),
                other => Some(other.map(drop)),
            }
        };
        Ok(events.filter_map(change).boxed())
    }
}

fn is_alive<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_none()
}

/// What is under the control of an object, without what is being deleted.
fn controlled<'a, K: Resource>(by: &impl Resource, all: &'a [K]) -> Vec<&'a K> {
    let uid = by.meta().uid.as_deref();
    let is_by = |owner: &OwnerReference| owner.controller == Some(true) && Some(owner.uid.as_str()) == uid;
    all.iter().filter(|object| is_alive(*object) && object.owner_references().iter().any(is_by)).collect()
}

fn reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference { block_owner_deletion: Some(true), ..owner.controller_owner_ref(&()).unwrap_or_default() }
}

/// Changes under which the object of a pass is not there any more, or is another one: the next pass sees what there is.
fn unless_outdated<T>(written: kube::Result<T>) -> kube::Result<()> {
    match written {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
        written => written.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
    use serde_json::{Value, json};

    use super::*;
    use crate::ApiServer;

    struct World {
        deployments: Api<Deployment>,
        sets: Api<ReplicaSet>,
        pods: Api<Pod>,
        server: ApiServer,
        workloads: Workloads,
        tasks: Vec<tokio::task::JoinHandle<()>>,
    }

    impl World {
        /// Everything that makes the pods of a Deployment ready.
        fn new() -> Self {
            let server = ApiServer::new();
            let client = Client::new(server.service(), "default");
            let workloads = server.workloads();
            Self {
                deployments: Api::default_namespaced(client.clone()),
                sets: Api::default_namespaced(client.clone()),
                pods: Api::default_namespaced(client),
                tasks: vec![
                    tokio::spawn(server.controllers()),
                    tokio::spawn(server.kubelet().run()),
                    tokio::spawn(workloads.clone().run()),
                ],
                server,
                workloads,
            }
        }

        async fn create(&self, replicas: i32) {
            let deployment = json!({
                "metadata": { "name": "web" },
                "spec": {
                    "replicas": replicas,
                    "selector": { "matchLabels": { "app": "web" } },
                    "template": {
                        "metadata": { "labels": { "app": "web" } },
                        "spec": { "containers": [{ "name": "web", "image": "nginx:1" }], "terminationGracePeriodSeconds": 1 },
                    },
                },
            });
            let deployment = serde_json::from_value(deployment).unwrap();
            self.deployments.create(&PostParams::default(), &deployment).await.unwrap();
        }

        async fn patch(&self, spec: Value) {
            let patch = Patch::Merge(json!({ "spec": spec }));
            self.deployments.patch("web", &PatchParams::default(), &patch).await.unwrap();
        }

        /// Replicas, those that are ready and those of the newest template, once nothing changes any more.
        async fn settled(&self) -> (i32, i32, i32) {
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(self.workloads.seen() >= self.server.revision_of("", "pods"));
            let deployment = self.deployments.get("web").await.unwrap();
            let status = deployment.status.unwrap();
            assert_eq!(status.observed_generation, deployment.metadata.generation);
            let of = |n: Option<i32>| n.unwrap_or(0);
            (of(status.replicas), of(status.ready_replicas), of(status.updated_replicas))
        }

        async fn pods(&self) -> Vec<Pod> {
            self.pods.list(&ListParams::default()).await.unwrap().items
        }
    }

    impl Drop for World {
        fn drop(&mut self) {
            self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn deployment_has_as_many_ready_pods_as_it_asks_for() {
        let world = World::new();
        world.create(3).await;
        assert_eq!(world.settled().await, (3, 3, 3));
        let conditions = world.deployments.get("web").await.unwrap().status.unwrap().conditions.unwrap();
        let told: Vec<_> =
            conditions.iter().map(|c| (c.type_.as_deref().unwrap(), c.status.as_deref().unwrap())).collect();
        assert_eq!(told, [("Available", "True"), ("Progressing", "True")]);
        for replicas in [5, 0, 2] {
            world.patch(json!({ "replicas": replicas })).await;
            assert_eq!(world.settled().await, (replicas, replicas, replicas));
            assert_eq!(i32::try_from(world.pods().await.len()), Ok(replicas));
        }
        let one = world.pods().await[0].name_any();
        world.pods.delete(&one, &DeleteParams::default()).await.unwrap();
        assert_eq!(world.settled().await, (2, 2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn new_template_replaces_the_pods_once_its_own_are_ready() {
        let world = World::new();
        world.create(2).await;
        world.settled().await;
        let image = json!({ "template": { "spec": { "containers": [{ "name": "web", "image": "nginx:2" }] } } });
        world.patch(image).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(world.pods().await.len(), 4, "the old ones stay until the new ones are ready");
        assert_eq!(world.settled().await, (2, 2, 2));
        let images: Vec<_> =
            world.pods().await.iter().map(|pod| pod.spec.clone().unwrap().containers[0].image.clone()).collect();
        assert_eq!(images, [Some("nginx:2".to_owned()), Some("nginx:2".to_owned())]);
        assert_eq!(world.sets.list(&ListParams::default()).await.unwrap().items.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_once_everything_is_as_it_should_be_and_all_goes_with_the_deployment() {
        let world = World::new();
        world.create(2).await;
        world.settled().await;
        let revision = world.server.revision();
        world.settled().await;
        assert_eq!(world.server.revision(), revision);
        world.deployments.delete("web", &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(world.pods().await.is_empty());
        assert!(world.sets.list(&ListParams::default()).await.unwrap().items.is_empty());
    }
}
