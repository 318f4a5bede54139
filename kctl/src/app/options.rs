//! Flags of the manager, named as controller-runtime's scaffolds and Kubernetes' own components name them.

use std::{path::PathBuf, time::Duration};

#[cfg(feature = "webhook")]
use std::pin::Pin;

#[cfg(feature = "webhook")]
use kctl_runtime::manager::{
    metrics::Metrics,
    serve::{serve_metrics, serve_metrics_securely, serve_probes},
};
use kube::Client;

use k8s_openapi::{api::rbac::v1::PolicyRule, jiff::SignedDuration};
use kctl_runtime::{
    manager::{
        GRACEFUL_TIMEOUT, Manager,
        lease::{ElectionConfig, host_name, identity},
        ring::{RingConfig, RingError},
        serve::{Certificate, check_address},
        shards::{ShardConfig, ShardError},
    },
    manifest::{self, Permission, PermissionScope, RbacOptions, permissions_of_rule},
    reconcile::{Result, ResultExt},
    shard::{SLOTS_MAX, ShardBy},
};

use super::{debug::DebugOptions, listen::listen, rbac_check::ExtraRole};

/// The number of slots of `--shards` without a number.
///
/// The shares of two, three, four and six replicas are equal, and five replicas have nearly equal ones. With fewer slots
/// per replica the shares differ by more, and a rolling update moves each slot more often. Each slot costs 0.5 Lease writes per second, so
/// all 24 cost 12. Up to 24 replicas have a slot; a larger program sets a number.
pub(super) const SLOTS_DEFAULT: &str = "24";

/// The settings of the manager.
#[derive(clap::Args, Default)]
pub(super) struct ManagerOptions {
    /// Reconcile only while this replica holds the Lease: one of several replicas works, and another takes over when it stops
    #[arg(long, help_heading = "Leader election")]
    leader_elect: bool,
    /// The name of the Lease [default: the name of the app]
    #[arg(long, value_name = "NAME", help_heading = "Leader election")]
    leader_election_id: Option<String>,
    /// The namespace of the Lease [default: the namespace of the service account or of the kubeconfig's context]
    #[arg(long, value_name = "NS", help_heading = "Leader election")]
    leader_election_namespace: Option<String>,
    /// The name of this replica in the Lease; with --leader-elect, two processes with the same name both lead [default: the host and a
    /// random part]
    #[arg(long, value_name = "NAME", help_heading = "Leader election")]
    leader_election_identity: Option<String>,
    /// The time after the last renewal until another replica takes the Lease [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Leader election")]
    leader_elect_lease_duration: Option<Duration>,
    /// The time in which the leader has to renew the Lease before it stops leading [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Leader election")]
    leader_elect_renew_deadline: Option<Duration>,
    /// The time between two attempts to acquire or renew the Lease [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Leader election")]
    leader_elect_retry_period: Option<Duration>,
    /// Split the objects into N slots (1–256; 24 without N) that all replicas share; 0 disables sharding [default: the value of
    /// `App::sharded`, or 0]
    #[arg(
        long,
        value_name = "N",
        value_parser = n_slots,
        num_args = 0..=1,
        default_missing_value = SLOTS_DEFAULT,
        help_heading = "Leader election"
    )]
    shards: Option<u32>,
    /// Let all replicas reconcile, as shards of this ring of kubernetes-controller-sharding. The host name is the name of the shard,
    /// unless --leader-election-identity sets another
    #[arg(long, value_name = "NAME", help_heading = "Leader election")]
    controller_ring: Option<String>,
    /// The number of slots that the program sets.
    #[arg(skip)]
    slots_of_app: Option<(u32, ShardBy)>,
    /// The namespaces of `--namespace`; empty for all.
    #[arg(skip)]
    namespaces: Vec<String>,
    /// Read the initial state by a streaming list (`WatchList`) if the API server supports it; a list costs it less CPU and more memory
    #[arg(long, help_heading = "Requests")]
    watch_list: bool,
    /// Serve `/metrics` on this address, such as 127.0.0.1:8080; 0 turns it off [default: 0]
    #[arg(long, value_name = "ADDRESS")]
    metrics_bind_address: Option<String>,
    /// Serve `/metrics` over TLS, only to clients that may `get` the nonresource URL /metrics [default: unless the address is loopback]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    metrics_secure: Option<bool>,
    /// The folder with the certificate of `/metrics` [default: a self-signed certificate, new at each start]
    #[arg(long, value_name = "DIR")]
    metrics_cert_path: Option<PathBuf>,
    /// The file of the certificate in that folder [default: tls.crt]
    #[arg(long, value_name = "FILE", requires = "metrics_cert_path")]
    metrics_cert_name: Option<String>,
    /// The file of the key in that folder [default: tls.key]
    #[arg(long, value_name = "FILE", requires = "metrics_cert_path")]
    metrics_cert_key: Option<String>,
    /// Serve `/healthz`, `/livez` and `/readyz` on this address, such as :8081; 0 turns it off [default: 0]
    #[arg(long, value_name = "ADDRESS")]
    health_probe_bind_address: Option<String>,
    #[command(flatten)]
    debug: DebugOptions,
    /// Number of consecutive failures of a key after which its object gets an event with the error; 0 turns it off [default: 10]
    #[arg(long, value_name = "N")]
    failure_event_after: Option<u32>,
    /// The time that reconciles have to finish after SIGTERM; a negative time waits forever [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_signed_duration, allow_hyphen_values = true)]
    graceful_shutdown_timeout: Option<SignedDuration>,
}

impl ManagerOptions {
    /// Returns how long running reconciles may take after the stop; `None` waits indefinitely.
    pub(super) fn grace(&self) -> Option<Duration> {
        self.graceful_shutdown_timeout.map_or(Some(GRACEFUL_TIMEOUT), |timeout| timeout.try_into().ok())
    }

    /// Returns `true` with leader election.
    pub(super) fn elects(&self) -> bool {
        self.leader_elect
    }

    /// Sets the slots for a start without `--shards`, from [`App::sharded`](super::App::sharded).
    pub(super) fn set_slots_of_app(&mut self, slots: Option<(u32, ShardBy)>) {
        self.slots_of_app = slots;
    }

    /// Sets the namespaces of `--namespace`, on which all replicas of a sharded program have to agree.
    pub(super) fn set_namespaces(&mut self, namespaces: Vec<String>) {
        self.namespaces = namespaces;
    }

    /// Returns the name of the controller ring, `None` outside of one.
    pub(super) fn controller_ring(&self) -> Option<&str> {
        self.controller_ring.as_deref()
    }

    /// Returns the configuration of a shard, `None` outside of a controller ring. Its default name is the host name.
    pub(super) fn ring(&self, namespace: &str) -> Option<std::result::Result<RingConfig, RingError>> {
        let ring = self.controller_ring.as_deref()?;
        let identity = self.leader_election_identity.clone().unwrap_or_else(host_name);
        let mut election = self.election("unused", namespace);
        election.identity = identity;
        Some(RingConfig::new(ring, election))
    }

    /// Returns the number of slots, `None` without shards. Leader election and a controller ring turn off those that the
    /// program sets.
    pub(super) fn slots(&self) -> Option<u32> {
        let is_off = self.leader_elect || self.controller_ring.is_some();
        let declared_slots = self.slots_of_app.filter(|_| !is_off).map(|(n, _by)| n);
        self.shards.or(declared_slots).filter(|n| *n > 0)
    }

    /// Finds mistakes that don't need a cluster.
    ///
    /// # Errors
    /// An address or a name of a Lease is invalid, or options contradict each other, such as two times of the Lease.
    pub(super) fn check(&self, app: &str) -> Result<()> {
        let metrics = ("--metrics-bind-address", &self.metrics_bind_address);
        let health = ("--health-probe-bind-address", &self.health_probe_bind_address);
        for (flag, address) in [metrics, health] {
            check_address(flag, address.as_deref().unwrap_or_default())?;
        }
        self.debug.check()?;
        let (rings, shards) = (self.controller_ring.is_some(), self.slots().is_some());
        let contradictions = [
            (
                self.leader_elect && shards,
                "--shards does not go with --leader-elect: all replicas work, or one does; leave one of them out",
            ),
            (
                rings && self.leader_elect,
                "--controller-ring does not go with --leader-elect: the sharder divides the objects among all replicas; \
                 leave one of them out",
            ),
            (
                rings && shards,
                "--controller-ring does not go with --shards: the sharder divides the objects among all replicas; leave \
                 one of them out",
            ),
            (
                rings && self.leader_election_id.is_some(),
                "--leader-election-id does not go with --controller-ring: the Lease has the name of the shard; set \
                 --leader-election-identity",
            ),
        ];
        if let Some((_, text)) = contradictions.into_iter().find(|(is_given, _)| *is_given) {
            return Err(text.into());
        }
        self.ring("default").transpose()?;
        // The namespace is known only at run time, so these checks use `default`.
        if self.leader_elect {
            self.election(app, "default").check()?;
        }
        self.sharding(app, "default").transpose()?;
        Ok(())
    }

    /// Returns the manager with these options. `namespace` is the one that the program runs in;
    /// `lease` is the client for the Lease, and `reviews` that for the tokens of scrapers.
    pub(super) async fn apply(
        self,
        app: &str,
        namespace: &str,
        lease: Client,
        reviews: Client,
        mut manager: Manager,
    ) -> Result<Manager> {
        let metrics = self.metrics_bind_address.as_deref();
        if let Some(listener) = listen("--metrics-bind-address", metrics, "metrics").await? {
            let local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
            manager = if self.metrics_secure.unwrap_or(!local) {
                let served = manager.serve_metrics_securely_by(reviews, listener, self.certificate());
                served.context(self.certificate_flag())?
            } else {
                manager.serve_metrics(listener)
            };
        }
        let health = self.health_probe_bind_address.as_deref();
        if let Some(listener) = listen("--health-probe-bind-address", health, "probes").await? {
            manager = manager.serve_health(listener);
        }
        manager = self.debug.listen("0").await?.serve(app, manager);
        if let Some(failures) = self.failure_event_after {
            manager = manager.warn_after_failures(failures);
        }
        if self.watch_list {
            manager = manager.stream_states();
        }
        manager = manager.graceful_timeout(self.grace());
        if self.leader_elect {
            manager = manager.elect_by(lease, self.election(app, namespace))?;
        } else if let Some(config) = self.sharding(app, namespace).transpose()? {
            manager = manager.shard(lease, config)?;
        }
        Ok(manager)
    }

    /// Serves the metrics of a program without controllers, for as long as the future is polled.
    ///
    /// A cluster is used only if other machines can connect to the endpoint: its API server then authorizes the
    /// scrapers.
    #[cfg(feature = "webhook")]
    pub(super) async fn metrics_without_manager(
        &self,
        registered: &[super::RegisterMetrics],
        others: impl FnOnce(&Metrics),
        cluster: impl Future<Output = Result<Client>>,
    ) -> Result<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let address = self.metrics_bind_address.as_deref();
        let Some(listener) = listen("--metrics-bind-address", address, "metrics").await? else {
            return Ok(Box::pin(std::future::pending()));
        };
        let metrics = Metrics::default();
        for register in registered {
            metrics.register(register);
        }
        others(&metrics);
        let local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        if !self.metrics_secure.unwrap_or(!local) {
            return Ok(Box::pin(serve_metrics(listener, metrics)));
        }
        let client = cluster.await.context(format!(
            "--metrics-bind-address {}: the cluster decides which clients may read the metrics; without one, bind to \
             loopback, or allow all clients with --metrics-secure=false",
            address.unwrap_or_default()
        ))?;
        let served = serve_metrics_securely(listener, metrics, self.certificate(), client);
        Ok(Box::pin(served.context(self.certificate_flag())?))
    }

    /// Serves the probes of a program without controllers, for as long as the future is polled.
    #[cfg(feature = "webhook")]
    pub(super) async fn probes_without_manager(
        &self,
        is_ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> Result<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let address = self.health_probe_bind_address.as_deref();
        let Some(listener) = listen("--health-probe-bind-address", address, "probes").await? else {
            return Ok(Box::pin(std::future::pending()));
        };
        Ok(Box::pin(serve_probes(listener, super::webhook::CERTIFICATE_CHECK, is_ready)))
    }

    /// Returns `true` if the process elects a leader or holds slots.
    pub(super) fn takes_part_in_elections(&self) -> bool {
        self.leader_elect || self.slots().is_some()
    }

    /// Returns the permissions for the Leases: those that `generate-rbac --leader-elect` or `--shards`
    /// prints.
    pub(super) fn lease_role(&self, app: &str, namespace: &str) -> Result<Option<ExtraRole>> {
        let (role, flag) = match self.slots() {
            Some(n) => ("shards", format!(" --shards {n}")),
            None if self.leader_elect => ("leader-election", " --leader-elect".to_owned()),
            None => return Ok(None),
        };
        let name = self.leader_election_id.as_deref().unwrap_or(app).to_owned();
        let namespace = self.leader_election_namespace.as_deref().unwrap_or(namespace).to_owned();
        let scope = PermissionScope::Namespace(namespace.clone());
        let options = RbacOptions::new(name.clone(), namespace.clone());
        let shards = self.slots();
        let mut manager = manifest::ManagerOptions::default();
        (manager.leader_elect, manager.shards) = (shards.is_none(), shards);
        let mut permissions: Vec<Permission> = Vec::new();
        for manifest::Manifest { object, .. } in manifest::manager_rbac(&options, manager)? {
            let rules: Option<Vec<PolicyRule>> = serde_json::from_value(object["rules"].clone())?;
            permissions.extend(rules.iter().flatten().flat_map(|rule| permissions_of_rule(rule, &scope)));
        }
        for permission in &mut permissions {
            permission.because.insert(format!("run{flag}"));
        }
        Ok(Some(ExtraRole {
            role,
            generate: flag.into(),
            permissions,
            run: vec![
                ("--leader-election-id", name, |_, name| name.to_owned()),
                ("--leader-election-namespace", namespace, |namespace, _| namespace.to_owned()),
            ],
        }))
    }

    /// Returns the configuration of the slots, `None` without shards. `--leader-elect-…` sets the times of all Leases.
    fn sharding(&self, app: &str, namespace: &str) -> Option<std::result::Result<ShardConfig, ShardError>> {
        let by = self.slots_of_app.map(|(_n, by)| by).unwrap_or_default();
        let config = ShardConfig::new(self.election(app, namespace), self.slots()?, by);
        Some(config.map(|config| config.in_namespaces(self.namespaces.iter().cloned())))
    }

    /// Returns the flag that the certificate depends on, for errors.
    fn certificate_flag(&self) -> &'static str {
        if self.metrics_cert_path.is_some() { "--metrics-cert-path" } else { "--metrics-secure" }
    }

    fn certificate(&self) -> Certificate {
        let Some(folder) = &self.metrics_cert_path else { return Certificate::SelfSigned };
        let file = |name: &Option<String>, usual: &str| folder.join(name.as_deref().unwrap_or(usual));
        Certificate::Files {
            certificate: file(&self.metrics_cert_name, "tls.crt"),
            key: file(&self.metrics_cert_key, "tls.key"),
        }
    }

    fn election(&self, app: &str, namespace: &str) -> ElectionConfig {
        let identity = self.leader_election_identity.clone().unwrap_or_else(identity);
        let name = self.leader_election_id.as_deref().unwrap_or(app);
        let namespace = self.leader_election_namespace.as_deref().unwrap_or(namespace);
        let mut config = ElectionConfig::new(name, namespace, &identity);
        let set = |time: &mut Duration, flag: Option<Duration>| *time = flag.unwrap_or(*time);
        set(&mut config.lease_duration, self.leader_elect_lease_duration);
        set(&mut config.renew_deadline, self.leader_elect_renew_deadline);
        set(&mut config.retry_period, self.leader_elect_retry_period);
        config
    }
}

/// Parses the number of slots, 0 for none.
pub(super) fn n_slots(text: &str) -> Result<u32, String> {
    let n = text.parse::<u32>().ok().filter(|n| *n <= SLOTS_MAX);
    n.ok_or_else(|| format!("`{text}` is not a number from 0 to {SLOTS_MAX}"))
}

/// Parses `15s`, `1m30s`, `500ms`; a bare number means seconds.
fn parse_signed_duration(text: &str) -> Result<SignedDuration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(SignedDuration::from_secs(seconds));
    }
    text.parse().map_err(|_| format!("`{text}` is not a time: write for example `15s`"))
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    let negative = |_| format!("`{text}` is negative: write for example `15s`");
    parse_signed_duration(text).and_then(|time| time.try_into().map_err(negative))
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn parse(flags: &[&str]) -> Result<ManagerOptions, String> {
        let command = ManagerOptions::augment_args(clap::Command::new("run"));
        let matches = command.try_get_matches_from([&["run"], flags].concat()).map_err(|error| error.to_string())?;
        ManagerOptions::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn default_lease_uses_client_go_durations() {
        let config = parse(&["--leader-elect"]).unwrap().election("podset", "here");
        assert_eq!((config.name.as_str(), config.namespace.as_str()), ("podset", "here"));
        let times = (config.lease_duration, config.renew_deadline, config.retry_period);
        assert_eq!(times, (Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2)));
        assert_ne!(config.identity, parse(&[]).unwrap().election("podset", "here").identity);
    }

    #[cfg(feature = "webhook")]
    #[tokio::test]
    async fn unusable_metrics_certificate_is_named_with_its_flag() {
        let flags = ["--metrics-bind-address=127.0.0.1:0", "--metrics-secure", "--metrics-cert-path=/nonexistent"];
        let silent = tower::service_fn(|_request: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, tower::BoxError>>()
        });
        let cluster = async { Ok(Client::new(silent, "default")) };
        let served = parse(&flags).unwrap().metrics_without_manager(&[], |_metrics| {}, cluster).await;
        let error = served.err().unwrap().to_string();
        let expected = "--metrics-cert-path: the certificate of the metrics server: /nonexistent/tls.crt";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn contradictory_options_fail_before_the_start() {
        let check = |flags: &[&str]| parse(flags).unwrap().check("podset").map_err(|error| error.to_string());
        let cases: [(&[&str], &str); 8] = [
            (
                &["--leader-elect", "--leader-elect-lease-duration=5s"],
                "leader election: --leader-elect-lease-duration (5s) has to be longer than --leader-elect-renew-deadline (10s)",
            ),
            (
                &["--leader-elect", "--leader-elect-retry-period=9s"],
                "leader election: --leader-elect-renew-deadline (10s) has to be longer than 1.2 times --leader-elect-retry-period",
            ),
            (&["--leader-elect", "--leader-election-id="], "leader election: the name of the lease has to be"),
            (&["--shards=4", "--leader-election-id=A B"], "leader election: the name of the lease cannot be `A B`"),
            (
                &["--leader-elect", "--leader-election-namespace=A B"],
                "leader election: the namespace of the lease cannot be `A B`",
            ),
            (&["--metrics-bind-address=here"], "--metrics-bind-address=here: not an address"),
            (
                &["--health-probe-bind-address=1.2.3.4:99999"],
                "--health-probe-bind-address=1.2.3.4:99999: not an address",
            ),
            (&["--debug-bind-address=:8082"], "--debug-bind-address=:8082: other machines could read"),
        ];
        for (flags, begin) in cases {
            let error = check(flags).unwrap_err();
            assert!(error.starts_with(begin), "{flags:?}: {error}");
        }
        let good: [&[&str]; 4] = [
            &["--leader-elect", "--leader-elect-lease-duration=20s"],
            &["--leader-elect-lease-duration=5s"],
            &["--metrics-bind-address=:0", "--health-probe-bind-address=0"],
            &["--debug-bind-address=:8082", "--debug-allow-host=debug.example"],
        ];
        for flags in good {
            assert_eq!(check(flags), Ok(()), "{flags:?}");
        }
    }

    #[test]
    fn flags_set_the_lease_name_and_its_times() {
        let flags = [
            "--leader-elect",
            "--leader-election-id=other",
            "--leader-election-namespace=there",
            "--leader-election-identity=me",
            "--leader-elect-lease-duration=1m",
            "--leader-elect-renew-deadline=40",
            "--leader-elect-retry-period=1500ms",
        ];
        let config = parse(&flags).unwrap().election("podset", "here");
        assert_eq!((config.name, config.namespace, config.identity), ("other".into(), "there".into(), "me".into()));
        let times = (config.lease_duration, config.renew_deadline, config.retry_period);
        assert_eq!(times, (Duration::from_secs(60), Duration::from_secs(40), Duration::from_millis(1_500)));
    }

    #[test]
    fn shards_are_set_by_flag_or_by_program() {
        let slots = |flags: &[&str], of_app: Option<u32>| {
            let mut options = parse(flags).unwrap();
            options.set_slots_of_app(of_app.map(|n| (n, ShardBy::Namespace)));
            options.slots()
        };
        let cases: [(&[&str], Option<u32>, Option<u32>); 10] = [
            (&[], None, None),
            (&["--shards=16"], None, Some(16)),
            (&["--shards", "4"], None, Some(4)),
            (&["--shards"], None, Some(24)),
            (&["--shards", "--watch-list"], None, Some(24)),
            (&["--shards"], Some(8), Some(24)),
            (&[], Some(8), Some(8)),
            (&["--shards=16"], Some(8), Some(16)),
            (&["--shards=0"], Some(8), None),
            (&["--leader-elect"], Some(8), None),
        ];
        for (flags, of_app, expected) in cases {
            assert_eq!(slots(flags, of_app), expected, "{flags:?}");
        }
        for value in ["257", "abc", "-1"] {
            let error = parse(&[&format!("--shards={value}")]).err().unwrap();
            let expected = format!("`{value}` is not a number from 0 to 256");
            assert!(error.contains("--shards") && error.contains(&expected), "{error}");
        }
        let both = parse(&["--shards=4", "--leader-elect"]).unwrap().check("podset").unwrap_err();
        assert!(both.to_string().starts_with("--shards does not go with --leader-elect"), "{both}");
    }

    #[test]
    fn controller_ring_excludes_leader_election_and_shards() {
        let check = |flags: &[&str]| parse(flags).unwrap().check("podset").map_err(|error| error.to_string());
        let ring = "--controller-ring=podset";
        let cases: [(&[&str], &str); 5] = [
            (&[ring, "--leader-elect"], "--controller-ring does not go with --leader-elect"),
            (&[ring, "--shards=4"], "--controller-ring does not go with --shards"),
            (&[ring, "--leader-election-id=a"], "--leader-election-id does not go with --controller-ring"),
            (&["--controller-ring=Pod"], "--controller-ring `Pod` is not the name of a ControllerRing"),
            (&[ring, "--leader-election-identity=A_b"], "`A_b` cannot be the name of a shard"),
        ];
        for (flags, begin) in cases {
            let error = check(flags).unwrap_err();
            assert!(error.starts_with(begin), "{flags:?}: {error}");
        }
        assert_eq!(check(&[ring, "--leader-election-identity=podset-0", "--shards=0"]), Ok(()));
        let mut options = parse(&[ring, "--leader-election-identity=podset-0"]).unwrap();
        options.set_slots_of_app(Some((8, ShardBy::Object)));
        assert_eq!(options.slots(), None, "the ring turns off the slots of the program");
        let config = options.ring("here").unwrap().unwrap();
        assert_eq!((config.ring(), config.shard(), config.namespace()), ("podset", "podset-0", "here"));
    }

    #[test]
    fn watched_namespaces_are_a_setting_of_shards() {
        let mut options = parse(&["--shards=2"]).unwrap();
        let everywhere = options.sharding("podset", "here").unwrap().unwrap();
        assert_ne!(everywhere.clone().in_namespaces(["blog".to_owned()]), everywhere);
        options.set_namespaces(vec!["blog".into()]);
        let config = options.sharding("podset", "here").unwrap().unwrap();
        assert_eq!(config.clone().in_namespaces(["blog".to_owned()]), config);
    }

    #[test]
    fn sharded_replica_needs_the_leases_of_its_slots() {
        let role = parse(&["--shards=2"]).unwrap().lease_role("podset", "here").unwrap().unwrap();
        assert_eq!((role.role, &*role.generate), ("shards", " --shards 2"));
        let texts: Vec<_> = role.permissions.iter().map(ToString::to_string).collect();
        for lease in ["podset", "podset-slot-0", "podset-slot-1", "podset-seat-1"] {
            let expected = format!("update leases.coordination.k8s.io {lease} in namespace here");
            assert!(texts.contains(&expected), "{expected}: {texts:?}");
        }
    }

    #[test]
    fn only_a_replica_that_contends_needs_the_lease() {
        assert!(parse(&[]).unwrap().lease_role("podset", "here").unwrap().is_none());
        let permissions =
            parse(&["--leader-elect"]).unwrap().lease_role("podset", "here").unwrap().unwrap().permissions;
        let texts: Vec<_> = permissions.iter().map(ToString::to_string).collect();
        let named_lease = |verb: &str| format!("{verb} leases.coordination.k8s.io podset in namespace here");
        assert!(texts.contains(&"create leases.coordination.k8s.io in namespace here".to_owned()), "{texts:?}");
        assert!(texts.contains(&named_lease("update")), "{texts:?}");
    }

    #[cfg(feature = "webhook")]
    #[tokio::test]
    async fn secure_metrics_without_controllers_need_a_cluster() {
        let cases = [
            (&["--metrics-bind-address=127.0.0.1:0"][..], Ok(())),
            (&["--metrics-bind-address=:0", "--metrics-secure=false"], Ok(())),
            (&[], Ok(())),
            (&["--metrics-bind-address=:0"], Err("--metrics-bind-address :0: the cluster decides which clients may")),
            (&["--metrics-bind-address=127.0.0.1:0", "--metrics-secure"], Err("--metrics-bind-address 127.0.0.1:0")),
        ];
        for (flags, expected) in cases {
            let no_cluster = async { Err(kctl_runtime::reconcile::Error::from("no cluster to run against")) };
            let served = parse(flags).unwrap().metrics_without_manager(&[], |_| {}, no_cluster).await;
            let error = served.err().map(|error| format!("{error:#}"));
            match expected {
                Ok(()) => assert_eq!(error, None, "{flags:?}"),
                Err(begin) => {
                    let error = error.unwrap();
                    assert!(error.starts_with(begin) && error.ends_with(": no cluster to run against"), "{error}");
                }
            }
        }
    }

    #[cfg(feature = "webhook")]
    #[tokio::test]
    async fn probes_without_controllers_follow_the_certificate() {
        use std::sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        };
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let flag = format!("--health-probe-bind-address=127.0.0.1:{port}");
        let is_set = Arc::<AtomicBool>::default();
        let seen = is_set.clone();
        let is_ready =
            move || if seen.load(Ordering::Relaxed) { Ok(String::new()) } else { Err("none yet".to_owned()) };
        let probes = parse(&[&flag]).unwrap().probes_without_manager(is_ready).await.unwrap();
        let ask = async |path: &str| {
            let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).await.unwrap();
            response
        };
        let asked = async {
            assert!(ask("/livez").await.starts_with("HTTP/1.1 200 "));
            let unready = ask("/readyz").await;
            assert!(
                unready.starts_with("HTTP/1.1 500 ") && unready.contains("webhook-certificate failed"),
                "{unready}"
            );
            is_set.store(true, Ordering::Relaxed);
            assert!(ask("/readyz").await.starts_with("HTTP/1.1 200 "));
        };
        tokio::select! {
            () = probes => panic!("probes ended"),
            () = asked => {}
        }
    }

    #[test]
    fn metrics_certificate_is_self_signed_without_cert_path() {
        let of = |flags: &[&str]| parse(flags).unwrap().certificate();
        assert_eq!(of(&[]), Certificate::SelfSigned);
        let usual = Certificate::Files { certificate: "/certs/tls.crt".into(), key: "/certs/tls.key".into() };
        assert_eq!(of(&["--metrics-cert-path=/certs"]), usual);
        let named = Certificate::Files { certificate: "/certs/a.pem".into(), key: "/certs/b.pem".into() };
        let flags = ["--metrics-cert-path=/certs", "--metrics-cert-name=a.pem", "--metrics-cert-key=b.pem"];
        assert_eq!(of(&flags), named);
        assert!(parse(&["--metrics-cert-name=a.pem"]).is_err(), "it would be read from nowhere");
        let secure = |flags: &[&str]| parse(flags).unwrap().metrics_secure;
        assert_eq!(
            (secure(&[]), secure(&["--metrics-secure"]), secure(&["--metrics-secure=false"])),
            (None, Some(true), Some(false))
        );
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let cases = [("30s", Ok(30)), ("90", Ok(90)), ("1m30s", Ok(90)), ("-1s", Err(())), ("soon", Err(()))];
        for (text, seconds) in cases {
            let read = time(text).map(|time| time.as_secs());
            assert_eq!(read.as_ref().map_err(|_| ()).copied(), seconds, "{read:?}");
        }
        let options = parse(&["--graceful-shutdown-timeout", "-1s"]).unwrap();
        assert_eq!(options.graceful_shutdown_timeout, Some(SignedDuration::from_secs(-1)));
    }
}
