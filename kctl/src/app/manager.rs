//! Creates the manager of an app: clusters, controllers, metrics and streams.

use kctl_runtime::{manager::Manager, reconcile::Result, spec::ControllerSpec};
use kube::Client;

#[cfg(feature = "karmada-chain")]
use super::chain;
use super::{App, controllers::Env, run, trigger::TRIGGERS_WAITING_MAX};

impl App {
    /// Creates a manager with all controllers, ready to run against a cluster.
    ///
    /// Use it in programs that parse the command line themselves. It connects the clusters of
    /// [`App::cluster`] and creates the controllers, but checks no permissions and serves no
    /// webhooks: [`App::main`] does both. Neither installs CRDs in a cluster; the command
    /// `generate-crds` prints them.
    ///
    /// ```no_run
    /// use kctl::prelude::*;
    ///
    /// # #[controller]
    /// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
    /// # async fn run() -> kctl::Result<()> {
    /// let client = kctl::client(kctl::kube::Config::infer().await?)?;
    /// let manager = App::new("idler").controller::<idle>().manager(client).await?;
    /// manager.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A controller or a client can't be created, or the declarations contradict each other.
    pub async fn manager(&self, client: Client) -> Result<Manager> {
        self.manager_at(client, self.connect_clusters().await?, |manager| manager).await
    }

    /// Creates the manager with given clients. `set_up` changes it before controllers are added.
    pub(crate) async fn manager_at(
        &self,
        client: Client,
        clusters: Vec<(String, Client)>,
        set_up: impl FnOnce(Manager) -> Manager,
    ) -> Result<Manager> {
        self.check()?;
        let manager = Manager::new(client, &self.name, run::observer()).namespaces(self.namespaces.clone());
        self.add_to(set_up(manager), clusters).await
    }

    pub(super) async fn add_to(&self, mut manager: Manager, clusters: Vec<(String, Client)>) -> Result<Manager> {
        for kind in &self.whole {
            manager = manager.cache_whole(kind.clone());
        }
        for (name, client) in clusters {
            manager = manager.cluster(&name, client);
        }
        for controller in &self.controllers {
            let env = self.env(&manager, controller.spec.clone());
            let add = (controller.start)(env).await?;
            add(&mut manager);
        }
        let [version, commit] = [&self.version, &self.commit].map(|value| value.as_deref().unwrap_or_default());
        manager.metrics().app(&self.name, version, commit);
        for register in &self.metrics {
            manager.metrics().register(register);
        }
        #[cfg(feature = "karmada-chain")]
        for registry in &self.chains {
            manager.background(chain::follow(manager.client().clone(), registry.clone()));
        }
        self.triggers.connect(&manager);
        let triggers = self.triggers.clone();
        manager.add_bound("triggers", TRIGGERS_WAITING_MAX, move || triggers.n_waiting());
        for (spec, open) in &self.streams {
            manager.background(open(self.env(&manager, spec())));
        }
        Ok(manager)
    }

    /// Returns the environment of one controller, with watches restricted to what its declaration
    /// allows.
    fn env(&self, manager: &Manager, spec: ControllerSpec) -> Env {
        Env { app: self.name.clone(), watches: manager.watches().allowed_by(&self.in_use(spec)) }
    }
}
