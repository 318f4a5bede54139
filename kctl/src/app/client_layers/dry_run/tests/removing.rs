//! Tests a program that deletes objects by every kind of request, on its own cluster and on a second cluster.

use std::{future::pending, sync::Arc};

use k8s_openapi::api::{
    core::v1::{ConfigMap, Endpoints, LimitRange, Pod, Secret, ServiceAccount},
    rbac::v1::PolicyRule,
};
use kctl_apiserver::ApiServer;
use kctl_runtime::{manager::metrics::RequestCounter, reconcile::Result};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Notify;

use crate::{
    App,
    app::{client_layers::ClientOptions, run},
    prelude::{Action, Cluster, Context, Reconcile, controller},
};

const DOOMED: &str = "doomed";

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

fn of_core(resources: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(resources.iter().map(|&resource| resource.into()).collect()),
        verbs: vec!["delete".into(), "deletecollection".into()],
        ..PolicyRule::default()
    }
}

#[controller(
    crate = crate,
    of = ConfigMap,
    owns = Secret(apply, delete),
    reads = Pod(eviction),
    reads = ServiceAccount(deletecollection),
    reads = Secret(delete, on = Edge),
    rbac(of_core(&["endpoints", "limitranges"])),
)]
struct Removing {
    done: Arc<Notify>,
}

impl Reconcile for Removing {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        cx.owned::<Secret>().converge(Vec::<Secret>::new()).await?;
        for pod in &cx.store::<Pod>() {
            cx.objects::<Pod>().evict(&pod).await?;
        }
        cx.objects::<ServiceAccount>().delete_collection(Some("default"), DOOMED).await?;
        let (one, all) =
            (Api::<Endpoints>::default_namespaced(cx.client()), Api::<LimitRange>::default_namespaced(cx.client()));
        one.delete(DOOMED, &DeleteParams::default()).await?;
        all.delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
        for secret in &cx.cluster(Edge).store::<Secret>() {
            cx.cluster(Edge).objects::<Secret>().delete(&secret).await?;
        }
        self.done.notify_one();
        Ok(Action::await_change())
    }
}

async fn put<K>(client: &Client, text: &str) -> K
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Serialize
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let mut object: K = crate::from_yaml(text).unwrap();
    object.meta_mut().name = Some(DOOMED.into());
    object.meta_mut().labels = Some([(DOOMED.to_owned(), "yes".to_owned())].into());
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &object).await.unwrap()
}

/// Puts one object of each kind on the clusters.
async fn fill(here: &Client, edge: &Client) {
    let config: ConfigMap = put(here, "{}").await;
    let owner = format!(
        "{{ apiVersion: v1, kind: ConfigMap, name: {DOOMED}, uid: {}, controller: true }}",
        config.metadata.uid.unwrap()
    );
    let _owned: Secret = put(here, &format!("{{ metadata: {{ ownerReferences: [{owner}] }} }}")).await;
    let _account: ServiceAccount = put(here, "{}").await;
    let _pod: Pod = put(here, "{ spec: { serviceAccountName: doomed, containers: [{ name: a, image: b }] } }").await;
    let _endpoints: Endpoints = put(here, "{}").await;
    let _range: LimitRange = put(here, "{ spec: { limits: [] } }").await;
    let _secret: Secret = put(edge, "{}").await;
}

/// Returns the objects that the program could not remove.
async fn remaining_objects(options: &ClientOptions) -> Vec<String> {
    let (here, edge) = (ApiServer::on_system_time(), ApiServer::on_system_time());
    let [direct, at_edge] = [&here, &edge].map(|server| Client::new(server.service(), "default"));
    fill(&direct, &at_edge).await;
    let done = Arc::<Notify>::default();
    let notify = done.clone();
    let app = App::new("removing").cluster(Edge::NAME, move || std::future::ready(Ok(at_edge.clone())));
    let app = app.controller_with(move |_env| {
        let done = notify.clone();
        async { Ok(Removing { done }) }
    });
    let requests = RequestCounter::new("here");
    let clusters = run::clusters(&app, options, &requests).await.unwrap();
    let manager = app.manager_at(options.wrap(direct, &requests), clusters, |manager| manager).await.unwrap();
    let running = tokio::spawn(manager.run(pending()));
    done.notified().await;
    running.abort();

    let kept = |server: &ApiServer, kind: &str| server.object("", kind, "default", DOOMED).is_some();
    let kinds = ["secrets", "pods", "serviceaccounts", "endpoints", "limitranges"];
    let mut left: Vec<String> = kinds.iter().filter(|kind| kept(&here, kind)).map(ToString::to_string).collect();
    left.extend(kept(&edge, "secrets").then(|| "secrets there".to_owned()));
    left
}

#[tokio::test]
async fn dry_run_keeps_objects_that_real_run_removes() {
    let all = ["secrets", "pods", "serviceaccounts", "endpoints", "limitranges", "secrets there"];
    for (dry_run, expected) in [(true, &all[..]), (false, &[])] {
        assert_eq!(
            remaining_objects(&ClientOptions { dry_run, ..ClientOptions::default() }).await,
            expected,
            "dry run: {dry_run}"
        );
    }
}
