//! Stages: reads the requested behaviour of a Pod or a Node from its labels and annotations.
//!
//! ```text
//! metadata:
//!   annotations:
//!     kubelet.kctl.dev/stage: crash-looping
//!     kubelet.kctl.dev/delay: 5s
//!     kubelet.kctl.dev/exit-code: "137"
//!     kubelet.kctl.dev/reason: OOMKilled
//! ```
//!
//! An unknown stage and an invalid delay are logged as warnings and otherwise ignored.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::api::ObjectMeta;

/// The prefix of all keys.
const DOMAIN: &str = "kubelet.kctl.dev";
/// The longest delay. Longer ones are reduced to it.
const DELAY_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The time that a `slow` Pod takes to start, without a delay.
const SLOW_START_DELAY: Duration = Duration::from_secs(30);
/// The time that containers run before they end, without a delay.
const RUN_DURATION: Duration = Duration::from_secs(1);
/// The first pause before a restart, as in a real kubelet. It doubles with each restart.
const BACK_OFF_MIN: Duration = Duration::from_secs(10);
/// The longest pause before a restart.
const BACK_OFF_MAX: Duration = Duration::from_secs(300);

/// A behaviour of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It runs until it is deleted.
    Running,
    /// It runs when its delay is over.
    Slow,
    /// Its images cannot be pulled: it never runs.
    Unpullable,
    /// It runs, but becomes ready only when its delay is over, if it has one.
    Unready,
    /// Its containers succeed, and so does the Pod.
    Succeeding,
    /// Its containers fail, and so does the Pod.
    Failing,
    /// Its containers fail repeatedly.
    CrashLooping,
}

/// The values of the key `stage`.
const STAGES: &[(&str, Stage)] = &[
    ("running", Stage::Running),
    ("slow", Stage::Slow),
    ("unpullable", Stage::Unpullable),
    ("unready", Stage::Unready),
    ("succeeding", Stage::Succeeding),
    ("failing", Stage::Failing),
    ("crash-looping", Stage::CrashLooping),
];
/// Exit code of a container that SIGTERM has ended.
pub(super) const SIGTERM_CODE: i32 = 143;
/// Exit code of a container that SIGKILL has ended, after its grace period.
pub(super) const SIGKILL_CODE: i32 = 137;
/// The stage of an unreachable node.
const LOST: &str = "lost";

/// The behaviour that the metadata of a Pod requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StageRequest {
    /// The behaviour. `None` for a Pod without the key whose containers are restarted after success: it runs until it
    /// is deleted.
    pub(super) stage: Option<Stage>,
    /// Exit code of containers that end: by default 0 for `succeeding`, and 1 for all others.
    pub(super) exit_code: i32,
    /// Reason of containers that end: by default `Completed` for exit code 0, otherwise `Error`.
    pub(super) reason: String,
    /// Message of containers that end; left out of the status if it is empty.
    pub(super) message: String,
    /// The only container that is affected; `None` for all.
    pub(super) container: Option<String>,
    delay: Option<Duration>,
}

impl StageRequest {
    /// Reads the behaviour of a Pod. A Pod that is not restarted after success is `succeeding` by default.
    pub(super) fn from_pod(pod: &Pod) -> Self {
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        let ends =
            belongs_to_job(&pod.metadata) || policy.is_some_and(|policy| ["Never", "OnFailure"].contains(&policy));
        Self::from_metadata(&pod.metadata, ends.then_some(Stage::Succeeding))
    }

    /// Reads the behaviour from metadata, with a default stage.
    fn from_metadata(metadata: &ObjectMeta, usual: Option<Stage>) -> Self {
        let value = |name: &str| value(metadata, name);
        let named = value("stage").unwrap_or_default();
        let stage = STAGES.iter().find(|(name, _)| *name == named).map(|(_, stage)| *stage);
        if stage.is_none() && !named.is_empty() {
            tracing::warn!(stage = named, name = metadata.name, "unknown stage in the labels or annotations");
        }
        let stage = stage.or(usual);
        let exit_code = value("exit-code").and_then(|code| code.parse().ok());
        let exit_code = exit_code.unwrap_or_else(|| i32::from(stage != Some(Stage::Succeeding)));
        let reason = if exit_code == 0 { "Completed" } else { "Error" };
        Self {
            stage,
            exit_code,
            reason: value("reason").unwrap_or(reason).to_owned(),
            message: value("message").unwrap_or_default().to_owned(),
            container: value("container-name").map(str::to_owned),
            delay: value("delay").and_then(delay),
        }
    }

    /// Returns the request for a deleted Pod: all its containers end by a signal, whatever their stage is.
    pub(super) fn into_killed(self, exit_code: i32) -> Self {
        Self { exit_code, reason: "Error".into(), message: String::new(), container: None, ..self }
    }

    /// Returns the time from scheduling to running.
    pub(super) fn starts_after(&self, usually: Duration) -> Duration {
        if self.stage == Some(Stage::Slow) { self.delay.unwrap_or(SLOW_START_DELAY) } else { usually }
    }

    /// Returns the time that containers run before they end.
    pub(super) fn runs_for(&self) -> Duration {
        self.delay.unwrap_or(RUN_DURATION)
    }

    /// Returns the time after which an `unready` Pod becomes ready, or `None` if it never does.
    pub(super) fn ready_after(&self) -> Option<Duration> {
        self.delay
    }

    /// Returns `true` if the behaviour affects a container.
    pub(super) fn is_about(&self, container: &str) -> bool {
        self.container.as_ref().is_none_or(|name| name == container)
    }
}

/// Returns `true` if a Job controls the Pod.
fn belongs_to_job(metadata: &ObjectMeta) -> bool {
    let is_job = |owner: &OwnerReference| owner.controller == Some(true) && owner.kind == "Job";
    metadata.owner_references.iter().flatten().any(|owner| is_job(owner) && owner.api_version.starts_with("batch/"))
}

pub(super) fn ignores_sigterm(metadata: &ObjectMeta) -> bool {
    value(metadata, "ignore-sigterm") == Some("true")
}

/// Returns `true` if a node should be unreachable.
pub(super) fn is_lost(metadata: &ObjectMeta) -> bool {
    value(metadata, "stage") == Some(LOST)
}

/// Returns the pause before a restart, by the number of earlier restarts.
pub(super) fn back_off(n_restarts: i32) -> Duration {
    let doublings = u32::try_from(n_restarts.saturating_sub(1)).unwrap_or(0);
    BACK_OFF_MIN.saturating_mul(2_u32.saturating_pow(doublings)).min(BACK_OFF_MAX)
}

/// Returns the value of a key. An annotation takes precedence over a label.
fn value<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    let key = format!("{DOMAIN}/{name}");
    let of = |map: &'a Option<BTreeMap<String, String>>| map.as_ref()?.get(&key).map(String::as_str);
    of(&metadata.annotations).or_else(|| of(&metadata.labels))
}

/// Parses a duration such as `90s` or `1m30s`, up to [`DELAY_MAX`].
fn delay(text: &str) -> Option<Duration> {
    let parsed =
        text.parse::<k8s_openapi::jiff::SignedDuration>().ok().and_then(|delay| Duration::try_from(delay).ok());
    if parsed.is_none() {
        tracing::warn!(delay = text, "a delay is not a time such as 90s");
    }
    parsed.map(|delay| delay.min(DELAY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> ObjectMeta {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| (format!("{DOMAIN}/{name}"), (*value).to_owned()));
            Some(pairs.collect())
        };
        ObjectMeta { labels: map(labels), annotations: map(annotations), ..ObjectMeta::default() }
    }

    #[test]
    fn labels_and_annotations_ask_for_stages() {
        for (labels, annotations, stage, code) in [
            (&[][..], &[][..], None, 1),
            (&[("stage", "failing")], &[], Some(Stage::Failing), 1),
            (&[("stage", "failing")], &[("exit-code", "137")], Some(Stage::Failing), 137),
            (&[("stage", "failing")], &[("stage", "succeeding")], Some(Stage::Succeeding), 0),
            (&[("stage", "dancing")], &[], None, 1),
        ] {
            let request = StageRequest::from_metadata(&metadata(labels, annotations), None);
            assert_eq!((request.stage, request.exit_code), (stage, code), "{labels:?} {annotations:?}");
        }
        assert!(is_lost(&metadata(&[("stage", "lost")], &[])));
    }

    #[test]
    fn delays_are_times_and_bounded() {
        for (text, seconds) in
            [("90s", Some(90)), ("1m30s", Some(90)), ("9000h", Some(24 * 3_600)), ("soon", None), ("-5s", None)]
        {
            assert_eq!(delay(text), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn pauses_between_restarts_double_up_to_five_minutes() {
        let pauses: Vec<u64> = [0, 1, 2, 3, 6, 100].map(|times| back_off(times).as_secs()).to_vec();
        assert_eq!(pauses, [10, 10, 20, 40, 300, 300]);
    }
}
