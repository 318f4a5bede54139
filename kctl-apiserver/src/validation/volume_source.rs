//! Validation of one volume source, of a Pod or of a `PersistentVolume`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    names::NameRule,
    validation::paths,
};

/// The owner of a source: a Pod, or the `PersistentVolume` of this name.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    Pod,
    Cluster(&'a str),
}

/// Required fields of each source.
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

/// Validates one source by its kind; `at` is the path of the volume.
pub(crate) fn source(kind: &str, source: &Value, of: Of<'_>, at: &str, errors: &mut Errors) {
    // The one name that the real server's paths and its objects do not share.
    let at = format!("{at}.{}", if kind == "gcePersistentDisk" { "persistentDisk" } else { kind });
    let needed = NEEDED.iter().find(|(of, _)| *of == kind).map_or(&[] as &[&str], |(_, fields)| fields);
    let is_there = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty()) || !text(value).is_empty();
    for field in needed.iter().filter(|field| !is_there(&source[**field])) {
        errors.required(&format!("{at}.{field}"), "");
    }
    match kind {
        "emptyDir" if text(&source["sizeLimit"]).starts_with('-') => {
            errors.forbidden(&format!("{at}.sizeLimit"), "SizeLimit field must be a valid resource quantity");
        }
        "hostPath" if text(&source["path"]).is_empty() => errors.required(&format!("{at}.path"), ""),
        "hostPath" => paths::without_backsteps(&source["path"], &format!("{at}.path"), errors),
        "gitRepo" => paths::descending(&source["directory"], &format!("{at}.directory"), errors),
        "nfs" if !text(&source["path"]).starts_with('/') => {
            errors.invalid(&format!("{at}.path"), &text(&source["path"]).into(), "must be an absolute path");
        }
        // Zero means that the field is unset.
        "gcePersistentDisk" | "awsElasticBlockStore" if source["partition"] != 0 => {
            errors.in_range(&format!("{at}.partition"), &source["partition"], 1, 255);
        }
        "azureFile" | "glusterfs" => namespace(source, &at, errors),
        "cinder" | "storageos" => storage_with_a_secret(kind, source, of, &at, errors),
        "iscsi" => iscsi(source, of, &at, errors),
        "flocker" => flocker(source, &at, errors),
        "quobyte" => quobyte(source, &at, errors),
        "fc" => fibre_channel(source, &at, errors),
        "flexVolume" => flex(source, &at, errors),
        "azureDisk" => azure_disk(source, &at, errors),
        "csi" => csi(source, of, &at, errors),
        _ => {}
    }
}

/// The namespace of what a `PersistentVolume` names.
fn namespace(source: &Value, at: &str, errors: &mut Errors) {
    if source["secretNamespace"] == "" {
        errors.required(&format!("{at}.secretNamespace"), "");
    }
    let (endpoints, at) = (&source["endpointsNamespace"], format!("{at}.endpointsNamespace"));
    if endpoints == "" {
        errors.invalid(&at, endpoints, "if the endpointnamespace is set, it must be a valid namespace name");
    } else if endpoints.is_string() {
        errors.name(&at, endpoints, NameRule::Label);
    }
}

fn storage_with_a_secret(kind: &str, source: &Value, of: Of<'_>, at: &str, errors: &mut Errors) {
    if kind == "storageos" {
        errors.required_name(&format!("{at}.volumeName"), &source["volumeName"], NameRule::Label);
        if !text(&source["volumeNamespace"]).is_empty() {
            errors.name(&format!("{at}.volumeNamespace"), &source["volumeNamespace"], NameRule::Label);
        }
    }
    let fields: &[&str] = if matches!(of, Of::Pod) { &["name"] } else { &["name", "namespace"] };
    let secret = &source["secretRef"];
    for field in fields.iter().filter(|field| secret.is_object() && text(&secret[**field]).is_empty()) {
        errors.required(&format!("{at}.secretRef.{field}"), "");
    }
}

/// Names of initiators, by how they begin. The first need not begin there: what is before `iqn` counts as well.
static INITIATORS: LazyLock<[(&str, Regex); 3]> = LazyLock::new(|| {
    let regex = |pattern| Regex::new(pattern).expect("the pattern is one");
    [
        ("iqn", regex(r"iqn\.[0-9]{4}-[0-9]{2}\.([[:alnum:].-]+)(:[^,;*&$|\t\n\f\r ]+)$")),
        ("eui", regex(r"^eui.[[:alnum:]]{16}$")),
        ("naa", regex(r"^naa.[[:alnum:]]{32}$")),
    ]
});

fn initiator(name: &Value, of: Of<'_>, at: &str, errors: &mut Errors) {
    let form = INITIATORS.iter().find(|(start, _)| text(name).starts_with(start));
    match (form, of) {
        (None, Of::Pod) => errors.invalid(at, name, "must be valid format starting with iqn, eui, or naa"),
        (Some((_, form)), _) if form.is_match(text(name)) => {}
        _ => errors.invalid(at, name, "must be valid format"),
    }
}

/// Bytes of the name of a volume, a colon and a portal, where an initiator is named.
const PORTAL_LEN_MAX: usize = 64;
const PORTAL_TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                               iscsi.initiatorName is specified.";

/// Returns `true` if the name of the volume and the portal are too long for the name of an iSCSI interface.
pub(crate) fn has_long_portal(source: &Value, volume: &str) -> bool {
    source["initiatorName"].is_string() && volume.len() + 1 + text(&source["targetPortal"]).len() > PORTAL_LEN_MAX
}

/// The same as an error at a field of the volume.
pub(crate) fn portal_is_too_long(field: &str, value: &Value, errors: &mut Errors) {
    errors.invalid(field, value, PORTAL_TOO_LONG);
}

fn iscsi(source: &Value, of: Of<'_>, at: &str, errors: &mut Errors) {
    if let Of::Cluster(name) = of
        && has_long_portal(source, name)
    {
        portal_is_too_long(&format!("{at}.targetportal"), &source["targetPortal"], errors);
    }
    if text(&source["iqn"]).is_empty() {
        errors.required(&format!("{at}.iqn"), "");
    } else {
        initiator(&source["iqn"], of, &format!("{at}.iqn"), errors);
    }
    errors.in_range(&format!("{at}.lun"), &source["lun"], 0, 255);
    let (secret, secret_at) = (&source["secretRef"], format!("{at}.secretRef"));
    let asks = ["chapAuthDiscovery", "chapAuthSession"].iter().any(|field| source[*field] == true);
    if asks && secret.is_null() {
        errors.required(&secret_at, "");
    }
    if matches!(of, Of::Cluster(_)) && secret.is_object() && text(&secret["name"]).is_empty() {
        errors.required(&format!("{secret_at}.name"), "");
    }
    if source["initiatorName"].is_string() {
        initiator(&source["initiatorName"], of, &format!("{at}.initiatorname"), errors);
    }
}

fn flocker(source: &Value, at: &str, errors: &mut Errors) {
    let (name, uuid) = (text(&source["datasetName"]), text(&source["datasetUUID"]));
    if name.is_empty() && uuid.is_empty() {
        errors.required(at, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        errors.invalid(at, &"resource".into(), "datasetName and datasetUUID can not be specified simultaneously");
    }
    if name.contains('/') {
        errors.invalid(&format!("{at}.datasetName"), &name.into(), "must not contain '/'");
    }
}

/// Maximum length of a Quobyte tenant, in bytes.
const TENANT_LEN_MAX: usize = 64;

fn quobyte(source: &Value, at: &str, errors: &mut Errors) {
    let (registry, registry_at) = (text(&source["registry"]), format!("{at}.registry"));
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    if registry.is_empty() {
        errors.required(&registry_at, detail);
    } else if text(&source["tenant"]).len() > TENANT_LEN_MAX {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&format!("{at}.tenant"), detail);
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.invalid(&registry_at, &registry.into(), detail);
        }
    }
    if text(&source["volume"]).is_empty() {
        errors.required(&format!("{at}.volume"), "");
    }
}

/// Returns `true` if Go's `net.SplitHostPort` accepts the pair. Both parts may be empty.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(inside) => inside.strip_suffix(']'),
        None => Some(host).filter(|host| !host.contains(':')),
    };
    host.is_some_and(|host| !host.contains(['[', ']'])) && !port.contains(['[', ']'])
}

fn fibre_channel(source: &Value, at: &str, errors: &mut Errors) {
    let has = |field: &str| source[field].as_array().is_some_and(|list| !list.is_empty());
    let names_at = format!("{at}.targetWWNs");
    match (has("targetWWNs"), has("wwids")) {
        (false, false) => errors.required(&names_at, "must specify either targetWWNs or wwids, but not both"),
        (true, true) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.invalid(&names_at, &source["targetWWNs"], detail);
        }
        _ => {}
    }
    if has("targetWWNs") && source["lun"].is_null() {
        errors.required(&format!("{at}.lun"), "lun is required if targetWWNs is specified");
    } else if has("targetWWNs") {
        errors.in_range(&format!("{at}.lun"), &source["lun"], 0, 255);
    }
}

fn flex(source: &Value, at: &str, errors: &mut Errors) {
    for (option, _) in pairs(&source["options"]) {
        let namespace = format!(".{}", option.split('/').next().unwrap_or_default().to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid(&format!("{at}.options[{option}]"), &option.into(), detail);
        }
    }
}

fn azure_disk(source: &Value, at: &str, errors: &mut Errors) {
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
        errors.unsupported(&format!("{at}.diskURI"), &format!("{uri:?}"), &[form]);
    }
}

/// Maximum length of the name of a CSI driver, in bytes.
const DRIVER_LEN_MAX: usize = 63;

fn csi(source: &Value, of: Of<'_>, at: &str, errors: &mut Errors) {
    driver(&source["driver"], &format!("{at}.driver"), errors);
    if let Of::Pod = of {
        let secret = &source["nodePublishSecretRef"];
        match text(&secret["name"]) {
            _ if secret.is_null() => {}
            "" => errors.required(&format!("{at}.nodePublishSecretRef.name"), ""),
            // The real server leaves out the middle of the path.
            _ => errors.name(&format!("{at}.name"), &secret["name"], NameRule::Subdomain),
        }
        return;
    }
    if text(&source["volumeHandle"]).is_empty() {
        errors.required(&format!("{at}.volumeHandle"), "");
    }
    // The secret of the stage is not looked at.
    let secrets =
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];
    for (name, secret) in secrets.map(|name| (name, &source[name])).into_iter().filter(|(_, secret)| secret.is_object())
    {
        errors.required_name(&format!("{at}.{name}.name"), &secret["name"], NameRule::Subdomain);
        errors.required_name(&format!("{at}.{name}.namespace"), &secret["namespace"], NameRule::Label);
    }
}

pub(crate) fn driver(name: &Value, at: &str, errors: &mut Errors) {
    let driver = text(name);
    if driver.is_empty() {
        return errors.required(at, "");
    }
    if driver.len() > DRIVER_LEN_MAX {
        errors.too_long(at, DRIVER_LEN_MAX);
    }
    if let Some(message) = NameRule::Subdomain.check(&driver.to_lowercase()) {
        errors.invalid(at, name, message);
    }
}
