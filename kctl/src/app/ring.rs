//! `--controller-ring`: the program as a shard of kubernetes-controller-sharding.

use kctl_runtime::{
    manager::{Manager, lease::ElectionConfig, ring::RingConfig},
    manifest::{self, Manifest, Permission, RbacOptions},
    reconcile::Result,
};
use kube::Client;

use super::{App, rbac_check::ExtraRole, run};

impl App {
    /// Creates a manager like [`manager`](Self::manager), for a shard of a controller ring of
    /// [kubernetes-controller-sharding](https://github.com/timebertt/kubernetes-controller-sharding).
    ///
    /// It reconciles the objects that the sharder labels for this shard. `lease` sends the requests about the shard's
    /// Lease, so that they don't wait behind others. `run --controller-ring` does the same.
    ///
    /// ```no_run
    /// use kctl::{manager::{lease::ElectionConfig, ring::RingConfig}, prelude::*};
    ///
    /// # #[controller]
    /// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
    /// # async fn run() -> kctl::Result<()> {
    /// let client = kctl::client(kctl::kube::Config::infer().await?)?;
    /// let config = RingConfig::new("idler", ElectionConfig::new("unused", "default", "idler-0"))?;
    /// let manager = App::new("idler").controller::<idle>().manager_in_ring(client.clone(), client, config).await?;
    /// manager.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`manager`](Self::manager), and a controller whose primary is cluster-scoped or in another
    /// cluster.
    pub async fn manager_in_ring(&self, client: Client, lease: Client, config: RingConfig) -> Result<Manager> {
        self.ring_at(client, self.connect_clusters().await?, lease, config).await
    }

    /// Creates the manager of [`manager_in_ring`](Self::manager_in_ring) with given clients of other clusters.
    pub(super) async fn ring_at(
        &self,
        client: Client,
        clusters: Vec<(String, Client)>,
        lease: Client,
        config: RingConfig,
    ) -> Result<Manager> {
        self.check()?;
        let config = config.for_controllers(&self.specs_in_use())?;
        let manager = Manager::new(client, &self.name, run::observer()).namespaces(self.namespaces.clone());
        self.add_to(manager.join_ring(lease, config)?, clusters).await
    }

    /// Returns the manifests of a ring in addition to the program's: roles of a shard and of the sharder.
    ///
    /// # Errors
    /// The name is not valid for a `ControllerRing`, or the sharder does not assign the objects of a controller.
    pub(super) fn ring_rbac(&self, names: &RbacOptions, ring: &str) -> Result<Vec<Manifest>> {
        let specs = self.specs_in_use();
        let lease = ElectionConfig::new("unused", &names.namespace, "shard");
        RingConfig::new(ring, lease)?.for_controllers(&specs)?;
        Ok(manifest::ring_rbac(&specs, names, ring)?)
    }

    /// Returns the permissions that a shard needs in addition to its controllers' permissions.
    pub(super) fn ring_role(&self, ring: &str, namespace: &str) -> ExtraRole {
        let mut permissions: Vec<Permission> = manifest::ring_permissions(&self.specs_in_use(), namespace);
        for permission in &mut permissions {
            permission.because.insert(format!("run --controller-ring {ring}"));
        }
        ExtraRole {
            role: "controller-ring",
            generate: format!(" --controller-ring {ring}").into(),
            permissions,
            run: vec![("--leader-election-namespace", namespace.to_owned(), |namespace, _| namespace.to_owned())],
        }
    }
}
