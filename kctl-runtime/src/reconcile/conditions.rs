//! Conditions of a status: types that hold or not, since when, and for which generation.

mod rules;

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use serde_json::Value;

pub use rules::ConditionError;

/// The conditions of one object, from [`cx.conditions()`](super::Context::conditions), to be changed and written with
/// the status.
///
/// It follows the [API
/// conventions](https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties)
/// and `meta.SetStatusCondition` of apimachinery: a condition keeps its `lastTransitionTime` unless its status changes.
///
/// ```
/// # use kctl_runtime::reconcile::Conditions;
/// let conditions = Conditions::default().with("Ready", true, "AllReady", "3 of 3 pods are ready");
/// assert_eq!(conditions.into_vec()?[0].status, "True");
/// # Ok::<(), kctl_runtime::reconcile::ConditionError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    list: Vec<Condition>,
    /// The error of the first condition that was set wrongly.
    wrong: Option<ConditionError>,
    generation: Option<i64>,
    /// The present time in whole seconds, as the API server stores it.
    now: Timestamp,
}

impl Conditions {
    pub(crate) fn new(existing: Value, generation: Option<i64>, now: Timestamp) -> Self {
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let existing = if let Value::Array(existing) = existing { existing } else { Vec::new() };
        // A condition that cannot be parsed is dropped, so that the others keep their `lastTransitionTime`.
        let list = existing.into_iter().filter_map(|condition| serde_json::from_value(condition).ok()).collect();
        Self { list, wrong: None, generation, now }
    }

    /// Sets a condition to `True` or `False`.
    ///
    /// `reason` is one word in `CamelCase`. `message` is for people, and truncated to the maximum length of the API
    /// server. The generation of the reconciled object becomes the condition's `observedGeneration`, also if that was greater:
    /// an object restored from a backup starts again at generation 1. An existing
    /// condition keeps its place in the list; a new one comes last. [`into_vec`](Self::into_vec) reports an invalid
    /// type or reason.
    #[must_use]
    pub fn with(self, kind: &str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        self.with_condition(kind, if holds { "True" } else { "False" }, reason, message.into())
    }

    /// Sets a condition to `Unknown`, for example because an external system does not answer. Otherwise it works like
    /// [`with`](Self::with).
    ///
    /// ```
    /// # use kctl_runtime::reconcile::Conditions;
    /// let conditions = Conditions::default().unknown("Ready", "NoAnswer", "the registry does not answer");
    /// assert_eq!(conditions.get("Ready").map(|ready| ready.status.as_str()), Some("Unknown"));
    /// assert!(!conditions.is_true("Ready"));
    /// ```
    #[must_use]
    pub fn unknown(self, kind: &str, reason: &str, message: impl Into<String>) -> Self {
        self.with_condition(kind, "Unknown", reason, message.into())
    }

    fn with_condition(mut self, kind: &str, status: &str, reason: &str, message: String) -> Self {
        let position = self.list.iter().position(|condition| condition.type_ == kind);
        let before = position.map(|index| self.list.remove(index));
        let wrong = rules::check(kind, reason).err();
        self.wrong = self.wrong.or(wrong);
        let unchanged = before.filter(|before| before.status == status);
        let since = unchanged.map_or(Time(self.now), |before| before.last_transition_time);
        let condition = Condition {
            type_: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: rules::truncate(message),
            last_transition_time: since,
            observed_generation: self.generation,
        };
        self.list.insert(position.unwrap_or(self.list.len()), condition);
        self
    }

    /// Removes a condition. Does nothing if it is missing.
    ///
    /// ```
    /// # use kctl_runtime::reconcile::Conditions;
    /// let conditions = Conditions::default().with("Ready", true, "AllReady", "").without("Ready");
    /// assert!(conditions.get("Ready").is_none());
    /// ```
    #[must_use]
    pub fn without(mut self, kind: &str) -> Self {
        self.list.retain(|condition| condition.type_ != kind);
        self
    }

    /// Returns `true` if the condition exists and its status is `True`.
    pub fn is_true(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition.status == "True")
    }

    /// Returns a condition, for example to distinguish a `False` one from a missing one.
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.list.iter().find(|condition| condition.type_ == kind)
    }

    /// Returns the list for the field `status.conditions`.
    ///
    /// ```
    /// # use kctl_runtime::reconcile::{ConditionError, Conditions};
    /// let wrong = Conditions::default().with("Ready", false, "not a word", "");
    /// assert!(matches!(wrong.into_vec(), Err(ConditionError::Reason { .. })));
    /// ```
    ///
    /// # Errors
    /// A condition has a type or a reason that the API server would reject.
    pub fn into_vec(self) -> Result<Vec<Condition>, ConditionError> {
        self.wrong.map_or(Ok(self.list), Err)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_767_225_600;

    fn known(kinds: &[(&str, &str)]) -> Value {
        let condition = |(kind, status): &(&str, &str)| {
            json!({
                "type": kind, "status": status, "reason": "A", "message": "", "observedGeneration": 3,
                "lastTransitionTime": "2020-01-01T00:00:00Z",
            })
        };
        kinds.iter().map(condition).collect()
    }

    fn conditions(existing: Value) -> Conditions {
        Conditions::new(existing, Some(4), Timestamp::from_second(NOW).unwrap())
    }

    #[test]
    fn transition_time_changes_with_the_status_only() {
        let (then, now) = ("2020-01-01T00:00:00Z".parse().unwrap(), Timestamp::from_second(NOW).unwrap());
        for before in ["True", "False", "Unknown"] {
            for after in ["True", "False", "Unknown"] {
                let conditions = conditions(known(&[("Ready", before)]));
                let list = match after {
                    "Unknown" => conditions.unknown("Ready", "B", "b"),
                    _ => conditions.with("Ready", after == "True", "B", "b"),
                }
                .into_vec()
                .unwrap();
                let Condition { status, reason, message, observed_generation, last_transition_time, .. } = &list[0];
                assert_eq!((&**status, &**reason, &**message, *observed_generation), (after, "B", "b", Some(4)));
                let since = if before == after { then } else { now };
                assert_eq!(last_transition_time.0, since, "{before} became {after}");
            }
        }
        let never_set = Conditions::default();
        assert_eq!((never_set.get("Ready"), never_set.is_true("Ready")), (None, false));
    }

    #[test]
    fn generation_of_a_restored_object_is_lower() {
        // Created again from a backup with its status: the condition is of a generation that the object had before.
        let restored = Conditions::new(known(&[("Ready", "True")]), Some(1), Timestamp::from_second(NOW).unwrap());
        let list = restored.with("Ready", true, "B", "").into_vec().unwrap();
        assert_eq!(list[0].observed_generation, Some(1));
        assert_eq!(list[0].last_transition_time.0, "2020-01-01T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn conditions_keep_their_first_order() {
        let list = conditions(known(&[("B", "True"), ("Theirs", "True"), ("A", "False")]));
        let list =
            list.with("A", true, "R", "").with("New", true, "R", "").with("B", false, "R", "").with("A", true, "R", "");
        let kinds: Vec<_> = list.into_vec().unwrap().into_iter().map(|condition| condition.type_).collect();
        assert_eq!(kinds, ["B", "Theirs", "A", "New"]);
    }

    #[test]
    fn unreadable_condition_keeps_other_transition_times() {
        let mut existing = known(&[("Ready", "True"), ("Broken", "True")]);
        existing[1]["lastTransitionTime"] = "yesterday".into();
        for existing in [existing.clone(), json!([existing[1], existing[0]])] {
            let list = conditions(existing).with("Ready", true, "A", "").into_vec().unwrap();
            assert_eq!(list.len(), 1);
            assert_eq!(list[0].last_transition_time.0, "2020-01-01T00:00:00Z".parse().unwrap());
        }
        for other in [Value::Null, json!({}), json!("none")] {
            assert!(conditions(other).into_vec().unwrap().is_empty());
        }
    }

    #[test]
    fn unchanged_conditions_are_the_same_json() {
        let mut before = known(&[("Ready", "True"), ("Theirs", "Unknown")]);
        before[0]["observedGeneration"] = 4.into();
        let after = conditions(before.clone()).with("Ready", true, "A", "").into_vec().unwrap();
        assert_eq!(serde_json::to_value(after).unwrap(), before);
    }
}
