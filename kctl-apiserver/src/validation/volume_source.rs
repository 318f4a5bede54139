//! Validation of one volume source, of a Pod or of a `PersistentVolume`.
//!
//! `NEEDED` has the fields that must be present; the functions below have the rules that relate
//! fields to each other. Most sources are drivers that Kubernetes has removed; their objects are
//! still validated, so that clients get the same errors. Paths in errors follow upstream, including
//! its misspelt field names, such as `initiatorname`.
//!
//! Upstream: `validateVolumeSource` and `ValidatePersistentVolumeSpec` in
//! `pkg/apis/core/validation/validation.go`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    names::NameRule,
    validation::{format, paths},
};

/// The owner of a source: a Pod, or the `PersistentVolume` of this name.
///
/// The owner determines the namespace: a Pod refers to objects of its namespace, a
/// `PersistentVolume` has none and must name one.
#[derive(Clone, Copy)]
pub(crate) enum SourceOwner<'a> {
    /// A volume of a Pod or Pod template.
    Pod,
    /// A `PersistentVolume`, with its name for the rule about the length of iSCSI interfaces.
    Cluster(&'a str),
}

/// Required fields of each source.
///
/// An empty string or list counts as absent (`FieldValueRequired`). Sources without an entry have no required field, or
/// a function that validates it.
const NEEDED: &[(&str, &[&str])] = &[
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal"]),
    ("glusterfs", &["endpoints", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("configMap", &["name"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("image", &["reference"]),
];

/// Validates one source by its kind; `path` is the field path of the volume.
///
/// A source that needs more than presence has a case here. `hostPath` needs a path without `..`,
/// `nfs` an absolute path, disks a partition of 1 to 255 or 0. A negative `sizeLimit` of an
/// `emptyDir` is `FieldValueForbidden`.
pub(crate) fn source(kind: &str, source: &Value, owner: SourceOwner<'_>, path: &str, errors: &mut Errors) {
    // The only source whose name in kube-apiserver's error paths differs from its JSON name.
    let path = format!("{path}.{}", if kind == "gcePersistentDisk" { "persistentDisk" } else { kind });
    let needed =
        NEEDED.iter().find(|(source_kind, _)| *source_kind == kind).map_or(&[] as &[&str], |(_, fields)| fields);
    let is_there = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty()) || !text(value).is_empty();
    for field in needed.iter().filter(|field| !is_there(&source[**field])) {
        errors.required(&format!("{path}.{field}"), "");
    }
    match kind {
        "emptyDir" if text(&source["sizeLimit"]).starts_with('-') => {
            errors.forbidden(&format!("{path}.sizeLimit"), "SizeLimit field must be a valid resource quantity");
        }
        "hostPath" if text(&source["path"]).is_empty() => errors.required(&format!("{path}.path"), ""),
        "hostPath" => paths::without_backsteps(&source["path"], &format!("{path}.path"), errors),
        "gitRepo" => paths::descending(&source["directory"], &format!("{path}.directory"), errors),
        "nfs" if !text(&source["path"]).starts_with('/') => {
            errors.invalid(&format!("{path}.path"), &text(&source["path"]).into(), "must be an absolute path");
        }
        // Zero means that the field is unset.
        "gcePersistentDisk" | "awsElasticBlockStore" if source["partition"] != 0 => {
            errors.in_range(&format!("{path}.partition"), &source["partition"], 1, 255);
        }
        "azureFile" | "glusterfs" => namespace(source, &path, errors),
        "cinder" | "storageos" => storage_with_a_secret(kind, source, owner, &path, errors),
        "iscsi" => iscsi(source, owner, &path, errors),
        "flocker" => flocker(source, &path, errors),
        "quobyte" => quobyte(source, &path, errors),
        "fc" => fibre_channel(source, &path, errors),
        "flexVolume" => flex(source, &path, errors),
        "azureDisk" => azure_disk(source, &path, errors),
        "csi" => csi(source, owner, &path, errors),
        _ => {}
    }
}

/// Validates the namespace of a Secret (`azureFile`) or of endpoints (`glusterfs`) that a
/// `PersistentVolume` names.
///
/// Empty is an error, absent is valid: the fields are pointers in Go. A Pod's sources do not have
/// these fields.
fn namespace(source: &Value, path: &str, errors: &mut Errors) {
    if source["secretNamespace"] == "" {
        errors.required(&format!("{path}.secretNamespace"), "");
    }
    let (endpoints, path) = (&source["endpointsNamespace"], format!("{path}.endpointsNamespace"));
    if endpoints == "" {
        errors.invalid(&path, endpoints, "if the endpointnamespace is set, it must be a valid namespace name");
    } else if endpoints.is_string() {
        errors.name(&path, endpoints, NameRule::Label);
    }
}

/// Validates `cinder` and `storageos`: a `secretRef` needs a name, and in a `PersistentVolume` a
/// namespace. `storageos` also needs the name of the volume as a DNS label.
fn storage_with_a_secret(kind: &str, source: &Value, owner: SourceOwner<'_>, path: &str, errors: &mut Errors) {
    if kind == "storageos" {
        errors.required_name(&format!("{path}.volumeName"), &source["volumeName"], NameRule::Label);
        if !text(&source["volumeNamespace"]).is_empty() {
            errors.name(&format!("{path}.volumeNamespace"), &source["volumeNamespace"], NameRule::Label);
        }
    }
    let fields: &[&str] = if matches!(owner, SourceOwner::Pod) { &["name"] } else { &["name", "namespace"] };
    let secret = &source["secretRef"];
    for field in fields.iter().filter(|field| secret.is_object() && text(&secret[**field]).is_empty()) {
        errors.required(&format!("{path}.secretRef.{field}"), "");
    }
}

/// Names of iSCSI initiators, by their first three letters (`iscsiInitiatorIqnRegex` and its
/// siblings).
///
/// The first expression is not anchored at its start, as in upstream: characters before `iqn.` are accepted. The dots
/// after `eui` and `naa` match any character.
static INITIATORS: LazyLock<[(&str, Regex); 3]> = LazyLock::new(|| {
    let regex = |pattern| Regex::new(pattern).expect("the pattern is one");
    [
        ("iqn", regex(r"iqn\.[0-9]{4}-[0-9]{2}\.([[:alnum:].-]+)(:[^,;*&$|\t\n\f\r ]+)$")),
        ("eui", regex(r"^eui.[[:alnum:]]{16}$")),
        ("naa", regex(r"^naa.[[:alnum:]]{32}$")),
    ]
});

/// Validates the name of an initiator or target (`FieldValueInvalid`).
fn initiator(name: &Value, path: &str, errors: &mut Errors) {
    let form = INITIATORS.iter().find(|(start, _)| text(name).starts_with(start));
    if !form.is_some_and(|(_, form)| form.is_match(text(name))) {
        errors.invalid(path, name, "must be an iSCSI name that starts with iqn, eui or naa");
    }
}

/// Maximum length of volume name, colon and portal, in bytes, if an initiator is named.
///
/// kubelet names the iSCSI interface after them.
const PORTAL_LEN_MAX: usize = 64;
/// Detail of the error about the length of volume name and portal, with the bound of `PORTAL_LEN_MAX`.
const PORTAL_TOO_LONG: &str = "the volume name and iscsi.targetPortal must have at most 63 bytes together if \
                               iscsi.initiatorName is set";

/// Returns `true` if the name of the volume and the portal are too long for the name of an iSCSI interface.
///
/// `volume` is the name of the Pod's volume or of the `PersistentVolume`. Without an initiator no
/// interface is created, so the length does not matter.
pub(crate) fn has_long_portal(source: &Value, volume: &str) -> bool {
    source["initiatorName"].is_string() && volume.len() + 1 + text(&source["targetPortal"]).len() > PORTAL_LEN_MAX
}

/// Adds the error about the length of the portal at `field`: the volume's name in a Pod, else the
/// portal.
pub(crate) fn portal_is_too_long(field: &str, value: &Value, errors: &mut Errors) {
    errors.invalid(field, value, PORTAL_TOO_LONG);
}

/// Validates an iSCSI source: target name (`FieldValueRequired`), LUN of 0 to 255, initiator and
/// CHAP secret.
///
/// CHAP authentication needs a secret; in a `PersistentVolume` the secret needs a name. Upstream:
/// `validateISCSIVolumeSource` and `validateISCSIPersistentVolumeSource`.
fn iscsi(source: &Value, owner: SourceOwner<'_>, path: &str, errors: &mut Errors) {
    if let SourceOwner::Cluster(name) = owner
        && has_long_portal(source, name)
    {
        portal_is_too_long(&format!("{path}.targetportal"), &source["targetPortal"], errors);
    }
    if text(&source["iqn"]).is_empty() {
        errors.required(&format!("{path}.iqn"), "");
    } else {
        initiator(&source["iqn"], &format!("{path}.iqn"), errors);
    }
    errors.in_range(&format!("{path}.lun"), &source["lun"], 0, 255);
    let (secret, secret_path) = (&source["secretRef"], format!("{path}.secretRef"));
    let asks = ["chapAuthDiscovery", "chapAuthSession"].iter().any(|field| source[*field] == true);
    if asks && secret.is_null() {
        errors.required(&secret_path, "");
    }
    if matches!(owner, SourceOwner::Cluster(_)) && secret.is_object() && text(&secret["name"]).is_empty() {
        errors.required(&format!("{secret_path}.name"), "");
    }
    if source["initiatorName"].is_string() {
        initiator(&source["initiatorName"], &format!("{path}.initiatorname"), errors);
    }
}

/// Validates a Flocker source: exactly one of name and UUID of the dataset, and no slash in the
/// name.
fn flocker(source: &Value, path: &str, errors: &mut Errors) {
    let (name, uuid) = (text(&source["datasetName"]), text(&source["datasetUUID"]));
    if name.is_empty() && uuid.is_empty() {
        errors.required(path, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        errors.invalid(path, &"resource".into(), "datasetName and datasetUUID can not be specified simultaneously");
    }
    if name.contains('/') {
        errors.invalid(&format!("{path}.datasetName"), &name.into(), "must not contain '/'");
    }
}

/// Maximum length of a Quobyte tenant, in bytes.
///
/// The error is `FieldValueRequired`, upstream's choice for a tenant that is too long.
const TENANT_LEN_MAX: usize = 64;

/// Validates a Quobyte source: a registry of host and port pairs with commas between them, and a
/// volume.
///
/// Each invalid pair adds the same error about the whole registry. The tenant is only validated if the registry is set,
/// and the pairs only if the tenant is valid.
fn quobyte(source: &Value, path: &str, errors: &mut Errors) {
    let (registry, registry_path) = (text(&source["registry"]), format!("{path}.registry"));
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    if registry.is_empty() {
        errors.required(&registry_path, detail);
    } else if text(&source["tenant"]).len() > TENANT_LEN_MAX {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&format!("{path}.tenant"), detail);
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.invalid(&registry_path, &registry.into(), detail);
        }
    }
    if text(&source["volume"]).is_empty() {
        errors.required(&format!("{path}.volume"), "");
    }
}

/// Returns `true` if Go's `net.SplitHostPort` accepts the pair. Both parts may be empty.
///
/// An IPv6 address needs square brackets. The port is not checked to be a number.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(inside) => inside.strip_suffix(']'),
        None => Some(host).filter(|host| !host.contains(':')),
    };
    host.is_some_and(|host| !host.contains(['[', ']'])) && !port.contains(['[', ']'])
}

/// Validates a Fibre Channel source: either world-wide names or ids, and a LUN of 0 to 255 with the
/// former.
fn fibre_channel(source: &Value, path: &str, errors: &mut Errors) {
    let has = |field: &str| source[field].as_array().is_some_and(|list| !list.is_empty());
    let names_path = format!("{path}.targetWWNs");
    match (has("targetWWNs"), has("wwids")) {
        (false, false) => errors.required(&names_path, "must specify either targetWWNs or wwids, but not both"),
        (true, true) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.invalid(&names_path, &source["targetWWNs"], detail);
        }
        _ => {}
    }
    if has("targetWWNs") && source["lun"].is_null() {
        errors.required(&format!("{path}.lun"), "lun is required if targetWWNs is specified");
    } else if has("targetWWNs") {
        errors.in_range(&format!("{path}.lun"), &source["lun"], 0, 255);
    }
}

/// Rejects options of `FlexVolume` drivers in the domains `kubernetes.io` and `k8s.io`, also as
/// subdomains, since kubelet passes its own options under them (`FieldValueInvalid`).
fn flex(source: &Value, path: &str, errors: &mut Errors) {
    for (option, _) in pairs(&source["options"]) {
        let namespace = format!(".{}", option.split('/').next().unwrap_or_default().to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid(&format!("{path}.options[{option}]"), &option.into(), detail);
        }
    }
}

/// Validates that the URI of an Azure disk fits its kind: a resource path for `Managed`, else a
/// blob's URL.
///
/// The error is `FieldValueNotSupported` with the expected form.
fn azure_disk(source: &Value, path: &str, errors: &mut Errors) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (start, form) = match source["kind"].as_str() {
        None => return,
        Some("Managed") => ("/subscriptions/", MANAGED),
        Some(_) => ("https://", BLOB),
    };
    let uri = text(&source["diskURI"]);
    if !uri.starts_with(start) {
        errors.unsupported(&format!("{path}.diskURI"), &uri.into(), &[form]);
    }
}

/// Validates a CSI source: the driver, and references to Secrets.
///
/// A Pod has one optional secret, whose name error lacks a part of its path. A `PersistentVolume`
/// needs a volume handle and may have secrets for each phase, each with name and namespace. As
/// upstream, `nodeStageSecretRef` is not validated.
fn csi(source: &Value, owner: SourceOwner<'_>, path: &str, errors: &mut Errors) {
    format::driver(&source["driver"], &format!("{path}.driver"), errors);
    if let SourceOwner::Pod = owner {
        let secret = &source["nodePublishSecretRef"];
        match text(&secret["name"]) {
            _ if secret.is_null() => {}
            "" => errors.required(&format!("{path}.nodePublishSecretRef.name"), ""),
            // kube-apiserver leaves out the middle of the path.
            _ => errors.name(&format!("{path}.name"), &secret["name"], NameRule::Subdomain),
        }
        return;
    }
    if text(&source["volumeHandle"]).is_empty() {
        errors.required(&format!("{path}.volumeHandle"), "");
    }
    // Upstream does not validate `nodeStageSecretRef`.
    let secrets =
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];
    for (name, secret) in secrets.map(|name| (name, &source[name])).into_iter().filter(|(_, secret)| secret.is_object())
    {
        errors.required_name(&format!("{path}.{name}.name"), &secret["name"], NameRule::Subdomain);
        errors.required_name(&format!("{path}.{name}.namespace"), &secret["namespace"], NameRule::Label);
    }
}
