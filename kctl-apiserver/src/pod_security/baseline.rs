//! The checks of the level `baseline`, which prevents known privilege escalations.
//!
//! Each function returns `true` for a part of a Pod that breaks its rule. The spec of the Pod is a part, too: it has
//! the fields of the Pod, and a security context like each container.

use serde_json::Value;

use super::{
    Check, check,
    pod::{Part, items},
};
use crate::{
    field_errors::text,
    validation::warnings::{APP_ARMOR, SECCOMP, SECCOMP_OF_POD},
};

/// The checks, in the order of upstream's check ids. `until_restricted` is the version from which `restricted` replaces
/// the check by a stricter one.
pub(super) const CHECKS: &[Check] = &[
    check(0, None, "the AppArmor profile must be allowed", app_armor),
    check(0, Some(22), "capabilities.add must have only default capabilities", capabilities),
    check(0, None, "host namespaces must not be shared", host_namespaces),
    check(0, Some(0), "hostPath volumes must not be used", host_paths),
    check(0, None, "hostPort must not be used", host_ports),
    check(34, None, "probes and lifecycle hooks must not set host", probed_hosts),
    check(0, None, "privileged must not be true", is_privileged),
    check(0, Some(35), "procMount must be Default", proc_mount),
    check(0, None, "seLinuxOptions must have an allowed type, no user and no role", se_linux),
    check(0, Some(19), SECCOMP_RULE, seccomp),
    check(0, None, "sysctls must be safe", sysctls),
    check(0, None, "windowsOptions.hostProcess must not be true", host_process),
];

/// The rule about seccomp profiles.
const SECCOMP_RULE: &str = "seccompProfile.type must be RuntimeDefault or Localhost";
/// Capabilities that may be added. The default set of container runtimes, without `NET_RAW`.
const CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Kernel parameters (sysctls) that a Pod may set, and the version since which it may. They are namespaced and do not
/// affect other Pods.
const SYSCTLS: &[(&str, u32)] = &[
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];
/// Allowed `SELinux` types, with the minor version since which they are allowed.
const SE_LINUX: &[(&str, u32)] =
    &[("", 0), ("container_t", 0), ("container_init_t", 0), ("container_kvm_t", 0), ("container_engine_t", 31)];

/// Returns `true` if a context sets a profile that is not allowed.
fn has_other_profile(part: &Part<'_>, field: &str) -> bool {
    let profile = &part.context()[field];
    profile.is_object() && !["RuntimeDefault", "Localhost"].contains(&text(&profile["type"]))
}

/// Checks `AppArmor` profiles (`check_appArmorProfile.go`). Fields and annotations are both checked, in all versions.
fn app_armor(part: &Part<'_>) -> bool {
    let is_allowed = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let mut annotations =
        part.pod.metadata["annotations"].as_object().filter(|_| part.is_pod_spec()).into_iter().flatten();
    has_other_profile(part, "appArmorProfile")
        || annotations.any(|(key, value)| key.starts_with(APP_ARMOR) && !is_allowed(text(value)))
}

/// Checks added capabilities (`check_capabilities_baseline.go`).
fn capabilities(part: &Part<'_>) -> bool {
    items(&part.context()["capabilities"]["add"]).any(|name| !CAPABILITIES.contains(&text(name)))
}

/// Checks `hostNetwork`, `hostPID` and `hostIPC` (`check_hostNamespaces.go`).
fn host_namespaces(part: &Part<'_>) -> bool {
    ["hostNetwork", "hostPID", "hostIPC"].iter().any(|field| part[*field] == true)
}

/// Checks `hostPath` volumes (`check_hostPathVolumes.go`).
fn host_paths(part: &Part<'_>) -> bool {
    items(&part["volumes"]).any(|volume| volume["hostPath"].is_object())
}

/// Checks host ports (`check_hostPorts.go`).
fn host_ports(part: &Part<'_>) -> bool {
    items(&part["ports"]).any(|port| port["hostPort"].as_i64().is_some_and(|port| port != 0))
}

/// Checks hosts of probes and hooks (`check_hostProbesAndhostLifecycle.go`).
fn probed_hosts(part: &Part<'_>) -> bool {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|name| &part[name]);
    let hooks = ["postStart", "preStop"].map(|name| &part["lifecycle"][name]);
    let has_host = |handler: &Value| ["httpGet", "tcpSocket"].iter().any(|how| !text(&handler[how]["host"]).is_empty());
    probes.into_iter().chain(hooks).any(has_host)
}

/// Checks privileged containers (`check_privileged.go`).
fn is_privileged(part: &Part<'_>) -> bool {
    part.context()["privileged"] == true
}

/// Checks `procMount` (`check_procMount.go`). The exception for user namespaces exists since 1.35.
fn proc_mount(part: &Part<'_>) -> bool {
    !part.pod.is_in_user_namespace() && any_proc_mount(part)
}

/// Checks `procMount` of all Pods, even those in a user namespace.
pub(super) fn any_proc_mount(part: &Part<'_>) -> bool {
    let kind = &part.context()["procMount"];
    kind.is_string() && kind != "Default"
}

/// Checks `SELinux` options (`check_seLinuxOptions.go`). User and role may not be set at all.
fn se_linux(part: &Part<'_>) -> bool {
    let option = |field: &str| text(&part.context()["seLinuxOptions"][field]);
    let (kind, minor) = (option("type"), part.pod.minor);
    let is_known = SE_LINUX.iter().any(|(allowed, since)| *allowed == kind && *since <= minor);
    !is_known || !option("user").is_empty() || !option("role").is_empty()
}

/// Checks that a profile that is set is allowed. Before 1.19, annotations set the profile.
pub(super) fn seccomp(part: &Part<'_>) -> bool {
    if part.pod.minor >= 19 {
        return has_other_profile(part, "seccompProfile");
    }
    let container_key = format!("{SECCOMP}{}", text(&part["name"]));
    let key = if part.is_pod_spec() { SECCOMP_OF_POD } else { &container_key };
    let is_allowed =
        |value: &str| ["runtime/default", "docker/default"].contains(&value) || value.starts_with("localhost/");
    part.pod.metadata["annotations"][key].as_str().is_some_and(|value| !is_allowed(value))
}

/// Checks sysctls (`check_sysctls.go`).
fn sysctls(part: &Part<'_>) -> bool {
    let is_safe = |name: &str| SYSCTLS.iter().any(|(allowed, since)| *allowed == name && *since <= part.pod.minor);
    items(&part.context()["sysctls"]).any(|sysctl| !is_safe(text(&sysctl["name"])))
}

/// Checks Windows host processes (`check_windowsHostProcess.go`).
fn host_process(part: &Part<'_>) -> bool {
    part.context()["windowsOptions"]["hostProcess"] == true
}
