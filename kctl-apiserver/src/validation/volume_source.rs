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
    field::Field,
    field_errors::text,
    names::NameRule,
    validation::{format, paths},
};

/// The owner of a source: a Pod, or the `PersistentVolume` of this name. A Pod refers to objects of its namespace, a
/// `PersistentVolume` has none and must name one.
#[derive(Clone, Copy)]
pub(crate) enum SourceOwner<'a> {
    /// A volume of a Pod or Pod template.
    Pod,
    /// A `PersistentVolume`, with its name for the rule about the length of iSCSI interfaces.
    Cluster(&'a str),
}

/// Required fields of each source. Sources without an entry have no required field, or a function that validates it.
const NEEDED: &[(&str, &[&str])] = &[
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("hostPath", &["path"]),
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

/// Validates one source of a volume by its kind. A source that needs more than presence has a case here.
pub(crate) fn validate_source(kind: &str, volume: &Field<'_>, owner: SourceOwner<'_>) {
    // The only source whose name in kube-apiserver's error paths differs from its JSON name.
    let name_in_error = if kind == "gcePersistentDisk" { "persistentDisk" } else { kind };
    let source = &volume.at_with(name_in_error, &volume[kind]);
    if let Some((_, needed)) = NEEDED.iter().find(|(source_kind, _)| *source_kind == kind) {
        source.require_children(needed);
    }
    match kind {
        "emptyDir" => {
            let limit = source.at("sizeLimit");
            limit.forbidden_if(limit.text().starts_with('-'), "must not be negative");
        }
        "hostPath" => source.at("path").check(paths::without_backsteps),
        "gitRepo" => source.at("directory").check(paths::validate_descending),
        "nfs" => {
            let path = source.at("path");
            path.invalid_if(!path.text().starts_with('/'), "must be an absolute path");
        }
        // Zero means that the field is unset.
        "gcePersistentDisk" | "awsElasticBlockStore" => source.at("partition").in_range(0, 255),
        "azureFile" | "glusterfs" => validate_namespace(source),
        "cinder" | "storageos" => validate_storage_with_secret(kind, source, owner),
        "iscsi" => validate_iscsi(source, owner),
        "flocker" => validate_flocker(source),
        "quobyte" => validate_quobyte(source),
        "fc" => validate_fibre_channel(source),
        "flexVolume" => validate_flex(source),
        "azureDisk" => validate_azure_disk(source),
        "csi" => validate_csi(source, owner),
        _ => {}
    }
}

/// Validates the namespace of a Secret (`azureFile`) or of endpoints (`glusterfs`) that a `PersistentVolume` names.
/// Empty is an error, absent is valid: the fields are pointers in Go. A Pod's sources do not have these fields.
fn validate_namespace(source: &Field<'_>) {
    let secret = source.at("secretNamespace");
    secret.required_if(*secret == "");
    source.at("endpointsNamespace").when_present(|namespace| namespace.name(NameRule::Label));
}

/// Validates `cinder` and `storageos`.
fn validate_storage_with_secret(kind: &str, source: &Field<'_>, owner: SourceOwner<'_>) {
    if kind == "storageos" {
        source.at("volumeName").required_name(NameRule::Label);
        source.at("volumeNamespace").name_if_set(NameRule::Label);
    }
    let needed: &[&str] = if matches!(owner, SourceOwner::Pod) { &["name"] } else { &["name", "namespace"] };
    source.at("secretRef").when_present(|secret| secret.require_children(needed));
}

/// Names of iSCSI initiators, by their first three letters (`iscsiInitiatorIqnRegex` and its siblings). The first
/// expression is not anchored at its start, as in upstream: characters before `iqn.` are accepted. The dots after `eui`
/// and `naa` match any character.
static INITIATORS: LazyLock<[(&str, Regex); 3]> = LazyLock::new(|| {
    let regex = |pattern| Regex::new(pattern).expect("the pattern is valid");
    [
        ("iqn", regex(r"iqn\.[0-9]{4}-[0-9]{2}\.([[:alnum:].-]+)(:[^,;*&$|\t\n\f\r ]+)$")),
        ("eui", regex(r"^eui.[[:alnum:]]{16}$")),
        ("naa", regex(r"^naa.[[:alnum:]]{32}$")),
    ]
});

/// Validates the name of an initiator or target.
fn validate_initiator(name: &Field<'_>) {
    let form = INITIATORS.iter().find(|(start, _)| name.text().starts_with(start));
    let is_valid = form.is_some_and(|(_, form)| form.is_match(name.text()));
    name.invalid_if(!is_valid, "must be an iSCSI name that starts with iqn, eui or naa");
}

/// Maximum length of volume name, colon and portal, in bytes, if an initiator is named: kubelet names the iSCSI
/// interface after them.
const PORTAL_LEN_MAX: usize = 64;
/// Detail of the error about the length of volume name and portal, with the bound of `PORTAL_LEN_MAX`. In a Pod it is
/// at the name of the volume, else at the portal.
pub(crate) const PORTAL_TOO_LONG: &str = "the volume name and iscsi.targetPortal must have at most 63 bytes together \
                                          if iscsi.initiatorName is set";

/// Returns `true` if the name of the volume and the portal are too long for the name of an iSCSI interface. Without an
/// initiator no interface is created.
pub(crate) fn has_long_portal(source: &Value, volume: &str) -> bool {
    source["initiatorName"].is_string() && volume.len() + 1 + text(&source["targetPortal"]).len() > PORTAL_LEN_MAX
}

/// Validates an iSCSI source (`validateISCSIVolumeSource` and `validateISCSIPersistentVolumeSource`). CHAP
/// authentication needs a secret.
fn validate_iscsi(source: &Field<'_>, owner: SourceOwner<'_>) {
    let (name, secret) = (source.at("iqn"), source.at("secretRef"));
    if let SourceOwner::Cluster(volume) = owner {
        let portal = source.at_with("targetportal", &source["targetPortal"]);
        portal.invalid_if(has_long_portal(source, volume), PORTAL_TOO_LONG);
        secret.when_present(|secret| secret.require_children(&["name"]));
    }
    if name.require_value() {
        validate_initiator(&name);
    }
    source.at("lun").in_range(0, 255);
    let has_login = ["chapAuthDiscovery", "chapAuthSession"].iter().any(|field| source[*field] == true);
    secret.required_if(has_login && secret.is_null());
    if source["initiatorName"].is_string() {
        validate_initiator(&source.at_with("initiatorname", &source["initiatorName"]));
    }
}

/// Validates a Flocker source.
fn validate_flocker(source: &Field<'_>) {
    let (name, uuid) = (source.at("datasetName"), source.at("datasetUUID"));
    source
        .required_with_if(name.is_empty() && uuid.is_empty(), "exactly one of datasetName and datasetUUID must be set");
    let detail = "datasetName and datasetUUID can not be specified simultaneously";
    source.invalid_if(!name.is_empty() && !uuid.is_empty(), detail);
    name.invalid_if(name.text().contains('/'), "must not contain '/'");
}

/// Maximum length of a Quobyte tenant, in bytes. The error about a longer one is `FieldValueRequired`, upstream's
/// choice.
const TENANT_LEN_MAX: usize = 64;

/// Validates a Quobyte source. The tenant is only validated if the registry is set, and the pairs only if the tenant is
/// valid.
fn validate_quobyte(source: &Field<'_>) {
    let (registry, tenant) = (source.at("registry"), source.at("tenant"));
    source.require_children(&["registry", "volume"]);
    if !registry.is_empty() && tenant.text().len() > TENANT_LEN_MAX {
        tenant.required_with(format_args!("must be a UUID of at most {TENANT_LEN_MAX} bytes"));
    } else if !registry.is_empty() {
        let are_pairs = registry.text().split(',').all(is_host_and_port);
        registry.invalid_if(!are_pairs, "must be a host:port pair or multiple pairs separated by commas");
    }
}

/// Returns `true` if Go's `net.SplitHostPort` accepts the pair. Both parts may be empty. An IPv6 address needs square
/// brackets. The port is not checked to be a number.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(inside) => inside.strip_suffix(']'),
        None => Some(host).filter(|host| !host.contains(':')),
    };
    host.is_some_and(|host| !host.contains(['[', ']'])) && !port.contains(['[', ']'])
}

/// Validates a Fibre Channel source: either world-wide names, which need a LUN, or ids.
fn validate_fibre_channel(source: &Field<'_>) {
    let (names, ids, lun) = (source.at("targetWWNs"), source.at("wwids"), source.at("lun"));
    names.required_with_if(names.is_empty() && ids.is_empty(), "exactly one of targetWWNs and wwids must be set");
    if !names.is_empty() {
        names.invalid_if(!ids.is_empty(), "targetWWNs and wwids can not be specified simultaneously");
        lun.required_with_if(lun.is_null(), "must be set when targetWWNs is set");
        lun.in_range(0, 255);
    }
}

/// Rejects options of `FlexVolume` drivers in the domains `kubernetes.io` and `k8s.io`, also as subdomains, since
/// kubelet passes its own options under them.
fn validate_flex(source: &Field<'_>) {
    for (name, option) in source.at("options").entries() {
        let namespace = format!(".{}", name.split('/').next().unwrap_or_default().to_lowercase());
        let is_reserved = namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io");
        option.with(&name.into()).invalid_if(is_reserved, "must not be in the domains kubernetes.io and k8s.io");
    }
}

/// Validates that the URI of an Azure disk fits its kind. The error is `FieldValueNotSupported` with the expected form.
fn validate_azure_disk(source: &Field<'_>) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (start, form) = match source["kind"].as_str() {
        None => return,
        Some("Managed") => ("/subscriptions/", MANAGED),
        Some(_) => ("https://", BLOB),
    };
    let uri = source.at("diskURI");
    uri.unsupported_if(!uri.text().starts_with(start), &[form]);
}

/// Validates a CSI source: the driver, and references to Secrets. As upstream, `nodeStageSecretRef` is not validated.
fn validate_csi(source: &Field<'_>, owner: SourceOwner<'_>) {
    const SECRETS: [&str; 4] =
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];
    source.at("driver").check(format::validate_driver_name);
    if let SourceOwner::Pod = owner {
        return source.at("nodePublishSecretRef").when_present(|secret| {
            secret.require_children(&["name"]);
            // kube-apiserver leaves out the middle of the path.
            source.at_with("name", &secret["name"]).name_if_set(NameRule::Subdomain);
        });
    }
    source.require_children(&["volumeHandle"]);
    for secret in SECRETS.map(|name| source.at(name)).iter().filter(|secret| secret.is_object()) {
        secret.at("name").required_name(NameRule::Subdomain);
        secret.at("namespace").required_name(NameRule::Label);
    }
}
