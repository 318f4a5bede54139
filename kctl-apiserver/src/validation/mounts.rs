//! Validation of volume mounts and block devices of a container.
//!
//! Upstream: `ValidateVolumeMounts` and `ValidateVolumeDevices` in
//! `pkg/apis/core/validation/validation.go`.
//!
//! A container has a volume either as a directory (`volumeMounts`) or as a block device (`volumeDevices`), never both,
//! and each path at most once. Rules refer to the valid volumes of the Pod: a volume with errors counts as missing, so
//! its mounts are reported as `FieldValueNotFound` too. Several error paths lack the index of the mount, an upstream
//! bug that clients see.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    validation::{declared, entries, paths, volume::DeclaredVolume},
};

/// `securityContext.privileged` of a container.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Privilege {
    Privileged,
    Unprivileged,
}

/// Validates the mounts and the devices of a container.
///
/// `path` is the field path of the container. `volumes` are the valid volumes of its Pod.
pub(crate) fn of_container(container: &Value, path: &str, volumes: &[DeclaredVolume<'_>], errors: &mut Errors) {
    let (mounts, devices) = (&container["volumeMounts"], &container["volumeDevices"]);
    let container = match &container["securityContext"]["privileged"] {
        Value::Bool(true) => Privilege::Privileged,
        _ => Privilege::Unprivileged,
    };
    mounted(mounts, devices, &format!("{path}.volumeMounts"), volumes, container, errors);
    attached(devices, mounts, &format!("{path}.volumeDevices"), volumes, errors);
}

/// Validates `volumeMounts`: the name of a volume of the Pod (`FieldValueNotFound`), and a mount
/// path.
///
/// Mount paths are unique within the container (`FieldValueInvalid`), compared as strings: `/data`
/// and `/data/` are distinct. Neither name nor path may occur in `volumeDevices`. A relative mount
/// path is accepted. Bidirectional mount propagation needs a privileged
/// container.
fn mounted(
    list: &Value,
    devices: &Value,
    list_path: &str,
    volumes: &[DeclaredVolume<'_>],
    container: Privilege,
    errors: &mut Errors,
) {
    let mut taken = Vec::new();
    for (index, mount) in entries(list) {
        let field_path = format!("{list_path}[{index}]");
        let (name, path) = (text(&mount["name"]), text(&mount["mountPath"]));
        if name.is_empty() {
            errors.required(&format!("{field_path}.name"), "");
        }
        if !volumes.iter().any(|volume| volume.name == name) {
            errors.not_found(&format!("{field_path}.name"), &name.into());
        }
        if path.is_empty() {
            errors.required(&format!("{field_path}.mountPath"), "");
        }
        if taken.contains(&path) {
            errors.invalid(&format!("{field_path}.mountPath"), &path.into(), "must be unique");
        }
        taken.push(path);
        if has(devices, "name", name) {
            errors.invalid(&format!("{field_path}.name"), &name.into(), "must not already exist in volumeDevices");
        }
        if has(devices, "devicePath", path) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.invalid(&format!("{field_path}.mountPath"), &path.into(), detail);
        }
        parts(mount, &field_path, list_path, errors);
        propagates(mount, list_path, container, errors);
        read_only(mount, &format!("{list_path}.recursiveReadOnly"), errors);
    }
}

/// Validates `subPath` and `subPathExpr`, the part of a volume that is mounted.
///
/// Both are relative paths without `..`, and only one may be set. Upstream reports errors of the
/// path itself without the index of the mount.
fn parts(mount: &Value, path: &str, list_path: &str, errors: &mut Errors) {
    let (part, expression) = (&mount["subPath"], &mount["subPathExpr"]);
    if !text(part).is_empty() {
        paths::descending(part, &format!("{list_path}.subPath"), errors);
    }
    if !text(expression).is_empty() {
        if !text(part).is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.invalid(&format!("{path}.subPathExpr"), expression, detail);
        }
        paths::descending(expression, &format!("{list_path}.subPathExpr"), errors);
    }
}

/// Validates `mountPropagation`: `None`, `HostToContainer` or `Bidirectional`.
///
/// `Bidirectional` passes mounts of the container on to the host, so it needs a privileged
/// container (`FieldValueForbidden`). Upstream: `validateMountPropagation`.
fn propagates(mount: &Value, list_path: &str, container: Privilege, errors: &mut Errors) {
    let (path, how) = (format!("{list_path}.mountPropagation"), &mount["mountPropagation"]);
    errors.one_of(&path, how, &declared::values("core.v1.VolumeMount", "mountPropagation"));
    if how == "Bidirectional" && container == Privilege::Unprivileged {
        errors.forbidden(&path, "Bidirectional mount propagation is available only to privileged containers");
    }
}

/// Validates `recursiveReadOnly` (`validateMountRecursiveReadOnly`).
///
/// `Enabled` and `IfPossible` need `readOnly: true` and no mount propagation
/// (`FieldValueForbidden`): the kernel can make a mount read-only recursively only if no volume is
/// mounted into it later. `Disabled` is always valid, other values are `FieldValueNotSupported`.
fn read_only(mount: &Value, path: &str, errors: &mut Errors) {
    let Some(how) = mount["recursiveReadOnly"].as_str() else { return };
    if how != "Enabled" && how != "IfPossible" {
        return errors.one_of(path, &how.into(), &["Disabled", "Enabled", "IfPossible"]);
    }
    if mount["readOnly"] != true {
        errors.forbidden(path, "may only be specified when readOnly is true");
    }
    if mount["mountPropagation"].is_string() && mount["mountPropagation"] != "None" {
        errors.forbidden(path, "may only be specified when mountPropagation is None or not specified");
    }
}

/// Validates `volumeDevices`: unique names and paths of volumes that can be block devices.
///
/// Only a `PersistentVolumeClaim` or an ephemeral volume can be a block device (`FieldValueInvalid`). A path may not
/// contain `..`; the uniqueness rule ignores such a path. Names and paths of `volumeMounts` are excluded here as well,
/// so a conflict is reported on both sides.
fn attached(list: &Value, mounts: &Value, list_path: &str, volumes: &[DeclaredVolume<'_>], errors: &mut Errors) {
    let (mut names, mut taken) = (Vec::new(), Vec::new());
    for (index, device) in entries(list) {
        let (name, path) = (text(&device["name"]), text(&device["devicePath"]));
        let (name_field, path_field) =
            (format!("{list_path}[{index}].name"), format!("{list_path}[{index}].devicePath"));
        if name.is_empty() {
            errors.required(&name_field, "");
        }
        if names.contains(&name) {
            errors.invalid(&name_field, &name.into(), "must be unique");
        }
        match volumes.iter().find(|volume| volume.name == name) {
            None => errors.not_found(&name_field, &name.into()),
            Some(volume) if !volume.is_claim => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid(&name_field, &name.into(), detail);
            }
            Some(_) => {}
        }
        if path.is_empty() {
            errors.required(&path_field, "");
        }
        if taken.contains(&path) {
            errors.invalid(&path_field, &path.into(), "must be unique");
        }
        if paths::has_backsteps(&device["devicePath"]) {
            errors.invalid(&path_field, &path.into(), "can not contain backsteps ('..')");
        } else {
            taken.push(path);
        }
        if has(mounts, "name", name) {
            errors.invalid(&name_field, &name.into(), "must not already exist in volumeMounts");
        }
        if has(mounts, "mountPath", path) {
            errors.invalid(&path_field, &path.into(), "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.push(name);
        }
    }
}

/// Returns `true` if an item of the list has this string in `field`. An absent field equals the
/// empty string.
fn has(list: &Value, field: &str, value: &str) -> bool {
    entries(list).any(|(_, item)| text(&item[field]) == value)
}
