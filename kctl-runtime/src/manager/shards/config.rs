//! The configuration of a sharded program: its slots, and the names and times of its Leases.

use std::time::Duration;

use crate::{
    manager::lease::{ElectionConfig, ElectionError, LEASE_DURATION},
    shard::{DIVISION, SLOTS_MAX, ShardBy, Slots, hash_string, seat_name, slot_name},
};

/// Label of the Leases of slots and seats; its value is the name of the app. Each replica watches them by it.
pub const LABEL: &str = "kctl.dev/shards";
/// Longest value of a label, in bytes.
const LABEL_LEN_MAX: usize = 63;

/// The slots of a program and the Leases that assign them to replicas.
///
/// All replicas need the same number of slots, the same [`ShardBy`] and the same Lease duration; a replica with others
/// waits until they are gone.
///
/// | Lease | Holder | Renewed by |
/// |---|---|---|
/// | `NAME` | the settings, such as `shards-16-by-object` | every replica |
/// | `NAME-seat-N` | one replica | that replica |
/// | `NAME-slot-N` | the owner of the slot | that replica |
///
/// Each is renewed once per `retry_period`, 2 s by default, so 16 slots cost 8 writes per second in all.
///
/// ```
/// use kctl_runtime::{
///     manager::{lease::{ElectionConfig, identity}, shards::ShardConfig},
///     shard::ShardBy,
/// };
///
/// let leases = ElectionConfig::new("podset.example.com", "default", &identity());
/// assert!(ShardConfig::new(leases.clone(), 16, ShardBy::Object).is_ok());
/// assert!(ShardConfig::new(leases, 0, ShardBy::Object).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardConfig {
    leases: ElectionConfig,
    slots: Slots,
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
        "its holder `{0}` is not the settings of a sharded program, such as `shards-16-by-object`: start the replicas with --shards"
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
        Ok(Self { leases, slots: Slots::new(slots, by) })
    }

    /// Returns the slots of replicas whose settings have this name: the holder of the Lease `NAME`.
    ///
    /// ```
    /// use kctl_runtime::{manager::shards::ShardConfig, shard::{ShardBy, Slots}};
    ///
    /// let slots = ShardConfig::slots_of_settings("shards-16-by-object");
    /// assert_eq!(slots, Ok(Slots::new(16, ShardBy::Object)));
    /// ```
    ///
    /// # Errors
    /// The holder is not such a name, or one of a division that this version of kctl does not have.
    pub fn slots_of_settings(holder: &str) -> Result<Slots, ShardError> {
        let (slots, division) = parse_settings(holder).ok_or_else(|| ShardError::Settings(holder.into()))?;
        if division == DIVISION { Ok(slots) } else { Err(ShardError::Division(holder.into())) }
    }

    /// Returns the slots.
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
        self.slots = self.slots.salted(hash_string(&self.leases.identity));
        self
    }

    /// Returns the Lease that all replicas with the same settings hold together.
    ///
    /// Its holder is the settings, so a replica with other settings, or one with leader election, cannot hold it at the
    /// same time. It is never released, because other replicas may go on.
    pub(crate) fn settings(&self) -> ElectionConfig {
        ElectionConfig { identity: self.settings_name(DIVISION), release_on_stop: false, ..self.leases.clone() }
    }

    /// Returns the name of the settings. It contains what differs from the defaults, and the number and kind of slots.
    /// [`parse_settings`] reads it.
    ///
    /// The Lease duration is one of the settings: a replica counts a renewal by another one for its own duration. So is the
    /// division, which another version of kctl may have changed.
    fn settings_name(&self, division: u32) -> String {
        let mut name = format!("shards-{}-by-{}", self.slots.count(), self.slots.shard_by());
        if division > 1 {
            name += &format!("-v{division}");
        }
        if self.lease_duration() != LEASE_DURATION {
            name += &format!("-for-{}s", self.lease_duration().as_secs());
        }
        name
    }

    pub(super) fn slot(&self, slot: u32) -> ElectionConfig {
        self.labelled(slot_name(self.name(), slot), u64::from(slot))
    }

    pub(super) fn seat(&self, seat: u32) -> ElectionConfig {
        self.labelled(seat_name(self.name(), seat), u64::from(seat) << 32)
    }

    /// Returns the number that distinguishes this process from others with the same identity.
    pub(super) fn process(&self) -> u64 {
        self.leases.seed
    }

    fn labelled(&self, name: String, number: u64) -> ElectionConfig {
        let mut config = ElectionConfig { name, seed: self.leases.seed ^ number, ..self.leases.clone() };
        config.labels.insert(LABEL.into(), self.name().into());
        config
    }
}

/// Returns the slots and the version of the division in the name of settings; `None` if it is not such a name.
fn parse_settings(name: &str) -> Option<(Slots, u32)> {
    let (n, rest) = name.strip_prefix("shards-")?.split_once("-by-")?;
    let n = n.parse::<u32>().ok().filter(|number| (1..=SLOTS_MAX).contains(number) && number.to_string() == n)?;
    let mut parts = rest.split('-');
    let by = parts.next()?;
    let by = [ShardBy::Object, ShardBy::Namespace].into_iter().find(|one| one.to_string() == by)?;
    let mut division = 1;
    while let Some(part) = parts.next() {
        match part.strip_prefix('v') {
            Some(version) => division = version.parse().ok()?,
            None if part == "for" => {
                let _seconds: u64 = parts.next()?.strip_suffix('s')?.parse().ok()?;
            }
            None => return None,
        }
    }
    Some((Slots::new(n, by), division))
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
        assert_eq!((settings.name.as_str(), settings.identity.as_str()), ("app", "shards-16-by-object"));
        assert!(!settings.release_on_stop);
        let mut longer = ElectionConfig::new("app", "default", "a");
        longer.lease_duration = Duration::from_secs(60);
        let longer = ShardConfig::new(longer, 16, ShardBy::Object).unwrap();
        assert_eq!(longer.settings().identity, "shards-16-by-object-for-60s");
        assert_eq!(longer.settings_name(2), "shards-16-by-object-v2-for-60s", "replicas of two versions don't agree");
    }

    #[test]
    fn slots_are_read_back_from_settings() {
        for by in [ShardBy::Object, ShardBy::Namespace] {
            for seconds in [15, 60] {
                let mut leases = ElectionConfig::new("app", "default", "a");
                leases.lease_duration = Duration::from_secs(seconds);
                let config = ShardConfig::new(leases, 16, by).unwrap();
                assert_eq!(ShardConfig::slots_of_settings(&config.settings().identity), Ok(config.slots()));
                assert_eq!(parse_settings(&config.settings_name(7)), Some((config.slots(), 7)));
                let other = config.settings_name(DIVISION + 1);
                assert_eq!(ShardConfig::slots_of_settings(&other), Err(ShardError::Division(other)));
            }
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
            "shards-8-by-object-v",
            "shards-8-by-object-for",
            "shards-8-by-object-for-1m",
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
