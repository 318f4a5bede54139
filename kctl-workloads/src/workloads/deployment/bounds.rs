//! The number of Pods that a Deployment may have during a rollout: `maxSurge` and `maxUnavailable`.
//!
//! With 4 replicas and the defaults of 25 %, a rollout has at most 5 Pods, and at least 3 available
//! ones. The surge is rounded up and the unavailable Pods are rounded down, so a small percentage
//! of few replicas still allows one new Pod.

use std::collections::BTreeMap;

use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::util::intstr::IntOrString};

use super::optional;

/// Annotation of a `ReplicaSet`: the replicas of the Deployment for which it was scaled.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// Annotation of a `ReplicaSet`: the replicas plus the surge.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// Numbers of Pods.
///
/// Invariant: `surge` and `unavailable` are not both 0, unless the strategy is `Recreate` or
/// `replicas` is 0.
pub(super) struct Bounds {
    pub(super) replicas: i32,
    /// The number of Pods that may exist beyond `replicas`.
    surge: i32,
    /// The number of Pods of `replicas` that may be unavailable.
    pub(super) unavailable: i32,
    /// `true` for the strategy `Recreate`: all old Pods end before a new one starts.
    pub(super) recreates: bool,
}

impl Bounds {
    pub(super) fn from_deployment(deployment: &Deployment) -> Self {
        let replicas = optional::deployment(deployment).replicas.unwrap_or(1);
        let strategy = optional::deployment(deployment).strategy.clone().unwrap_or_default();
        if strategy.type_.as_deref() == Some("Recreate") {
            return Self { replicas, surge: 0, unavailable: 0, recreates: true };
        }
        let rolling = strategy.rolling_update.unwrap_or_default();
        let surge = share(rolling.max_surge.as_ref(), replicas, 99);
        let unavailable = share(rolling.max_unavailable.as_ref(), replicas, 0);
        // If both are 0, one Pod may be unavailable (`ResolveFenceposts`).
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        let unavailable = unavailable.min(replicas);
        debug_assert!(
            surge > 0 || unavailable > 0 || replicas == 0,
            "a rollout makes progress: {surge}, {unavailable}"
        );
        Self { replicas, surge, unavailable, recreates: false }
    }

    /// Returns the new replicas of the current set. It has `has` replicas now, and all sets together have `n_desired`
    /// (`NewRSNewReplicas`).
    ///
    /// A set that is too large is scaled down to the replicas at once. Otherwise it grows by the number of Pods that
    /// the other sets leave below the surge.
    pub(super) fn replicas_of_current(&self, has: i32, n_desired: i32) -> i32 {
        if has > self.replicas || self.recreates {
            return self.replicas;
        }
        let room = (self.replicas + self.surge - n_desired).max(0);
        has + room.min(self.replicas - has)
    }

    /// Returns the maximum number of Pods at a time.
    ///
    /// A Deployment with 0 replicas may have none, not even a surge.
    pub(super) fn pods_max(&self) -> i32 {
        if self.replicas == 0 { 0 } else { self.replicas + self.surge }
    }

    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (DESIRED.into(), self.replicas.to_string()),
            (MAX_REPLICAS.into(), (self.replicas + self.surge).to_string()),
        ])
    }
}

/// Resolves a number or a percentage. `add` hundredths are added before rounding down. The default is 25%.
///
/// A string without `%` counts as 0; validation rejects it.
fn share(value: Option<&IntOrString>, of: i32, add: i32) -> i32 {
    let percent = |text: &str| text.strip_suffix('%').and_then(|number| number.parse::<i32>().ok()).unwrap_or(0);
    let percent = match value {
        Some(IntOrString::Int(number)) => return *number,
        Some(IntOrString::String(text)) => percent(text),
        None => 25,
    };
    of.saturating_mul(percent).saturating_add(add) / 100
}
