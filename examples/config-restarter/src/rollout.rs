//! Decides the next steps of a rolling replacement, as a pure function of the pods' states.
//!
//! The controller calls it in each reconcile with the states in the cache. So a crash between two steps needs no
//! recovery: the next call decides from the current pods. Its tests run whole rollouts without an API server.

/// The state of a pod, as far as the rollout depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PodState {
    /// Created with the newest data.
    pub updated: bool,
    /// Its condition `Ready` is true.
    pub ready: bool,
    /// Ended, and will not run again.
    pub finished: bool,
}

/// One step. Pods are identified by their index in the list of states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Create a pod.
    Create,
    /// Delete this pod, because it has ended or is surplus.
    Delete(usize),
    /// Delete this pod, because its data is old, and create a new one.
    Replace(usize),
}

/// Returns the steps that are possible now.
///
/// At most one pod is replaced at a time, and only while all pods with the newest data are ready. Pods that are not
/// ready are replaced first. So a rollout never reduces the number of ready pods below `wanted - 1`.
pub(crate) fn steps(wanted: usize, pods: &[PodState]) -> Vec<Step> {
    let ended = (0..pods.len()).filter(|index| pods[*index].finished);
    let mut steps: Vec<Step> = ended.map(Step::Delete).collect();
    let mut running: Vec<usize> = (0..pods.len()).filter(|index| !pods[*index].finished).collect();
    // The least useful pod comes first. Among equally useful pods it is the youngest, which is the last one in the
    // list.
    running.sort_by_key(|index| (pods[*index].ready, pods[*index].updated, std::cmp::Reverse(*index)));
    let surplus = running.len().saturating_sub(wanted);
    steps.extend(running.drain(..surplus).map(Step::Delete));
    steps.extend((running.len()..wanted).map(|_missing| Step::Create));
    let replaced = steps.is_empty().then(|| pod_to_replace(pods, &running)).flatten();
    steps.extend(replaced.map(Step::Replace));
    steps
}

/// Returns the pod to replace, or `None` while an earlier replacement is still starting.
fn pod_to_replace(pods: &[PodState], running: &[usize]) -> Option<usize> {
    let coming = running.iter().any(|index| pods[*index].updated && !pods[*index].ready);
    running.iter().copied().find(|index| !coming && !pods[*index].updated)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the steps for pods that are given as letters: `n` is new and ready, `c` is new and starting, `o` is old
    /// and ready, `b` is old and not ready, and `f` is finished.
    fn check(wanted: usize, pods: &str, expected: &[Step]) {
        let state = |letter| PodState {
            updated: ['n', 'c'].contains(&letter),
            ready: ['n', 'o'].contains(&letter),
            finished: letter == 'f',
        };
        let states: Vec<PodState> = pods.chars().map(state).collect();
        assert_eq!(steps(wanted, &states), expected, "{wanted} wanted of {pods:?}");
    }

    #[test]
    fn missing_pods_are_created_at_once() {
        check(3, "", &[Step::Create; 3]);
        check(3, "nc", &[Step::Create]);
        check(0, "", &[]);
    }

    #[test]
    fn surplus_pods_that_are_missed_least_go() {
        check(1, "nnn", &[Step::Delete(2), Step::Delete(1)]);
        check(2, "nco", &[Step::Delete(1)]);
        check(1, "no", &[Step::Delete(1)]);
    }

    #[test]
    fn old_pod_is_replaced_when_all_are_ready() {
        check(3, "ooo", &[Step::Replace(2)]);
        check(3, "onn", &[Step::Replace(0)]);
        check(3, "nnn", &[]);
    }

    #[test]
    fn unready_new_pod_blocks_replacement_of_old_pods() {
        check(3, "ooc", &[]);
        check(3, "obc", &[]);
    }

    #[test]
    fn broken_old_pod_goes_first() {
        check(3, "obo", &[Step::Replace(1)]);
    }

    #[test]
    fn finished_pod_makes_room_for_a_new_one() {
        check(2, "of", &[Step::Delete(1), Step::Create]);
    }

    #[test]
    fn replacing_leaves_all_but_one_ready() {
        for pods in ["ooo", "oon", "onn", "obo", "bbo", "con", "coo"] {
            let ready = pods.chars().filter(|letter| ['n', 'o'].contains(letter)).count();
            let states: Vec<PodState> = pods
                .chars()
                .map(|letter| PodState {
                    updated: ['n', 'c'].contains(&letter),
                    ready: ['n', 'o'].contains(&letter),
                    finished: false,
                })
                .collect();
            for step in steps(3, &states) {
                let Step::Replace(index) = step else { panic!("{pods}: {step:?}") };
                let left = ready - usize::from(states[index].ready);
                assert!(left >= 2 || !states[index].ready, "{pods}: {left} are left");
            }
        }
    }
}
