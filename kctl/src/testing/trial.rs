//! An app under a role, on an embedded or a real API server, for the time of one scenario.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use kctl_runtime::{
    connection,
    manager::{UnusedCache, View},
    manifest::Grant,
    reconcile::{Error, Result},
};
use kube::{Client, Config};
use tokio::task::JoinSet;

use super::{
    Refusals,
    real::{POLL, RealServer},
};
use crate::{
    App,
    app::{Grants, World},
};

/// Longest wait until nothing is left to do.
const IDLE_WITHIN: Duration = Duration::from_secs(60);
/// So many quiet looks in a row are idle on a real server: what is simulated beside the app hears of changes a moment later.
const IDLE_POLLS: u32 = 20;

/// An app that runs under a role: the argument of a scenario of [`check_role`](super::check_role).
pub struct Trial {
    client: Client,
    refusals: Vec<Refusals>,
    server: Server,
}

enum Server {
    Embedded(Box<World>),
    Real(Box<RealServers>),
}

struct RealServers {
    view: View,
    /// The first is the one that the app is started against.
    servers: Vec<RealServer>,
    tasks: JoinSet<()>,
}

/// Where an app looks in a trial on real servers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// As with `run --namespace`: so that a trial meets nothing but its own.
    OwnNamespace,
    /// Wherever its declaration says.
    AsDeclared,
}

impl Trial {
    /// On a server of its own.
    pub(super) async fn embedded(app: &App, role: &Grants) -> Result<Self> {
        let world = World::with_role(app, role).await?;
        Ok(Self {
            client: world.client.clone(),
            refusals: world.refusals.clone(),
            server: Server::Embedded(Box::new(world)),
        })
    }

    /// On a cluster, and on the others that the app names, as an administrator says: by impersonation. `without` is the
    /// permission of the role on a cluster, by its place in the order, that the app does not get.
    pub(super) async fn on_clusters(
        config: &Config,
        app: &mut App,
        reach: Reach,
        without: Option<(&str, usize)>,
    ) -> Result<Self> {
        static TRIALS: AtomicU32 = AtomicU32::new(0);
        let name = format!("kctl-trial-{}-{}", std::process::id(), TRIALS.fetch_add(1, Ordering::Relaxed));
        if reach == Reach::OwnNamespace {
            app.run_only_in(&name);
        }
        let mut role = app.grants();
        if let Some((cluster, index)) = without {
            let parts = app.all_grants().remove(cluster).unwrap_or_default();
            let rest = super::role::without(&role[cluster][index], &parts);
            role.insert(cluster.into(), rest);
        }
        let mut clients = vec![(String::new(), connection::client(config.clone())?)];
        clients.extend(app.connected().await?);
        let mut tasks = JoinSet::new();
        let mut servers = Vec::new();
        for (cluster, client) in clients {
            let grants = role.get(&cluster).map_or(&[][..], Vec::as_slice);
            servers.push(RealServer::prepare(client, (app, &name, &cluster), grants, &mut tasks).await?);
        }
        let others = servers[1..].iter().map(|server| (server.cluster.clone(), server.own.clone()));
        let manager = app.manager_at(servers[0].own.clone(), others.collect(), |manager| manager).await?;
        let view = manager.view();
        tasks.spawn(async move {
            if let Err(error) = manager.run(std::future::pending()).await {
                tracing::error!(%error, "the controllers no longer run");
            }
        });
        Ok(Self {
            client: servers[0].client.clone(),
            refusals: servers.iter().map(|server| server.refusals.clone()).collect(),
            server: Server::Real(Box::new(RealServers { view, servers, tasks })),
        })
    }

    /// An administrator's client; what has no namespace goes where the app looks.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// An administrator's client of another cluster (`App::cluster`).
    pub fn cluster(&self, name: &str) -> Option<Client> {
        match &self.server {
            Server::Embedded(world) => {
                world.others.iter().find(|other| other.name == name).map(|other| other.client.clone())
            }
            Server::Real(real) => {
                let mut others = real.servers[1..].iter();
                others.find(|server| server.cluster == name).map(|server| server.client.clone())
            }
        }
    }

    /// From here on Deployments, `ReplicaSets` and Jobs have pods and say so, as in a cluster with the controllers of Kubernetes.
    pub fn simulate_workloads(&self) {
        match &self.server {
            Server::Embedded(world) => world.add_workloads(),
            Server::Real(real) => real.servers[0].add_workloads(),
        }
    }

    /// Returns once nothing is left to do.
    ///
    /// # Errors
    /// When something is left after a minute, or as [`TestServer::idle`](super::TestServer::idle) when a hot loop keeps simulated
    /// time from advancing.
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

    /// Returns the caches that no reconcile has used so far.
    pub(super) fn unused_caches(&self) -> Vec<UnusedCache> {
        match &self.server {
            Server::Embedded(world) => world.view.unused_caches(),
            Server::Real(real) => real.view.unused_caches(),
        }
    }

    /// Stops the app and removes what the trial has made in clusters.
    pub(super) async fn end(self) -> Result<()> {
        let Server::Real(real) = self.server else { return Ok(()) };
        let RealServers { mut tasks, servers, .. } = *real;
        tasks.shutdown().await;
        for server in servers {
            server.end().await?;
        }
        Ok(())
    }
}

impl RealServers {
    async fn idle(&self) -> Result<()> {
        let quiet = async {
            let mut quiet = 0;
            while quiet < IDLE_POLLS {
                tokio::time::sleep(POLL).await;
                quiet = if self.is_quiet() { quiet + 1 } else { 0 };
                if quiet == IDLE_POLLS && !self.is_still().await {
                    quiet = 0;
                }
            }
        };
        let timed = tokio::time::timeout(IDLE_WITHIN, quiet).await;
        timed.map_err(|_elapsed| {
            let lines = self.view.unfinished();
            Error::from(format!("not idle after {IDLE_WITHIN:?}\n  {}", lines.join("\n  ")))
        })
    }

    fn is_quiet(&self) -> bool {
        self.view.is_idle() && self.servers.iter().all(|server| server.kubelet.pending() == 0)
    }

    /// Whether nothing is on its way any more: to the caches, and from the controllers to those who make and run pods.
    async fn is_still(&self) -> bool {
        self.is_current().await && self.is_quiet() && self.is_settled().await && self.is_quiet()
    }

    async fn is_settled(&self) -> bool {
        for server in &self.servers {
            if !server.is_settled().await.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// Whether nothing is on its way to the caches, however slow a server is.
    async fn is_current(&self) -> bool {
        for source in self.view.sources() {
            if !source.is_current().await.unwrap_or(false) {
                return false;
            }
        }
        true
    }
}
