//! The configuration of a leader election: the Lease, and the times.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use kctl_apimachinery::validation::{is_dns1123_label, is_dns1123_subdomain};

/// Longest name of an object or a holder, in characters.
const NAME_LEN_MAX: usize = 253;
pub(in crate::manager) const LEASE_DURATION: Duration = Duration::from_secs(15);
/// Longest Lease, 68 years: `leaseDurationSeconds` is an `int32`, so an API server rejects a longer one.
const LEASE_DURATION_MAX: Duration = Duration::from_secs(i32::MAX as u64);
/// Candidates wait up to this factor of the retry period longer (client-go, `JitterFactor`).
pub(super) const JITTER: f64 = 1.2;

/// The Lease of a leader election and its times. The defaults are client-go's.
///
/// All replicas have to use the same name and namespace, and should use the same times.
///
/// ```
/// use std::time::Duration;
/// use kctl_runtime::manager::lease::{ElectionConfig, identity};
///
/// let mut config = ElectionConfig::new("podset.example.com", "default", &identity());
/// config.lease_duration = Duration::from_secs(30);
/// config.renew_deadline = Duration::from_secs(20);
/// assert_eq!(config.check(), Ok(()));
///
/// config.renew_deadline = Duration::from_secs(40); // longer than the Lease
/// assert!(config.check().is_err());
/// ```
///
/// The three times depend on each other: `lease_duration` > `renew_deadline` > 1.2 × `retry_period`. The first gap is
/// the time in which a leader that cannot renew stops its work. The second leaves room for several tries.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElectionConfig {
    /// Name of the Lease.
    pub name: String,
    /// Namespace of the Lease, usually the Pod's namespace.
    pub namespace: String,
    /// Identity of this process, which becomes the holder. Two processes with the same one would both lead, so
    /// use [`identity`].
    pub identity: String,
    /// Labels to add to the Lease. Its other labels are kept.
    pub labels: BTreeMap<String, String>,
    /// Time that candidates wait after the leader's last renewal. Default 15 s; whole seconds.
    ///
    /// A crashed leader is replaced after this time. Longer values tolerate longer outages of the API server.
    pub lease_duration: Duration,
    /// Time for which a leader tries to renew before it gives up. Default 10 s; shorter than
    /// `lease_duration`.
    pub renew_deadline: Duration,
    /// Time between two tries. Default 2 s; 1.2 times it is less than `renew_deadline`.
    pub retry_period: Duration,
    /// `true`, the default, to release the Lease when the process stops, so that the next leader starts at
    /// once. A write that may still be in flight prevents it.
    pub release_on_stop: bool,
    /// Seed of the random part of candidates' waits, and of the jitter of the process's lists and watches.
    /// [`new`](Self::new) picks a random one.
    ///
    /// With shards and in a controller ring it is also the number of the process in the annotation `kctl.dev/process`.
    /// There, two processes with one identity and one seed would work on the same keys.
    pub seed: u64,
}

/// An invalid [`ElectionConfig`]. The message names the flag of `run` that sets the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// A required string is empty or longer than 253 characters.
    #[error(
        "leader election: the {field} of the lease has to be between 1 and {NAME_LEN_MAX} characters; set `{flag}`"
    )]
    #[non_exhaustive]
    Name {
        /// The field of the Lease: `name`, `namespace` or `holder`.
        field: &'static str,
        /// The flag that sets it.
        flag: &'static str,
    },
    /// The name or the namespace is not one that an API server accepts.
    #[error(
        "leader election: the {field} of the lease cannot be `{value}`: lower case letters, digits and dashes as in RFC 1123; set \
         `{flag}`"
    )]
    #[non_exhaustive]
    NotDns1123 {
        /// The field of the Lease: `name` or `namespace`.
        field: &'static str,
        /// The flag that sets it.
        flag: &'static str,
        /// The rejected value.
        value: String,
    },
    /// One time has to be longer than another.
    #[error("leader election: {longer} ({longer_value:?}) has to be longer than {shorter} ({shorter_value:?})")]
    #[non_exhaustive]
    Order {
        /// The flag of the time that is too short.
        longer: &'static str,
        /// The value that was given for it.
        longer_value: Duration,
        /// The flag of the other time.
        shorter: &'static str,
        /// The value that it has to exceed.
        shorter_value: Duration,
    },
    /// `lease_duration` is not a positive number of whole seconds, which is all that a Lease can store.
    #[error("leader election: --leader-elect-lease-duration ({0:?}) has to be whole seconds, at least one")]
    NotWholeSeconds(Duration),
    /// `lease_duration` is longer than the `int32` of seconds that a Lease can store.
    #[error("leader election: --leader-elect-lease-duration ({0:?}) has to be at most {LEASE_DURATION_MAX:?}")]
    TooLong(Duration),
    /// `retry_period` is zero.
    #[error("leader election: --leader-elect-retry-period has to be longer than zero")]
    NoPeriod,
    /// `Manager::elect`, `shard` or `join_ring` was called on a manager that has a Lease by one of them.
    #[error("`{second}` after `{first}`: a manager has one Lease; call one of `elect`, `shard` and `join_ring`, once")]
    #[non_exhaustive]
    SecondLease {
        /// The earlier call.
        first: &'static str,
        /// The rejected call.
        second: &'static str,
    },
}

impl ElectionConfig {
    /// Creates a configuration with client-go's times: 15 s, 10 s and 2 s (`component-base`,
    /// `config/v1alpha1/defaults.go`; controller-runtime uses the same).
    ///
    /// ```
    /// use kctl_runtime::manager::lease::ElectionConfig;
    /// let config = ElectionConfig::new("podset.example.com", "default", "host_1");
    /// assert_eq!(config.lease_duration.as_secs(), 15);
    /// assert_eq!(config.check(), Ok(()));
    /// ```
    pub fn new(name: &str, namespace: &str, identity: &str) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            identity: identity.into(),
            labels: BTreeMap::new(),
            lease_duration: LEASE_DURATION,
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_stop: true,
            seed: RandomState::new().hash_one(identity),
        }
    }

    /// Checks names and times, as client-go's `NewLeaderElector` does.
    ///
    /// [`Elector::new`](super::Elector::new) calls it.
    ///
    /// # Errors
    /// The first [`ElectionError`] that is found; it names the flags.
    pub fn check(&self) -> Result<(), ElectionError> {
        type IsValid = fn(&str) -> bool;
        // Any string can be the holder.
        let names: [(_, _, _, IsValid); 3] = [
            ("name", "--leader-election-id", &self.name, is_dns1123_subdomain),
            ("namespace", "--leader-election-namespace", &self.namespace, is_dns1123_label),
            ("holder", "--leader-election-identity", &self.identity, |_holder| true),
        ];
        for (field, flag, value, is_valid) in names {
            if value.is_empty() || value.chars().count() > NAME_LEN_MAX {
                return Err(ElectionError::Name { field, flag });
            }
            if !is_valid(value) {
                return Err(ElectionError::NotDns1123 { field, flag, value: value.clone() });
            }
        }
        if self.retry_period.is_zero() {
            return Err(ElectionError::NoPeriod);
        }
        if self.lease_duration.subsec_nanos() != 0 || self.lease_duration.is_zero() {
            return Err(ElectionError::NotWholeSeconds(self.lease_duration));
        }
        if self.lease_duration > LEASE_DURATION_MAX {
            return Err(ElectionError::TooLong(self.lease_duration));
        }
        let longer = |longer, longer_value: Duration, shorter, shorter_value: Duration| {
            if longer_value > shorter_value {
                return Ok(());
            }
            Err(ElectionError::Order { longer, longer_value, shorter, shorter_value })
        };
        let (lease, renew) = ("--leader-elect-lease-duration", "--leader-elect-renew-deadline");
        longer(lease, self.lease_duration, renew, self.renew_deadline)?;
        // `mul_f64` would panic for a period near `Duration::MAX`.
        let waits = Duration::try_from_secs_f64(self.retry_period.as_secs_f64() * JITTER).unwrap_or(Duration::MAX);
        longer(renew, self.renew_deadline, "1.2 times --leader-elect-retry-period", waits)
    }

    /// Returns the timeout of one request about the Lease: half the renew deadline, so that a second one fits
    /// (controller-runtime, `leaderelection/leader_election.go`).
    pub(super) fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1)).min(self.renew_deadline)
    }

    /// Returns how long a write of the leader may take: 9.75 s with the default times.
    ///
    /// It has to fit, with the [margin](Self::write_margin), into the rest of the Lease just before a renewal.
    ///
    /// ```
    /// use kctl_runtime::manager::lease::ElectionConfig;
    ///
    /// let config = ElectionConfig::new("podset.example.com", "default", "host_1");
    /// assert_eq!(config.write_timeout().as_millis(), 9_750);
    /// assert_eq!(config.write_margin().as_millis(), 1_300);
    /// ```
    pub fn write_timeout(&self) -> Duration {
        self.lease_duration.saturating_sub(self.retry_period) * 3 / 4
    }

    /// Returns how long a write may take under a Lease that several processes hold together: 8.25 s with the default times.
    ///
    /// A renewal by another process counts from the read before the one that shows it, so two periods of the Lease may have
    /// passed. With the time of [`write_timeout`](Self::write_timeout) writes would wait for the next read.
    pub(in crate::manager) fn shared_write_timeout(&self) -> Duration {
        let left = self.lease_duration.saturating_sub(2 * self.retry_period) * 3 / 4;
        left.max(self.write_timeout() / 2)
    }

    /// Returns how much longer than its timeout a write may still be in flight: 1.3 s with the default times.
    ///
    /// A request may be delayed on the network, or by a server that does not notice that its client is gone.
    pub fn write_margin(&self) -> Duration {
        self.lease_duration.saturating_sub(self.retry_period) / 10
    }
}

/// Returns an identity that no other process has: host name and a random UUID, `host_uuid`, as
/// controller-runtime builds it.
///
/// ```
/// use kctl_runtime::manager::lease::identity;
///
/// assert_ne!(identity(), identity());
/// ```
pub fn identity() -> String {
    let host = host_name();
    // `RandomState` is seeded by the operating system. The identity must be unique, not secret.
    let random = RandomState::new();
    let (high, low) = (random.hash_one(std::process::id()), random.hash_one(&host));
    // The last two bits of the variant and the version 4 make it a UUID.
    format!(
        "{host}_{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// Returns the host name, which is the name of the Pod in one; `localhost` if it is not known.
///
/// ```
/// assert!(!kctl_runtime::manager::lease::host_name().is_empty());
/// ```
pub fn host_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).map(|host| host.trim().to_owned());
    host.filter(|host| !host.is_empty()).unwrap_or_else(|| "localhost".into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::connection::UNACKNOWLEDGED_MAX;

    /// Longest time from the sending of data to its first retransmission, from which Linux counts (RFC 6298).
    const FIRST_RETRANSMISSION_TIMEOUT: Duration = Duration::from_secs(1);

    #[test]
    fn kernel_drops_unacknowledged_writes_before_they_are_over() {
        let is_dropped = |lease_duration: u64| {
            let mut config = ElectionConfig::new("podset", "default", "a");
            config.lease_duration = Duration::from_secs(lease_duration);
            let timeout = config.write_timeout().min(config.shared_write_timeout());
            UNACKNOWLEDGED_MAX + FIRST_RETRANSMISSION_TIMEOUT < timeout + config.write_margin()
        };
        assert!(is_dropped(LEASE_DURATION.as_secs()));
        assert_eq!([13, 14].map(is_dropped), [false, true], "the guide says from which Lease duration it holds");
    }

    #[test]
    fn length_of_holder_is_counted_in_characters() {
        let check = |n: usize| ElectionConfig::new("podset", "default", &"ü".repeat(n)).check();
        assert_eq!(check(NAME_LEN_MAX), Ok(()));
        assert_eq!(
            check(NAME_LEN_MAX + 1),
            Err(ElectionError::Name { field: "holder", flag: "--leader-election-identity" })
        );
    }
}
