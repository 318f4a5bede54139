//! Validation of security contexts, and of the fields that depend on the operating system of the Pod.
//!
//! Upstream: `validatePodSpecSecurityContext`, `ValidateSecurityContext`, `validateLinux` and
//! `validateWindows` in `pkg/apis/core/validation/validation.go`.
//!
//! These rules only check that fields are well-formed. The Pod Security Standards (`baseline`, `restricted`) are an
//! admission step with its own module, `pod_security`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    validation::{entries, paths, windows},
};

/// Greatest id of a user or group, 2,147,483,647 (`IsValidUserID`). The kernel has 32 bits;
/// Kubernetes takes 31.
const ID_MAX: i64 = i32::MAX as i64;
/// Maximum length of the name of a kernel parameter, in bytes (`SysctlMaxLength`).
const PARAMETER_LEN_MAX: usize = 253;
/// Maximum length of the path of an `AppArmor` profile, in bytes: `PATH_MAX` without the final
/// zero.
const PROFILE_LEN_MAX: usize = 4095;
/// Prefixes of kernel parameters that belong to the network namespace.
const OF_NETWORK: &[&str] = &["net."];
/// Prefixes of kernel parameters that belong to the namespace of inter-process communication.
const OF_PROCESSES: &[&str] = &["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."];

/// Validates the security context of a container (`ValidateSecurityContext`).
///
/// `allowPrivilegeEscalation: false` excludes `privileged` and `CAP_SYS_ADMIN`; `Unmasked` needs `hostUsers: false`. Both
/// are `FieldValueInvalid`.
///
/// `path` is the field path of the context, `spec` the spec of its Pod. An absent context is valid. Users and groups are
/// 0 to 2,147,483,647.
///
/// The conflict with privilege escalation is one error per reason at the whole context, whose JSON
/// is the value. Only the spelling `CAP_SYS_ADMIN` counts, as in upstream: `SYS_ADMIN` is not rejected
/// here.
pub(crate) fn of_container(context: &Value, path: &str, spec: &Value, errors: &mut Errors) {
    if context.is_null() {
        return;
    }
    for name in ["runAsUser", "runAsGroup"] {
        errors.in_range(&format!("{path}.{name}"), &context[name], 0, ID_MAX);
    }
    let mounted = &context["procMount"];
    if spec["hostUsers"] != false && mounted == "Unmasked" {
        errors.invalid(&format!("{path}.procMount"), mounted, "`hostUsers` must be false to use `Unmasked`");
    }
    system_calls(&context["seccompProfile"], &format!("{path}.seccompProfile"), errors);
    if context["allowPrivilegeEscalation"] == false {
        let reason = "cannot set `allowPrivilegeEscalation` to false and";
        if context["privileged"] == true {
            errors.invalid(path, context, &format!("{reason} `privileged` to true"));
        }
        for (_, capability) in entries(&context["capabilities"]["add"]) {
            if capability == "CAP_SYS_ADMIN" {
                errors.invalid(path, context, &format!("{reason} `capabilities.Add` CAP_SYS_ADMIN"));
            }
        }
    }
    windows::options(&context["windowsOptions"], &format!("{path}.windowsOptions"), errors);
    app_armor(&context["appArmorProfile"], &format!("{path}.appArmorProfile"), errors);
}

/// Validates the security context of a Pod. `hostPID` and its siblings are fields of the spec beside it.
///
/// `path` is the field path of the spec. Two rules also read fields beside the context: `shareProcessNamespace`
/// excludes `hostPID`, and sysctls depend on `hostNetwork` and `hostIPC`.
pub(crate) fn of_pod(spec: &Value, path: &str, errors: &mut Errors) {
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&format!("{path}.shareProcessNamespace"), &true.into(), detail);
    }
    let (context, path) = (&spec["securityContext"], format!("{path}.securityContext"));
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        errors.in_range(&format!("{path}.{name}"), &context[name], 0, ID_MAX);
    }
    for (index, group) in entries(&context["supplementalGroups"]) {
        errors.in_range(&format!("{path}.supplementalGroups[{index}]"), group, 0, ID_MAX);
    }
    parameters(spec, &format!("{path}.sysctls"), errors);
    system_calls(&context["seccompProfile"], &format!("{path}.seccompProfile"), errors);
    windows::options(&context["windowsOptions"], &format!("{path}.windowsOptions"), errors);
    app_armor(&context["appArmorProfile"], &format!("{path}.appArmorProfile"), errors);
    errors.one_of(
        &format!("{path}.seLinuxChangePolicy"),
        &context["seLinuxChangePolicy"],
        &["MountOption", "Recursive"],
    );
}

/// Validates sysctls: names are required, well-formed and unique. Those of a namespace that the Pod shares with its
/// host are `FieldValueInvalid`.
///
/// Upstream: `validateSysctls`. Slashes and dots are equal separators when the namespace is looked up, yet `net/ipv4/x`
/// and `net.ipv4/x` are distinct names for the uniqueness rule. kubelet decides which sysctls are safe.
fn parameters(spec: &Value, path: &str, errors: &mut Errors) {
    let mut names = Vec::new();
    for (index, parameter) in entries(&spec["securityContext"]["sysctls"]) {
        let (path, name) = (format!("{path}[{index}].name"), text(&parameter["name"]));
        if name.is_empty() {
            errors.required(&path, "");
        } else if !is_parameter(name) {
            let detail = format!(
                "must be the name of a sysctl such as kernel.shm_rmid_forced, of at most {PARAMETER_LEN_MAX} bytes"
            );
            errors.invalid(&path, &name.into(), &detail);
        } else if names.contains(&name) {
            errors.duplicate(&path);
        }
        let plain = name.replace('/', ".");
        for (host, prefixes) in [("hostNetwork", OF_NETWORK), ("hostIPC", OF_PROCESSES)] {
            if spec[host] == true && prefixes.iter().any(|prefix| plain.starts_with(prefix)) {
                errors.invalid(&path, &name.into(), &format!("may not be specified when '{host}' is true"));
            }
        }
        names.push(name);
    }
}

/// Returns `true` for a name of at most 253 bytes that matches `PARAMETER`.
///
/// Parts begin and end with lowercase letters or digits, and may contain dashes and underscores. Dots
/// or slashes separate the parts.
fn is_parameter(name: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    name.len() <= PARAMETER_LEN_MAX
        && name
            .split(['.', '/'])
            .all(|part| is_end(part.bytes().next()) && is_end(part.bytes().last()) && part.bytes().all(is_inner))
}

/// Validates a seccomp profile: `localhostProfile` is required with the type `Localhost`, and invalid with others.
///
/// The path is relative to kubelet's directory of profiles, so it must not leave it: no leading
/// slash and no `..`. The type itself was validated by `declared`. Upstream:
/// `validateSeccompProfileField`.
fn system_calls(profile: &Value, path: &str, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let (kind, local, localhost_path) =
        (&profile["type"], &profile["localhostProfile"], format!("{path}.localhostProfile"));
    match (kind == "Localhost", local.is_null()) {
        (true, true) => errors.required(&localhost_path, "must be set when seccomp type is Localhost"),
        (true, false) => paths::descending(local, &localhost_path, errors),
        (false, false) => {
            errors.invalid(&localhost_path, local, "can only be set when seccomp type is Localhost");
        }
        (false, true) => {}
    }
}

/// Validates an AppArmor profile: `localhostProfile` is required with the type `Localhost`, and invalid with others.
///
/// The value names a profile that is loaded in the kernel, so it is not a path and may have any
/// characters. It must not be padded with whitespace (`FieldValueInvalid`). An empty one counts as
/// absent with `Localhost`, and as present with the other types. Upstream:
/// `ValidateAppArmorProfileField`.
fn app_armor(profile: &Value, field_path: &str, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let (local, localhost_path) = (&profile["localhostProfile"], format!("{field_path}.localhostProfile"));
    let path = text(local);
    match text(&profile["type"]) {
        "Localhost" if path.trim().is_empty() && path.trim() == path => {
            errors.required(&localhost_path, "must be set when AppArmor type is Localhost");
        }
        "Localhost" => {
            if path.trim() != path {
                errors.invalid(&localhost_path, local, "must not be padded with whitespace");
            }
            if path.len() > PROFILE_LEN_MAX {
                errors.too_long(&localhost_path, PROFILE_LEN_MAX);
            }
        }
        "RuntimeDefault" | "Unconfined" if !local.is_null() => {
            errors.invalid(&localhost_path, local, "can only be set when AppArmor type is Localhost");
        }
        _ => {}
    }
}

/// Rejects fields that the operating system of the Pod does not have.
///
/// A Pod without `os` may have fields of both systems; the node ignores those of the other system. An empty name is
/// `FieldValueRequired`, an unknown one `FieldValueNotSupported` at `os`.
pub(crate) fn of_system(spec: &Value, path: &str, errors: &mut Errors) {
    let system = &spec["os"];
    match text(&system["name"]) {
        _ if system.is_null() => {}
        "linux" => of_linux(spec, path, errors),
        "windows" => of_windows(spec, path, errors),
        "" => errors.required(&format!("{path}.os.name"), ""),
        _ => errors.one_of(&format!("{path}.os"), &system["name"], &["linux", "windows"]),
    }
}

/// Rejects Windows options in a Linux Pod (`FieldValueForbidden`).
///
/// Both the context of the Pod and those of all its containers are checked.
fn of_linux(spec: &Value, path: &str, errors: &mut Errors) {
    let detail = "windows options cannot be set for a linux pod";
    if !spec["securityContext"]["windowsOptions"].is_null() {
        errors.forbidden(&format!("{path}.securityContext.windowsOptions"), detail);
    }
    for (list, index, container) in super::container::all(spec) {
        if !container["securityContext"]["windowsOptions"].is_null() {
            errors.forbidden(&format!("{path}.{list}[{index}].securityContext.windowsOptions"), detail);
        }
    }
}

/// Rejects Linux fields in a Windows Pod (`FieldValueForbidden`).
///
/// `OF_PODS` are JSON pointers below the spec; in the error, slashes become dots. Any value is
/// rejected, `false` included, apart from `hostPID: false` and `hostIPC: false`. `hostNetwork` is
/// not among them, since host process containers need it.
fn of_windows(spec: &Value, path: &str, errors: &mut Errors) {
    const OF_PODS: &[&str] = &[
        "/securityContext/appArmorProfile",
        "/securityContext/seLinuxOptions",
        "/hostUsers",
        "/hostPID",
        "/hostIPC",
        "/securityContext/seccompProfile",
        "/securityContext/fsGroup",
        "/securityContext/fsGroupChangePolicy",
        "/securityContext/sysctls",
        "/shareProcessNamespace",
        "/securityContext/runAsUser",
        "/securityContext/runAsGroup",
        "/securityContext/supplementalGroups",
        "/securityContext/supplementalGroupsPolicy",
        "/securityContext/seLinuxChangePolicy",
    ];
    const OF_CONTAINERS: &[&str] = &[
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    let detail = "cannot be set for a windows pod";
    for pointer in OF_PODS {
        // `hostPID: false` and `hostIPC: false` count as unset.
        let is_off = |value: &Value| ["/hostPID", "/hostIPC"].contains(pointer) && *value == false;
        if spec.pointer(pointer).is_some_and(|value| !value.is_null() && !is_off(value)) {
            errors.forbidden(&format!("{path}{}", pointer.replace('/', ".")), detail);
        }
    }
    for (list, index, container) in super::container::all(spec) {
        for name in OF_CONTAINERS.iter().filter(|name| !container["securityContext"][**name].is_null()) {
            errors.forbidden(&format!("{path}.{list}[{index}].securityContext.{name}"), detail);
        }
    }
}
