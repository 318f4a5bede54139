//! Validation of `StatefulSet`s (`ValidateStatefulSetSpec` and `ValidateStatefulSetUpdate` in `pkg/apis/apps/validation`).

use serde_json::{Value, json};

use crate::{
    field_errors::{Errors, text},
    kinds::apps::validation::always_restarts,
    names::NameRule,
    validation::{entries, pod, selector, volume_claim},
};

/// Validates that an update changes only the fields in `FREE` (`FieldValueForbidden` at `spec`).
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    const FREE: &[&str] = &[
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let fixed = |set: &Value| {
        let mut spec = set["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|name, _| !FREE.contains(&name.as_str()));
        }
        spec
    };
    if fixed(old) != fixed(new) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        errors.forbidden("spec", detail);
    }
}

/// Validates the spec. The claim templates and `serviceName`, which never change, are validated on create only.
pub(crate) fn validate(object: &Value, is_new: bool, errors: &mut Errors) {
    let spec = &object["spec"];
    if !["OrderedReady", "Parallel"].contains(&text(&spec["podManagementPolicy"])) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.invalid("spec.podManagementPolicy", &spec["podManagementPolicy"], detail);
    }
    update_strategy(&spec["updateStrategy"], errors);
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    for name in ["whenDeleted", "whenScaled"] {
        let at = format!("spec.persistentVolumeClaimRetentionPolicy.{name}");
        errors.one_of(&at, &retention[name], &["Retain", "Delete"]);
    }
    for (index, claim) in entries(&spec["volumeClaimTemplates"]).filter(|_| is_new) {
        volume_claim::claim_spec(&claim["spec"], &format!("spec.volumeClaimTemplates[{index}].spec"), errors);
    }
    errors.not_negative("spec.replicas", &spec["replicas"]);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    errors.not_negative("spec.ordinals.start", &spec["ordinals"]["start"]);
    if is_new && !text(&spec["serviceName"]).is_empty() {
        errors.name("spec.serviceName", &spec["serviceName"], NameRule::Label);
    }
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

/// The template as it is judged: with the volumes that the claims of the set become, and without the names that the set gives
/// its pods.
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

fn update_strategy(strategy: &Value, errors: &mut Errors) {
    let (at, rolling) = ("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"]);
    match text(&strategy["type"]) {
        "OnDelete" if !rolling.is_null() => {
            errors.invalid(at, rolling, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => errors.not_negative(&format!("{at}.partition"), &rolling["partition"]),
        _ => {
            errors.invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}
