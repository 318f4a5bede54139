//! Records the requests and watch events that the faults of a plan hit.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

/// The targets of the faults of one run, by the index of the fault in the plan. Clones share them.
#[derive(Clone, Default)]
pub(super) struct FaultTargets(Arc<Mutex<Targets>>);

#[derive(Default)]
struct Targets {
    /// The fault that is being injected. Its rule acts before the observer sees the target, both under one lock of the
    /// plan.
    current: Option<usize>,
    hit: BTreeMap<usize, String>,
}

impl FaultTargets {
    /// Returns the function that a rule calls when it injects the fault with this index.
    pub(super) fn begins(&self, index: usize) -> impl FnMut() + Send + use<> {
        let targets = self.0.clone();
        move || targets.lock().current = Some(index)
    }

    /// Records the request or event that gets a fault now. It belongs to no fault of the plan if the rule is of a fault at a
    /// time.
    pub(super) fn record(&self, target: &str) {
        let mut targets = self.0.lock();
        if let Some(index) = targets.current.take() {
            targets.hit.entry(index).or_insert_with(|| target.to_owned());
        }
    }

    /// Returns the targets by the index of the fault.
    pub(super) fn targets(&self) -> BTreeMap<usize, String> {
        self.0.lock().hit.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_belongs_to_the_fault_that_began() {
        let targets = FaultTargets::default();
        let mut begins = targets.begins(3);
        targets.record("get pods default/a");
        begins();
        targets.record("patch pods default/a");
        targets.record("patch pods default/b");
        assert_eq!(targets.targets(), [(3, "patch pods default/a".to_owned())].into());
    }
}
