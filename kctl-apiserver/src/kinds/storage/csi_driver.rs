//! `CSIDriver` of `storage.k8s.io`: the capabilities of a CSI driver.
//!
//! `attachRequired` and `volumeLifecycleModes` are immutable: nodes and volumes already depend on them.
//!
//! Upstream: `pkg/registry/storage/csidriver/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    defaulting::{add, part},
    field::Field,
    field_errors::Errors,
    registry::kind::{Cell, Defaults, DeleteStrategy, Generation, Kind, Metadata, Strategy, TableColumns, Validation},
    table::{fields::value_at, labels::UNSET},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csidrivers",
    kind: "CSIDriver",
    metadata: Metadata { generation: Generation::CountedFromNone, ..Metadata::DEFAULT },
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy::CONDITIONAL,
    validation: Validation { validate, validate_update, warn, ..Validation::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Computed(|driver, _| value_at(driver, "/spec/attachRequired").as_bool().unwrap_or(true).into()),
        Cell::Flag("/spec/podInfoOnMount"),
        Cell::Flag("/spec/storageCapacity"),
        Cell::JoinedOr("/spec/tokenRequests", "/audience", UNSET),
        Cell::Flag("/spec/requiresRepublish"),
        Cell::JoinedOr("/spec/volumeLifecycleModes", "", "Persistent"),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Validates that `attachRequired` is unchanged. The path is spelled `attachedRequired`, as in kube-apiserver. A tag of
/// the API makes `volumeLifecycleModes` immutable.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    Field::new(&new["spec"]["attachRequired"], "spec.attachedRequired", errors)
        .immutable(&old["spec"]["attachRequired"]);
}

/// Warns about tokens in the attributes of volumes, when the tokens change. Without the field, the kubelet passes the
/// tokens in volume attributes, which drivers may log.
fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let spec = &object["spec"];
    let is_changed = old.is_none_or(|old| old.pointer("/spec/tokenRequests") != object.pointer("/spec/tokenRequests"));
    let has_tokens = spec["tokenRequests"].as_array().is_some_and(|requests| !requests.is_empty());
    if is_changed && has_tokens && spec["serviceAccountTokenInSecrets"].is_null() {
        let why = "is unset: set it to true if the driver supports it, or tokens in volume attributes may be logged";
        warnings.push(format!("spec.serviceAccountTokenInSecrets {why}"));
    }
}

/// Validates a driver (`validateCSIDriverSpec`). Errors about `volumeLifecycleModes` have no index.
fn validate(object: &Value, errors: &mut Errors) {
    /// Shortest lifetime of a service account token, in seconds.
    const TOKEN_SECONDS_MIN: i64 = 600;
    /// Shortest period between two reads of the capacity of a node, in seconds.
    const UPDATE_SECONDS_MIN: i64 = 10;
    let spec = Field::new(&object["spec"], "spec", errors);
    spec.at("fsGroupPolicy").one_of(&["File", "None", "ReadWriteOnceWithFSType"]);
    let (requests, in_secrets) = (spec.at("tokenRequests"), spec.at("serviceAccountTokenInSecrets"));
    let mut audiences = BTreeSet::new();
    for request in requests.items() {
        let audience = request.at("audience");
        if audiences.insert(audience.text()) {
            request.at("expirationSeconds").at_least(TOKEN_SECONDS_MIN);
        } else {
            audience.duplicate();
        }
    }
    let modes = spec.at("volumeLifecycleModes");
    modes.items().for_each(|mode| modes.with(&mode).one_of(&["Persistent", "Ephemeral"]));
    spec.at("nodeAllocatableUpdatePeriodSeconds").at_least(UPDATE_SECONDS_MIN);
    in_secrets.invalid_if(!in_secrets.is_null() && requests.is_empty(), "needs `tokenRequests`");
}

/// Fills in the defaults of a driver (`SetDefaults_CSIDriver`).
fn default(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "attachRequired", true);
    add(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    add(spec, "volumeLifecycleModes", json!(["Persistent"]));
    let flags =
        ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount", "preventPodSchedulingIfMissing"];
    for flag in flags {
        add(spec, flag, false);
    }
}
