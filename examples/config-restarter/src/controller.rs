//! The controller: replaces pods when their `ConfigMap` changes, and registers the running revision.
//!
//! It reads policies, pods and `ConfigMap`s from caches. The module `rollout` decides the steps, and this file performs
//! them.

use kctl::{
    k8s::api::core::v1::{ConfigMapEnvSource, EnvFromSource},
    metrics::counter::Counter,
    prelude::*,
};

use crate::{
    policy::{RestartPolicy, RestartPolicyStatus},
    registry::Registry,
    rollout::{PodState, Step, steps},
};

/// Annotation with the hash of the data that a pod was created with.
pub(crate) const HASH_ANNOTATION: &str = "apps.example.com/config-hash";

/// Keeps the pods of every `RestartPolicy`, and registers their revision outside of the cluster.
///
/// The finalizer removes the registration before a policy is deleted.
#[controller(
    of = RestartPolicy,
    owns = Pod(create, delete),
    watches = ConfigMap(map = users_of),
    primary(get, index = config_of),
    finalizer = "apps.example.com/registry",
    backoff("100ms", max = "1m"),
    concurrency = 4,
)]
pub(crate) struct ConfigRestarter {
    /// The client of the registry. Tests pass a failing client.
    pub registry: Arc<dyn Registry>,
    /// Number of pods replaced since the start, for `/metrics`.
    pub replaced: Counter,
}

/// Index function: returns the key of the `ConfigMap` that a policy names, for [`users_of`].
fn config_of(policy: &RestartPolicy) -> Vec<String> {
    vec![config_key(policy).to_string()]
}

/// Returns the keys of the policies that use a `ConfigMap`. It uses an index and does not scan all policies.
fn users_of(config: &ConfigMap, policies: &Store<RestartPolicy>) -> Vec<Key<RestartPolicy>> {
    policies
        .by_index(config_of, &Key::from_object(config).to_string())
        .map(|policy| Key::from_object(&*policy))
        .collect()
}

/// Returns the key of a policy's `ConfigMap`.
fn config_key(policy: &RestartPolicy) -> Key<ConfigMap> {
    Key::namespaced(&policy.namespace().unwrap_or_default(), &policy.spec.config_map_name)
}

impl Reconcile for ConfigRestarter {
    /// Replaces or creates pods, registers the revision, and writes the status.
    ///
    /// If the `ConfigMap` is missing, the pods are left unchanged. The status is written even if the registry fails.
    async fn reconcile(&self, policy: Arc<RestartPolicy>, cx: Context<Self>) -> Result<Action> {
        let config = cx.store::<ConfigMap>().get(&config_key(&policy));
        let hash = config.map(|config| hash_of(&config));
        if let Some(hash) = &hash {
            self.roll(&policy, &cx, hash).await?;
        }
        let (mut status, conditions) = observe(&policy, &cx, hash);
        let (conditions, registered) = self.register(&policy, &cx, &mut status, conditions).await;
        status.conditions = conditions.into_vec()?;
        cx.patch_status(status).await?;
        registered?;
        Ok(Action::await_change())
    }
}

impl Finalize for ConfigRestarter {
    /// Removes the registration. The finalizer keeps the policy until that succeeds. Then the garbage collector deletes
    /// its pods.
    async fn finalize(&self, _policy: Arc<RestartPolicy>, cx: Context<Self>) -> Result<()> {
        let unregistered = self.registry.unregister(&cx.key().to_string()).await;
        if let Err(error) = &unregistered {
            cx.event(Warning, "UnregisterFailed", error.to_string());
        }
        unregistered.context("unregister")
    }
}

impl ConfigRestarter {
    /// Performs the steps that are possible now. Pod events trigger the reconciles that perform the next steps.
    async fn roll(&self, policy: &RestartPolicy, cx: &Context<Self>, hash: &str) -> Result<()> {
        let pods = cx.owned::<Pod>();
        let list: Vec<Arc<Pod>> = pods.iter().collect();
        let states: Vec<PodState> = list.iter().map(|pod| state_of(pod, hash)).collect();
        for step in steps(desired_pods(policy), &states) {
            if let Step::Replace(index) = step {
                cx.event(
                    Normal,
                    "Replacing",
                    format!("pod {} was made with older data than {hash}", list[index].name_any()),
                );
            }
            if let Step::Delete(index) | Step::Replace(index) = step {
                pods.delete(&list[index]).await?;
            }
            if let Step::Create | Step::Replace(_) = step {
                pods.create(new_pod(policy, hash)).await?;
            }
            if let Step::Replace(_) = step {
                self.replaced.inc();
            }
        }
        Ok(())
    }

    /// Registers the hash once all pods have it.
    ///
    /// A failure is recorded in the conditions and returned separately, because the status has to be written before the
    /// reconcile fails.
    async fn register(
        &self,
        policy: &RestartPolicy,
        cx: &Context<Self>,
        status: &mut RestartPolicyStatus,
        conditions: Conditions,
    ) -> (Conditions, Result<()>) {
        let Some(hash) = status.config_hash.clone().filter(|_hash| conditions.is_true("Ready")) else {
            return (conditions, Ok(()));
        };
        if status.registered_hash.as_ref() == Some(&hash) {
            return (conditions, Ok(()));
        }
        if let Err(error) = ensure_current_live(policy, cx).await {
            return (conditions, Err(error));
        }
        let registered = self.registry.register(&cx.key().to_string(), &hash).await;
        let conditions = match &registered {
            Ok(()) => {
                cx.event(Normal, "Registered", format!("all pods run with {hash}"));
                status.registered_hash = Some(hash);
                conditions.with("Registered", true, "RevisionRegistered", "the registry has the revision of the pods")
            }
            Err(error) => {
                cx.event(Warning, "RegisterFailed", error.to_string());
                conditions.with("Registered", false, "RegistryFailed", error.to_string())
            }
        };
        (conditions, registered.context("register"))
    }
}

/// Reads the policy from the API server, and fails if the one in the cache is outdated.
///
/// After a restart the cache may start with an outdated list. A registration that is made after `finalize` would remain.
async fn ensure_current_live(policy: &RestartPolicy, cx: &Context<ConfigRestarter>) -> Result<()> {
    let newest = cx.get().await?;
    ensure_current(policy, &newest)
}

/// Fails if the policy is being deleted, or was replaced by a new policy of its name.
pub(crate) fn ensure_current(policy: &RestartPolicy, newest: &RestartPolicy) -> Result<()> {
    if newest.metadata.uid == policy.metadata.uid && newest.metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    Err(format!("policy {} is being deleted, or was replaced by another policy of its name", policy.name_any()).into())
}

/// Returns the status and the conditions as observed in the cache, except for the registration.
fn observe(
    policy: &RestartPolicy,
    cx: &Context<ConfigRestarter>,
    hash: Option<String>,
) -> (RestartPolicyStatus, Conditions) {
    let before = policy.status.clone().unwrap_or_default();
    let found = hash.is_some();
    let hash = hash.or(before.config_hash);
    let states: Vec<PodState> =
        cx.owned::<Pod>().iter().map(|pod| state_of(&pod, hash.as_deref().unwrap_or_default())).collect();
    let count = |counts: fn(&PodState) -> bool| states.iter().filter(|state| counts(state)).count();
    let (n_ready, n_updated) = (count(|state| state.ready), count(|state| state.updated));
    let complete =
        count(|state| state.ready && state.updated) == desired_pods(policy) && states.len() == desired_pods(policy);

    let name = &policy.spec.config_map_name;
    let conditions = cx.conditions();
    if !found && conditions.get("ConfigFound").is_none_or(|condition| condition.status == "True") {
        cx.event(Warning, "ConfigMissing", format!("there is no ConfigMap {name}: nothing is created or replaced"));
    }
    let (reason, message) = if found {
        ("Found", format!("ConfigMap {name} is there"))
    } else {
        ("Missing", format!("there is no ConfigMap {name}"))
    };
    let conditions = conditions.with("ConfigFound", found, reason, message);
    let message = format!("{n_ready} of {} pods are ready, {n_updated} have the newest data", policy.spec.replicas);
    let reason = if complete { "Complete" } else { "Progressing" };
    let conditions = conditions.with("Ready", complete, reason, message);
    let status = RestartPolicyStatus {
        observed_generation: policy.metadata.generation,
        replicas: number(states.len()),
        ready: number(n_ready),
        updated: number(n_updated),
        config_hash: hash,
        registered_hash: before.registered_hash,
        conditions: Vec::new(),
    };
    (status, conditions)
}

/// Returns the wanted number of pods. The schema rejects negative numbers.
fn desired_pods(policy: &RestartPolicy) -> usize {
    usize::try_from(policy.spec.replicas).unwrap_or(0)
}

/// Converts a count for a status field.
fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Reads the state of a pod.
fn state_of(pod: &Pod, hash: &str) -> PodState {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let finished = matches!(phase, Some("Succeeded" | "Failed"));
    PodState {
        updated: pod.annotations().get(HASH_ANNOTATION).is_some_and(|pod_hash| pod_hash == hash),
        ready: !finished
            && conditions
                .into_iter()
                .flatten()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        finished,
    }
}

/// Returns a pod from the template, with environment variables from the `ConfigMap` and the hash of its data.
fn new_pod(policy: &RestartPolicy, hash: &str) -> Pod {
    let mut metadata = policy.spec.template.metadata.clone().unwrap_or_default();
    metadata.generate_name = Some(format!("{}-", policy.name_any()));
    metadata.annotations.get_or_insert_default().insert(HASH_ANNOTATION.into(), hash.into());
    let mut spec = policy.spec.template.spec.clone().unwrap_or_default();
    let config = ConfigMapEnvSource { name: policy.spec.config_map_name.clone(), optional: None };
    let from = EnvFromSource { config_map_ref: Some(config), ..EnvFromSource::default() };
    for container in &mut spec.containers {
        container.env_from.get_or_insert_default().push(from.clone());
    }
    Pod { metadata, spec: Some(spec), status: None }
}

/// Returns the FNV-1a hash of names and values, each with its length.
///
/// Pods store the hash, so a different algorithm would restart all pods. The standard library's hasher may change
/// between releases.
fn hash_of(config: &ConfigMap) -> String {
    let texts = config.data.iter().flatten().map(|(name, value)| (name, value.as_bytes()));
    let bytes = config.binary_data.iter().flatten().map(|(name, value)| (name, value.0.as_slice()));
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in texts.chain(bytes).flat_map(|(name, value)| [name.as_bytes(), value]) {
        for byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
