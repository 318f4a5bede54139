//! The checks of the level `restricted`, beyond those of `baseline`.
//!
//! Unlike `baseline`, these checks demand settings: an absent field breaks the rule.

use serde_json::Value;

use super::{
    Check, baseline, check,
    pod::{Pod, items},
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

/// Checks `allowPrivilegeEscalation` (`check_allowPrivilegeEscalation.go`).
///
/// The default of the field is `true`.
fn escalation(pod: &Pod<'_>) -> Vec<String> {
    if pod.is_exempt_windows() {
        return Vec::new();
    }
    pod.containers(|container| container["securityContext"]["allowPrivilegeEscalation"] != false)
}

/// Checks dropped and added capabilities (`check_capabilities_restricted.go`).
///
/// Each container must drop `ALL`.
fn capabilities(pod: &Pod<'_>) -> Vec<String> {
    if pod.is_exempt_windows() {
        return Vec::new();
    }
    pod.containers(|container| {
        let capabilities = &container["securityContext"]["capabilities"];
        !items(&capabilities["drop"]).any(|name| name == "ALL")
            || items(&capabilities["add"]).any(|name| name != "NET_BIND_SERVICE")
    })
}

/// Checks the types of volumes (`check_restrictedVolumes.go`).
///
/// A volume without a source breaks the rule, too.
fn volumes(pod: &Pod<'_>) -> Vec<String> {
    pod.volumes(|volume| !VOLUMES.iter().any(|kind| volume[kind].is_object()))
}

/// Checks `runAsNonRoot` (`check_runAsNonRoot.go`).
///
/// A container without a setting takes that of the Pod.
fn non_root(pod: &Pod<'_>) -> Vec<String> {
    if pod.is_in_user_namespace() {
        return Vec::new();
    }
    let setting = |context: &Value| context["runAsNonRoot"].as_bool();
    let of_pod = setting(pod.context());
    let mut places = pod.contexts(|context| setting(context) == Some(false));
    places.extend(pod.containers(|container| of_pod.is_none() && setting(&container["securityContext"]).is_none()));
    places
}

/// Checks `runAsUser` (`check_runAsUser.go`).
fn user(pod: &Pod<'_>) -> Vec<String> {
    if pod.is_in_user_namespace() { Vec::new() } else { pod.contexts(|context| context["runAsUser"] == 0) }
}

/// Checks that a seccomp profile is set (`check_seccompProfile_restricted.go`).
///
/// A profile of the Pod counts for all its containers.
fn seccomp(pod: &Pod<'_>) -> Vec<String> {
    if pod.is_exempt_windows() {
        return Vec::new();
    }
    let is_set = |context: &Value| context["seccompProfile"].is_object();
    let mut places = baseline::seccomp(pod);
    if !is_set(pod.context()) {
        places.extend(pod.containers(|container| !is_set(&container["securityContext"])));
    }
    places
}
