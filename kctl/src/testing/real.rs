//! Real API servers for the time of one trial: definitions, the role, what no control plane without nodes does, and the end.

use std::{sync::OnceLock, time::Duration};

use http::{HeaderName, HeaderValue, Request};
use k8s_openapi::api::{
    core::v1::{Namespace, Pod},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kctl_apiserver::{Kubelet, Workloads};
use kctl_runtime::{
    manifest::{Grant, RbacOptions},
    reconcile::{Error, Result, ResultExt},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
    client::Body,
};
use serde_json::Value;
use tokio::task::JoinSet;
use tower::{BoxError, ServiceBuilder, service_fn};

use super::{Refusals, made::Made};
use crate::{App, app};

/// Longest wait until a real server knows new definitions and roles, and until what was made is gone.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How often a real server is asked again.
pub(super) const POLL: Duration = Duration::from_millis(50);

/// One real server of a trial.
pub(super) struct RealServer {
    /// The cluster; empty is the one that the app is started against.
    pub(super) cluster: String,
    /// An administrator's client, in the namespace of the trial; what it makes is noted.
    pub(super) client: Client,
    /// The app's client: it has its role, and nothing else.
    pub(super) own: Client,
    pub(super) refusals: Refusals,
    pub(super) kubelet: Kubelet,
    /// The pods of Deployments and Jobs, where the trial makes them.
    workloads: OnceLock<(Workloads, JoinSet<()>)>,
    /// As the administrator came.
    bare: Client,
    made: Made,
    /// Of the namespace and of the role.
    name: String,
}

impl RealServer {
    /// Installs the definitions and the role on a server, in a new namespace.
    pub(super) async fn prepare(
        bare: Client,
        (app, name, cluster): (&App, &str, &str),
        grants: &[Grant],
        tasks: &mut JoinSet<()>,
    ) -> Result<Self> {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        let space = Namespace { metadata, ..Namespace::default() };
        Api::all(bare.clone()).create(&PostParams::default(), &space).await.context("the namespace of a trial")?;
        let in_namespace = RbacOptions { name: name.into(), namespace: name.into(), ..RbacOptions::default() };
        app::install(&bare, &app.definitions()?, grants, &in_namespace).await?;
        wait_for_kinds(&bare, app).await?;
        let made = Made::default();
        let refusals = Refusals::beyond(grants.to_vec());
        let own = made.by(as_account(bare.clone(), name, &refusals)?);
        wait_for(&own, grants).await?;
        let client = made.by(in_namespace_of(bare.clone(), name));
        let kubelet = Kubelet::new(bare.clone(), "kctl-trial");
        tasks.spawn(kubelet.clone().run());
        let workloads = OnceLock::new();
        let (cluster, name) = (cluster.to_owned(), name.to_owned());
        let server = Self { cluster, client, own, refusals, kubelet, workloads, bare, made, name };
        if !server.cluster.is_empty() {
            // Of Deployments nothing is made where the app is started: that may be a control plane, as in `dev`.
            server.add_workloads();
        }
        Ok(server)
    }

    /// Makes the pods of Deployments, `ReplicaSets` and Jobs from here on.
    pub(super) fn add_workloads(&self) {
        self.workloads.get_or_init(|| {
            let (workloads, mut tasks) = (Workloads::new(self.bare.clone()), JoinSet::new());
            tasks.spawn(workloads.clone().run());
            (workloads, tasks)
        });
    }

    /// Whether those who make pods and run them have seen all that there is and have nothing left to do, however late a server
    /// tells them of changes.
    pub(super) async fn is_settled(&self) -> kube::Result<bool> {
        let pods = Api::<Pod>::default_namespaced(self.client.clone()).list_metadata(&ListParams::default()).await?;
        let versions = pods.items.iter().filter_map(|pod| pod.metadata.resource_version.as_ref()?.parse().ok());
        let is_seen = versions.max().is_none_or(|newest: u64| self.kubelet.seen() >= newest);
        let Some((workloads, _)) = self.workloads.get() else { return Ok(is_seen) };
        Ok(is_seen && workloads.is_settled().await?)
    }

    /// Removes what the trial has made.
    pub(super) async fn end(self) -> Result<()> {
        self.made.remove(&self.bare, READY_WITHIN).await.context("the end of a trial")?;
        let whole = DeleteParams::default();
        Api::<Namespace>::all(self.bare.clone()).delete(&self.name, &whole).await.context("the end of a trial")?;
        let gone = |deleted: kube::Result<()>| match deleted {
            Err(kube::Error::Api(refused)) if refused.code == 404 => Ok(()),
            other => other,
        };
        gone(Api::<ClusterRole>::all(self.bare.clone()).delete(&self.name, &whole).await.map(drop))?;
        gone(Api::<ClusterRoleBinding>::all(self.bare).delete(&self.name, &whole).await.map(drop))?;
        Ok(())
    }
}

fn in_namespace_of(client: Client, namespace: &str) -> Client {
    let send = move |request| {
        let client = client.clone();
        async move { client.send(request).await.map_err(BoxError::from) }
    };
    Client::new(service_fn(send), namespace)
}

/// A client that is the service account of a trial, by impersonation.
fn as_account(client: Client, name: &str, refusals: &Refusals) -> Result<Client> {
    let user = HeaderValue::from_str(&format!("system:serviceaccount:{name}:{name}"))?;
    let mut groups = Vec::new();
    for group in
        ["system:serviceaccounts".into(), format!("system:serviceaccounts:{name}"), "system:authenticated".into()]
    {
        groups.push(HeaderValue::from_str(&group)?);
    }
    let impersonate = move |mut request: Request<Body>| {
        let headers = request.headers_mut();
        headers.insert(HeaderName::from_static("impersonate-user"), user.clone());
        for group in &groups {
            headers.append(HeaderName::from_static("impersonate-group"), group.clone());
        }
        request
    };
    let client = in_namespace_of(client, name);
    let service = ServiceBuilder::new().layer(refusals).map_request(impersonate).service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await.map_err(BoxError::from) }
    });
    Ok(Client::new(service, name))
}

/// Waits until a real server serves new definitions.
async fn wait_for_kinds(client: &Client, app: &App) -> Result<()> {
    for spec in app.specs().into_iter().filter(|spec| spec.crd.is_some()) {
        let path = format!("{}?limit=1", spec.primary.kind.path(None));
        let served = async {
            while client.request::<Value>(Request::get(&path).body(Vec::new())?).await.is_err() {
                tokio::time::sleep(POLL).await;
            }
            Ok(())
        };
        let late = |_elapsed| Err(Error::from(format!("{} is not served after {READY_WITHIN:?}", spec.primary.kind)));
        tokio::time::timeout(READY_WITHIN, served).await.unwrap_or_else(late)?;
    }
    Ok(())
}

/// Waits until the authorizer of a real server knows the role: it watches roles like everybody else.
async fn wait_for(client: &Client, grants: &[Grant]) -> Result<()> {
    let known = async {
        while !app::missing(client, grants).await?.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    };
    tokio::time::timeout(READY_WITHIN, known).await.unwrap_or_else(|_elapsed| {
        Err(Error::from(format!("the server does not know the role after {READY_WITHIN:?}")))
    })
}
