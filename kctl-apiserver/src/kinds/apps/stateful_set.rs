//! `StatefulSet` of `apps`: Pods with stable names and a volume claim each.
//!
//! The server adds defaults to the set, its Pod template and its claim templates, counts changes of the spec in
//! `metadata.generation`, and validates names as DNS labels. Only replicas, ordinals, template, strategy, history
//! limit, retention policy and `minReadySeconds` may change.
//!
//! Upstream: `pkg/registry/apps/statefulset/strategy.go` and `pkg/apis/apps/validation/validation.go`.

mod validation;

use serde_json::Value;

use crate::{
    defaulting::{add, fill, is_text, items, part, pod},
    json_path::{entries, set},
    kinds::core::persistent_volume_claim,
    names::NameRule,
    registry::kind::{
        Cell, Defaults, Kind, ManagedFields, Metadata, NewStatus, Plugin, Requests, Strategy, TableColumns, Validation,
    },
    table::workload::ready_of_desired,
    validation::{
        status::Numbers,
        warnings::{claim, template},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "apps",
    resource: "statefulsets",
    kind: "StatefulSet",
    metadata: Metadata { names: NameRule::Label, ..Metadata::COUNTED },
    requests: Requests { complete_bookmark: |object| object["spec"]["replicas"] = 0.into(), ..Requests::DEFAULT },
    admission: &[Plugin::PodSecurityForTemplates("/spec/template")],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { new_status: NewStatus::Empty, ..Strategy::DEFAULT },
    validation: Validation {
        validate: validation::validate,
        validate_create: validation::validate_create,
        validate_update: validation::validate_update,
        validate_status: |old, new, errors| crate::validation::status::validate_numbers(&STATUS, old, new, errors),
        warn: |_, object, warnings| warn(&object["spec"], warnings),
        ..super::VALIDATION
    },
    managed_fields: ManagedFields { filled_in: &["/spec/serviceName"], ..ManagedFields::DEFAULT },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Computed(|set, _| ready_of_desired(set).into()),
        Cell::Age,
        Cell::Containers("/spec/template"),
        Cell::Images("/spec/template"),
    ]),
    ..Kind::DEFAULT
};

/// The numbers of the status (`ValidateStatefulSetStatus`).
const STATUS: Numbers = Numbers {
    counts: &["replicas", "observedGeneration", "collisionCount"],
    subsets: &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
};

/// Fills in the defaults of a `StatefulSet` (`SetDefaults_StatefulSet` in `pkg/apis/apps/v1/defaults.go`). Claim
/// templates get kind, version and the defaults of a claim.
fn default(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "replicas", 1);
    add(spec, "revisionHistoryLimit", 10);
    fill(spec, "podManagementPolicy", "OrderedReady");
    let strategy = part(spec, "updateStrategy");
    // `rollingUpdate` is created only if the type was absent, too.
    if strategy.get("type").is_none_or(|kind| *kind == "") {
        fill(strategy, "type", "RollingUpdate");
        part(strategy, "rollingUpdate");
    }
    if is_text(strategy, "type", "RollingUpdate")
        && let Some(update) = strategy.get_mut("rollingUpdate").filter(|update| update.is_object())
    {
        add(update, "partition", 0);
        add(update, "maxUnavailable", 1);
    }
    let retention = part(spec, "persistentVolumeClaimRetentionPolicy");
    fill(retention, "whenDeleted", "Retain");
    fill(retention, "whenScaled", "Retain");
    for claim in items(spec, "volumeClaimTemplates") {
        set(claim, "apiVersion", Some("v1".into()));
        set(claim, "kind", Some("PersistentVolumeClaim".into()));
        persistent_volume_claim::default(claim);
    }
    pod::template(spec, "template");
}

/// Warns about the Pod template, the claim templates and a negative `revisionHistoryLimit`, which keeps all revisions.
fn warn(spec: &Value, texts: &mut Vec<String>) {
    template(&spec["template"], "spec.template.", texts);
    for (index, claim_template) in entries(&spec["volumeClaimTemplates"]) {
        claim(&claim_template["spec"], &format!("spec.volumeClaimTemplates[{index}]"), texts);
    }
    if spec["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        texts.push(format!("spec.revisionHistoryLimit: {why}"));
    }
}
