//! Validation of security contexts, and of the fields that depend on the operating system of the Pod.
//!
//! Upstream: `validatePodSpecSecurityContext`, `ValidateSecurityContext`, `validateLinux` and
//! `validateWindows` in `pkg/apis/core/validation/validation.go`.
//!
//! These rules only check that fields are well-formed. The Pod Security Standards (`baseline`, `restricted`) are an
//! admission step with its own module, `pod_security`.

use std::{collections::BTreeSet, iter};

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::text,
    json_path::entries,
    validation::{all_containers, paths, windows},
};

/// Greatest id of a user or group (`IsValidUserID`). The kernel has 32 bits; Kubernetes takes 31.
const ID_MAX: i64 = i32::MAX as i64;
/// Maximum length of the name of a kernel parameter, in bytes (`SysctlMaxLength`).
const PARAMETER_LEN_MAX: usize = 253;
/// Maximum length of the path of an `AppArmor` profile, in bytes: `PATH_MAX` without the final zero.
const PROFILE_LEN_MAX: usize = 4095;
/// Prefixes of kernel parameters that belong to the network namespace.
const NET_SYSCTLS: &[&str] = &["net."];
/// Prefixes of kernel parameters that belong to the namespace of inter-process communication.
const IPC_SYSCTLS: &[&str] = &["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."];

/// Validates the security context of a container (`ValidateSecurityContext`). `spec` is the spec of its Pod. Only the
/// spelling `CAP_SYS_ADMIN` counts, as in upstream: `SYS_ADMIN` is not rejected here.
pub(crate) fn validate_container_context(context: &Field<'_>, spec: &Value) {
    if context.is_null() {
        return;
    }
    context.check_children(&["runAsUser", "runAsGroup"], validate_id);
    let mounted = context.at("procMount");
    let is_unmasked = mounted.text() == "Unmasked" && spec["hostUsers"] != false;
    mounted.invalid_if(is_unmasked, "`hostUsers` must be false to use `Unmasked`");
    let is_admin = entries(&context["capabilities"]["add"]).any(|(_, capability)| capability == "CAP_SYS_ADMIN");
    let may_escalate = context["privileged"] == true || is_admin;
    let detail = "cannot set `allowPrivilegeEscalation` to false with `privileged` or the capability CAP_SYS_ADMIN";
    context.invalid_if(context["allowPrivilegeEscalation"] == false && may_escalate, detail);
    validate_shared(context);
}

/// Validates the security context of a Pod. Two rules also read fields of the spec.
pub(crate) fn validate_pod_context(spec: &Field<'_>) {
    let (shares, context) = (spec.at("shareProcessNamespace"), spec.at("securityContext"));
    let is_host = spec["hostPID"] == true && *shares == true;
    shares.invalid_if(is_host, "ShareProcessNamespace and HostPID cannot both be enabled");
    context.check_children(&["fsGroup", "runAsUser", "runAsGroup"], validate_id);
    context.at("supplementalGroups").items().for_each(|group| validate_id(&group));
    validate_parameters(&context.at("sysctls"), spec);
    validate_shared(&context);
    context.at("seLinuxChangePolicy").one_of(&["MountOption", "Recursive"]);
}

/// Validates the id of a user or group.
pub(crate) fn validate_id(id: &Field<'_>) {
    id.in_range(0, ID_MAX);
}

/// Validates the profiles and options that Pods and containers have.
fn validate_shared(context: &Field<'_>) {
    validate_seccomp_profile(&context.at("seccompProfile"));
    windows::validate_options(&context.at("windowsOptions"));
    validate_app_armor(&context.at("appArmorProfile"));
}

/// Validates sysctls (`validateSysctls`). Slashes and dots are equal separators when the namespace is looked up, yet
/// `net/ipv4/x` and `net.ipv4/x` are distinct names for the uniqueness rule. The kubelet decides which sysctls are
/// safe.
fn validate_parameters(list: &Field<'_>, spec: &Value) {
    let mut names = BTreeSet::new();
    for name in list.items().map(|parameter| parameter.at("name")) {
        let is_new = names.insert(name.text());
        if name.require_value() && !is_parameter(name.text()) {
            let example = "kernel.shm_rmid_forced";
            name.invalid(format_args!("must be a sysctl such as {example}, of at most {PARAMETER_LEN_MAX} bytes"));
        } else if !name.is_empty() && !is_new {
            name.duplicate();
        }
        let plain = name.text().replace('/', ".");
        for (host, prefixes) in [("hostNetwork", NET_SYSCTLS), ("hostIPC", IPC_SYSCTLS)] {
            let uses_host_namespace = spec[host] == true && prefixes.iter().any(|prefix| plain.starts_with(prefix));
            name.invalid_if(uses_host_namespace, format_args!("may not be specified when '{host}' is true"));
        }
    }
}

/// Returns `true` for a sysctl of at most 253 bytes. Parts begin and end with lowercase letters or digits, and may
/// contain dashes and underscores. Dots or slashes separate the parts.
fn is_parameter(name: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    name.len() <= PARAMETER_LEN_MAX
        && name
            .split(['.', '/'])
            .all(|part| is_end(part.bytes().next()) && is_end(part.bytes().last()) && part.bytes().all(is_inner))
}

/// Validates a seccomp profile (`validateSeccompProfileField`). The path is relative to kubelet's directory of
/// profiles, so it must not leave it. `declared` has validated the type itself.
fn validate_seccomp_profile(profile: &Field<'_>) {
    let local = profile.at("localhostProfile");
    if profile["type"] == "Localhost" {
        local.required_if(local.is_null());
        local.check(paths::validate_descending);
    } else {
        local.invalid_if(!local.is_null(), "can only be set when seccomp type is Localhost");
    }
}

/// Validates an AppArmor profile (`ValidateAppArmorProfileField`). `localhostProfile` names a profile that is loaded in
/// the kernel, so it is not a path and may have any characters. An empty one counts as absent with `Localhost`, and as
/// present with the other types.
fn validate_app_armor(profile: &Field<'_>) {
    let local = profile.at("localhostProfile");
    match profile.at("type").text() {
        "Localhost" => {
            local.required_if(local.is_empty());
            local.invalid_if(local.text().trim() != local.text(), "must not be padded with whitespace");
            local.max_bytes(PROFILE_LEN_MAX);
        }
        "RuntimeDefault" | "Unconfined" => {
            local.invalid_if(!local.is_null(), "can only be set when AppArmor type is Localhost");
        }
        _ => {}
    }
}

/// Rejects fields that the operating system of the Pod does not have. A Pod without `os` may have fields of both
/// systems; the node ignores the fields of the other system. The error about an unknown name is at `os`.
pub(crate) fn validate_os_fields(spec: &Field<'_>) {
    let system = spec.at("os");
    match text(&system["name"]) {
        _ if system.is_null() => {}
        "linux" => forbid_windows_fields(spec),
        "windows" => forbid_linux_fields(spec),
        "" => system.at("name").required(),
        _ => system.with(&system["name"]).unsupported(&["linux", "windows"]),
    }
}

/// Rejects Windows options in a Linux Pod and in all its containers.
fn forbid_windows_fields(spec: &Field<'_>) {
    for part in iter::once(spec.clone()).chain(all_containers(spec)) {
        let options = part.at("securityContext").at("windowsOptions");
        options.forbidden_if(!options.is_null(), "windows options cannot be set for a linux pod");
    }
}

/// Rejects Linux fields in a Windows Pod. Any value is rejected, `false` included, apart from `hostPID: false` and
/// `hostIPC: false`. `hostNetwork` is not among them, since host process containers need it.
fn forbid_linux_fields(spec: &Field<'_>) {
    const POD_FIELDS: &[&str] = &["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
    const CONTEXT_FIELDS: &[&str] = &["appArmorProfile", "seLinuxOptions", "seccompProfile", "runAsUser", "runAsGroup"];
    const POD_CONTEXT_FIELDS: &[&str] = &[
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
    ];
    const CONTAINER_CONTEXT_FIELDS: &[&str] =
        &["capabilities", "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount"];
    let none_of = |object: &Field<'_>, names: &[&str]| {
        for field in names.iter().map(|name| object.at(name)) {
            let is_off = *field == false && ["hostPID", "hostIPC"].iter().any(|name| field.path().ends_with(name));
            field.forbidden_if(!field.is_null() && !is_off, "cannot be set for a windows pod");
        }
    };
    none_of(spec, POD_FIELDS);
    none_of(&spec.at("securityContext"), POD_CONTEXT_FIELDS);
    for part in iter::once(spec.clone()).chain(all_containers(spec)) {
        none_of(&part.at("securityContext"), CONTEXT_FIELDS);
    }
    all_containers(spec).for_each(|container| none_of(&container.at("securityContext"), CONTAINER_CONTEXT_FIELDS));
}
