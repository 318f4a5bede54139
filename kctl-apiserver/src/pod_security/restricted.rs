//! The checks of the level `restricted`, beyond those of `baseline`.

use serde_json::Value;

use super::{
    Check, Violation,
    baseline::{any_proc_mount, other_profile, other_seccomp},
    pod::{Pod, containers, counted, items, quoted, setters, sorted, text},
};

/// The checks, in the order of upstream's check ids.
pub(super) const CHECKS: &[Check] = &[
    Check { since: 8, until_restricted: None, find: escalation },
    Check { since: 22, until_restricted: None, find: capabilities },
    Check { since: 35, until_restricted: None, find: any_proc_mount },
    Check { since: 0, until_restricted: None, find: volumes },
    Check { since: 0, until_restricted: None, find: non_root },
    Check { since: 23, until_restricted: None, find: user },
    Check { since: 19, until_restricted: None, find: seccomp },
];

/// Allowed types of volumes.
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
/// Other types, which messages name.
const OTHER_VOLUMES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

/// Checks `allowPrivilegeEscalation` (`check_allowPrivilegeEscalation.go`).
fn escalation(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.names_of(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    (!names.is_empty() && !pod.is_exempt_windows()).then(|| Violation {
        reason: "allowPrivilegeEscalation != false",
        detail: format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names)),
    })
}

/// Checks dropped and added capabilities (`check_capabilities_restricted.go`).
fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_exempt_windows() {
        return None;
    }
    let of = |container: &Value, field: &str| -> Vec<String> {
        items(&container["securityContext"]["capabilities"][field]).map(|name| text(name).to_owned()).collect()
    };
    let added = |container: &Value| -> Vec<String> {
        of(container, "add").into_iter().filter(|name| name != "NET_BIND_SERVICE").collect()
    };
    let mut details = Vec::new();
    let keeping = pod.names_of(|container| !of(container, "drop").contains(&"ALL".to_owned()));
    if !keeping.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping)));
    }
    let adding = pod.names_of(|container| !added(container).is_empty());
    if !adding.is_empty() {
        let all: Vec<String> = pod.containers().flat_map(added).collect();
        let all = quoted(&sorted(all.iter().map(String::as_str)));
        details.push(format!("{} must not include {all} in securityContext.capabilities.add", containers(&adding)));
    }
    (!details.is_empty()).then(|| Violation { reason: "unrestricted capabilities", detail: details.join("; ") })
}

/// Checks the types of volumes (`check_restrictedVolumes.go`).
fn volumes(pod: &Pod<'_>) -> Option<Violation> {
    let has = |volume: &Value, kinds: &[&'static str]| kinds.iter().find(|kind| volume[**kind].is_object()).copied();
    let wrong: Vec<&Value> = items(&pod.spec["volumes"]).filter(|volume| has(volume, VOLUMES).is_none()).collect();
    let names: Vec<&str> = wrong.iter().map(|volume| text(&volume["name"])).collect();
    let kinds = sorted(wrong.iter().map(|volume| has(volume, OTHER_VOLUMES).unwrap_or("unknown")));
    (!names.is_empty()).then(|| Violation {
        reason: "restricted volume types",
        detail: format!(
            "{} {} {}",
            counted("volume", "volumes", &names),
            if names.len() == 1 { "uses" } else { "use" },
            counted("restricted volume type", "restricted volume types", &kinds)
        ),
    })
}

/// Checks `runAsNonRoot` (`check_runAsNonRoot.go`).
fn non_root(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_in_user_namespace() {
        return None;
    }
    let said = |context: &Value| context["runAsNonRoot"].as_bool();
    let of_pod = said(pod.context());
    let reason = "runAsNonRoot != true";
    let denying = pod.names_of(|container| said(&container["securityContext"]) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &denying) {
        return Some(Violation { reason, detail: format!("{who} must not set securityContext.runAsNonRoot=false") });
    }
    let silent = pod.names_of(|container| of_pod.is_none() && said(&container["securityContext"]).is_none());
    (!silent.is_empty()).then(|| Violation {
        reason,
        detail: format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent)),
    })
}

/// Checks `runAsUser` (`check_runAsUser.go`).
fn user(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_in_user_namespace() {
        return None;
    }
    let is_root = |context: &Value| context["runAsUser"] == 0;
    let names = pod.names_of(|container| is_root(&container["securityContext"]));
    let who = setters(is_root(pod.context()), &names)?;
    Some(Violation { reason: "runAsUser=0", detail: format!("{who} must not set runAsUser=0") })
}

/// Checks that a seccomp profile is set (`check_seccompProfile_restricted.go`).
fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_exempt_windows() {
        return None;
    }
    let other = other_seccomp(pod);
    if other.is_some() {
        return other;
    }
    let is_set = |context: &Value| context["seccompProfile"].is_object();
    let of_pod = is_set(pod.context()) && other_profile(pod.context(), "seccompProfile").is_none();
    let names = pod.names_of(|container| !of_pod && !is_set(&container["securityContext"]));
    (!names.is_empty()).then(|| Violation {
        reason: "seccompProfile",
        detail: format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            containers(&names)
        ),
    })
}
