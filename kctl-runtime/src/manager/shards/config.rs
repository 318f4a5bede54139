//! The configuration of a sharded program: its slots, and the names and times of its Leases.

use std::{collections::BTreeSet, time::Duration};

use super::settings::{ShardSettings, scope_of};
use crate::{
    key::ObjectKey,
    manager::lease::{ElectionConfig, ElectionError},
    shard::{DIVISION, SLOTS_MAX, ShardBy, Slots, hash_string, seat_name, slot_name},
};

/// Label of the Leases of slots and seats; its value is the name of the app. Each replica watches them by it.
pub const LABEL: &str = "kctl.dev/shards";
/// Longest value of a label, in bytes.
const LABEL_LEN_MAX: usize = 63;

/// The slots of a program and the Leases that assign them to replicas.
///
/// All replicas need the same number of slots, the same [`ShardBy`], the same Lease duration and the same
/// [namespaces](Self::in_namespaces). A replica with others waits until they are gone.
///
/// | Lease | Holder | Renewed by |
/// |---|---|---|
/// | `NAME` | the settings, such as `shards-24-by-object-v2` | one of the replicas; the others read it |
/// | `NAME-seat-N` | one replica | that replica |
/// | `NAME-slot-N` | the owner of the slot | that replica |
///
/// Each is renewed once per `retry_period`, 2 s by default, so 24 slots cost 12 writes per second in all.
///
/// ```
/// use kctl_runtime::{
///     manager::{lease::{ElectionConfig, identity}, shards::ShardConfig},
///     shard::ShardBy,
/// };
///
/// let leases = ElectionConfig::new("podset.example.com", "default", &identity());
/// assert!(ShardConfig::new(leases.clone(), 24, ShardBy::Object).is_ok());
/// assert!(ShardConfig::new(leases, 0, ShardBy::Object).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardConfig {
    leases: ElectionConfig,
    slots: Slots,
    /// The watched namespaces; empty for all.
    namespaces: BTreeSet<String>,
}

/// An invalid [`ShardConfig`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The number of slots is out of range.
    #[error("--shards {0} is out of range: set 1 to {SLOTS_MAX}")]
    Slots(u32),
    /// The name of the Lease cannot be the value of a label.
    #[error(
        "the name {0} is too long for the label {LABEL}: at most {LABEL_LEN_MAX} characters; set `--leader-election-id`"
    )]
    Name(String),
    /// A name or time of the Leases is invalid.
    #[error(transparent)]
    Lease(#[from] ElectionError),
    /// The holder of a Lease is not the settings of a sharded program.
    #[error(
        "its holder `{0}` is not the settings of a sharded program, such as `shards-24-by-object-v2`: start the replicas with --shards, or use their version of kctl"
    )]
    Settings(String),
    /// The replicas run with another version of the division of keys.
    #[error(
        "its holder `{0}` is of another version of kctl, which assigns keys to slots differently: use the version of the replicas"
    )]
    Division(String),
}

impl ShardConfig {
    /// Creates a configuration. `leases` has the name of the app, the namespace, the identity of this process, and the
    /// times of all Leases.
    ///
    /// # Errors
    /// The number of slots is not between 1 and [`SLOTS_MAX`], or a name or time is invalid.
    pub fn new(leases: ElectionConfig, slots: u32, by: ShardBy) -> Result<Self, ShardError> {
        leases.check()?;
        if !(1..=SLOTS_MAX).contains(&slots) {
            return Err(ShardError::Slots(slots));
        }
        if leases.name.len() > LABEL_LEN_MAX {
            return Err(ShardError::Name(leases.name));
        }
        Ok(Self { leases, slots: Slots::new(slots, by), namespaces: BTreeSet::new() })
    }

    /// Adds the namespaces of a program that is limited to some: the namespaces of `run --namespace`. None means all.
    ///
    /// They are one of the settings. The owner of a slot does not see the objects of a namespace that it does not
    /// watch. So replicas with different namespaces never work at the same time.
    ///
    /// ```
    /// use kctl_runtime::{
    ///     manager::{lease::{ElectionConfig, identity}, shards::ShardConfig},
    ///     shard::ShardBy,
    /// };
    ///
    /// let leases = ElectionConfig::new("podset.example.com", "default", &identity());
    /// let config = ShardConfig::new(leases, 24, ShardBy::Object)?.in_namespaces(["blog".to_owned(), "shop".to_owned()]);
    /// # let _ = config;
    /// # Ok::<_, kctl_runtime::manager::shards::ShardError>(())
    /// ```
    #[must_use]
    pub fn in_namespaces(mut self, namespaces: impl IntoIterator<Item = String>) -> Self {
        self.namespaces.extend(namespaces);
        self
    }

    /// Returns the slots of replicas whose settings have this name: the holder of the Lease `NAME`.
    ///
    /// ```
    /// use kctl_runtime::{manager::shards::ShardConfig, shard::{ShardBy, Slots}};
    ///
    /// let slots = ShardConfig::slots_of_settings("shards-24-by-object-v2");
    /// assert_eq!(slots, Ok(Slots::new(24, ShardBy::Object)));
    /// ```
    ///
    /// # Errors
    /// The holder is not such a name, or one of a division that this version of kctl does not have.
    pub fn slots_of_settings(holder: &str) -> Result<Slots, ShardError> {
        let settings = ShardSettings::parse(holder).ok_or_else(|| ShardError::Settings(holder.into()))?;
        if settings.division == DIVISION { Ok(settings.slots) } else { Err(ShardError::Division(holder.into())) }
    }

    /// Returns the watched namespaces of replicas whose settings have this name, in order. It is empty if they watch all
    /// namespaces, and if the list was too long for the name.
    ///
    /// ```
    /// use kctl_runtime::manager::shards::ShardConfig;
    ///
    /// assert_eq!(ShardConfig::namespaces_of_settings("shards-24-by-object-v2-in-blog,shop"), ["blog", "shop"]);
    /// assert!(ShardConfig::namespaces_of_settings("shards-24-by-object-v2").is_empty());
    /// ```
    pub fn namespaces_of_settings(holder: &str) -> Vec<String> {
        ShardSettings::parse(holder).map(|settings| settings.namespaces()).unwrap_or_default()
    }

    /// Returns the number of slots, and the division of keys among them.
    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// Returns the name of the app, which all its Leases begin with.
    pub fn name(&self) -> &str {
        &self.leases.name
    }

    /// Returns the namespace of the Leases.
    pub fn namespace(&self) -> &str {
        &self.leases.namespace
    }

    /// Returns the identity of this process.
    pub fn identity(&self) -> &str {
        &self.leases.identity
    }

    /// Returns the time after which the Lease of a crashed replica expires.
    pub fn lease_duration(&self) -> Duration {
        self.leases.lease_duration
    }

    /// Returns the time between two renewals of a Lease.
    pub(super) fn retry_period(&self) -> Duration {
        self.leases.retry_period
    }

    /// Returns how long a write may take: 8.25 s with the default times.
    ///
    /// It is shorter than [`ElectionConfig::write_timeout`], because the write also has to fit into the Lease of the
    /// settings, which another replica may have renewed a period earlier.
    pub fn write_timeout(&self) -> Duration {
        self.leases.shared_write_timeout()
    }

    /// Makes this replica divide the keys in another way than the others: a bug that the simulator has to find.
    pub(super) fn with_another_hash(mut self) -> Self {
        self.slots = self.slots.with_salt(hash_string(&self.leases.identity));
        self
    }

    /// Returns the options of `generate-rbac` that print the permissions for the Leases.
    pub(in crate::manager) fn role_options(&self) -> String {
        format!(" --shards {}", self.slots.count())
    }

    /// Returns the Lease that all replicas with the same settings hold together.
    ///
    /// Its holder is the settings, so a replica with other settings, or one with leader election, cannot hold it at the
    /// same time. It is never released, because other replicas may continue.
    pub(crate) fn settings(&self) -> ElectionConfig {
        ElectionConfig {
            identity: self.settings_of(DIVISION).to_string(),
            release_on_stop: false,
            ..self.leases.clone()
        }
    }

    fn settings_of(&self, division: u32) -> ShardSettings {
        let scope = scope_of(&self.namespaces);
        ShardSettings { slots: self.slots, division, lease_duration: self.lease_duration(), scope }
    }

    /// Returns `true` if this program watches objects with this key. Cluster-scoped ones are in no namespace.
    pub(super) fn watches(&self, key: &ObjectKey) -> bool {
        let Some(namespace) = &key.namespace else { return true };
        self.namespaces.is_empty() || self.namespaces.contains(&**namespace)
    }

    pub(super) fn slot(&self, slot: u32) -> ElectionConfig {
        self.lease_config(slot_name(self.name(), slot), u64::from(slot))
    }

    pub(super) fn seat(&self, seat: u32) -> ElectionConfig {
        self.lease_config(seat_name(self.name(), seat), u64::from(seat) << 32)
    }

    /// Returns the number that distinguishes this process from others with the same identity.
    pub(in crate::manager) fn process(&self) -> u64 {
        self.leases.seed
    }

    fn lease_config(&self, name: String, number: u64) -> ElectionConfig {
        let mut config = ElectionConfig { name, seed: self.leases.seed ^ number, ..self.leases.clone() };
        config.labels.insert(LABEL.into(), self.name().into());
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &str, slots: u32) -> Result<ShardConfig, ShardError> {
        ShardConfig::new(ElectionConfig::new(name, "default", "a"), slots, ShardBy::Object)
    }

    #[test]
    fn settings_lease_is_held_by_the_settings() {
        let settings = config("app", 16).unwrap().settings();
        assert_eq!((settings.name.as_str(), settings.identity.as_str()), ("app", "shards-16-by-object-v2"));
        assert!(!settings.release_on_stop);
        let mut longer = ElectionConfig::new("app", "default", "a");
        longer.lease_duration = Duration::from_secs(60);
        let longer = ShardConfig::new(longer, 16, ShardBy::Object).unwrap();
        assert_eq!(longer.settings().identity, "shards-16-by-object-v2-for-60s");
        assert_eq!(
            longer.settings_of(DIVISION + 1).to_string(),
            "shards-16-by-object-v3-for-60s",
            "replicas of two versions don't agree"
        );
    }

    #[test]
    fn slots_are_read_back_from_settings() {
        for by in ShardBy::ALL {
            for seconds in [15, 60] {
                let mut leases = ElectionConfig::new("app", "default", "a");
                leases.lease_duration = Duration::from_secs(seconds);
                let config = ShardConfig::new(leases, 16, by).unwrap();
                assert_eq!(ShardConfig::slots_of_settings(&config.settings().identity), Ok(config.slots()));
                let other = config.settings_of(DIVISION + 1).to_string();
                assert_eq!(ShardConfig::slots_of_settings(&other), Err(ShardError::Division(other)));
            }
        }
    }

    #[test]
    fn replicas_with_other_namespaces_have_other_settings() {
        let [blog, shop] = ["blog", "shop"].map(ToOwned::to_owned);
        let config = config("app", 16).unwrap();
        let limited = config.clone().in_namespaces([shop.clone(), blog.clone()]);
        assert_eq!(limited.settings().identity, "shards-16-by-object-v2-in-blog,shop");
        assert_eq!(limited.settings(), config.clone().in_namespaces([blog, shop]).settings());
        assert_eq!(ShardConfig::slots_of_settings(&limited.settings().identity), Ok(config.slots()));
        for (key, is_watched) in [("blog/web", true), ("default/web", false), ("node-1", true)] {
            assert_eq!(limited.watches(&key.parse().unwrap()), is_watched, "{key}");
            assert!(config.watches(&key.parse().unwrap()), "{key}");
        }
    }

    #[test]
    fn other_holders_name_no_slots() {
        let holders = [
            "",
            "web-1",
            "shards-8",
            "shards-0-by-object",
            "shards-+8-by-object",
            "shards-257-by-object",
            "shards-8-by-label",
            "shards-8-by-object-x",
            "shards-8-by-objects",
            "shards-8-by-namespace-ranges",
            "shards-8-by-object-v",
            "shards-8-by-object-for",
            "shards-8-by-object-for-1m",
            "shards-8-by-object-in-",
            "shards-8-by-object-in-blog,",
            "shards-8-by-object-in-Blog",
            "shards-8-by-object-in-3:",
        ];
        for holder in holders {
            assert_eq!(ShardConfig::slots_of_settings(holder), Err(ShardError::Settings(holder.into())));
        }
    }

    #[test]
    fn slots_and_names_out_of_range_are_rejected() {
        for slots in [0, SLOTS_MAX + 1] {
            assert_eq!(config("app", slots), Err(ShardError::Slots(slots)));
        }
        let long = "a".repeat(64);
        assert_eq!(config(&long, 1), Err(ShardError::Name(long.clone())));
        assert!(config(&long[1..], SLOTS_MAX).is_ok());
    }
}
