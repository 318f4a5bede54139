//! Validation of volume mounts and block devices of a container.
//!
//! Upstream: `ValidateVolumeMounts` and `ValidateVolumeDevices` in
//! `pkg/apis/core/validation/validation.go`.
//!
//! A container has a volume either as a directory (`volumeMounts`) or as a block device (`volumeDevices`), never both,
//! and each path at most once. Rules refer to the valid volumes of the Pod: a volume with errors counts as missing, so
//! its mounts are reported as `FieldValueNotFound` too. Several error paths lack the index of the mount, an upstream
//! bug that clients see.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::text,
    json_path::entries,
    validation::{declared, paths, volume::DeclaredVolumes},
};

/// The privilege of a container on its host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Privilege {
    /// `securityContext.privileged` is `true`: the container can pass its mounts on to the host.
    Privileged,
    /// The container is isolated from the host.
    Ordinary,
}

impl Privilege {
    /// Returns the privilege that a container asks for.
    fn of_container(container: &Value) -> Self {
        if container["securityContext"]["privileged"] == true { Self::Privileged } else { Self::Ordinary }
    }
}

/// Validates the mounts and the devices of a container. `volumes` are the valid volumes of its Pod.
pub(crate) fn validate_mounts(container: &Field<'_>, volumes: &DeclaredVolumes<'_>) {
    let (mounts, devices) = (container.at("volumeMounts"), container.at("volumeDevices"));
    let privilege = Privilege::of_container(container);
    validate_volume_mounts(&mounts, &devices, volumes, privilege);
    validate_volume_devices(&devices, &mounts, volumes);
}

/// Validates `volumeMounts`. Mount paths are unique within the container, compared as strings: `/data` and `/data/` are
/// distinct. Neither name nor path may occur in `volumeDevices`. A relative mount path is accepted.
fn validate_volume_mounts(list: &Field<'_>, devices: &Value, volumes: &DeclaredVolumes<'_>, privilege: Privilege) {
    report_duplicates(list, "mountPath", |_path| true);
    let [device_names, device_paths] = ["name", "devicePath"].map(|field| values(devices, field));
    for mount in list.items() {
        let (name, path) = (mount.at("name"), mount.at("mountPath"));
        mount.require_children(&["name", "mountPath"]);
        name.not_found_if(!volumes.names.contains(name.text()));
        name.invalid_if(device_names.contains(name.text()), "must not be in volumeDevices");
        path.invalid_if(device_paths.contains(path.text()), "must not be a path in volumeDevices");
        validate_sub_path(list, &mount);
        validate_mount_propagation(list, &mount, privilege);
    }
}

/// Validates `subPath` and `subPathExpr`, the part of a volume that is mounted: relative paths without `..`. Only one
/// may be set.
fn validate_sub_path(list: &Field<'_>, mount: &Field<'_>) {
    let (part, expression) = (&mount["subPath"], mount.at("subPathExpr"));
    let is_set = |value: &Value| !text(value).is_empty();
    expression.invalid_if(is_set(part) && is_set(&expression), "subPathExpr and subPath are mutually exclusive");
    for (name, path) in [("subPath", part), ("subPathExpr", expression.value())] {
        if is_set(path) {
            list.at_with(name, path).check(paths::validate_descending);
        }
    }
}

/// Validates `mountPropagation` and `recursiveReadOnly` (`validateMountPropagation`, `validateMountRecursiveReadOnly`).
/// `Bidirectional` passes mounts of the container on to the host, so it needs a privileged container. The kernel can
/// make a mount read-only recursively only if no volume is mounted into it later.
fn validate_mount_propagation(list: &Field<'_>, mount: &Field<'_>, privilege: Privilege) {
    let how = list.at_with("mountPropagation", &mount["mountPropagation"]);
    how.one_of(&declared::values("core.v1.VolumeMount", "mountPropagation"));
    let needs_privilege = how.text() == "Bidirectional" && privilege == Privilege::Ordinary;
    how.forbidden_if(needs_privilege, "needs a privileged container");
    let recursive = list.at_with("recursiveReadOnly", &mount["recursiveReadOnly"]);
    recursive.one_of(&["Disabled", "Enabled", "IfPossible"]);
    let is_read_only = mount["readOnly"] == true && (how.is_null() || how.text() == "None");
    let needs_read_only = ["Enabled", "IfPossible"].contains(&recursive.text());
    recursive.forbidden_if(needs_read_only && !is_read_only, "needs readOnly: true and no mountPropagation");
}

/// Validates `volumeDevices`. The uniqueness rule ignores a path with `..`. Names and paths of `volumeMounts` are
/// excluded here as well, so a conflict is reported on both sides.
fn validate_volume_devices(list: &Field<'_>, mounts: &Value, volumes: &DeclaredVolumes<'_>) {
    report_duplicates(list, "name", |name| !text(name).is_empty());
    report_duplicates(list, "devicePath", |path| !paths::has_backsteps(path));
    let [mount_names, mount_paths] = ["name", "mountPath"].map(|field| values(mounts, field));
    for device in list.items() {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        device.require_children(&["name", "devicePath"]);
        let is_declared = volumes.names.contains(name.text());
        name.not_found_if(!is_declared);
        let detail = "only a PersistentVolumeClaim or an ephemeral volume can be a block device";
        name.invalid_if(is_declared && !volumes.claims.contains(name.text()), detail);
        path.invalid_if(paths::has_backsteps(&path), "must not contain '..'");
        name.invalid_if(mount_names.contains(name.text()), "must not be in volumeMounts");
        path.invalid_if(mount_paths.contains(path.text()), "must not be a path in volumeMounts");
    }
}

/// Reports each item whose field has the value of an item before it. Values that are not `counted` may occur again.
fn report_duplicates(list: &Field<'_>, field: &str, counted: impl Fn(&Value) -> bool) {
    let mut taken = HashSet::new();
    for item in list.items() {
        let value = item.at(field);
        value.invalid_if(taken.contains(value.text()), "must be unique");
        if counted(&value) {
            taken.insert(value.text());
        }
    }
}

/// Returns the strings in a field of the items of a list. An absent field counts as the empty string.
fn values<'a>(list: &'a Value, field: &str) -> BTreeSet<&'a str> {
    entries(list).map(|(_, item)| text(&item[field])).collect()
}
