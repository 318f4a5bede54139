//! Conditions of a status: what holds, since when, and for which generation.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use serde_json::Value;

/// The conditions of one object. A condition that is set again keeps its transition time unless its status changes.
///
/// ```
/// # use kctl_runtime::reconcile::Conditions;
/// let conditions = Conditions::default().with("Ready", true, "AllReady", "3 of 3 pods are ready");
/// assert_eq!(conditions.into_vec()[0].status, "True");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    list: Vec<Condition>,
    generation: Option<i64>,
    /// In whole seconds, as the API server keeps it.
    now: Timestamp,
}

impl Conditions {
    pub(crate) fn new(known: Value, generation: Option<i64>, now: Timestamp) -> Self {
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Self { list: serde_json::from_value(known).unwrap_or_default(), generation, now }
    }

    /// Sets a condition: `reason` is one word in `CamelCase`, `message` is for people. The generation of the object that
    /// was reconciled becomes its `observedGeneration`.
    #[must_use]
    pub fn with(mut self, kind: &str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        let status = if holds { "True" } else { "False" };
        let known = self.list.iter().position(|condition| condition.type_ == kind);
        let before = known.map(|at| self.list.remove(at));
        let unchanged = before.filter(|before| before.status == status);
        let since = unchanged.map_or(Time(self.now), |before| before.last_transition_time);
        let condition = Condition {
            type_: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time: since,
            observed_generation: self.generation,
        };
        self.list.insert(known.unwrap_or(self.list.len()), condition);
        self
    }

    /// Removes a condition.
    #[must_use]
    pub fn without(mut self, kind: &str) -> Self {
        self.list.retain(|condition| condition.type_ != kind);
        self
    }

    /// Whether a condition holds.
    pub fn is_true(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition.status == "True")
    }

    /// A condition as it stands, to tell one that does not hold from one that was never set.
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.list.iter().find(|condition| condition.type_ == kind)
    }

    /// As a status has them.
    pub fn into_vec(self) -> Vec<Condition> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn transition_time_changes_with_the_status_only() {
        let known = json!([{
            "type": "Ready", "status": "False", "reason": "A", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z",
        }]);
        let now = Timestamp::from_second(1_767_225_600).unwrap();
        let same = Conditions::new(known.clone(), Some(4), now).with("Ready", false, "B", "b").into_vec();
        assert_eq!(same[0].last_transition_time.0, "2020-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
        assert_eq!((same[0].reason.as_str(), same[0].observed_generation), ("B", Some(4)));
        let never_set = Conditions::default();
        assert_eq!((never_set.get("Ready"), never_set.is_true("Ready")), (None, false));
        let changed = Conditions::new(known, None, now).with("Ready", true, "C", "").into_vec();
        assert_eq!(changed[0].last_transition_time.0, now);
    }
}
