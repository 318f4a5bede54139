//! The checks of the level `restricted`, beyond the checks of `baseline`.
//!
//! Unlike `baseline`, these checks demand settings: an absent field breaks the rule.

use super::{
    Check, baseline, check,
    pod::{Part, items},
};

/// The checks, in the order of upstream's check ids.
pub(super) const CHECKS: &[Check] = &[
    check(8, None, "allowPrivilegeEscalation must be false", escalation),
    check(22, None, "capabilities must drop ALL and add only NET_BIND_SERVICE", capabilities),
    check(35, None, "procMount must be Default", baseline::any_proc_mount),
    check(0, None, "volumes must be of an allowed type", volumes),
    check(0, None, "runAsNonRoot must be true", non_root),
    check(23, None, "runAsUser must not be 0", user),
    check(19, None, "seccompProfile.type must be set to RuntimeDefault or Localhost", seccomp),
];

/// Allowed types of volumes: ephemeral and projected data, and storage that an administrator provides.
const VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Checks `allowPrivilegeEscalation` (`check_allowPrivilegeEscalation.go`). The default of the field is `true`.
fn escalation(part: &Part<'_>) -> bool {
    let is_exempt = part.is_pod_spec() || part.pod.is_exempt_windows();
    !is_exempt && part.context()["allowPrivilegeEscalation"] != false
}

/// Checks dropped and added capabilities (`check_capabilities_restricted.go`). Each container must drop `ALL`.
fn capabilities(part: &Part<'_>) -> bool {
    let is_exempt = part.is_pod_spec() || part.pod.is_exempt_windows();
    let capabilities = &part.context()["capabilities"];
    let drops_all = items(&capabilities["drop"]).any(|name| name == "ALL");
    !is_exempt && (!drops_all || items(&capabilities["add"]).any(|name| name != "NET_BIND_SERVICE"))
}

/// Checks the types of volumes (`check_restrictedVolumes.go`). A volume without a source breaks the rule, too.
fn volumes(part: &Part<'_>) -> bool {
    items(&part["volumes"]).any(|volume| !VOLUMES.iter().any(|kind| volume[kind].is_object()))
}

/// Checks `runAsNonRoot` (`check_runAsNonRoot.go`). A container without a setting takes the Pod's.
fn non_root(part: &Part<'_>) -> bool {
    let (own_value, pod_value) = (&part.context()["runAsNonRoot"], &part.pod.context()["runAsNonRoot"]);
    let is_unset = !part.is_pod_spec() && !own_value.is_boolean() && !pod_value.is_boolean();
    !part.pod.is_in_user_namespace() && (own_value == false || is_unset)
}

/// Checks `runAsUser` (`check_runAsUser.go`).
fn user(part: &Part<'_>) -> bool {
    !part.pod.is_in_user_namespace() && part.context()["runAsUser"] == 0
}

/// Checks that a seccomp profile is set (`check_seccompProfile_restricted.go`). A profile of the Pod counts for all its
/// containers.
fn seccomp(part: &Part<'_>) -> bool {
    let is_set = [part.context(), part.pod.context()].iter().any(|context| context["seccompProfile"].is_object());
    !part.pod.is_exempt_windows() && (baseline::seccomp(part) || !part.is_pod_spec() && !is_set)
}
