//! An app under a role, on an embedded or a real API server, for the time of one scenario.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kctl_apiserver::{ApiServer, Kubelet};
use kctl_runtime::{
    manager::View,
    manifest::{Grant, RbacOptions},
    reconcile::{Error, Result, ResultExt},
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ObjectMeta, PostParams},
    client::ClientBuilder,
};
use serde_json::Value;
use tokio::task::JoinSet;

use super::Refusals;
use crate::{
    App,
    app::{self, Grants, World},
};

/// Longest wait until nothing is left to do.
const IDLE_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait until a real server knows new definitions and roles.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How often a real server is asked again.
const POLL: Duration = Duration::from_millis(50);
/// So many quiet looks in a row are idle: on a real server, events are on their way for a moment.
const IDLE_POLLS: u32 = 20;

/// A server on which an app runs under a role: what a scenario of [`check_role`](super::check_role) is given.
pub struct Trial {
    client: Client,
    refusals: Vec<Refusals>,
    server: Server,
}

enum Server {
    Embedded(Box<World>),
    Real(Box<RealServer>),
}

struct RealServer {
    view: View,
    kubelet: Kubelet,
    namespace: String,
    name: String,
    _tasks: JoinSet<()>,
}

impl Trial {
    /// On a server of its own.
    pub(super) async fn embedded(app: &App, role: &Grants) -> Result<Self> {
        let world = World::with_role(ApiServer::new(), app, role).await?;
        Ok(Self {
            client: world.client.clone(),
            refusals: world.refusals.clone(),
            server: Server::Embedded(Box::new(world)),
        })
    }

    /// In a namespace of its own on a cluster, as an administrator says: by impersonation. `without` is the permission of the
    /// role, by its place in the order, that the app does not get.
    pub(super) async fn on_cluster(config: &Config, app: &mut App, without: Option<usize>) -> Result<Self> {
        static TRIALS: AtomicU32 = AtomicU32::new(0);
        let name = format!("kctl-trial-{}-{}", std::process::id(), TRIALS.fetch_add(1, Ordering::Relaxed));
        let mut config = config.clone();
        config.default_namespace.clone_from(&name);
        let client: Client = ClientBuilder::try_from(config.clone())?.build();
        let space = Namespace {
            metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        Api::all(client.clone()).create(&PostParams::default(), &space).await.context("the namespace of a trial")?;
        app.run_only_in(&name);
        let mut grants = app.grants().remove("").unwrap_or_default();
        if let Some(index) = without {
            let parts = app.all_grants().remove("").unwrap_or_default();
            grants = super::role::without(&grants[index], &parts);
        }
        let options = RbacOptions { name: name.clone(), namespace: name.clone(), ..RbacOptions::default() };
        app::install(&client, &app.definitions()?, &grants, &options).await?;
        wait_for_kinds(&client, app).await?;

        let user = format!("system:serviceaccount:{name}:{name}");
        config.auth_info.impersonate_groups = Some(vec![
            "system:serviceaccounts".into(),
            format!("system:serviceaccounts:{name}"),
            "system:authenticated".into(),
        ]);
        config.auth_info.impersonate = Some(user);
        let refusals = Refusals::beyond(grants.clone());
        let own: Client = ClientBuilder::try_from(config)?.with_layer(&refusals).build();
        wait_for(&own, &grants).await?;
        let manager = app.manager(own).await?;
        let (view, kubelet) = (manager.view(), Kubelet::new(client.clone(), "kctl-trial"));
        let mut tasks = JoinSet::new();
        tasks.spawn(kubelet.clone().run());
        tasks.spawn(async move {
            if let Err(error) = manager.run(std::future::pending()).await {
                tracing::error!(%error, "the controllers no longer run");
            }
        });
        let server = RealServer { view, kubelet, namespace: name.clone(), name, _tasks: tasks };
        let server = Server::Real(Box::new(server));
        Ok(Self { client, refusals: vec![refusals], server })
    }

    /// An administrator's client; what has no namespace goes where the app looks.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// An administrator's client of another cluster (`App::cluster`), where it is an embedded one.
    pub fn cluster(&self, name: &str) -> Option<Client> {
        let Server::Embedded(world) = &self.server else { return None };
        world.others.iter().find(|other| other.name == name).map(|other| other.client.clone())
    }

    /// Returns once nothing is left to do.
    ///
    /// # Errors
    /// When something is left after a minute.
    pub async fn idle(&self) -> Result<()> {
        match &self.server {
            Server::Embedded(world) => world.idle(IDLE_WITHIN).await,
            Server::Real(real) => real.idle().await,
        }
    }

    /// Returns once the app was refused something that its role lacks.
    pub(super) async fn refused(&self) {
        let first = self.refusals.iter().map(|refusals| Box::pin(refusals.first()));
        futures::future::select_all(first).await;
    }

    /// What the role lacks, as far as the app has asked for it.
    pub(super) fn lacks(&self) -> Option<Grant> {
        self.refusals.iter().find_map(Refusals::last)
    }

    /// Stops the app and removes what the trial has made in a cluster.
    pub(super) async fn end(self) -> Result<()> {
        let Server::Real(real) = self.server else { return Ok(()) };
        let RealServer { namespace, name, .. } = *real;
        let whole = DeleteParams::default();
        Api::<Namespace>::all(self.client.clone()).delete(&namespace, &whole).await.context("the end of a trial")?;
        let gone = |deleted: kube::Result<_>| match deleted {
            Err(kube::Error::Api(refused)) if refused.code != 404 => Err(kube::Error::Api(refused)),
            _ => Ok(()),
        };
        let roles = Api::<k8s_openapi::api::rbac::v1::ClusterRole>::all(self.client.clone());
        gone(roles.delete(&name, &whole).await.map(drop))?;
        let bindings = Api::<k8s_openapi::api::rbac::v1::ClusterRoleBinding>::all(self.client);
        gone(bindings.delete(&name, &whole).await.map(drop))?;
        Ok(())
    }
}

impl RealServer {
    async fn idle(&self) -> Result<()> {
        let quiet = async {
            let mut quiet = 0;
            while quiet < IDLE_POLLS {
                tokio::time::sleep(POLL).await;
                quiet = if self.view.is_idle() && self.kubelet.pending() == 0 { quiet + 1 } else { 0 };
            }
        };
        let timed = tokio::time::timeout(IDLE_WITHIN, quiet).await;
        timed.map_err(|_elapsed| {
            let lines = self.view.unfinished();
            Error::from(format!("not idle after {IDLE_WITHIN:?}\n  {}", lines.join("\n  ")))
        })
    }
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
