//! `CSIDriver` of `storage.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{
        defaults,
        rules::{self, change::keeps},
    },
    field_errors::Errors,
    registry::kind::{DeleteAnswer, Generation, Kind},
    table::{
        age::age,
        fields::{at, flag, list, name, text, texts},
        labels::UNSET,
    },
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
    printer: Some(cells),
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

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let audiences: Vec<_> =
        list(object, "/spec/tokenRequests").iter().map(|request| text(request, "/audience")).collect();
    let modes = texts(object, "/spec/volumeLifecycleModes").join(",");
    vec![
        json!(name(object)),
        json!(at(object, "/spec/attachRequired").as_bool().unwrap_or(true)),
        json!(flag(object, "/spec/podInfoOnMount")),
        json!(flag(object, "/spec/storageCapacity")),
        json!(if audiences.is_empty() { UNSET.to_owned() } else { audiences.join(",") }),
        json!(flag(object, "/spec/requiresRepublish")),
        json!(if modes.is_empty() { "Persistent".to_owned() } else { modes }),
        json!(age(object, now)),
    ]
}
