//! The configuration of a shard: the name of its ring, its Lease and its labels.

use kctl_apimachinery::validation::is_dns1123_subdomain;

use crate::{
    manager::lease::{ElectionConfig, ElectionError},
    object::Kind,
    shard::RingLabels,
    spec::ControllerSpec,
};

/// Label of a shard's Lease; its value is the name of the ring.
pub const RING_LABEL: &str = "alpha.sharding.timebertt.dev/controllerring";
/// Prefix of the label that assigns an object to a shard; the name of the ring follows.
const SHARD_LABEL_PREFIX: &str = "shard.alpha.sharding.timebertt.dev/";
/// Prefix of the label that the sharder sets to request the return of an object; the name of the ring follows.
const DRAIN_LABEL_PREFIX: &str = "drain.alpha.sharding.timebertt.dev/";
/// Longest name of a ring and of a shard, in bytes: both are parts of labels.
const NAME_LEN_MAX: usize = 63;

/// A shard of a controller ring: its Lease, and the labels of its objects.
///
/// The Lease has the name of the shard, which is also its holder. It is renewed once per `retry_period`, 2 s by default.
///
/// ```
/// use kctl_runtime::manager::{lease::ElectionConfig, ring::RingConfig};
///
/// let config = RingConfig::new("podset", ElectionConfig::new("unused", "shop", "podset-7f4"))?;
/// assert_eq!((config.ring(), config.shard()), ("podset", "podset-7f4"));
/// assert!(RingConfig::new("Pod Set", ElectionConfig::new("unused", "shop", "podset-7f4")).is_err());
/// # Ok::<_, kctl_runtime::manager::ring::RingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingConfig {
    ring: String,
    lease: ElectionConfig,
    /// The kinds that controllers reconcile.
    primaries: Vec<Kind>,
}

/// An invalid [`RingConfig`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The name is not valid for a `ControllerRing`.
    #[error(
        "--controller-ring `{0}` is not the name of a ControllerRing: lower case letters, digits, `-` and `.`, \
         {NAME_LEN_MAX} at most"
    )]
    Ring(String),
    /// The name of the shard is not valid as the name of a Lease and the value of a label.
    #[error(
        "`{0}` cannot be the name of a shard: lower case letters, digits, `-` and `.`, {NAME_LEN_MAX} at most; set \
         --leader-election-identity"
    )]
    Shard(String),
    /// A controller reconciles objects of another cluster, which the sharder does not label.
    #[error(
        "{controller} reconciles objects of the cluster {cluster}, and the sharder assigns only objects of the cluster \
         that it runs in: run it without --controller-ring"
    )]
    #[non_exhaustive]
    Elsewhere {
        /// Name of the controller.
        controller: String,
        /// Name of the cluster, as in `on = name`.
        cluster: String,
    },
    /// A controller reconciles cluster-scoped objects, which the sharder assigns once and never moves.
    #[error(
        "{controller} reconciles the cluster-scoped kind {kind}: the sharder never moves such objects, so the objects of a stopped \
         shard would not be reconciled any more; run it without --controller-ring"
    )]
    #[non_exhaustive]
    ClusterScoped {
        /// Name of the controller.
        controller: String,
        /// The kind that it reconciles.
        kind: String,
    },
    /// A time of the Lease is invalid.
    #[error(transparent)]
    Lease(#[from] ElectionError),
}

impl RingConfig {
    /// Creates a configuration. The identity of `lease` is the name of the shard, and its namespace and times apply to
    /// the shard's Lease. Its name is not used.
    ///
    /// Each process of a ring needs another name. In a Pod, the host name is unique.
    ///
    /// # Errors
    /// A name or time is invalid.
    pub fn new(ring: &str, lease: ElectionConfig) -> Result<Self, RingError> {
        if !is_name(ring) {
            return Err(RingError::Ring(ring.into()));
        }
        if !is_name(&lease.identity) {
            return Err(RingError::Shard(lease.identity));
        }
        let lease = ElectionConfig { name: lease.identity.clone(), ..lease };
        lease.check()?;
        Ok(Self { ring: ring.into(), lease, primaries: Vec::new() })
    }

    /// Adds the declarations of the controllers that this shard runs.
    ///
    /// A kind that one controller reconciles and another owns is assigned by its own key. So its objects can be in
    /// another shard than their owners. Where it is owned, all its objects are cached.
    ///
    /// # Errors
    /// A controller reconciles objects of another cluster, or cluster-scoped ones.
    pub fn for_controllers(mut self, specs: &[ControllerSpec]) -> Result<Self, RingError> {
        for ControllerSpec { name, primary, .. } in specs {
            if !primary.cluster.is_empty() {
                return Err(RingError::Elsewhere { controller: name.clone(), cluster: primary.cluster.clone() });
            }
            if !primary.namespaced {
                return Err(RingError::ClusterScoped { controller: name.clone(), kind: primary.kind.to_string() });
            }
            self.primaries.push(primary.kind.clone());
        }
        Ok(self)
    }

    pub(super) fn reconciles(&self, kind: &Kind) -> bool {
        self.primaries.contains(kind)
    }

    /// Returns the name of the `ControllerRing`.
    pub fn ring(&self) -> &str {
        &self.ring
    }

    /// Returns the name of the shard, which is also the name and the holder of its Lease.
    pub fn shard(&self) -> &str {
        &self.lease.identity
    }

    /// Returns the namespace of the Lease.
    pub fn namespace(&self) -> &str {
        &self.lease.namespace
    }

    /// Returns the Lease of the shard. The sharder finds it by its label.
    pub(super) fn lease(&self) -> ElectionConfig {
        let mut lease = self.lease.clone();
        lease.labels.insert(RING_LABEL.into(), self.ring.clone());
        lease
    }

    pub(super) fn labels(&self) -> RingLabels {
        RingLabels {
            shard_label: format!("{SHARD_LABEL_PREFIX}{}", self.ring),
            drain_label: format!("{DRAIN_LABEL_PREFIX}{}", self.ring),
            shard: self.shard().into(),
        }
    }
}

/// Returns `true` for a DNS subdomain that is also the value of a label.
fn is_name(text: &str) -> bool {
    text.len() <= NAME_LEN_MAX && is_dns1123_subdomain(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(ring: &str, shard: &str) -> Result<RingConfig, RingError> {
        RingConfig::new(ring, ElectionConfig::new("unused", "default", shard))
    }

    #[test]
    fn lease_is_named_and_held_by_the_shard() {
        let lease = config("podset", "podset-7f4").unwrap().lease();
        assert_eq!((lease.name.as_str(), lease.identity.as_str()), ("podset-7f4", "podset-7f4"));
        assert_eq!(lease.labels[RING_LABEL], "podset");
    }

    #[test]
    fn names_fit_into_labels_and_objects() {
        let (longest, long) = ("a".repeat(NAME_LEN_MAX), "a".repeat(NAME_LEN_MAX + 1));
        for name in ["podset", "podset.example.com", "a-1", longest.as_str()] {
            assert!(config(name, name).is_ok(), "{name}");
        }
        for name in ["", "Podset", "a_b", "-a", "a-", "a..b", ".a", "a b", "a/b", long.as_str()] {
            assert_eq!(config(name, "shard"), Err(RingError::Ring(name.into())));
            assert_eq!(config("ring", name), Err(RingError::Shard(name.into())));
        }
    }
}
