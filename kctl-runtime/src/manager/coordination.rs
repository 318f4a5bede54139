//! Options of a manager for several replicas: leader election, and shards.

use kube::Client;
use tokio::runtime::Handle;

use super::{
    Manager,
    lease::{ElectionConfig, ElectionError, ElectionRuntime, Elector},
    shards::{Coordinator, Planted, ShardConfig},
};
use crate::{object::Kind, writer::WritePermit};

impl Manager {
    /// Enables leader election: reconciles run only while this process holds the Lease.
    ///
    /// Caches are filled before, so a standby takes over without listing everything. Each write also checks
    /// the rest of the Lease ([`WritePermit`]).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// use std::sync::Arc;
    /// use kctl_runtime::manager::{Manager, lease::{ElectionConfig, identity}};
    ///
    /// let config = ElectionConfig::new("settings.example.com", "shop", &identity());
    /// let manager = Manager::new(client, "settings.example.com", Arc::new(|_report| {})).elect(config)?;
    /// assert!(manager.view().leadership().is_some_and(|leadership| !leadership.is_leading()));
    /// # Ok::<_, kctl_runtime::manager::lease::ElectionError>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ElectionError`] if names or times in the configuration are invalid; it names the flag. Also if this
    /// method, [`shard`](Self::shard) or [`join_ring`](Self::join_ring) was already called.
    pub fn elect(self, config: ElectionConfig) -> Result<Self, ElectionError> {
        let client = self.client.clone();
        self.elect_by(client, config)
    }

    /// Does the same with a separate client for the Lease, so that its requests don't wait behind rate-limited
    /// ones.
    ///
    /// # Errors
    /// As [`elect`](Self::elect).
    pub fn elect_by(mut self, client: Client, config: ElectionConfig) -> Result<Self, ElectionError> {
        let seed = config.seed;
        let elector = Elector::new(client, config, self.shared_options.clock())?;
        self.sole_lease.set("elect")?;
        self.informers.0.seed_jitter(seed);
        self.permit.bind(&elector.leadership().permit());
        self.elector = Some(elector);
        Ok(self)
    }

    /// Runs all elections on another runtime, with a client that was created there (in the scope of `handle.enter()`).
    ///
    /// A reconcile that computes for seconds without an `await` blocks its thread. If that is the thread of the
    /// elections, Leases are not renewed during that time, and other replicas acquire them. In client-go a goroutine
    /// renews the Lease, which no reconcile blocks.
    ///
    /// For the Leases that permit writes, `client` replaces the client of [`elect_by`](Self::elect_by),
    /// [`shard`](Self::shard) and [`join_ring`](Self::join_ring). So it needs the same server and permissions. The
    /// watch of the Leases of shards, and the seat of a replica, run on the manager's runtime. So a replica that is
    /// blocked for longer than a Lease loses its seat, and keeps its slots. Without one of the three methods, this has
    /// no effect.
    ///
    /// The other runtime has to be driven until [`run`](Self::run) returns. If it shuts down earlier, `run` ends with
    /// [`ManagerError::LeaseLost`](super::ManagerError::LeaseLost). Nothing ends a process whose reconciles are blocked
    /// indefinitely: it keeps its Leases until the caller, or a liveness probe, ends it. Both runtimes need the same
    /// clock: `tokio::time::pause` stops the clock of one runtime.
    ///
    /// ```
    /// # use kctl_runtime::manager::Manager;
    /// # fn configure(manager: Manager, connect: impl Fn() -> kube::Client) -> std::io::Result<Manager> {
    /// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// let handle = runtime.handle().clone();
    /// let client = {
    ///     let _in_runtime = handle.enter();
    ///     connect()
    /// };
    /// std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    /// Ok(manager.run_elections_on(handle, client))
    /// # }
    /// ```
    #[must_use]
    pub fn run_elections_on(mut self, handle: Handle, client: Client) -> Self {
        self.election_runtime = Some(ElectionRuntime { handle, client });
        self
    }

    /// Enables leader election without the check before writes, so that tests show what it prevents.
    #[cfg(feature = "planted")]
    pub(crate) fn elect_unfenced(mut self, config: ElectionConfig) -> Result<Self, ElectionError> {
        self.sole_lease.set("elect")?;
        self.elector = Some(Elector::new(self.client.clone(), config, self.shared_options.clock())?);
        Ok(self)
    }

    /// Shares the keys among all replicas: each reconciles the keys of its slots, instead of one that reconciles all.
    ///
    /// Cannot be combined with [`elect`](Self::elect) and [`join_ring`](Self::join_ring). `client` sends the requests
    /// about Leases.
    /// Replicas join and leave at any time; [`shards`](super::shards) describes how slots move.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// use std::sync::Arc;
    /// use kctl_runtime::{
    ///     manager::{Manager, lease::{ElectionConfig, identity}, shards::ShardConfig},
    ///     shard::ShardBy,
    /// };
    ///
    /// let leases = ElectionConfig::new("settings.example.com", "shop", &identity());
    /// let config = ShardConfig::new(leases, 24, ShardBy::Object)?;
    /// let manager = Manager::new(client.clone(), "settings.example.com", Arc::new(|_report| {})).shard(client, config)?;
    /// assert_eq!(manager.view().shards().map(|shards| shards.n_owned()), Some(0));
    /// # Ok::<_, kctl_runtime::manager::shards::ShardError>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A name or time of the Leases is invalid, or one of these methods was already called.
    pub fn shard(self, client: Client, config: ShardConfig) -> Result<Self, ElectionError> {
        self.shard_with(client, config, None)
    }

    /// Does the same with a bug in the protocol, so that tests show what it would do.
    pub(crate) fn shard_with(
        mut self,
        client: Client,
        config: ShardConfig,
        bug: Option<Planted>,
    ) -> Result<Self, ElectionError> {
        let clock = self.shared_options.clock();
        let elector = Elector::new(client.clone(), config.settings(), clock.clone())?.with_shared_identity();
        // The coordinator logs why this replica waits for the Lease of the settings.
        let elector = elector.with_role(config.role_options()).without_failure_log();
        self.sole_lease.set("shard")?;
        self.informers.0.seed_jitter(config.process());
        let mut coordinator = Coordinator::new(client, clock, config, elector.leadership());
        if let Some(bug) = bug {
            coordinator = coordinator.plant(bug);
        }
        if !Planted::PermitGrants.is_in(bug) {
            self.permit.bind(&WritePermit::from_shards(coordinator.tenures().clone()));
        }
        for controller in &self.controllers {
            controller.env.gate.bind(coordinator.tenures());
        }
        self.elector = Some(elector);
        self.coordinator = Some(coordinator);
        Ok(self)
    }

    /// Makes each replica of a sharded program, or each shard of a controller ring, cache all objects of a kind. With
    /// [`join_ring`](Self::join_ring), call it before [`add`](Self::add).
    ///
    /// Without it a replica caches the primaries of its slots, and of kinds that are only owned, the objects of those
    /// primaries. Kinds that a controller reads or watches with a mapper are whole anyway.
    ///
    /// ```
    /// # use kctl_runtime::manager::Manager;
    /// # fn add(manager: Manager) -> Manager {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::object::Kind;
    ///
    /// manager.cache_whole(Kind::of::<Pod>())
    /// # }
    /// ```
    #[must_use]
    pub fn cache_whole(mut self, kind: Kind) -> Self {
        self.whole.push(kind);
        self
    }
}
