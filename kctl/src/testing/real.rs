//! A real API server for one trial: installs CRDs, the namespace and the role, simulates what nodes
//! would do, and cleans up.
//!
//! `kube-apiserver` with etcd is enough: Pods are run by a simulated kubelet, since such a control
//! plane has no nodes.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Request};
use k8s_openapi::{
    api::{
        core::v1::{Namespace, Pod},
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kctl_runtime::{
    manifest::{Permission, RbacOptions},
    object::Kind,
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

use super::{cleanup, created_objects::CreatedObjects};
use crate::{
    App,
    app::{self, SimulatedNodes},
    rejection::Rejections,
};

/// Longest wait until a server knows new CRDs and roles, and until a created object is gone.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of permissions that an error names.
const MISSING_NAMED_MAX: usize = 10;
/// Wait between two polls of a server.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// One API server of a trial.
pub(super) struct RealServer {
    /// The name of the cluster; empty for the one that the app is started against.
    pub(super) cluster: String,
    /// An administrator's client in the namespace of the trial. Objects that it creates are recorded.
    pub(super) client: Client,
    /// The app's client: it impersonates a service account that has the role and nothing else.
    pub(super) own: Client,
    pub(super) rejections: Rejections,
    pub(super) nodes: SimulatedNodes,
    footprint: Footprint,
}

/// Everything that a trial leaves on a server: its namespace, its role, and what it created there.
struct Footprint {
    /// The administrator's client as given: its requests are not recorded.
    bare: Client,
    created: CreatedObjects,
    /// Name of the namespace, the role and the service account.
    name: String,
}

impl RealServer {
    /// Installs the CRDs and the role on a server, in a new namespace, and waits until the server
    /// enforces them. After an error the namespace and the role are deleted; CRDs are kept.
    pub(super) async fn prepare(
        bare: Client,
        app: &App,
        name: &str,
        cluster: &str,
        permissions: &[Permission],
        tasks: &mut JoinSet<()>,
    ) -> Result<Self> {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        let space = Namespace { metadata, ..Namespace::default() };
        Api::all(bare.clone()).create(&PostParams::default(), &space).await.context("the namespace of a trial")?;
        let footprint = Footprint { bare, created: CreatedObjects::default(), name: name.into() };
        let rejections = Rejections::new(permissions.to_vec());
        let own = match footprint.install(app, permissions, &rejections).await {
            Ok(own) => own,
            Err(error) => return cleanup::append_error(Err(error), footprint.remove().await),
        };
        let client = footprint.created.recording(in_namespace_of(footprint.bare.clone(), name));
        let nodes = SimulatedNodes::for_client(&footprint.bare, "kctl-trial", tasks);
        let server = Self { cluster: cluster.to_owned(), client, own, rejections, nodes, footprint };
        if !server.cluster.is_empty() {
            // The cluster that the app is started against may be a control plane, as in `dev`: there Deployments are
            // only stored.
            server.add_workloads();
        }
        Ok(server)
    }

    /// Creates the Pods of Deployments, `ReplicaSets` and Jobs from here on. Further calls do
    /// nothing.
    pub(super) fn add_workloads(&self) {
        self.nodes.add_workloads();
    }

    /// Returns `true` if the simulated kubelet and controllers have seen the newest Pods and have
    /// nothing left to do.
    ///
    /// # Errors
    /// The server does not answer.
    pub(super) async fn is_settled(&self) -> kube::Result<bool> {
        let pods = Api::<Pod>::default_namespaced(self.client.clone()).list_metadata(&ListParams::default()).await?;
        let versions = pods.items.iter().filter_map(|pod| pod.metadata.resource_version.as_ref()?.parse().ok());
        let is_seen = versions.max().is_none_or(|newest: u64| self.nodes.have_handled_pods(newest));
        Ok(is_seen && self.nodes.workloads_are_settled().await?)
    }

    /// Deletes what the trial created, its namespace and its role.
    ///
    /// # Errors
    /// Something could not be deleted. The rest is gone nevertheless.
    pub(super) async fn end(self) -> Result<()> {
        self.footprint.remove().await
    }
}

impl Footprint {
    /// Installs the CRDs and the role, and waits until the server enforces them. Returns the app's client.
    async fn install(&self, app: &App, permissions: &[Permission], rejections: &Rejections) -> Result<Client> {
        let in_namespace = RbacOptions::new(&self.name, &self.name);
        let definitions = app.definitions()?;
        app::install(&self.bare, &definitions, permissions, &in_namespace).await?;
        wait_for_kinds(&self.bare, app, &definitions).await?;
        let own = self.created.recording(as_account(self.bare.clone(), &self.name, rejections)?);
        wait_for(&own, permissions).await?;
        Ok(own)
    }

    /// Deletes everything, and attempts each deletion even if another failed.
    async fn remove(self) -> Result<()> {
        let Self { bare, created, name } = self;
        let whole = DeleteParams::default();
        let ends = [
            created.remove(&bare, READY_TIMEOUT).await,
            ignore_missing(Api::<Namespace>::all(bare.clone()).delete(&name, &whole).await, "namespace", &name),
            ignore_missing(Api::<ClusterRole>::all(bare.clone()).delete(&name, &whole).await, "ClusterRole", &name),
            ignore_missing(
                Api::<ClusterRoleBinding>::all(bare).delete(&name, &whole).await,
                "ClusterRoleBinding",
                &name,
            ),
        ];
        cleanup::combine(ends).context("the end of a trial")
    }
}

/// Returns the error of a deletion. An object that does not exist needs none.
fn ignore_missing<T>(deleted: kube::Result<T>, kind: &str, name: &str) -> Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop).context(format!("{kind} {name}")),
    }
}

/// Returns the same client with another default namespace.
fn in_namespace_of(client: Client, namespace: &str) -> Client {
    let send = move |request| {
        let client = client.clone();
        async move { client.send(request).await.map_err(BoxError::from) }
    };
    Client::new(service_fn(send), namespace)
}

/// Returns a client that impersonates the service account of a trial, with the groups that a real
/// token would have.
fn as_account(client: Client, name: &str, rejections: &Rejections) -> Result<Client> {
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
    let service = ServiceBuilder::new().layer(rejections).map_request(impersonate).service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await.map_err(BoxError::from) }
    });
    Ok(Client::new(service, name))
}

/// Waits until a server serves the kinds of the controllers that these CRDs define: the API server publishes CRDs some
/// time after it accepted them.
async fn wait_for_kinds(client: &Client, app: &App, definitions: &[CustomResourceDefinition]) -> Result<()> {
    for spec in app.specs() {
        for relation in std::iter::once(&spec.primary).chain(&spec.relations) {
            if definitions.iter().any(|definition| serves(definition, &relation.kind)) {
                wait_for_kind(client, &relation.kind).await?;
            }
        }
    }
    Ok(())
}

/// Returns `true` if a CRD serves a kind in its version.
fn serves(definition: &CustomResourceDefinition, kind: &Kind) -> bool {
    let spec = &definition.spec;
    let has_version = || spec.versions.iter().any(|version| version.served && version.name == kind.version);
    spec.group == kind.group && spec.names.kind == kind.kind && has_version()
}

/// Waits until a server answers a list of a kind.
async fn wait_for_kind(client: &Client, kind: &Kind) -> Result<()> {
    let path = format!("{}?limit=1", kind.path(None));
    let mut last = None;
    let served = async {
        while let Err(error) = client.request::<Value>(Request::get(&path).body(Vec::new())?).await {
            last = Some(error);
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    if let Ok(served) = tokio::time::timeout(READY_TIMEOUT, served).await {
        return served;
    }
    let why = last.map_or_else(|| "no response".to_owned(), |error| error.to_string());
    Err(Error::from(format!("{kind} is not served after {READY_TIMEOUT:?}: {why}")))
}

/// Waits until the authorizer of a server knows the role. It watches roles, so a new one takes
/// effect with a delay.
async fn wait_for(client: &Client, permissions: &[Permission]) -> Result<()> {
    let mut missing = Vec::new();
    let served = async {
        loop {
            missing = app::missing(client, permissions).await?;
            if missing.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    if let Ok(served) = tokio::time::timeout(READY_TIMEOUT, served).await {
        return served;
    }
    let mut lines: Vec<_> =
        missing.iter().take(MISSING_NAMED_MAX).map(|permission| format!("`{permission}`")).collect();
    if missing.len() > lines.len() {
        lines.push(format!("{} more", missing.len() - lines.len()));
    }
    let lines = lines.join(", ");
    Err(Error::from(format!("the server does not grant the role of a trial after {READY_TIMEOUT:?}: {lines}")))
}

#[cfg(test)]
mod tests;
