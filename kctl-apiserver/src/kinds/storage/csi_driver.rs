//! `CSIDriver` of `storage.k8s.io`.

use serde_json::Value;

use crate::{
    admit::{
        defaults,
        rules::{self, change::keeps},
    },
    field_errors::Errors,
    registry::kind::{DeleteAnswer, Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csidrivers",
    kind: "CSIDriver",
    generation: Generation::CountedFromNone,
    allows_unconditional_update: false,
    delete_answer: DeleteAnswer::Object,
    default: defaults::api::csi_driver,
    validate: rules::storage::csi_driver,
    validate_update,
    warn,
    printer: Some(table::storage::csi_driver),
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    for (shown, field) in [("attachedRequired", "attachRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")] {
        keeps(&format!("spec.{shown}"), &old["spec"][field], &new["spec"][field], errors);
    }
}

/// Warns about tokens in the attributes of volumes, when the tokens change.
fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let spec = &object["spec"];
    let is_changed = old.is_none_or(|old| old.pointer("/spec/tokenRequests") != object.pointer("/spec/tokenRequests"));
    let has_tokens = spec["tokenRequests"].as_array().is_some_and(|requests| !requests.is_empty());
    if is_changed && has_tokens && spec["serviceAccountTokenInSecrets"].is_null() {
        warnings.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible \
             logging of tokens in volume attributes"
                .to_owned(),
        );
    }
}
