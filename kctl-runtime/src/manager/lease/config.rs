//! Which lease is contended for, under which name and with which times.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// The longest name of an object.
const NAME_LEN_MAX: usize = 253;
/// How much longer than the retry period a candidate waits at most, as a factor on top (client-go, `JitterFactor`).
pub(super) const JITTER: f64 = 1.2;

/// The Lease of a leader election and its times. The defaults are client-go's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionConfig {
    /// Name of the Lease.
    pub name: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// This process among the candidates; two of the same identity would both lead.
    pub identity: String,
    /// Labels that the Lease gets, beside those that it has.
    pub labels: BTreeMap<String, String>,
    /// So long candidates wait after the last sign of life of a leader. 15 s unless changed; whole seconds.
    pub lease_duration: Duration,
    /// So long a leader tries to renew before it gives up. 10 s unless changed.
    pub renew_deadline: Duration,
    /// Between two tries. 2 s unless changed.
    pub retry_period: Duration,
    /// Whether a leader that stops hands the lease back, so that the next one need not wait for its end.
    pub release_on_stop: bool,
    /// Of the waits of candidates: the same seed gives the same waits.
    pub seed: u64,
}

/// Why an election cannot be held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// A required text is empty or too long.
    #[error(
        "leader election: the {field} of the lease has to be between 1 and {NAME_LEN_MAX} characters; set `{flag}`"
    )]
    Name {
        /// What it is about.
        field: &'static str,
        /// The flag that sets it.
        flag: &'static str,
    },
    /// One time has to be longer than another.
    #[error("leader election: {longer} ({longer_value:?}) has to be longer than {shorter} ({shorter_value:?})")]
    Order {
        /// The flag of the time that has to be longer.
        longer: &'static str,
        /// Its value.
        longer_value: Duration,
        /// The flag of the time that has to be shorter.
        shorter: &'static str,
        /// Its value.
        shorter_value: Duration,
    },
    /// A duration that the Lease cannot say.
    #[error("leader election: --leader-elect-lease-duration ({0:?}) has to be whole seconds, and one at least")]
    NotWholeSeconds(Duration),
    /// A period of no length.
    #[error("leader election: --leader-elect-retry-period has to be longer than nothing")]
    NoPeriod,
}

impl ElectionConfig {
    /// A lease with client-go's times (`tools/leaderelection`, the defaults of `component-base` and controller-runtime).
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
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_stop: true,
            seed: RandomState::new().hash_one(identity),
        }
    }

    /// Checks what `NewLeaderElector` of client-go checks, and that the Lease can say it.
    ///
    /// # Errors
    /// When a name is missing or the times contradict each other; it names the flags.
    pub fn check(&self) -> Result<(), ElectionError> {
        let names = [
            ("name", "--leader-election-id", &self.name),
            ("namespace", "--leader-election-namespace", &self.namespace),
            ("holder", "--leader-election-identity", &self.identity),
        ];
        for (field, flag, value) in names {
            if value.is_empty() || value.len() > NAME_LEN_MAX {
                return Err(ElectionError::Name { field, flag });
            }
        }
        if self.retry_period.is_zero() {
            return Err(ElectionError::NoPeriod);
        }
        if self.lease_duration.subsec_nanos() != 0 || self.lease_duration.is_zero() {
            return Err(ElectionError::NotWholeSeconds(self.lease_duration));
        }
        let longer = |longer, longer_value: Duration, shorter, shorter_value: Duration| {
            if longer_value > shorter_value {
                return Ok(());
            }
            Err(ElectionError::Order { longer, longer_value, shorter, shorter_value })
        };
        let (lease, renew) = ("--leader-elect-lease-duration", "--leader-elect-renew-deadline");
        longer(lease, self.lease_duration, renew, self.renew_deadline)?;
        let waits = self.retry_period.mul_f64(JITTER);
        longer(renew, self.renew_deadline, "1.2 times --leader-elect-retry-period", waits)
    }

    /// How long one request about the lease may take: half the renew deadline, as in controller-runtime
    /// (`leaderelection/leader_election.go`), so that a second one fits.
    pub(super) fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1)).min(self.renew_deadline)
    }

    /// How long a write of the leader may take. It has to fit, with the [margin](Self::write_margin), into what is left of the
    /// lease just before it is renewed; with client-go's times this is 9.75 s.
    pub fn write_timeout(&self) -> Duration {
        self.lease_duration.saturating_sub(self.retry_period) * 3 / 4
    }

    /// How much longer than its timeout a write may go on unseen: on the network, or in a server that does not notice that
    /// its client has gone. With client-go's times this is 1.3 s.
    pub fn write_margin(&self) -> Duration {
        self.lease_duration.saturating_sub(self.retry_period) / 10
    }
}

/// A name for this process that no other has: `host_uuid`, as client-go's users build it.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).map(|host| host.trim().to_owned());
    let host = host.filter(|host| !host.is_empty()).unwrap_or_else(|| "localhost".into());
    // Its keys come from the operating system: random where nothing has to be secret.
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
