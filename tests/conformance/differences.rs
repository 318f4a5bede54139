//! Where the embedded server answers otherwise on purpose: each place with its answer and the reason.

use serde_json::Value;

/// A part of an answer that differs.
pub(crate) struct Difference {
    /// The name of the case.
    pub(crate) case: &'static str,
    /// A pointer into the answers of the case: the index of the step, then `body` and so on.
    pub(crate) at: &'static str,
    /// What the embedded server says there, as JSON; empty for nothing.
    pub(crate) ours: &'static str,
    /// Why this is better, or no worse.
    pub(crate) why: &'static str,
}

pub(crate) const DIFFERENCES: &[Difference] = &[];

/// The answers that the embedded server is expected to give.
pub(crate) fn apply(case: &str, recorded: &[Value]) -> Vec<Value> {
    let mut answers = Value::Array(recorded.to_vec());
    for difference in DIFFERENCES.iter().filter(|difference| difference.case == case) {
        let Difference { at, ours, why, .. } = difference;
        assert!(!why.is_empty(), "{case} {at}: a difference has a reason");
        let (parent, key) = at.rsplit_once('/').expect("a pointer begins with a slash");
        let parent = answers.pointer_mut(parent).unwrap_or_else(|| panic!("{case}: nothing is at {at}"));
        let recorded = parent.get(key).or_else(|| parent.get(key.parse::<usize>().ok()?)).cloned().unwrap_or_default();
        let ours = if ours.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(ours).unwrap_or_else(|error| panic!("{case} {at}: {error}"))
        };
        assert_ne!(recorded, ours, "{case} {at}: this is no longer a difference");
        match parent {
            Value::Array(items) => items[key.parse::<usize>().expect("an index")] = ours,
            Value::Object(map) if ours.is_null() => drop(map.remove(key)),
            parent => parent[key] = ours,
        }
    }
    match answers {
        Value::Array(answers) => answers,
        _ => Vec::new(),
    }
}
