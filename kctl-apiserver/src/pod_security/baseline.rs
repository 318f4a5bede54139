//! The checks of the level `baseline`, which prevents known privilege escalations.

use serde_json::Value;

use super::{
    Check, Violation,
    pod::{Pod, containers, counted, items, quoted, setters, sorted, text},
};

/// The checks, in the order of upstream's check ids.
pub(super) const CHECKS: &[Check] = &[
    Check { since: 0, until_restricted: None, find: app_armor },
    Check { since: 0, until_restricted: Some(22), find: capabilities },
    Check { since: 0, until_restricted: None, find: host_namespaces },
    Check { since: 0, until_restricted: Some(0), find: host_paths },
    Check { since: 0, until_restricted: None, find: host_ports },
    Check { since: 34, until_restricted: None, find: probed_hosts },
    Check { since: 0, until_restricted: None, find: privileged },
    Check { since: 0, until_restricted: Some(35), find: proc_mount },
    Check { since: 0, until_restricted: None, find: se_linux },
    Check { since: 0, until_restricted: Some(19), find: seccomp },
    Check { since: 0, until_restricted: None, find: sysctls },
    Check { since: 0, until_restricted: None, find: host_process },
];

/// The prefix of `AppArmor` annotations.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
/// The annotation with the seccomp profile of a Pod, before 1.19.
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The prefix of annotations with profiles of containers, before 1.19.
const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// Capabilities that may be added.
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
/// Settings of the kernel, and the version since which they may be made.
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

/// The profile that a context names and that is not allowed.
pub(super) fn other_profile<'a>(context: &'a Value, field: &str) -> Option<&'a str> {
    let profile = &context[field];
    (profile.is_object() && !["RuntimeDefault", "Localhost"].contains(&text(&profile["type"])))
        .then(|| text(&profile["type"]))
}

/// Checks `AppArmor` profiles (`check_appArmorProfile.go`).
fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    let wrong = |context| other_profile(context, "appArmorProfile");
    let names = pod.names_of(|container| wrong(&container["securityContext"]).is_some());
    let of_containers = pod.containers().filter_map(|container| wrong(&container["securityContext"]));
    let values = sorted(wrong(pod.context()).into_iter().chain(of_containers));
    let is_allowed = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations = pod.metadata["annotations"].as_object().into_iter().flatten();
    let mut annotated: Vec<String> = annotations
        .filter(|(key, value)| key.starts_with(APP_ARMOR) && !is_allowed(text(value)))
        .map(|(key, value)| format!("{key}={:?}", text(value)))
        .collect();
    annotated.sort();
    let of_annotations = match annotated.len() {
        0 => None,
        1 => Some("annotation".to_owned()),
        _ => Some("annotations".to_owned()),
    };
    let who: Vec<String> = setters(wrong(pod.context()).is_some(), &names).into_iter().chain(of_annotations).collect();
    if who.is_empty() {
        return None;
    }
    let values: Vec<&str> = values.into_iter().chain(annotated.iter().map(String::as_str)).collect();
    let reason = if values.len() == 1 { "forbidden AppArmor profile" } else { "forbidden AppArmor profiles" };
    let detail = format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(&values));
    Some(Violation { reason, detail })
}

/// Checks added capabilities (`check_capabilities_baseline.go`).
fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let other = |container: &Value| -> Vec<String> {
        let added = items(&container["securityContext"]["capabilities"]["add"]).map(text);
        added.filter(|name| !CAPABILITIES.contains(name)).map(str::to_owned).collect()
    };
    let names = pod.names_of(|container| !other(container).is_empty());
    let added: Vec<String> = pod.containers().flat_map(other).collect();
    (!names.is_empty()).then(|| Violation {
        reason: "non-default capabilities",
        detail: format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&names),
            quoted(&sorted(added.iter().map(String::as_str)))
        ),
    })
}

/// Checks `hostNetwork`, `hostPID` and `hostIPC` (`check_hostNamespaces.go`).
fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.spec[*field] == true);
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| Violation { reason: "host namespaces", detail: shared.join(", ") })
}

/// Checks `hostPath` volumes (`check_hostPathVolumes.go`).
fn host_paths(pod: &Pod<'_>) -> Option<Violation> {
    let of_host = items(&pod.spec["volumes"]).filter(|volume| volume["hostPath"].is_object());
    let names: Vec<&str> = of_host.map(|volume| text(&volume["name"])).collect();
    (!names.is_empty()).then(|| Violation { reason: "hostPath volumes", detail: counted("volume", "volumes", &names) })
}

/// Checks host ports (`check_hostPorts.go`).
fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let of = |container: &Value| -> Vec<String> {
        let ports = items(&container["ports"]).filter_map(|port| port["hostPort"].as_i64());
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect()
    };
    let names = pod.names_of(|container| !of(container).is_empty());
    let all: Vec<String> = pod.containers().flat_map(of).collect();
    let ports = sorted(all.iter().map(String::as_str));
    (!names.is_empty()).then(|| Violation {
        reason: "hostPort",
        detail: format!(
            "{} {} {} {}",
            containers(&names),
            if names.len() == 1 { "uses" } else { "use" },
            if ports.len() == 1 { "hostPort" } else { "hostPorts" },
            ports.join(", ")
        ),
    })
}

/// Checks hosts of probes and hooks (`check_hostProbesAndhostLifecycle.go`).
fn probed_hosts(pod: &Pod<'_>) -> Option<Violation> {
    fn of(container: &Value) -> impl Iterator<Item = &str> {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"].into_iter().map(|name| &container[name]);
        let hooks = ["postStart", "preStop"].into_iter().map(|name| &container["lifecycle"][name]);
        let handlers = probes.chain(hooks);
        let hosts = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|how| text(&handler[how]["host"])));
        hosts.filter(|host| !host.is_empty())
    }
    let names = sorted(pod.names_of(|container| of(container).next().is_some()));
    let hosts = sorted(pod.containers().flat_map(of));
    (!names.is_empty()).then(|| Violation {
        reason: "probe or lifecycle host",
        detail: format!(
            "{} {} {}",
            containers(&names),
            if names.len() == 1 { "uses" } else { "use" },
            counted("probe or lifecycle host", "probe or lifecycle hosts", &hosts)
        ),
    })
}

/// Checks privileged containers (`check_privileged.go`).
fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.names_of(|container| container["securityContext"]["privileged"] == true);
    (!names.is_empty()).then(|| Violation {
        reason: "privileged",
        detail: format!("{} must not set securityContext.privileged=true", containers(&names)),
    })
}

/// Checks `procMount` (`check_procMount.go`).
fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_in_user_namespace() { None } else { any_proc_mount(pod) }
}

/// Checks `procMount` also in user namespaces.
pub(super) fn any_proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let of = |container: &Value| {
        let kind = container["securityContext"]["procMount"].as_str();
        kind.filter(|kind| *kind != "Default").map(str::to_owned)
    };
    let names = pod.names_of(|container| of(container).is_some());
    let kinds: Vec<String> = pod.containers().filter_map(of).collect();
    (!names.is_empty()).then(|| Violation {
        reason: "procMount",
        detail: format!(
            "{} must not set securityContext.procMount to {}",
            containers(&names),
            quoted(&sorted(kinds.iter().map(String::as_str)))
        ),
    })
}

/// Checks `SELinux` options (`check_seLinuxOptions.go`).
fn se_linux(pod: &Pod<'_>) -> Option<Violation> {
    let is_known = |kind: &str| SE_LINUX.iter().any(|(known, since)| *known == kind && *since <= pod.minor);
    let is_set = |context: &Value, field: &str| !text(&context["seLinuxOptions"][field]).is_empty();
    let other = |context: &Value| !is_known(text(&context["seLinuxOptions"]["type"]));
    let is_wrong = |context: &Value| other(context) || is_set(context, "user") || is_set(context, "role");
    let names = pod.names_of(|container| is_wrong(&container["securityContext"]));
    let who = setters(is_wrong(pod.context()), &names)?;
    let of_containers = pod.containers().map(|container| &container["securityContext"]);
    let all: Vec<&Value> = std::iter::once(pod.context()).chain(of_containers).collect();
    let wrong = all.iter().filter(|context| other(context));
    let kinds = sorted(wrong.map(|context| text(&context["seLinuxOptions"]["type"])));
    let mut what = Vec::new();
    if !kinds.is_empty() {
        what.push(counted("type", "types", &kinds));
    }
    for field in ["user", "role"] {
        if all.iter().any(|context| is_set(context, field)) {
            what.push(format!("{field} may not be set"));
        }
    }
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", what.join("; "));
    Some(Violation { reason: "seLinuxOptions", detail })
}

/// Checks seccomp profiles (`check_seccompProfile_baseline.go`).
fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor < 19 { seccomp_by_annotations(pod) } else { other_seccomp(pod) }
}

/// A profile that is set, and is not allowed.
pub(super) fn other_seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let wrong = |context| other_profile(context, "seccompProfile");
    let names = pod.names_of(|container| wrong(&container["securityContext"]).is_some());
    let who = setters(wrong(pod.context()).is_some(), &names)?;
    let of_containers = pod.containers().filter_map(|container| wrong(&container["securityContext"]));
    let values = quoted(&sorted(wrong(pod.context()).into_iter().chain(of_containers)));
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {values}");
    Some(Violation { reason: "seccompProfile", detail })
}

/// Checks the annotations that preceded the field before 1.19.
fn seccomp_by_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let of_containers = pod.containers().map(|container| format!("{SECCOMP}{}", text(&container["name"])));
    let is_allowed =
        |value: &str| ["runtime/default", "docker/default"].contains(&value) || value.starts_with("localhost/");
    let wrong = std::iter::once(SECCOMP_OF_POD.to_owned()).chain(of_containers).filter_map(|key| {
        let value = pod.metadata["annotations"][&key].as_str()?;
        (!is_allowed(value)).then(|| format!("{key}={value:?}"))
    });
    let wrong: Vec<String> = wrong.collect();
    let wrong = sorted(wrong.iter().map(String::as_str));
    let what = if wrong.len() == 1 { "annotation" } else { "annotations" };
    let detail = format!("forbidden {what} {}", wrong.join(", "));
    (!wrong.is_empty()).then_some(Violation { reason: "seccompProfile", detail })
}

/// Checks sysctls (`check_sysctls.go`).
fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    let is_safe = |name: &str| SYSCTLS.iter().any(|(known, since)| *known == name && *since <= pod.minor);
    let names = items(&pod.context()["sysctls"]).map(|sysctl| text(&sysctl["name"]));
    let unsafe_ones: Vec<&str> = names.filter(|name| !is_safe(name)).collect();
    (!unsafe_ones.is_empty()).then(|| Violation { reason: "forbidden sysctls", detail: unsafe_ones.join(", ") })
}

/// Checks Windows host processes (`check_windowsHostProcess.go`).
fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let is_set = |context: &Value| context["windowsOptions"]["hostProcess"] == true;
    let names = pod.names_of(|container| is_set(&container["securityContext"]));
    let who = setters(is_set(pod.context()), &names)?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation { reason: "hostProcess", detail })
}
