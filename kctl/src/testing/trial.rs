//! An app that runs under a role, on an embedded or a real API server, for one scenario.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use kctl_runtime::{
    connection,
    manager::{Manager, UnusedCache, View},
    manifest::Permission,
    reconcile::{Error, Result},
};
use kube::{Client, Config};
use tokio::task::JoinSet;

use super::{
    cleanup,
    real::{POLL_INTERVAL, RealServer},
    watchdog::Watchdog,
};
use crate::{
    App,
    app::{Permissions, Reconciles, World},
    rejection::Rejections,
};

/// Prefix of the name of each trial's namespace. Permissions are sorted by namespace, and those for events of cluster-scoped
/// objects are in `default`. A role for a namespace with this name has the same order as the role of each trial.
pub(super) const NAMESPACE_PREFIX: &str = "kctl-trial";
/// Longest wait of [`Trial::idle`].
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of quiet polls in a row that count as idle on a real server.
///
/// One is not enough: the simulated kubelet learns of a change from its watch, a moment after the
/// app wrote it.
const IDLE_POLLS: u32 = 20;

/// Returns the role without one permission.
///
/// The role merges permissions: a larger one, such as one for all namespaces, hides smaller ones.
/// `parts` has all that the declarations ask for, so removing the larger one brings the smaller
/// ones back.
pub(super) fn role_without(permission: &Permission, parts: &[Permission]) -> Vec<Permission> {
    let is_same_permission = |other: &&Permission| {
        other.scope == permission.scope && other.target == permission.target && other.verb == permission.verb
    };
    parts.iter().filter(|other| !is_same_permission(other)).cloned().collect()
}

/// An app that runs under a role: the argument of a scenario of [`check_role`](super::check_role).
///
/// The scenario acts as a user of the cluster. It creates and changes objects with
/// [`client`](Self::client) and waits with [`idle`](Self::idle) until the app has reacted. One
/// scenario runs on the embedded API server and on a real one, so it names no namespace and leaves
/// it to the client.
///
/// ```
/// use kctl::{kube::{Api, api::{DeleteParams, PostParams}}, prelude::*, testing::Trial};
///
/// /// Creates a `ConfigMap`, lets the app react, and deletes it again.
/// async fn scenario(trial: &Trial) -> kctl::Result<()> {
///     let configs = Api::<ConfigMap>::default_namespaced(trial.client());
///     let web = kctl::from_json(kctl::json!({ "metadata": { "name": "web" } }))?;
///     configs.create(&PostParams::default(), &web).await?;
///     trial.idle().await?;
///     configs.delete("web", &DeleteParams::default()).await?;
///     trial.idle().await
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> kctl::Result<()> {
/// # #[controller]
/// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
/// kctl::testing::check_role(|| App::new("idler").controller::<idle>(), scenario).await?;
/// # Ok(())
/// # }
/// ```
pub struct Trial {
    client: Client,
    /// One per cluster, the app's own first.
    rejections: Vec<Rejections>,
    server: Server,
    _watchdog: Watchdog,
}

impl std::fmt::Debug for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trial").finish_non_exhaustive()
    }
}

enum Server {
    Embedded(Box<World>),
    Real(Box<RealServers>),
}

/// A manager in this process that talks to API servers elsewhere, and the simulations that run with it.
struct RealServers {
    view: View,
    reconciles: Reconciles,
    /// The first one is the cluster that the app is started against.
    servers: Vec<RealServer>,
    tasks: JoinSet<()>,
}

/// The namespaces that an app watches in a trial on real servers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchedNamespaces {
    /// Only the trial's namespace, as with `run --namespace`: objects of other users are not seen.
    OwnNamespace,
    /// The namespaces of the declaration, usually all.
    AsDeclared,
}

impl Trial {
    /// Starts an app under `role` on a new embedded API server.
    pub(super) async fn start_embedded(app: &App, role: &Permissions) -> Result<Self> {
        let watchdog = Watchdog::start()?;
        let world = World::with_role(app, role).await?;
        watchdog.watch_world(&world);
        Ok(Self {
            client: world.client.clone(),
            rejections: world.rejections.clone(),
            server: Server::Embedded(Box::new(world)),
            _watchdog: watchdog,
        })
    }

    /// Starts an app on the cluster of a kubeconfig, and on the other clusters of the app.
    ///
    /// The connection is an administrator's; the app's own requests impersonate a service account
    /// that has only the role. `without` names a permission to leave out: the cluster, and the
    /// index in the role of that cluster.
    pub(super) async fn on_clusters(
        config: &Config,
        app: &mut App,
        reach: WatchedNamespaces,
        without: Option<(&str, usize)>,
    ) -> Result<Self> {
        static TRIALS: AtomicU32 = AtomicU32::new(0);
        let name = namespace_of(TRIALS.fetch_add(1, Ordering::Relaxed));
        if reach == WatchedNamespaces::OwnNamespace {
            app.run_only_in(&name);
        }
        let mut role = app.permissions();
        if let Some((cluster, index)) = without {
            let parts = app.all_permissions().remove(cluster).unwrap_or_default();
            let rest = role_without(&role[cluster][index], &parts);
            role.insert(cluster.into(), rest);
        }
        let watchdog = Watchdog::start()?;
        let mut clients = vec![(String::new(), connection::client(config.clone())?)];
        clients.extend(app.connect_clusters().await?);
        let started = RealServers::start(clients, app, &name, &role).await?;
        Ok(Self {
            client: started.servers[0].client.clone(),
            rejections: started.servers.iter().map(|server| server.rejections.clone()).collect(),
            server: Server::Real(Box::new(started)),
            _watchdog: watchdog,
        })
    }

    /// Returns a client with all permissions. The app watches its default namespace.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client with all permissions on another cluster of the app ([`App::cluster`]), or
    /// `None` for an unknown name.
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

    /// Starts controllers that create Pods for Deployments, `ReplicaSets` and Jobs and report their
    /// status, as in a cluster.
    ///
    /// On a real API server they run in the process of the test.
    #[cfg(feature = "dev")]
    pub fn simulate_workloads(&self) {
        match &self.server {
            Server::Embedded(world) => world.add_workloads(),
            Server::Real(real) => real.servers[0].add_workloads(),
        }
    }

    /// Waits until nothing is left to do: no key is queued or reconciled, and all caches are up to
    /// date.
    ///
    /// # Errors
    /// Something is left after a minute, or a hot loop keeps simulated time from advancing (see
    /// [`TestServer::idle`](super::TestServer::idle)).
    pub async fn idle(&self) -> Result<()> {
        match &self.server {
            Server::Embedded(world) => world.idle(IDLE_TIMEOUT).await,
            Server::Real(real) => real.idle().await,
        }
    }

    /// Returns once an API server rejected a request of the app that its role does not allow.
    pub(super) async fn wait_for_rejection(&self) {
        let first = self.rejections.iter().map(|rejections| Box::pin(rejections.wait_for_rejection()));
        futures::future::select_all(first).await;
    }

    /// Returns the permission of the last request that the role did not allow, if any.
    pub(super) fn lacks(&self) -> Option<Permission> {
        self.rejections.iter().find_map(Rejections::last)
    }

    /// Returns the caches that no reconcile has read so far.
    pub(super) fn unused_caches(&self) -> Vec<UnusedCache> {
        match &self.server {
            Server::Embedded(world) => world.view.unused_caches(),
            Server::Real(real) => real.view.unused_caches(),
        }
    }

    /// Stops the app and deletes what the trial created in clusters.
    pub(super) async fn end(self) -> Result<()> {
        let Server::Real(real) = self.server else { return Ok(()) };
        let RealServers { tasks, servers, .. } = *real;
        end(tasks, servers).await
    }
}

/// Returns the name of the namespace of the nth trial of this program.
fn namespace_of(nth: u32) -> String {
    format!("{NAMESPACE_PREFIX}-{}-{nth}", std::process::id())
}

async fn end(mut tasks: JoinSet<()>, servers: Vec<RealServer>) -> Result<()> {
    tasks.shutdown().await;
    let mut ends = Vec::new();
    for server in servers {
        ends.push(server.end().await);
    }
    cleanup::combine(ends)
}

impl RealServers {
    /// Prepares each server, and starts the manager. `clients` has the cluster that the app is started against first.
    ///
    /// # Errors
    /// A server can't be prepared, or a controller not be created. What was prepared before is deleted.
    async fn start(clients: Vec<(String, Client)>, app: &App, name: &str, role: &Permissions) -> Result<Self> {
        let (mut tasks, mut servers, reconciles) = (JoinSet::new(), Vec::new(), Reconciles::default());
        let started = async {
            for (cluster, client) in clients {
                let permissions = role.get(&cluster).map_or(&[][..], Vec::as_slice);
                servers.push(RealServer::prepare(client, app, name, &cluster, permissions, &mut tasks).await?);
            }
            let others = servers[1..].iter().map(|server| (server.cluster.clone(), server.own.clone()));
            let records = reconciles.clone();
            let recorded = |manager: Manager| manager.on_end(Arc::new(move |report| records.record_end(report)));
            app.manager_at(servers[0].own.clone(), others.collect(), recorded).await
        };
        let manager = match started.await {
            Ok(manager) => manager,
            Err(error) => return cleanup::append_error(Err(error), end(tasks, servers).await),
        };
        let view = manager.view();
        tasks.spawn(async move {
            if let Err(error) = manager.run(std::future::pending()).await {
                tracing::error!(%error, "the controllers no longer run");
            }
        });
        Ok(Self { view, reconciles, servers, tasks })
    }

    /// Waits for [`IDLE_POLLS`] quiet polls in a row, then verifies with requests that caches and
    /// simulations are current.
    async fn idle(&self) -> Result<()> {
        self.reconciles.restart();
        let quiet = async {
            let mut quiet = 0;
            while quiet < IDLE_POLLS {
                tokio::time::sleep(POLL_INTERVAL).await;
                quiet = if self.is_quiet() { quiet + 1 } else { 0 };
                if quiet == IDLE_POLLS && !self.is_still().await {
                    quiet = 0;
                }
            }
        };
        let timed = tokio::time::timeout(IDLE_TIMEOUT, quiet).await;
        timed.map_err(|_elapsed| {
            let mut lines = vec![format!("not idle after {IDLE_TIMEOUT:?}")];
            lines.extend(self.view.unfinished_work());
            lines.extend(self.servers.iter().flat_map(|server| server.nodes.unfinished_work()));
            if lines.len() == 1 {
                lines.push("pods and other objects are still being simulated, or a cache is behind its server".into());
            }
            self.reconciles.add_busy_lines(&mut lines);
            Error::from(lines.join("\n  "))
        })
    }

    /// Returns `true` if the app and the simulated kubelet have no pending work. Changes that their
    /// watches have not delivered yet do not count.
    fn is_quiet(&self) -> bool {
        self.view.is_idle() && self.servers.iter().all(|server| server.nodes.pending() == 0)
    }

    /// Returns `true` if the caches and the simulations have seen all changes and have no pending
    /// work. Pending work is checked again after each request, because it may arrive during the request.
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

    /// Returns `true` if each cache has the newest state of its server.
    async fn is_current(&self) -> bool {
        for source in self.view.sources() {
            if !source.is_current().await.unwrap_or(false) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
    use kctl_apiserver::ApiServer;
    use kube::{Api, api::PostParams};

    use super::*;
    use crate::prelude::{Action, Context, controller};

    #[controller(crate = crate)]
    async fn idles(_config: Arc<ConfigMap>, _cx: Context<idles>) -> Result<Action> {
        Ok(Action::await_change())
    }

    #[controller(crate = crate)]
    async fn fails(_config: Arc<ConfigMap>, _cx: Context<fails>) -> Result<Action> {
        Err("no disk".into())
    }

    /// Its events are in the namespace `default`.
    #[controller(crate = crate)]
    async fn nodes(_node: Arc<Node>, _cx: Context<nodes>) -> Result<Action> {
        Ok(Action::await_change())
    }

    /// A trial leaves out a permission by its index.
    #[test]
    fn roles_of_all_trials_have_one_order() {
        let role = |namespace: &str| -> Vec<_> {
            let mut app = App::new("both").controller::<idles>().controller::<nodes>();
            app.run_only_in(namespace);
            let permissions = app.permissions().remove("").unwrap();
            permissions.into_iter().map(|permission| (permission.target, permission.verb)).collect()
        };
        assert_eq!(role(NAMESPACE_PREFIX), role(&namespace_of(7)));
        assert_ne!(role("any"), role(&namespace_of(7)), "the permissions in `default` come last");
    }

    #[tokio::test(start_paused = true)]
    async fn busy_trial_on_cluster_names_the_failure() {
        let server = ApiServer::new();
        let app = App::new("failing").controller::<fails>();
        let clients = vec![(String::new(), Client::new(server.service(), "default"))];
        let servers = RealServers::start(clients, &app, "trial", &app.permissions()).await.unwrap();
        let web = crate::from_json::<ConfigMap>(crate::json!({ "metadata": { "name": "web" } })).unwrap();
        let configs = Api::<ConfigMap>::default_namespaced(servers.servers[0].client.clone());
        configs.create(&PostParams::default(), &web).await.unwrap();
        let error = servers.idle().await.unwrap_err().to_string();
        let web = error.lines().find(|line| line.contains("configmap trial/web: ")).unwrap();
        assert!(web.contains(": failed ") && web.ends_with(" times in a row, the last time: no disk"), "{error}");
        assert_eq!(error.matches("trial/web").count(), 1, "{error}");
    }

    /// The second cluster rejects the namespace, because it has one of this name.
    #[tokio::test(start_paused = true)]
    async fn start_that_fails_on_one_cluster_cleans_all() {
        let servers = ["", "edge"].map(|cluster| (cluster.to_owned(), ApiServer::new()));
        let clients = servers.each_ref().map(|(name, server)| (name.clone(), Client::new(server.service(), "default")));
        let spaces = clients.each_ref().map(|(_, client)| Api::<Namespace>::all(client.clone()));
        let taken = crate::from_json::<Namespace>(crate::json!({ "metadata": { "name": "trial" } })).unwrap();
        spaces[1].create(&PostParams::default(), &taken).await.unwrap();
        let app = App::new("idler").controller::<idles>();
        let started = RealServers::start(clients.to_vec(), &app, "trial", &app.permissions()).await;
        let error = started.err().unwrap().to_string();
        assert!(error.starts_with("the namespace of a trial: "), "{error}");
        let mut is_deleted = Vec::new();
        for spaces in spaces {
            let space = spaces.get_opt("trial").await.unwrap();
            is_deleted.push(space.is_none_or(|space| space.metadata.deletion_timestamp.is_some()));
        }
        assert_eq!(is_deleted, [true, false], "the namespace of another user is kept");
    }
}
