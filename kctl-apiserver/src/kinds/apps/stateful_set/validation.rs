//! Validation of `StatefulSet`s (`ValidateStatefulSetSpec` and `ValidateStatefulSetUpdate` in
//! `pkg/apis/apps/validation/validation.go`).
//!
//! Some errors differ from those of a Deployment: an unknown strategy or management policy is
//! `FieldValueInvalid`, not `FieldValueNotSupported`.

use serde_json::{Value, json};

use crate::{
    field_errors::{Errors, text},
    kinds::apps::validation::{always_restarts, is_none},
    names::NameRule,
    validation::{entries, immutable::immutable_field, pod, selector, volume_claim},
};

/// Validates that `podManagementPolicy` is unchanged. Tags of the API make the other fields immutable.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let field = "podManagementPolicy";
    immutable_field(&format!("spec.{field}"), &old["spec"][field], &new["spec"][field], errors);
}

/// Validates the claim templates and `serviceName`, which never change.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    for (index, claim) in entries(&spec["volumeClaimTemplates"]) {
        volume_claim::claim_spec(&claim["spec"], &format!("spec.volumeClaimTemplates[{index}].spec"), errors);
    }
    if !text(&spec["serviceName"]).is_empty() {
        errors.name("spec.serviceName", &spec["serviceName"], NameRule::Label);
    }
}

/// Validates the spec.
///
/// | field | rule |
/// |---|---|
/// | `podManagementPolicy` | `OrderedReady` or `Parallel` |
/// | `updateStrategy` | see `update_strategy` |
/// | `persistentVolumeClaimRetentionPolicy` | `Retain` or `Delete` |
/// | `replicas`, `minReadySeconds`, `ordinals.start` | not negative |
/// | `selector` | required, and matches the template |
/// | `template` | a Pod that always restarts |
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if !["OrderedReady", "Parallel"].contains(&text(&spec["podManagementPolicy"])) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.invalid("spec.podManagementPolicy", &spec["podManagementPolicy"], detail);
    }
    update_strategy(&spec["updateStrategy"], errors);
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    for name in ["whenDeleted", "whenScaled"] {
        let path = format!("spec.persistentVolumeClaimRetentionPolicy.{name}");
        errors.one_of(&path, &retention[name], &["Retain", "Delete"]);
    }
    errors.not_negative("spec.replicas", &spec["replicas"]);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    errors.not_negative("spec.ordinals.start", &spec["ordinals"]["start"]);
    let given = &spec["selector"];
    if selector::of_workload(given, "statefulset", errors) {
        selector::fits_template(given, &spec["template"], "spec.template", errors);
        pod::template(&with_claims(spec), "spec.template", errors);
    } else {
        errors.leave_out("spec.template.spec.");
        errors.invalid("spec.selector", given, "invalid label selector");
    }
    always_restarts(&spec["template"], "spec.template", "StatefulSet", errors);
}

/// Returns the template as it is validated: with a volume for each claim template, without
/// `hostname` and `subdomain`.
///
/// A mount may name a claim template. Volumes of the same name in the template are replaced, as the
/// controller does. The controller sets host name and subdomain itself, so values of the template
/// are not validated.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    for name in ["hostname", "subdomain"] {
        template["spec"].as_object_mut().map(|spec| spec.remove(name));
    }
    let mut names: Vec<&Value> = Vec::new();
    for (_, claim) in entries(&spec["volumeClaimTemplates"]) {
        let name = &claim["metadata"]["name"];
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return template;
    }
    let own = entries(&spec["template"]["spec"]["volumes"]).filter(|(_, volume)| !names.contains(&&volume["name"]));
    let claims = names.iter().map(|name| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }));
    let volumes: Vec<Value> = claims.chain(own.map(|(_, volume)| volume.clone())).collect();
    template["spec"]["volumes"] = volumes.into();
    template
}

/// Validates `spec.updateStrategy`: `OnDelete` without parameters, or `RollingUpdate` with a
/// `partition` of at least 0 and `maxUnavailable` between 1 and 100 %.
///
/// Pods with an ordinal of at least `partition` are updated. It may exceed `replicas`; then no Pod
/// is updated.
fn update_strategy(strategy: &Value, errors: &mut Errors) {
    let (path, rolling) = ("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"]);
    match text(&strategy["type"]) {
        "OnDelete" if !rolling.is_null() => {
            errors.invalid(path, rolling, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            errors.not_negative(&format!("{path}.partition"), &rolling["partition"]);
            let (path, most) = (format!("{path}.maxUnavailable"), &rolling["maxUnavailable"]);
            errors.count_or_percent(&path, most);
            if !most.is_null() && is_none(most) {
                errors.invalid(&path, most, "cannot be 0");
            }
            errors.at_most_all(&path, most);
        }
        _ => {
            errors.invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}
