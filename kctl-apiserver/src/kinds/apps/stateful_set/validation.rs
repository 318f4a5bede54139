//! Validation of `StatefulSet`s (`ValidateStatefulSetSpec` and `ValidateStatefulSetUpdate` in
//! `pkg/apis/apps/validation/validation.go`).
//!
//! Some errors differ from the errors of a Deployment: an unknown strategy or management policy is `FieldValueInvalid`,
//! not `FieldValueNotSupported`.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    kinds::apps::validation::{is_none, selector_fits},
    names::NameRule,
    validation::{declared, pod, volume_claim},
};

/// Validates that `podManagementPolicy` is unchanged. A tag of the API makes it immutable as well; the response has
/// equal errors once. The other immutable fields have a tag alone.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let field = "podManagementPolicy";
    Field::new(&new["spec"], "spec", errors).at(field).immutable(&old["spec"][field]);
}

/// Validates the claim templates and `serviceName`, which never change.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    spec.at("volumeClaimTemplates").items().for_each(|claim| claim.at("spec").check(volume_claim::claim_spec));
    spec.at("serviceName").name_if_set(NameRule::Label);
}

/// Validates the spec.
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (management, template) = (spec.at("podManagementPolicy"), spec.at("template"));
    let is_known = declared::values("apps.v1.StatefulSetSpec", "podManagementPolicy").contains(&management.text());
    management.invalid_if(!is_known, "must be 'OrderedReady' or 'Parallel'");
    update_strategy(&spec.at("updateStrategy"));
    let retention = spec.at("persistentVolumeClaimRetentionPolicy");
    retention.check_children(&["whenDeleted", "whenScaled"], |when| when.one_of(&["Retain", "Delete"]));
    spec.check_children(&["replicas", "minReadySeconds"], Field::not_negative);
    spec.at("ordinals").at("start").not_negative();
    if selector_fits(&spec) {
        template.with(&with_claims(&spec)).check(pod::validate_template);
    }
    pod::validate_restart_always(&template);
}

/// Returns the template as it is validated: with a volume for each claim template, without `hostname` and `subdomain`.
///
/// A mount may name a claim template. Volumes of the same name in the template are replaced, as the controller does.
/// The controller sets host name and subdomain itself, so values of the template are not validated.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    for name in ["hostname", "subdomain"] {
        template["spec"].as_object_mut().map(|spec| spec.remove(name));
    }
    let mut claimed = HashSet::new();
    let names = entries(&spec["volumeClaimTemplates"]).map(|(_, claim)| &claim["metadata"]["name"]);
    let names: Vec<&Value> = names.filter(|name| claimed.insert(*name)).collect();
    if names.is_empty() {
        return template;
    }
    let own = entries(&spec["template"]["spec"]["volumes"]).filter(|(_, volume)| !claimed.contains(&volume["name"]));
    let claims = names.iter().map(|name| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }));
    let volumes: Vec<Value> = claims.chain(own.map(|(_, volume)| volume.clone())).collect();
    template["spec"]["volumes"] = volumes.into();
    template
}

/// Validates `spec.updateStrategy`.
///
/// Pods with an ordinal of at least `partition` are updated. It may exceed `replicas`; then no Pod is updated.
fn update_strategy(strategy: &Field<'_>) {
    let rolling = strategy.at("rollingUpdate");
    match text(&strategy["type"]) {
        "OnDelete" => rolling.invalid_if(!rolling.is_null(), "only allowed for updateStrategy 'RollingUpdate'"),
        "RollingUpdate" => {
            let most = rolling.at("maxUnavailable");
            rolling.at("partition").not_negative();
            most.non_negative_int_or_percent();
            most.invalid_if(!most.is_null() && is_none(&most), "cannot be 0");
            most.at_most_100_percent();
        }
        _ => strategy.invalid("must be 'RollingUpdate' or 'OnDelete'"),
    }
}
