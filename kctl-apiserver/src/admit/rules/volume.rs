//! Rules of volumes and of where containers mount them.

use serde_json::Value;

use super::{Errors, entries, text};
use crate::admit::names::NameRule;

/// The sources in the order in which the real server looks for them.
pub(super) const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cephfs",
    "cinder",
    "fc",
    "azureFile",
    "configMap",
    "quobyte",
    "azureDisk",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
    "projected",
    "csi",
    "downwardAPI",
    "ephemeral",
    "image",
];

/// The names of the volumes of a pod.
pub(super) fn volumes<'a>(list: &'a Value, at: &str, errors: &mut Errors) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (index, volume) in entries(list) {
        let at = format!("{at}[{index}]");
        let (name, before) = (text(&volume["name"]), errors.len());
        source(volume, &at, errors);
        errors.required_name(&format!("{at}.name"), &volume["name"], NameRule::Label);
        if names.contains(&name) && !name.is_empty() {
            errors.duplicate(&format!("{at}.name"), &volume["name"].to_string());
        }
        if errors.len() == before {
            names.push(name);
        }
    }
    names
}

fn source(volume: &Value, at: &str, errors: &mut Errors) {
    let mut given = SOURCES.iter().filter(|source| volume[**source].is_object());
    let Some(first) = given.next() else {
        return errors.required(at, "must specify a volume type");
    };
    let name = match *first {
        "configMap" => Some("name"),
        "secret" => Some("secretName"),
        "persistentVolumeClaim" => Some("claimName"),
        "hostPath" => Some("path"),
        _ => None,
    };
    if let Some(name) = name.filter(|name| text(&volume[*first][*name]).is_empty()) {
        errors.required(&format!("{at}.{first}.{name}"), "");
    }
    for other in given {
        errors.forbidden(&format!("{at}.{other}"), "may not specify more than 1 volume type");
    }
}

pub(super) fn mounts(list: &Value, at: &str, volumes: &[&str], errors: &mut Errors) {
    let mut paths = Vec::new();
    for (index, mount) in entries(list) {
        let at = format!("{at}[{index}]");
        let (name, path) = (text(&mount["name"]), text(&mount["mountPath"]));
        if name.is_empty() {
            errors.required(&format!("{at}.name"), "");
        } else if !volumes.contains(&name) {
            errors.not_found(&format!("{at}.name"), &mount["name"]);
        }
        if path.is_empty() {
            errors.required(&format!("{at}.mountPath"), "");
        } else if paths.contains(&path) {
            errors.invalid(&format!("{at}.mountPath"), &mount["mountPath"], "must be unique");
        }
        paths.push(path);
    }
}
