//! How many pods a Deployment may have while one template takes the place of another.

use std::collections::BTreeMap;

use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::util::intstr::IntOrString};

use super::optional;

/// For how many pods of the Deployment a set was scaled, and how many there might be at once.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MOST: &str = "deployment.kubernetes.io/max-replicas";

/// Numbers of pods.
pub(super) struct Bounds {
    /// As many as are asked for.
    pub(super) replicas: i32,
    /// So many more may be there.
    surge: i32,
    /// So many of them may be missing.
    pub(super) unavailable: i32,
    /// Whether all old pods end before there is a new one.
    pub(super) recreates: bool,
}

impl Bounds {
    pub(super) fn of(deployment: &Deployment) -> Self {
        let replicas = optional::deployment(deployment).replicas.unwrap_or(1);
        let strategy = optional::deployment(deployment).strategy.clone().unwrap_or_default();
        if strategy.type_.as_deref() == Some("Recreate") {
            return Self { replicas, surge: 0, unavailable: 0, recreates: true };
        }
        let rolling = strategy.rolling_update.unwrap_or_default();
        let surge = share(rolling.max_surge.as_ref(), replicas, 99);
        let unavailable = share(rolling.max_unavailable.as_ref(), replicas, 0);
        // One of the two has to give way.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { replicas, surge, unavailable: unavailable.min(replicas), recreates: false }
    }

    /// Replicas of the set of the template, which has so many, where all sets together ask for that many.
    pub(super) fn of_current(&self, has: i32, n_asked: i32) -> i32 {
        if has > self.replicas || self.recreates {
            return self.replicas;
        }
        let room = (self.replicas + self.surge - n_asked).max(0);
        has + room.min(self.replicas - has)
    }

    /// The most pods at once; none where none are asked for.
    pub(super) fn most(&self) -> i32 {
        if self.replicas == 0 { 0 } else { self.replicas + self.surge }
    }

    /// What a set says of the Deployment for which it was scaled.
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (DESIRED.into(), self.replicas.to_string()),
            (MOST.into(), (self.replicas + self.surge).to_string()),
        ])
    }
}

/// A number, or so many of a hundred; `add` hundredths decide how it is rounded. A quarter where nothing is said.
fn share(said: Option<&IntOrString>, of: i32, add: i32) -> i32 {
    let percent = |text: &str| text.strip_suffix('%').and_then(|number| number.parse::<i32>().ok()).unwrap_or(0);
    let percent = match said {
        Some(IntOrString::Int(number)) => return *number,
        Some(IntOrString::String(text)) => percent(text),
        None => 25,
    };
    of.saturating_mul(percent).saturating_add(add) / 100
}
