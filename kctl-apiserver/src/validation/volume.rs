//! Validation of the volumes of a Pod, and of the sources that consist of several parts.
//!
//! A volume has a name and exactly one source. `volume_source` has the rules of single sources, which volumes of Pods
//! share with `PersistentVolume`s. This module validates sources that only Pods have: files of Secrets and
//! `ConfigMap`s, the downward API, projections and ephemeral claims.
//!
//! Upstream: `ValidateVolumes`, `validateVolumeSource` and `validateProjectionSources` in
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    metadata,
    names::NameRule,
    validation::{
        downward, entries, paths, selector, signer, volume_claim,
        volume_source::{self, SourceOwner},
    },
};

/// The volume sources, in the order in which kube-apiserver checks them.
///
/// If a volume has several, the first of this order is validated; the others are
/// `FieldValueForbidden`.
const SOURCES: &[&str] = &[
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
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// A volume that containers may use.
///
/// A volume with errors is left out, so a mount of it is also reported as missing.
pub(crate) struct DeclaredVolume<'a> {
    /// The name by which mounts and devices refer to it.
    pub(crate) name: &'a str,
    /// `true` for a `PersistentVolumeClaim`, which can be a block device.
    ///
    /// Also `true` for an ephemeral volume, which is backed by a claim that is created for the Pod.
    pub(crate) is_claim: bool,
}

/// Validates the volumes of a Pod and returns the valid ones. `pod` is the name of the Pod, empty for a template.
///
/// Names are DNS labels and unique (`FieldValueDuplicate`). A volume must not use a claim that is created for an
/// ephemeral volume of the same Pod. That claim is named after Pod and volume, so the reference is detected by name. A
/// template has no Pod name yet and skips this rule.
pub(crate) fn volumes<'a>(list: &'a Value, pod: &str, path: &str, errors: &mut Errors) -> Vec<DeclaredVolume<'a>> {
    let mut volumes_before: Vec<DeclaredVolume<'a>> = Vec::new();
    for (index, volume) in entries(list) {
        let path = format!("{path}[{index}]");
        let (name, before) = (text(&volume["name"]), errors.len());
        source(volume, pod, &path, errors);
        errors.required_name(&format!("{path}.name"), &volume["name"], NameRule::Label);
        if volumes_before.iter().any(|volumes_before| volumes_before.name == name) {
            errors.duplicate(&format!("{path}.name"));
        }
        if errors.len() == before {
            let is_claim = volume["persistentVolumeClaim"].is_object() || volume["ephemeral"].is_object();
            volumes_before.push(DeclaredVolume { name, is_claim });
        }
        let claim = text(&volume["persistentVolumeClaim"]["claimName"]);
        let is_own = |other: &Value| {
            other["ephemeral"].is_object() && !pod.is_empty() && claim == format!("{pod}-{}", text(&other["name"]))
        };
        if !claim.is_empty() && entries(list).any(|(_, other)| is_own(other)) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid(&format!("{path}.persistentVolumeClaim.claimName"), &claim.into(), detail);
        }
    }
    volumes_before
}

/// Validates the source of a volume: at least one (`FieldValueRequired`), at most one
/// (`FieldValueForbidden`).
///
/// The claim of an ephemeral volume is named after the Pod and the volume, and must be a valid name
/// (`FieldValueInvalid` at the name of the volume). The length of an iSCSI portal together with the volume's name is
/// checked even if the volume has another source.
fn source(volume: &Value, pod: &str, path: &str, errors: &mut Errors) {
    let mut present = SOURCES.iter().filter(|source| volume[**source].is_object());
    let Some(first) = present.next() else {
        return errors.required(path, "must specify a volume type");
    };
    let name = text(&volume["name"]);
    one_source(first, &volume[*first], path, errors);
    if *first == "ephemeral" && !pod.is_empty() && !text(&volume["name"]).is_empty() {
        let claim = format!("{pod}-{}", text(&volume["name"]));
        if let Some(message) = NameRule::Subdomain.check(&claim) {
            errors.invalid(&format!("{path}.name"), &volume["name"], &format!("PVC name {claim:?}: {message}"));
        }
    }
    let portal = |kind: &str, errors: &mut Errors| {
        if kind == "iscsi" && volume_source::has_long_portal(&volume[kind], name) {
            volume_source::portal_is_too_long(&format!("{path}.name"), &name.into(), errors);
        }
    };
    portal(first, errors);
    for other in present {
        errors.leave_out(&format!("{path}.{other}."));
        errors.forbidden(&format!("{path}.{}", told_as(other)), "may not specify more than 1 volume type");
        portal(other, errors);
    }
}

/// Returns the name of a surplus source as its error spells it. Upstream misspells two of them.
fn told_as(source: &str) -> &str {
    match source {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        source => source,
    }
}

/// Validates one source by its kind: the shared rules, then those of the files that a Pod mounts.
///
/// `path` is the field path of the volume. Modes are 0 to 0777.
fn one_source(kind: &str, source: &Value, path: &str, errors: &mut Errors) {
    volume_source::source(kind, source, SourceOwner::Pod, path, errors);
    let path = format!("{path}.{kind}");
    match kind {
        "secret" | "configMap" => {
            paths::mode(&source["defaultMode"], &format!("{path}.defaultMode"), errors);
            items(&source["items"], &format!("{path}.items"), errors);
        }
        "downwardAPI" => {
            paths::mode(&source["defaultMode"], &format!("{path}.defaultMode"), errors);
            entries(&source["items"]).for_each(|(_, item)| file(item, &path, errors));
        }
        "projected" => projected(source, &path, errors),
        "ephemeral" => claim_of_pod(&source["volumeClaimTemplate"], &format!("{path}.volumeClaimTemplate"), errors),
        _ => {}
    }
}

/// Validates the keys of a Secret or `ConfigMap` that become files (`validateKeyToPath`).
///
/// Key and path are required; an empty path gets no second error. Several items may have the same
/// path here: a warning reports that, or an error in a projection.
fn items(list: &Value, path: &str, errors: &mut Errors) {
    for (index, item) in entries(list) {
        let path = format!("{path}[{index}]");
        for field in ["key", "path"].into_iter().filter(|field| text(&item[*field]).is_empty()) {
            errors.required(&format!("{path}.{field}"), "");
        }
        paths::not_reserved(&item["path"], &format!("{path}.path"), errors);
        paths::mode(&item["mode"], &format!("{path}.mode"), errors);
    }
}

/// Validates a file of the downward API.
///
/// The path is required. Exactly one of `fieldRef` and `resourceFieldRef` is set: none is
/// `FieldValueRequired`, both `FieldValueInvalid`, and then only the first is validated. Upstream:
/// `validateDownwardAPIVolumeFile`.
fn file(file: &Value, path: &str, errors: &mut Errors) {
    if text(&file["path"]).is_empty() {
        errors.required(&format!("{path}.path"), "");
    }
    paths::not_reserved(&file["path"], &format!("{path}.path"), errors);
    let (field, amount) = (&file["fieldRef"], &file["resourceFieldRef"]);
    if field.is_object() {
        downward::field(field, &format!("{path}.fieldRef"), downward::OF_FILES, errors);
        if amount.is_object() {
            errors.invalid(
                path,
                &"resource".into(),
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            );
        }
    } else if amount.is_object() {
        downward::amount(amount, &format!("{path}.resourceFieldRef"), downward::Target::File, errors);
    } else {
        errors.required(path, "one of fieldRef and resourceFieldRef is required");
    }
    paths::mode(&file["mode"], &format!("{path}.mode"), errors);
}

/// Validates a projected volume: each source, and the paths of all files, which share one
/// directory.
///
/// Two files with the same path are `FieldValueInvalid` at the volume. Paths of tokens are not compared. A source with
/// several members is `FieldValueForbidden`; one without a member is a warning only.
fn projected(volume: &Value, field_path: &str, errors: &mut Errors) {
    const KINDS: &[&str] =
        &["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
    const CONFLICT: &str = "two files have the same path";
    paths::mode(&volume["defaultMode"], &format!("{field_path}.defaultMode"), errors);
    let mut taken: Vec<Value> = Vec::new();
    let mut n_without_path = 0;
    let mut take = |path: &Value, errors: &mut Errors| {
        if taken.contains(path) {
            errors.invalid(field_path, path, CONFLICT);
        } else if !text(path).is_empty() {
            taken.push(path.clone());
        }
    };
    for (index, source) in entries(&volume["sources"]) {
        let source_path = format!("{field_path}.sources[{index}]");
        for kind in ["secret", "configMap"].into_iter().filter(|kind| source[*kind].is_object()) {
            let (projection, field_path) = (&source[kind], format!("{source_path}.{kind}"));
            if text(&projection["name"]).is_empty() {
                errors.required(&format!("{field_path}.name"), "");
            }
            items(&projection["items"], &format!("{field_path}.items"), errors);
            entries(&projection["items"]).for_each(|(_, item)| take(&item["path"], errors));
        }
        for (_, projection) in entries(&source["downwardAPI"]["items"]) {
            file(projection, &format!("{source_path}.downwardAPI"), errors);
            take(&projection["path"], errors);
        }
        token(&source["serviceAccountToken"], field_path, &format!("{source_path}.serviceAccountToken"), errors);
        if let bundle @ Value::Object(_) = &source["clusterTrustBundle"] {
            trust_bundle(bundle, &format!("{source_path}.clusterTrustBundle"), errors);
            take(&bundle["path"], errors);
            // Upstream compares the empty path, too.
            n_without_path += usize::from(text(&bundle["path"]).is_empty());
            if n_without_path > 1 && text(&bundle["path"]).is_empty() {
                errors.invalid(field_path, &"".into(), CONFLICT);
            }
        }
        if let certificate @ Value::Object(_) = &source["podCertificate"] {
            pod_certificate(certificate, &format!("{source_path}.podCertificate"), errors);
            for path in CERTIFICATE_PATHS {
                take(&certificate[path], errors);
            }
        }
        if KINDS.iter().filter(|kind| source[**kind].is_object()).count() > 1 {
            errors.forbidden(&source_path, "may not specify more than 1 volume type per source");
        }
    }
}

/// Validates a projected service account token. An error in its path is reported at the volume, as in kube-apiserver.
///
/// `path` is the field path of the token, `volume_path` that of the volume. The lifetime is 600 seconds to
/// 2^32 seconds (`FieldValueInvalid`); an absent one has been defaulted to an hour.
fn token(token: &Value, volume_path: &str, path: &str, errors: &mut Errors) {
    const LEAST: i64 = 600;
    const MOST: i64 = 1 << 32;
    if token.is_null() {
        return;
    }
    let (seconds, seconds_path) = (&token["expirationSeconds"], format!("{path}.expirationSeconds"));
    if seconds.as_i64().is_some_and(|seconds| seconds < LEAST) {
        errors.invalid(&seconds_path, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds.as_i64().is_some_and(|seconds| seconds > MOST) {
        errors.invalid(&seconds_path, seconds, "may not specify a duration larger than 2^32 seconds");
    }
    if text(&token["path"]).is_empty() {
        errors.required(&format!("{volume_path}.path"), "");
    } else {
        paths::not_reserved(&token["path"], &format!("{volume_path}.path"), errors);
    }
}

/// Validates a projected trust bundle: one by its name, or those of a signer that a selector matches.
fn trust_bundle(bundle: &Value, path: &str, errors: &mut Errors) {
    let (name, signer, selector) = (&bundle["name"], &bundle["signerName"], &bundle["labelSelector"]);
    match (name.as_str(), signer.as_str()) {
        (Some(_), Some(_)) => errors.invalid(path, bundle, "only one of name and signerName may be used"),
        (Some(text), None) => {
            let at_name = format!("{path}.name");
            if text.is_empty() {
                errors.required(&at_name, "must be a valid object name");
            }
            let signer = text.rsplit_once(':').map_or(String::new(), |(signer, _)| signer.replace(':', "/"));
            if let Some(why) = signer::problem_of_bundle_name(text, &signer, NameRule::check) {
                errors.invalid(&at_name, name, &why);
            }
            if !selector.is_null() {
                errors.invalid(&format!("{path}.labelSelector"), selector, "must be unset if name is specified");
            }
        }
        (None, Some(_)) => {
            signer::name(signer, &format!("{path}.signerName"), errors);
            selector::selector(selector, &format!("{path}.labelSelector"), errors);
        }
        (None, None) => errors.required(path, "either name or signerName must be specified"),
    }
    if text(&bundle["path"]).is_empty() {
        errors.required(&format!("{path}.path"), "");
    }
    paths::not_reserved(&bundle["path"], &format!("{path}.path"), errors);
}

/// Files of a projected certificate.
const CERTIFICATE_PATHS: [&str; 3] = ["credentialBundlePath", "keyPath", "certificateChainPath"];

/// Validates a projected certificate, for which a kubelet creates a `PodCertificateRequest`.
fn pod_certificate(certificate: &Value, path: &str, errors: &mut Errors) {
    const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    let signer_name = &certificate["signerName"];
    signer::name(signer_name, &format!("{path}.signerName"), errors);
    signer::annotations(&certificate["userAnnotations"], &format!("{path}.userAnnotations"), errors);
    errors.always_one_of(&format!("{path}.keyType"), &certificate["keyType"], &KEY_TYPES);
    let (seconds, most) = (&certificate["maxExpirationSeconds"], signer::lifetime_max(text(signer_name)));
    errors.in_range(&format!("{path}.maxExpirationSeconds"), seconds, signer::LIFETIME_MIN, most);
    let set = CERTIFICATE_PATHS.into_iter().filter(|field| !text(&certificate[*field]).is_empty());
    let mut n_paths = 0;
    for field in set {
        n_paths += 1;
        paths::not_reserved(&certificate[field], &format!("{path}.{field}"), errors);
    }
    if n_paths == 0 {
        errors.required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
    }
}

/// Rejects token volumes of a Pod that names no service account (`FieldValueForbidden`).
///
/// A token belongs to the account of the Pod. On create, `write/plugins/service_account` sets the account
/// before validation. Templates are not checked, since their Pods get the account later.
pub(crate) fn tokens(spec: &Value, path: &str, errors: &mut Errors) {
    if !text(&spec["serviceAccountName"]).is_empty() {
        return;
    }
    for (index, volume) in entries(&spec["volumes"]) {
        for (nth, source) in entries(&volume["projected"]["sources"]) {
            if source["serviceAccountToken"].is_object() {
                let path = format!("{path}.volumes[{index}].projected.sources[{nth}].serviceAccountToken");
                errors.forbidden(&path, "must not be specified when serviceAccountName is not set");
            }
        }
    }
}

/// Validates the claim template of an ephemeral volume: present, with labels and annotations only,
/// and a valid spec of a `PersistentVolumeClaim`.
fn claim_of_pod(claim: &Value, path: &str, errors: &mut Errors) {
    if claim.is_null() {
        return errors.required(path, "");
    }
    template_metadata(&claim["metadata"], &format!("{path}.metadata"), errors);
    volume_claim::claim_spec(&claim["spec"], &format!("{path}.spec"), errors);
}

/// Validates the metadata of a claim template, which may have labels and annotations only.
///
/// Any other field is `FieldValueForbidden`, unless it has Go's zero value, which upstream cannot
/// tell from an absent field. `StatefulSet`s do not use this rule: their claim templates are named.
pub(crate) fn template_metadata(meta: &Value, path: &str, errors: &mut Errors) {
    errors.annotations(&format!("{path}.annotations"), &meta["annotations"]);
    errors.labels(&format!("{path}.labels"), &meta["labels"]);
    for field in metadata::FIELDS.into_iter().filter(|field| !matches!(*field, "labels" | "annotations")) {
        let value = &meta[field];
        let is_zero = *value == "" || (*value == 0 && field == "generation");
        if !value.is_null() && !is_zero {
            // Upstream derives the field name from the Go name by lowercasing its first letter.
            let field = if field == "uid" { "uID" } else { field };
            errors.forbidden(&format!("{path}.{field}"), "cannot be set");
        }
    }
}
