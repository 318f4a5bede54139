//! Rules of the volumes of pods.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    metadata,
    names::NameRule,
    validation::{
        downward, entries, paths, volume_claim,
        volume_source::{self, Of},
    },
};

/// The sources in the order in which the real server looks for them.
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
pub(crate) struct Known<'a> {
    pub(crate) name: &'a str,
    /// `true` for a `PersistentVolumeClaim`, which can be a block device.
    pub(crate) is_claim: bool,
}

/// Validates the volumes of a Pod and returns the valid ones. `pod` is the name of the Pod, empty for a template.
pub(crate) fn volumes<'a>(list: &'a Value, pod: &str, at: &str, errors: &mut Errors) -> Vec<Known<'a>> {
    let mut known: Vec<Known<'a>> = Vec::new();
    for (index, volume) in entries(list) {
        let at = format!("{at}[{index}]");
        let (name, before) = (text(&volume["name"]), errors.len());
        source(volume, pod, &at, errors);
        errors.required_name(&format!("{at}.name"), &volume["name"], NameRule::Label);
        if known.iter().any(|known| known.name == name) {
            errors.duplicate(&format!("{at}.name"), &volume["name"].to_string());
        }
        if errors.len() == before {
            let is_claim = volume["persistentVolumeClaim"].is_object() || volume["ephemeral"].is_object();
            known.push(Known { name, is_claim });
        }
        let claim = text(&volume["persistentVolumeClaim"]["claimName"]);
        let is_own = |other: &Value| {
            other["ephemeral"].is_object() && !pod.is_empty() && claim == format!("{pod}-{}", text(&other["name"]))
        };
        if !claim.is_empty() && entries(list).any(|(_, other)| is_own(other)) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid(&format!("{at}.persistentVolumeClaim.claimName"), &claim.into(), detail);
        }
    }
    known
}

fn source(volume: &Value, pod: &str, at: &str, errors: &mut Errors) {
    let mut given = SOURCES.iter().filter(|source| volume[**source].is_object());
    let Some(first) = given.next() else {
        return errors.required(at, "must specify a volume type");
    };
    let name = text(&volume["name"]);
    one_source(first, &volume[*first], at, errors);
    if *first == "ephemeral" && !pod.is_empty() && !text(&volume["name"]).is_empty() {
        let claim = format!("{pod}-{}", text(&volume["name"]));
        if let Some(message) = NameRule::Subdomain.check(&claim) {
            errors.invalid(&format!("{at}.name"), &volume["name"], &format!("PVC name {claim:?}: {message}"));
        }
    }
    let portal = |kind: &str, errors: &mut Errors| {
        if kind == "iscsi" && volume_source::has_long_portal(&volume[kind], name) {
            volume_source::portal_is_too_long(&format!("{at}.name"), &name.into(), errors);
        }
    };
    portal(first, errors);
    for other in given {
        errors.leave_out(&format!("{at}.{other}."));
        errors.forbidden(&format!("{at}.{}", told_as(other)), "may not specify more than 1 volume type");
        portal(other, errors);
    }
}

/// The name of a source in the message that it is one too many.
fn told_as(source: &str) -> &str {
    match source {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        source => source,
    }
}

/// The sources whose rules know their volume or its files.
fn one_source(kind: &str, source: &Value, at: &str, errors: &mut Errors) {
    volume_source::source(kind, source, Of::Pod, at, errors);
    let at = format!("{at}.{kind}");
    match kind {
        "secret" | "configMap" => {
            paths::mode(&source["defaultMode"], &format!("{at}.defaultMode"), errors);
            items(&source["items"], &format!("{at}.items"), errors);
        }
        "downwardAPI" => {
            paths::mode(&source["defaultMode"], &format!("{at}.defaultMode"), errors);
            entries(&source["items"]).for_each(|(_, one)| file(one, &at, errors));
        }
        "projected" => projected(source, &at, errors),
        "ephemeral" => claim_of_pod(&source["volumeClaimTemplate"], &format!("{at}.volumeClaimTemplate"), errors),
        _ => {}
    }
}

/// Keys that become files.
fn items(list: &Value, at: &str, errors: &mut Errors) {
    for (index, item) in entries(list) {
        let at = format!("{at}[{index}]");
        for field in ["key", "path"].into_iter().filter(|field| text(&item[*field]).is_empty()) {
            errors.required(&format!("{at}.{field}"), "");
        }
        paths::not_reserved(&item["path"], &format!("{at}.path"), errors);
        paths::mode(&item["mode"], &format!("{at}.mode"), errors);
    }
}

/// Validates a file of the downward API.
fn file(file: &Value, at: &str, errors: &mut Errors) {
    if text(&file["path"]).is_empty() {
        errors.required(&format!("{at}.path"), "");
    }
    paths::not_reserved(&file["path"], &format!("{at}.path"), errors);
    let (field, amount) = (&file["fieldRef"], &file["resourceFieldRef"]);
    if field.is_object() {
        downward::field(field, &format!("{at}.fieldRef"), downward::OF_FILES, errors);
        if amount.is_object() {
            errors.invalid(at, &"resource".into(), "fieldRef and resourceFieldRef can not be specified simultaneously");
        }
    } else if amount.is_object() {
        downward::amount(amount, &format!("{at}.resourceFieldRef"), true, errors);
    } else {
        errors.required(at, "one of fieldRef and resourceFieldRef is required");
    }
    paths::mode(&file["mode"], &format!("{at}.mode"), errors);
}

fn projected(volume: &Value, at: &str, errors: &mut Errors) {
    const KINDS: &[&str] =
        &["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
    paths::mode(&volume["defaultMode"], &format!("{at}.defaultMode"), errors);
    let mut taken: Vec<String> = Vec::new();
    let mut take = |path: &Value, shown: &Value, errors: &mut Errors| {
        let path = text(path).to_owned();
        if taken.contains(&path) {
            errors.invalid(at, shown, "conflicting duplicate paths");
        } else if !path.is_empty() {
            taken.push(path);
        }
    };
    for (index, source) in entries(&volume["sources"]) {
        let source_at = format!("{at}.sources[{index}]");
        for kind in ["secret", "configMap"].into_iter().filter(|kind| source[*kind].is_object()) {
            let (one, at) = (&source[kind], format!("{source_at}.{kind}"));
            if text(&one["name"]).is_empty() {
                errors.required(&format!("{at}.name"), "");
            }
            items(&one["items"], &format!("{at}.items"), errors);
            entries(&one["items"]).for_each(|(_, item)| take(&item["path"], &one["name"], errors));
        }
        for (_, one) in entries(&source["downwardAPI"]["items"]) {
            file(one, &format!("{source_at}.downwardAPI"), errors);
            take(&one["path"], &one["path"], errors);
        }
        token(&source["serviceAccountToken"], at, &format!("{source_at}.serviceAccountToken"), errors);
        if KINDS.iter().filter(|kind| source[**kind].is_object()).count() > 1 {
            errors.forbidden(&source_at, "may not specify more than 1 volume type per source");
        }
    }
}

/// Validates a projected service account token. An error in its path is reported at the volume, as in kube-apiserver.
fn token(token: &Value, volume_at: &str, at: &str, errors: &mut Errors) {
    const LEAST: i64 = 600;
    const MOST: i64 = 1 << 32;
    if token.is_null() {
        return;
    }
    let (seconds, seconds_at) = (&token["expirationSeconds"], format!("{at}.expirationSeconds"));
    if seconds.as_i64().is_some_and(|seconds| seconds < LEAST) {
        errors.invalid(&seconds_at, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds.as_i64().is_some_and(|seconds| seconds > MOST) {
        errors.invalid(&seconds_at, seconds, "may not specify a duration larger than 2^32 seconds");
    }
    if text(&token["path"]).is_empty() {
        errors.required(&format!("{volume_at}.path"), "");
    } else {
        paths::not_reserved(&token["path"], &format!("{volume_at}.path"), errors);
    }
}

/// Tokens in volumes are those of the account that a pod names.
pub(crate) fn tokens(spec: &Value, at: &str, errors: &mut Errors) {
    if !text(&spec["serviceAccountName"]).is_empty() {
        return;
    }
    for (index, volume) in entries(&spec["volumes"]) {
        for (nth, source) in entries(&volume["projected"]["sources"]) {
            if source["serviceAccountToken"].is_object() {
                let at = format!("{at}.volumes[{index}].projected.sources[{nth}].serviceAccountToken");
                errors.forbidden(&at, "must not be specified when serviceAccountName is not set");
            }
        }
    }
}

fn claim_of_pod(claim: &Value, at: &str, errors: &mut Errors) {
    if claim.is_null() {
        return errors.required(at, "");
    }
    template_metadata(&claim["metadata"], &format!("{at}.metadata"), errors);
    volume_claim::claim_spec(&claim["spec"], &format!("{at}.spec"), errors);
}

/// Validates the metadata of a claim template, which may have labels and annotations only.
pub(crate) fn template_metadata(meta: &Value, at: &str, errors: &mut Errors) {
    errors.annotations(&format!("{at}.annotations"), &meta["annotations"]);
    errors.labels(&format!("{at}.labels"), &meta["labels"]);
    for field in metadata::FIELDS.into_iter().filter(|field| !matches!(*field, "labels" | "annotations")) {
        let value = &meta[field];
        let is_zero = *value == "" || (*value == 0 && field == "generation");
        if !value.is_null() && !is_zero {
            // Go makes the name of the field by writing its first letter small.
            let field = if field == "uid" { "uID" } else { field };
            errors.forbidden(&format!("{at}.{field}"), "cannot be set");
        }
    }
}
