//! Validation of the volumes of a Pod, and of the sources that consist of several parts.
//!
//! A volume has a name and exactly one source. `volume_source` has the rules of single sources, which volumes of Pods
//! share with `PersistentVolume`s. This module validates sources that only Pods have: files of Secrets and
//! `ConfigMap`s, the downward API, projections and ephemeral claims.
//!
//! Upstream: `ValidateVolumes`, `validateVolumeSource` and `validateProjectionSources` in
//! `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use crate::{
    field::Field,
    field_errors::text,
    json_path::entries,
    metadata,
    names::NameRule,
    validation::{
        downward, paths, selector, signer, volume_claim,
        volume_source::{self, SourceOwner},
    },
};

/// The volume sources, in the order in which kube-apiserver checks them. If a volume has several, the first is
/// validated.
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

/// The valid volumes of a Pod. A volume with errors is left out, so a mount of it is also reported as missing.
#[derive(Default)]
pub(crate) struct DeclaredVolumes<'a> {
    /// The names that mounts and devices refer to.
    pub(crate) names: BTreeSet<&'a str>,
    /// The volumes among them that can be block devices: claims, and ephemeral volumes, for which a claim is created.
    pub(crate) claims: BTreeSet<&'a str>,
}

/// Validates the volumes of a Pod and returns the valid ones. `pod` is the name of the Pod, empty for a template.
///
/// A volume must not use a claim that is created for an ephemeral volume of the same Pod. That claim is named after Pod
/// and volume, so the reference is detected by name. A template has no Pod name yet and skips this rule.
pub(crate) fn validate_volumes<'a>(list: &Field<'a>, pod: &str) -> DeclaredVolumes<'a> {
    let mut valid = DeclaredVolumes::default();
    let ephemeral: BTreeSet<&str> = entries(list)
        .filter(|(_, volume)| volume["ephemeral"].is_object())
        .map(|(_, volume)| text(&volume["name"]))
        .collect();
    // Before the rules, so that only the errors of tags are searched.
    list.discard_errors_below_each(list.items().flat_map(|volume| {
        SOURCES.iter().map(move |source| volume.at(source)).filter(|source| source.is_object()).skip(1)
    }));
    for volume in list.items() {
        let name = volume.at("name");
        let is_valid = volume.is_valid_by(|| {
            validate_volume(&volume, pod);
            name.required_name(NameRule::Label);
            name.duplicate_if(valid.names.contains(name.text()));
        });
        if is_valid {
            valid.names.insert(name.text());
            if volume["persistentVolumeClaim"].is_object() || volume["ephemeral"].is_object() {
                valid.claims.insert(name.text());
            }
        }
        let claim = volume.at("persistentVolumeClaim").at("claimName");
        let own_volume = claim.text().strip_prefix(pod).and_then(|rest| rest.strip_prefix('-'));
        let is_taken = !pod.is_empty() && own_volume.is_some_and(|volume| ephemeral.contains(volume));
        claim.invalid_if(is_taken, "must not reference a PVC that gets created for an ephemeral volume");
    }
    valid
}

/// Validates the source of a volume. It has exactly one.
///
/// The claim of an ephemeral volume is named after the Pod and the volume, so that name must be valid. The length of an
/// iSCSI portal together with the volume's name is checked even if the volume has another source.
fn validate_volume(volume: &Field<'_>, pod: &str) {
    let mut present = SOURCES.iter().filter(|source| volume[**source].is_object());
    let Some(first) = present.next() else {
        return volume.required_with("must specify a volume type");
    };
    let name = volume.at("name");
    validate_source(first, volume);
    if *first == "ephemeral" && !pod.is_empty() && !name.is_empty() {
        let claim = format!("{pod}-{}", name.text());
        if let Some(message) = NameRule::Subdomain.check(&claim) {
            name.invalid(format_args!("the claim is named after the Pod and the volume, and {message}"));
        }
    }
    let has_long_portal = volume_source::has_long_portal(&volume["iscsi"], name.text());
    name.invalid_if(has_long_portal, volume_source::PORTAL_TOO_LONG);
    present.for_each(|other| volume.at(name_in_error(other)).forbidden("may not specify more than 1 volume type"));
}

/// Returns the name of a surplus source as its error spells it. Upstream misspells two of them.
fn name_in_error(source: &str) -> &str {
    match source {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        source => source,
    }
}

/// Validates one source by its kind: the shared rules, then the rules for the files that a Pod mounts.
fn validate_source(kind: &str, volume: &Field<'_>) {
    let source = volume.at(kind);
    volume_source::validate_source(kind, volume, SourceOwner::Pod);
    match kind {
        "secret" | "configMap" => {
            validate_mode(&source, "defaultMode");
            validate_items(&source.at("items"));
        }
        "downwardAPI" => {
            validate_mode(&source, "defaultMode");
            source.at("items").items().for_each(|item| validate_file(&source.with(&item)));
        }
        "projected" => validate_projected(&source),
        "ephemeral" => validate_claim(&source.at("volumeClaimTemplate")),
        _ => {}
    }
}

/// Validates a file mode. An absent one is valid.
fn validate_mode(files: &Field<'_>, name: &str) {
    let mode = files.at(name);
    let is_outside = mode.as_i64().is_some_and(|bits| !(0..=paths::MODE_MAX).contains(&bits));
    mode.invalid_if(is_outside, "must be between 0 and 0777 (octal; 511 in decimal)");
}

/// Validates the keys of a Secret or `ConfigMap` that become files (`validateKeyToPath`). Several items may have the
/// same path here: a warning reports that, or an error in a projection.
fn validate_items(list: &Field<'_>) {
    for item in list.items() {
        item.require_children(&["key", "path"]);
        item.at("path").check(paths::validate_not_reserved);
        validate_mode(&item, "mode");
    }
}

/// Validates a file of the downward API, at the path of its volume (`validateDownwardAPIVolumeFile`). If both
/// references are set, only the first is validated.
fn validate_file(file: &Field<'_>) {
    file.require_children(&["path"]);
    file.at("path").check(paths::validate_not_reserved);
    let (field, amount) = (file.at("fieldRef"), file.at("resourceFieldRef"));
    if field.is_object() {
        downward::validate_field(&field, downward::VOLUME_FIELD_PATHS);
        file.invalid_if(amount.is_object(), "fieldRef and resourceFieldRef can not be specified simultaneously");
    } else if amount.is_object() {
        downward::validate_amount(&amount, downward::Target::File);
    } else {
        file.required_with("exactly one of fieldRef and resourceFieldRef must be set");
    }
    validate_mode(file, "mode");
}

/// Validates a projected volume: each source, and the paths of all files, which share one directory. Paths of tokens
/// are not compared. A source without a member is a warning only.
fn validate_projected(volume: &Field<'_>) {
    const KINDS: &[&str] =
        &["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
    validate_mode(volume, "defaultMode");
    let (mut files, mut bundles) = (Vec::new(), Vec::new());
    for source in volume.at("sources").items() {
        for projection in ["secret", "configMap"].map(|kind| source.at(kind)).iter().filter(|source| source.is_object())
        {
            projection.require_children(&["name"]);
            validate_items(&projection.at("items"));
            files.extend(projection.at("items").items().map(|item| item.at("path").text()));
        }
        let downward = source.at("downwardAPI");
        for item in downward.at("items").items() {
            validate_file(&downward.with(&item));
            files.push(item.at("path").text());
        }
        validate_token(&source.at("serviceAccountToken"), volume);
        let (bundle, certificate) = (source.at("clusterTrustBundle"), source.at("podCertificate"));
        if bundle.is_object() {
            validate_trust_bundle(&bundle);
            bundles.push(bundle.at("path").text());
        }
        if certificate.is_object() {
            validate_pod_certificate(&certificate);
            files.extend(CERTIFICATE_PATHS.map(|path| certificate.at(path).text()));
        }
        let n_kinds = KINDS.iter().filter(|kind| source[**kind].is_object()).count();
        source.forbidden_if(n_kinds > 1, "may not specify more than 1 volume type per source");
    }
    // Upstream also compares the empty paths of trust bundles.
    files.retain(|path| !path.is_empty());
    files.append(&mut bundles);
    let mut taken = BTreeSet::new();
    if let Some(path) = files.into_iter().find(|path| !taken.insert(*path)) {
        volume.with(&path.into()).invalid("two files have the same path");
    }
}

/// Validates a projected service account token. An error in its path is reported at the volume, as in kube-apiserver.
/// An absent lifetime has been defaulted to an hour.
fn validate_token(token: &Field<'_>, volume: &Field<'_>) {
    if token.is_null() {
        return;
    }
    token.at("expirationSeconds").in_range(600, 1 << 32);
    let path = volume.at_with("path", &token["path"]);
    path.required_if(path.is_empty());
    path.check(paths::validate_not_reserved);
}

/// Validates a projected trust bundle: one by its name, or a signer's bundles that a selector matches.
fn validate_trust_bundle(bundle: &Field<'_>) {
    let [name, signer, selector] = ["name", "signerName", "labelSelector"].map(|name| bundle.at(name));
    match (name.is_string(), signer.is_string()) {
        (true, true) => bundle.invalid("only one of name and signerName may be used"),
        (true, false) => {
            name.required_if(name.is_empty());
            let signer = name.text().rsplit_once(':').map_or(String::new(), |(signer, _)| signer.replace(':', "/"));
            if let Some(why) = signer::bundle_name_error(name.text(), &signer, NameRule::check) {
                name.invalid(why);
            }
            selector.invalid_if(!selector.is_null(), "must be unset if name is specified");
        }
        (false, true) => {
            signer.check(signer::name);
            selector.check(selector::validate_selector);
        }
        (false, false) => bundle.required_with("exactly one of name and signerName must be set"),
    }
    bundle.require_children(&["path"]);
    bundle.at("path").check(paths::validate_not_reserved);
}

/// Files of a projected certificate.
const CERTIFICATE_PATHS: [&str; 3] = ["credentialBundlePath", "keyPath", "certificateChainPath"];

/// Validates a projected certificate, for which a kubelet creates a `PodCertificateRequest`.
fn validate_pod_certificate(certificate: &Field<'_>) {
    const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    let signer = certificate.at("signerName");
    signer.check(signer::name);
    certificate.at("userAnnotations").check(signer::validate_annotations);
    certificate.at("keyType").always_one_of(&KEY_TYPES);
    let most = signer::lifetime_max(signer.text());
    certificate.at("maxExpirationSeconds").in_range(signer::LIFETIME_MIN, most);
    let files = CERTIFICATE_PATHS.map(|field| certificate.at(field));
    files.iter().for_each(paths::validate_not_reserved);
    let detail = format_args!("must have at least one of {}", CERTIFICATE_PATHS.join(", "));
    certificate.required_with_if(files.iter().all(Field::is_empty), detail);
}

/// Rejects token volumes of a Pod that names no service account. A token belongs to the account of the Pod. On create,
/// `write/plugins/service_account` sets the account before validation. Templates are not checked, since their Pods get
/// the account later.
pub(crate) fn validate_tokens(spec: &Field<'_>) {
    let has_account = !spec.at("serviceAccountName").is_empty();
    for source in spec.at("volumes").items().flat_map(|volume| volume.at("projected").at("sources").items()) {
        let token = source.at("serviceAccountToken");
        let is_without = token.is_object() && !has_account;
        token.forbidden_if(is_without, "must not be specified when serviceAccountName is not set");
    }
}

/// Validates the claim template of an ephemeral volume.
fn validate_claim(claim: &Field<'_>) {
    if claim.is_null() {
        return claim.required();
    }
    claim.at("metadata").check(template_metadata);
    claim.at("spec").check(volume_claim::claim_spec);
}

/// Validates the metadata of a claim template, which may have labels and annotations only. Upstream cannot tell Go's
/// zero value from an absent field. `StatefulSet`s do not use this rule: their claim templates are named.
pub(crate) fn template_metadata(meta: &Field<'_>) {
    meta.at("annotations").annotations();
    meta.at("labels").labels();
    for name in metadata::FIELDS.into_iter().filter(|name| !matches!(*name, "labels" | "annotations")) {
        let value = &meta[name];
        let is_zero = *value == "" || (*value == 0 && name == "generation");
        // Upstream derives the field name from the Go name by lowercasing its first letter.
        let label = if name == "uid" { "uID" } else { name };
        meta.at(label).forbidden_if(!value.is_null() && !is_zero, "cannot be set");
    }
}
