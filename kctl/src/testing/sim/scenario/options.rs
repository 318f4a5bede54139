//! Options of a scenario: its replicas, what is simulated around the app, and what runs may differ in.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kctl_runtime::{
    __private_0_1::Planted,
    reconcile::{Error, Result},
    shard::{ShardBy, Slots},
};

use super::{FailingKeys, FreshStart, Scenario, ServerSelection, Simulated, SpawnedTasks};

/// Number of slots in a sharded scenario: few, because each costs a renewal every 2 s of simulated time.
const SLOTS: u32 = 4;
/// The names of the checkers. A rule of a scenario can't have one of them, because reports name only the checker.
const CHECKERS: [&str; 19] = [
    "a change reaches all objects",
    "a key never runs twice at once",
    "bounded requests per change",
    "no hot loop",
    "no leaked objects",
    "no more writes",
    "no panic",
    "no write on objects that are not owned",
    "one seed, one trace",
    "only the leader writes",
    "only the owner writes",
    "tasks end with their process",
    "the app works",
    "the app yields",
    "the newest generation is observed",
    "the same final state",
    "the simulation",
    "the state settles",
    "the steps of the scenario",
];

impl Scenario {
    /// Runs `n` replicas of the program with leader election, one by default.
    ///
    /// With several, plans also contain Leases that a leader fails to renew, writes that arrive late, and rolling
    /// updates. Leaders are frozen, as by SIGSTOP, in most cases for longer than their Lease lasts. Replicas are
    /// stopped and start again. The checker `only the leader writes` is active.
    ///
    /// ```
    /// use kctl::testing::Scenario;
    ///
    /// let scenario = Scenario::default().instances(2);
    /// # let _ = scenario;
    /// ```
    ///
    /// 0 makes [`Sim::run`](super::super::Sim::run) return an error.
    #[must_use]
    pub fn instances(mut self, n: usize) -> Self {
        self.instances = n;
        self
    }

    /// Checks that each option can have an effect.
    ///
    /// # Errors
    /// An ignored field is not a JSON pointer, a fresh start is compared without steps, or the number of replicas is 0,
    /// or 1 with sharding. A rule has no name, the name of another rule, or the name of a checker.
    pub(in crate::testing::sim) fn check_options(&self) -> Result<()> {
        if self.instances == 0 {
            return Err("instances(0): no replica would run; write 1 or more".into());
        }
        if self.slots.is_some() && self.instances == 1 {
            return Err("sharded(): one replica has no one to share with; add `.instances(2)`".into());
        }
        if self.fresh_start == FreshStart::Compared && self.n_steps() == 0 {
            return Err("comparing_with_fresh_start(): each run is a fresh start; add a `.step(…)`".into());
        }
        let has_field = |ignored: &str| ignored.split_once('/').is_some_and(|(_resource, path)| !path.is_empty());
        if let Some(ignored) = self.ignored.iter().find(|ignored| !has_field(ignored)) {
            return Err(not_a_field(ignored));
        }
        let mut names = BTreeSet::new();
        for rule in self.rules() {
            let name = rule.name.as_str();
            let problem = match name {
                "" => "a rule without a name",
                _ if CHECKERS.contains(&name) => "a checker has this name",
                _ if !names.insert(name) => "two rules have this name",
                _ => continue,
            };
            return Err(Error::from(format!(
                "rule {name:?}: {problem}; reports name only the rule, so give it another name"
            )));
        }
        Ok(())
    }

    /// Returns `true` if an option names a resource.
    pub(in crate::testing::sim) fn names_resources(&self) -> bool {
        let of_one = self.ignored.iter().any(|ignored| !ignored.starts_with('/'));
        of_one || !self.kept.is_empty() || !self.time_dependent.is_empty()
    }

    /// Checks that the resources of options exist. `known` has their kinds by plural.
    ///
    /// # Errors
    /// No resource has a plural; the error names the right one for a kind.
    pub(in crate::testing::sim) fn check_resources(&self, known: &BTreeMap<String, String>) -> Result<()> {
        let of_one = self.ignored.iter().filter_map(|ignored| Some((ignored, ignored.split_once('/')?.0)));
        for (ignored, plural) in of_one.filter(|(_, plural)| !plural.is_empty()) {
            if !known.contains_key(plural) {
                return Err(not_a_field(ignored));
            }
        }
        let kept = self.kept.iter().map(|name| ("keeping", name));
        for (option, name) in kept.chain(self.time_dependent.iter().map(|name| ("depending_on_time", name))) {
            let (plural, part) = name.split_once('/').map_or((name.as_str(), ""), |(plural, _)| (plural, "/status"));
            if known.contains_key(plural) {
                continue;
            }
            let mut same_kind = known.iter().filter(|(_, kind)| kind.eq_ignore_ascii_case(plural));
            let help = match same_kind.next() {
                Some((plural, _)) => format!("write {:?}", format!("{plural}{part}")),
                None => "write the plural of a kind that the app or a CRD of `.objects(…)` defines".to_owned(),
            };
            return Err(Error::from(format!("{option}({name:?}): the API server has no such resource; {help}")));
        }
        Ok(())
    }

    /// Runs leaders with a write permit that always grants: a bug that the simulator has to find.
    #[doc(hidden)]
    #[must_use]
    pub fn without_fencing(mut self) -> Self {
        self.unfenced = true;
        self
    }

    /// Sets the number of seconds of real time without progress after which a run is given up, for tests of that.
    #[doc(hidden)]
    #[must_use]
    pub fn stuck_after(mut self, seconds: u32) -> Self {
        self.stuck_after = seconds;
        self
    }

    /// Makes all replicas work: they share the keys by four slots, as with `run --shards`.
    ///
    /// The checkers then check each slot: a key never runs twice at once, and only the owner of its
    /// slot writes for it.
    ///
    /// Plans of seeds also contain Leases of slots that are deleted by hand, and processes that
    /// crash and have slow lists after their restart. Slots move while such a list is in flight,
    /// and the watch is past it when it arrives. A seed may have one more fault:
    ///
    /// * A process is frozen in a reconcile, as by SIGSTOP. In most cases its Leases expire.
    /// * The clock of a process jumps.
    /// * The owner of one slot fails to renew the slot's Lease, and keeps its other Leases.
    ///
    /// ```
    /// use kctl::testing::Scenario;
    ///
    /// let scenario = Scenario::default().instances(3).sharded();
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn sharded(self) -> Self {
        self.sharded_by(ShardBy::Object)
    }

    /// Makes all replicas work, as [`sharded`](Self::sharded) does, with another division of the keys: by
    /// [`ShardBy::Namespace`] the objects of a namespace have one owner.
    ///
    /// With [`ShardBy::NamespaceRange`] the API server selects the objects of a replica.
    ///
    /// ```
    /// use kctl::{app::ShardBy, testing::Scenario};
    ///
    /// let scenario = Scenario::default().instances(3).sharded_by(ShardBy::Namespace);
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn sharded_by(mut self, by: ShardBy) -> Self {
        self.slots = Some(Slots::new(SLOTS, by));
        self
    }

    /// Turns off the feature gate `ShardedListAndWatch` of the API server, as on a cluster where it is off.
    #[doc(hidden)]
    #[must_use]
    pub fn without_server_selection(mut self) -> Self {
        self.server_selection = ServerSelection::Missing;
        self
    }

    /// Plants a bug in the protocol of slots, which the simulator has to find.
    #[doc(hidden)]
    #[must_use]
    pub fn plant(mut self, bug: Planted) -> Self {
        self.planted = Some(bug);
        self
    }

    /// Leaves Pods as they were created: no kubelet runs them, on any cluster. Other clusters of an app then have no
    /// controllers of Deployments, `ReplicaSets` and Jobs either.
    ///
    /// By default a Pod becomes ready a second after its creation, and takes its whole grace period
    /// to terminate.
    #[must_use]
    pub fn without_kubelet(mut self) -> Self {
        self.simulated = Simulated::Nothing;
        self
    }

    /// Runs controllers that create Pods for Deployments, `ReplicaSets` and Jobs and report their
    /// status.
    ///
    /// Use it for an app that creates such objects and waits for them. Other clusters of an app
    /// have these controllers without it, except in a scenario [`without_kubelet`](Self::without_kubelet).
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Sim}};
    ///
    /// /// Keeps one Deployment for each `ConfigMap`.
    /// #[controller(owns = Deployment(apply))]
    /// async fn webs(config: Arc<ConfigMap>, cx: Context<webs>) -> Result<Action> {
    ///     cx.owned::<Deployment>().apply(kctl::json!({
    ///         "metadata": { "name": config.name_any() },
    ///         "spec": {
    ///             "selector": { "matchLabels": { "app": "web" } },
    ///             "template": {
    ///                 "metadata": { "labels": { "app": "web" } },
    ///                 "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
    ///             },
    ///         },
    ///     })).await?;
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("webs").controller::<webs>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")
    ///     .with_workloads()
    ///     .settled("a pod", |snapshot| match snapshot.all::<Pod>().len() {
    ///         1 => Ok(()),
    ///         n => Err(format!("{n} pods")),
    ///     });
    /// let report = Sim::seeds(0..1).run(&scenario)?;
    /// assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    #[must_use]
    pub fn with_workloads(mut self) -> Self {
        self.simulated = Simulated::Workloads;
        self
    }

    /// Leaves out restarts on an API server that serves an old state as the newest one.
    ///
    /// A list without a `resourceVersion` returns the newest state; API servers promise that. The
    /// fault breaks the promise, as a restore of etcd from a backup does. Use this method for an
    /// app that has to rely on it; prefer a live read before an action that can't be undone.
    #[must_use]
    pub fn without_outdated_lists(mut self) -> Self {
        self.optional_faults.outdated_lists = false;
        self
    }

    /// Leaves out the faults that set the clock of a process wrong.
    ///
    /// Use it for an app that compares [`Context::now`] with times that others wrote, such as
    /// `metadata.creationTimestamp`, and so relies on clocks that agree.
    ///
    /// [`Context::now`]: kctl_runtime::reconcile::Context::now
    #[must_use]
    pub fn without_clock_faults(mut self) -> Self {
        self.optional_faults.clock_faults = false;
        self
    }

    /// Leaves out the faults that freeze a replica, as SIGSTOP does.
    ///
    /// Use it for an app that changes a system outside of the cluster which has no fence. When a former leader
    /// continues, its reconcile may call that system once more, before the election finds that the Lease has expired.
    /// The write permit protects only writes to the API server.
    #[must_use]
    pub fn without_freezes(mut self) -> Self {
        self.optional_faults.freezes = false;
        self
    }

    /// Allows objects whose reconcile fails once the state has settled.
    ///
    /// By default the checker `the app works` reports them. An app whose reconciles always fail changes nothing, so its
    /// final state is the same in all runs. Use this method for an object that the app rejects on purpose, with a
    /// [`terminal`](kctl_runtime::reconcile::ResultExt::terminal) error for example.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Sim}};
    ///
    /// /// Rejects each `ConfigMap` without a color.
    /// #[controller]
    /// async fn colors(config: Arc<ConfigMap>, _cx: Context<colors>) -> Result<Action> {
    ///     let color = config.data.as_ref().and_then(|data| data.get("color"));
    ///     color.ok_or("it has no color")?;
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("colors").controller::<colors>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}");
    /// let failure = Sim::seeds(0..1).run(&scenario)?.failure().cloned().expect("the key always fails");
    /// assert_eq!(failure.checker(), "the app works");
    /// assert!(Sim::seeds(0..1).run(&scenario.allowing_failures())?.failure().is_none());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    #[must_use]
    pub fn allowing_failures(mut self) -> Self {
        self.failing_keys = FailingKeys::Allowed;
        self
    }

    /// Allows tasks that still run after all processes of the app have ended.
    ///
    /// By default the checker `tasks end with their process` reports them. All processes of a run share one runtime, so
    /// a task that `tokio::spawn` starts survives a crash, and acts at the same time as the next process. Use this method
    /// for a task that does no harm there, such as one that only reports statistics.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Sim}};
    ///
    /// /// Starts a task that never ends.
    /// #[controller]
    /// async fn counts(_config: Arc<ConfigMap>, _cx: Context<counts>) -> Result<Action> {
    ///     tokio::spawn(std::future::pending::<()>());
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("counts").controller::<counts>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}");
    /// let failure = Sim::seeds(0..1).run(&scenario)?.failure().cloned().expect("a task is left");
    /// assert_eq!(failure.checker(), "tasks end with their process");
    /// assert!(Sim::seeds(0..1).run(&scenario.allowing_spawned_tasks())?.failure().is_none());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    #[must_use]
    pub fn allowing_spawned_tasks(mut self) -> Self {
        self.spawned_tasks = SpawnedTasks::Allowed;
        self
    }

    /// Compares the objects of the app after the steps with those that it makes if it starts with the final objects of the
    /// users.
    ///
    /// The checker `a change reaches all objects` reports objects that differ, for example a Secret that the app creates
    /// once and never updates. Statuses, and resources of [`keeping`](Self::keeping) and
    /// [`depending_on_time`](Self::depending_on_time), are not compared. It costs one more run.
    ///
    /// The method is not for an app whose objects depend on their history, such as rotated keys or Jobs that run once, nor
    /// for steps that change a fake system outside of the cluster. The final objects have the labels and annotations that
    /// the app has written.
    ///
    /// ```
    /// use kctl::{kube::{Api, api::{Patch, PatchParams}}, prelude::*, testing::{Scenario, Sim}};
    ///
    /// /// Creates a Secret with the color of its `ConfigMap`, and never updates it.
    /// #[controller(owns = Secret(create))]
    /// async fn colors(config: Arc<ConfigMap>, cx: Context<colors>) -> Result<Action> {
    ///     if cx.owned::<Secret>().is_empty() {
    ///         let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
    ///         cx.owned::<Secret>().create(Secret { metadata, string_data: config.data.clone(), ..Secret::default() }).await?;
    ///     }
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("colors").controller::<colors>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {color: red}}")
    ///     .step("set blue", |client| async move {
    ///         let blue = Patch::Merge(kctl::json!({ "data": { "color": "blue" } }));
    ///         Api::<ConfigMap>::default_namespaced(client).patch("web", &PatchParams::default(), &blue).await?;
    ///         Ok(())
    ///     });
    /// assert!(Sim::seeds(0..0).run(&scenario)?.failure().is_none());
    /// let report = Sim::seeds(0..0).run(&scenario.comparing_with_fresh_start())?;
    /// assert_eq!(report.failure().expect("the Secret is red").checker(), "a change reaches all objects");
    /// # Ok::<(), kctl::Error>(())
    /// ```
    ///
    /// A scenario without steps, or an app with other clusters, makes [`Sim::run`](super::super::Sim::run) return an error.
    #[must_use]
    pub fn comparing_with_fresh_start(mut self) -> Self {
        self.fresh_start = FreshStart::Compared;
        self
    }

    /// Waits for requeues that come due within this time before the state counts as settled.
    ///
    /// That delays each step, each [`settled`](Self::settled) rule and the comparison of final
    /// states; at most a year. Use a little more than the longest `Action::requeue` after which a correct app still
    /// has something to do. By default the state has settled once nothing has changed for 15
    /// simulated seconds.
    ///
    /// An app with a schedule always has a requeue pending. For it the state has settled when
    /// nothing but what [depends on time](Self::depending_on_time) has changed for this time: the
    /// app then has run for at least that long.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Sim, Snapshot}};
    ///
    /// /// Deletes each ConfigMap an hour after it was created.
    /// #[controller(primary(delete))]
    /// async fn expires(config: Arc<ConfigMap>, cx: Context<expires>) -> Result<Action> {
    ///     let created = config.creation_timestamp().map_or(cx.now(), |time| time.0);
    ///     let left = Duration::from_secs(3_600).saturating_sub(cx.now().duration_since(created).unsigned_abs());
    ///     if left.is_zero() {
    ///         cx.delete().await?;
    ///         return Ok(Action::await_change());
    ///     }
    ///     Ok(Action::requeue(left))
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("expires").controller::<expires>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
    ///     .without_clock_faults()
    ///     .waiting_for_requeues(Duration::from_secs(2 * 3_600))
    ///     .settled("all have expired", |snapshot: &Snapshot| match snapshot.all::<ConfigMap>().len() {
    ///         0 => Ok(()),
    ///         n => Err(format!("{n} are left")),
    ///     });
    /// let report = Sim::seeds(0..4).run(&scenario)?;
    /// assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    #[must_use]
    pub fn waiting_for_requeues(mut self, within: Duration) -> Self {
        self.requeues_within = within;
        self
    }

    /// Excludes objects that depend on when something happens, and all that they own, from
    /// comparisons.
    ///
    /// `resource` is a plural, such as `jobs`; `schedules/status` excludes only the status of a
    /// resource. Two correct runs may differ in such objects. They are not compared, and their changes do not keep the
    /// state from settling. The checker `no more writes` ignores writes to this resource, but not those to objects that
    /// its objects own. Rules of [`invariant`](Self::invariant) and [`settled`](Self::settled) still see them.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::Scenario};
    ///
    /// // An app that starts a Job each minute: it is watched for five minutes.
    /// let scenario = Scenario::default()
    ///     .waiting_for_requeues(Duration::from_secs(300))
    ///     .depending_on_time("jobs")
    ///     .depending_on_time("schedules/status");
    /// # let _ = scenario;
    /// ```
    ///
    /// Another subresource than `status`, or an unknown resource, makes [`Sim::run`](super::super::Sim::run) return an error.
    #[must_use]
    pub fn depending_on_time(mut self, resource: &str) -> Self {
        self.time_dependent.push(resource.into());
        self
    }

    /// Excludes a field from the comparison of final states. `field` is a JSON pointer, such as
    /// `/status/attempts`; `sites/status/attempts` excludes the field of one resource (its plural) only.
    ///
    /// Use it for counters and histories, which legitimately differ after a fault. Server-side
    /// fields, times, uids and generated names are excluded already.
    ///
    /// ```
    /// use kctl::testing::Scenario;
    ///
    /// let scenario = Scenario::default().ignoring("/status/attempts").ignoring("pods/status/message");
    /// # let _ = scenario;
    /// ```
    ///
    /// A path that starts with neither `/` nor a resource makes [`Sim::run`](super::super::Sim::run) return an error.
    #[must_use]
    pub fn ignoring(mut self, field: &str) -> Self {
        self.ignored.push(field.into());
        self
    }

    /// Allows objects of this resource (its plural) to outlive their primaries.
    ///
    /// It covers objects that the app creates, and those that others create for them:
    /// `keeping("pods")` for the Pods of a Job that the app deletes with `.orphan()`, or
    /// `keeping("persistentvolumeclaims")` for data that must survive.
    ///
    /// ```
    /// use kctl::testing::Scenario;
    ///
    /// let scenario = Scenario::default().keeping("persistentvolumeclaims");
    /// # let _ = scenario;
    /// ```
    ///
    /// A resource that no API server of the scenario has makes [`Sim::run`](super::super::Sim::run) return an error.
    #[must_use]
    pub fn keeping(mut self, plural: &str) -> Self {
        self.kept.push(plural.into());
        self
    }

    /// Sets how many requests the app may send for each change of the state, on average over a run:
    /// 30 by default.
    ///
    /// Raise it for an app that polls an external system through the API server. A run may send 200
    /// requests more than that.
    #[must_use]
    pub fn requests_per_change(mut self, n: u64) -> Self {
        self.requests_per_change = n;
        self
    }
}

/// Returns the error of `ignoring` with what is not a field.
fn not_a_field(ignored: &str) -> Error {
    let path = ignored.trim_start_matches(['.', '/']).replace('.', "/");
    let field = if path.is_empty() { "status/attempts" } else { path.as_str() };
    let pointer = format!("/{field}");
    Error::from(format!("ignoring({ignored:?}): not a JSON pointer to a field; write {pointer:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_effect_are_rejected() {
        let new = Scenario::default;
        let fine = |_: &crate::testing::Snapshot| Ok(());
        let pointer = "not a JSON pointer to a field; write";
        let another = "reports name only the rule, so give it another name";
        let cases = [
            (new().instances(0), "instances(0): no replica would run; write 1 or more".to_owned()),
            (new().sharded(), "sharded(): one replica has no one to share with; add `.instances(2)`".to_owned()),
            (new().ignoring(".status.n"), format!(r#"ignoring(".status.n"): {pointer} "/status/n""#)),
            (new().ignoring(""), format!(r#"ignoring(""): {pointer} "/status/attempts""#)),
            (new().ignoring("/"), format!(r#"ignoring("/"): {pointer} "/status/attempts""#)),
            (
                new().comparing_with_fresh_start(),
                "comparing_with_fresh_start(): each run is a fresh start; add a `.step(…)`".to_owned(),
            ),
            (new().settled("", fine), format!(r#"rule "": a rule without a name; {another}"#)),
            (
                new().invariant("a", fine).settled("a", fine),
                format!(r#"rule "a": two rules have this name; {another}"#),
            ),
            (new().settled("a", fine).expect("a", fine), format!(r#"rule "a": two rules have this name; {another}"#)),
            (
                new().invariant("no hot loop", fine),
                format!(r#"rule "no hot loop": a checker has this name; {another}"#),
            ),
            (
                new().settled("the simulation", fine),
                format!(r#"rule "the simulation": a checker has this name; {another}"#),
            ),
        ];
        for (scenario, expected) in cases {
            assert_eq!(scenario.check_options().unwrap_err().to_string(), expected);
        }
        let works = new().instances(2).sharded().ignoring("/status/n").invariant("a", fine).settled("b", fine);
        works.check_options().unwrap();
    }

    #[test]
    fn ignored_field_of_unknown_resource_is_rejected() {
        let known = BTreeMap::from([("sites".to_owned(), "Site".to_owned())]);
        let check = |ignored: &str| {
            let scenario = Scenario::default().ignoring(ignored);
            scenario.check_options().and_then(|()| scenario.check_resources(&known)).map_err(|error| error.to_string())
        };
        assert_eq!(check("sites/status/n"), Ok(()));
        assert_eq!(check("/status/n"), Ok(()));
        let error = r#"ignoring("status/n"): not a JSON pointer to a field; write "/status/n""#;
        assert_eq!(check("status/n"), Err(error.to_owned()));
    }
}
