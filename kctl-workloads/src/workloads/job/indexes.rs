//! Completion indexes of an Indexed Job, and the format of sets of them: `1,3-5,7`.
//!
//! Each index from 0 to `completions - 1` needs one successful Pod. Programs read theirs from the
//! environment variable `JOB_COMPLETION_INDEX`.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use kube::ResourceExt;

/// The annotation and the label of a Pod with its index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// Returns the index of a Pod.
///
/// `None` for a Pod of a Job that is not indexed.
pub(super) fn index(pod: &Pod) -> Option<i32> {
    pod.annotations().get(INDEX)?.parse().ok()
}

/// The number of failed Pods of the same index before this one.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// The number of failed Pods of the same index that a policy ignored.
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// The failures of one index.
///
/// They decide if the index has failed (`backoffLimitPerIndex`). They are ordered, so that the newest Pod has the
/// maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Failures {
    /// Failures that count towards the limit of the index.
    pub(super) counted: i32,
    /// Failures that a rule `Ignore` has matched.
    pub(super) ignored: i32,
}

impl Failures {
    /// Reads the failures before a Pod.
    ///
    /// A Pod without the annotations is the first of its index.
    pub(super) fn before(pod: &Pod) -> Self {
        let of = |name: &str| pod.annotations().get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Self { counted: of(FAILURES), ignored: of(IGNORED) }
    }

    /// Writes the failures into the next Pod of the index.
    ///
    /// The annotation of ignored failures is left out if its number is 0.
    pub(super) fn write_annotations(self, pod: &mut Pod) {
        pod.annotations_mut().insert(FAILURES.into(), self.counted.to_string());
        if self.ignored > 0 {
            pod.annotations_mut().insert(IGNORED.into(), self.ignored.to_string());
        }
    }
}

/// Sets the index of a new Pod, in all places where the job controller sets it.
///
/// These are the generated name, host name, annotation, label, and the environment of all containers. A variable of the
/// same name in the template is kept.
pub(super) fn set_index(pod: &mut Pod, job: &str, index: i32) {
    pod.metadata.generate_name = Some(format!("{job}-{index}-"));
    pod.annotations_mut().insert(INDEX.into(), index.to_string());
    pod.labels_mut().insert(INDEX.into(), index.to_string());
    let Some(spec) = &mut pod.spec else { return };
    spec.hostname = Some(format!("{job}-{index}"));
    let field =
        ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), ..ObjectFieldSelector::default() };
    let from = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    let variable = EnvVar { name: VARIABLE.into(), value_from: Some(from), ..EnvVar::default() };
    for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        let env = container.env.get_or_insert_default();
        if env.iter().all(|known| known.name != VARIABLE) {
            env.push(variable.clone());
        }
    }
}

/// Parses a set of indexes. Invalid parts are skipped.
pub(super) fn read(text: Option<&str>) -> BTreeSet<i32> {
    let parts = text.unwrap_or_default().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    });
    parts.flatten().collect()
}

/// Returns a set with one more index.
pub(super) fn add_index(text: Option<&str>, index: i32) -> String {
    let mut all = read(text);
    all.insert(index);
    write(all)
}

/// Formats a set of indexes. A run of three or more is a range.
pub(super) fn write(all: BTreeSet<i32>) -> String {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for index in all {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let run = |(first, last): (i32, i32)| match last - first {
        0 => first.to_string(),
        // Two consecutive indexes are written with a comma (`orderedIntervals.String`).
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    runs.into_iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_ranges_and_read_again() {
        let mut text = String::new();
        for (index, expected) in [(3, "3"), (1, "1,3"), (4, "1,3,4"), (5, "1,3-5"), (0, "0,1,3-5"), (2, "0-5")] {
            text = add_index(Some(&text), index);
            assert_eq!(text, expected);
        }
        assert_eq!(read(Some("0,2-4,9")), BTreeSet::from([0, 2, 3, 4, 9]));
        assert_eq!(read(None), BTreeSet::new());
    }
}
