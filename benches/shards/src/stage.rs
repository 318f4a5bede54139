//! A server with objects, and the replicas that reconcile them.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use kctl::kube::{
    Api,
    api::{DynamicObject, ListParams, PostParams},
    core::ApiResource,
};
use kctl_runtime::{
    key::ObjectKey,
    shard::{ShardBy, Slots},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    Failure,
    journal::{Journals, now},
    process::{Program, Replica},
    server::{Server, resource},
};

/// The namespace of all objects and Leases.
pub(crate) const NAMESPACE: &str = "default";
/// Number of Pods per `PodGroup`.
pub(crate) const PODS_EACH: usize = 2;
/// The name of the measured app, which is the prefix of its Lease names.
const APP: &str = "pod-group";
/// Maximum number of concurrent create requests.
const CREATES_MAX: usize = 16;
/// Polling interval for Leases and journals.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for a state.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Slots count as settled if none has moved for this long.
const STEADY_DURATION: Duration = Duration::from_secs(3);

/// A server, its objects, and running replicas.
pub(crate) struct Stage {
    pub(crate) server: Server,
    /// Running replicas, the oldest first.
    pub(crate) replicas: Vec<Replica>,
    /// The reconciles of running and of ended replicas.
    pub(crate) journals: Journals,
    /// The primaries.
    pub(crate) groups: Api<DynamicObject>,
    leases: Api<DynamicObject>,
    program: Program,
    /// The number of replicas started so far, so that no name is used twice.
    n_started: usize,
    /// The number of slots, `None` for one replica without shards.
    shards: Option<u32>,
}

/// Returns the `ApiResource` of `PodGroup`, the primary of the measured operator.
fn pod_group() -> ApiResource {
    resource("bench.example.com", "v1", "PodGroup", "podgroups")
}

/// Returns the holder of each Lease, by the name of the Lease.
pub(crate) async fn holders(leases: &Api<DynamicObject>) -> Result<BTreeMap<String, String>, Failure> {
    let listed = leases.list(&ListParams::default()).await?;
    let held = listed.items.into_iter().map(|lease| {
        let holder = lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        (lease.metadata.name.unwrap_or_default(), holder)
    });
    Ok(held.collect())
}

/// Returns the `ApiResource` of Leases.
pub(crate) fn lease() -> ApiResource {
    resource("coordination.k8s.io", "v1", "Lease", "leases")
}

impl Stage {
    /// Prepares a stage on a server, in an empty folder. `times` are the command-line arguments for Lease times.
    pub(crate) async fn new(
        server: Server,
        path: PathBuf,
        folder: &Path,
        shards: Option<u32>,
        times: Vec<String>,
    ) -> Result<Self, Failure> {
        server.install(&path, &pod_group()).await?;
        let kubeconfig = server.kubeconfig.display().to_string();
        let mut arguments: Vec<String> =
            ["--kubeconfig", &kubeconfig, "--leader-election-namespace", NAMESPACE].map(ToOwned::to_owned).into();
        arguments.extend(times);
        if let Some(n) = shards {
            arguments.extend(["--shards".into(), n.to_string()]);
        }
        let program = Program { path, folder: folder.into(), arguments, variables: Vec::new() };
        let client = server.client.clone();
        Ok(Self {
            groups: Api::namespaced_with(client.clone(), NAMESPACE, &pod_group()),
            leases: Api::namespaced_with(client, NAMESPACE, &lease()),
            server,
            replicas: Vec::new(),
            journals: Journals::default(),
            program,
            n_started: 0,
            shards,
        })
    }

    /// Creates the primaries, whose Pods the replicas create.
    pub(crate) async fn create_groups(&self, n: usize) -> Result<(), Failure> {
        let creates = (0..n).map(|number| {
            let group = json!({
                "apiVersion": "bench.example.com/v1",
                "kind": "PodGroup",
                "metadata": { "name": name(number) },
                "spec": { "replicas": PODS_EACH },
            });
            async move {
                let group: DynamicObject = serde_json::from_value(group)?;
                self.groups.create(&PostParams::default(), &group).await?;
                Ok::<_, Failure>(())
            }
        });
        futures::stream::iter(creates).buffer_unordered(CREATES_MAX).try_collect::<()>().await
    }

    /// Starts one more replica.
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        self.n_started += 1;
        let replica = Replica::start(&self.program, &format!("replica-{}", self.n_started))?;
        self.journals.follow(&replica.user, replica.journal.clone());
        self.replicas.push(replica);
        Ok(())
    }

    /// Stops all replicas, and waits until they have ended.
    pub(crate) async fn stop_all(&mut self) -> Result<(), Failure> {
        for replica in &self.replicas {
            replica.signal("TERM")?;
        }
        for mut replica in std::mem::take(&mut self.replicas) {
            replica.wait_for_exit().await?;
        }
        Ok(())
    }

    /// Waits until `n` keys have been reconciled since `since`, and until each replica has its share of the slots.
    /// Returns the time at which the last key was reconciled.
    ///
    /// # Errors
    /// The wait exceeds [`TIMEOUT`], or a replica has ended.
    pub(crate) async fn wait_for_all(&mut self, n: usize, since: u64) -> Result<u64, Failure> {
        let start = Instant::now();
        loop {
            self.journals.refresh()?;
            let n_done = self.journals.n_done_since(since);
            if n_done >= n {
                break;
            }
            self.check(start, || format!("only {n_done} of {n} keys were reconciled"))?;
            sleep(POLL_INTERVAL).await;
        }
        let done = now();
        self.wait_for_shares().await?;
        Ok(done)
    }

    /// Waits until each running replica has its share of the slots, and no slot has moved for some seconds.
    ///
    /// A share is the number of slots divided by the number of replicas, rounded up. Without shards it waits
    /// [`STEADY_DURATION`], so that one replica rests as long as several do.
    pub(crate) async fn wait_for_shares(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        let Some(n_slots) = self.shards else {
            sleep(STEADY_DURATION).await;
            return Ok(());
        };
        let share = (n_slots as usize).div_ceil(self.replicas.len());
        let (mut known, mut since) = (HashMap::new(), Instant::now());
        loop {
            let owners = self.owners().await?;
            let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
            for owner in owners.values() {
                *loads.entry(owner).or_default() += 1;
            }
            let is_shared = owners.len() == n_slots as usize
                && loads.len() == self.replicas.len()
                && self.replicas.iter().all(|replica| loads.get(&*replica.user).is_some_and(|load| *load <= share));
            if !is_shared || owners != known {
                (known, since) = (owners, Instant::now());
            } else if since.elapsed() >= STEADY_DURATION {
                return Ok(());
            }
            self.check(start, || format!("the slots did not settle: {known:?}"))?;
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Fails if a wait takes too long or a replica has ended by itself.
    fn check(&mut self, start: Instant, what: impl FnOnce() -> String) -> Result<(), Failure> {
        for replica in &mut self.replicas {
            if replica.has_ended()? {
                return Err(format!("{} has ended; see its log in the folder", replica.user).into());
            }
        }
        if start.elapsed() > TIMEOUT { Err(format!("not within {TIMEOUT:?}: {}", what()).into()) } else { Ok(()) }
    }

    /// Returns the owner of each slot whose Lease has a holder.
    async fn owners(&self) -> Result<HashMap<u32, String>, Failure> {
        let prefix = format!("{APP}-slot-");
        let held = holders(&self.leases).await?.into_iter().filter(|(_, holder)| !holder.is_empty());
        let slots = held.filter_map(|(name, holder)| Some((name.strip_prefix(&prefix)?.parse().ok()?, holder)));
        Ok(slots.collect())
    }

    /// Returns the numbers of the primaries whose keys a replica owns, using the program's hash.
    pub(crate) async fn keys_of(&self, user: &str, n: usize) -> Result<Vec<usize>, Failure> {
        let owners = self.owners().await?;
        let slots = Slots::new(self.shards.unwrap_or(1), ShardBy::Object);
        let is_owned = |number: &usize| {
            let slot = slots.slot_for(&ObjectKey::new(Some(NAMESPACE), &name(*number)));
            owners.get(&slot).is_some_and(|owner| owner == user)
        };
        Ok((0..n).filter(is_owned).collect())
    }

    /// Waits until another replica has reconciled each of these keys since `since`. Returns the start time of the last
    /// such reconcile.
    pub(crate) async fn wait_until_elsewhere(
        &mut self,
        user: &str,
        keys: &[usize],
        since: u64,
    ) -> Result<u64, Failure> {
        let start = Instant::now();
        let before = self.journals.users.iter().position(|known| known == user);
        loop {
            self.journals.refresh()?;
            let first = |number: &usize| {
                let runs = self.journals.runs.get(&name(*number))?;
                runs.iter().filter(|run| Some(run.replica) != before && run.start >= since).map(|run| run.start).min()
            };
            let starts: Vec<u64> = keys.iter().filter_map(first).collect();
            if starts.len() == keys.len() {
                return starts.into_iter().max().ok_or_else(|| format!("{user} owned no key").into());
            }
            self.check(start, || format!("{} of {} keys run elsewhere", starts.len(), keys.len()))?;
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the CPU time of all running replicas so far, in seconds. Ended replicas do not count.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        self.replicas.iter().map(Replica::cpu).sum()
    }
}

/// Returns the name of a primary. All names have the same length, so that all objects have the same size.
pub(crate) fn name(number: usize) -> String {
    format!("group-{number:05}")
}
