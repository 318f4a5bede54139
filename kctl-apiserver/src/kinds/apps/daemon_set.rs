//! `DaemonSet` of `apps`: one Pod of a template on each eligible node.
//!
//! The server adds defaults, counts changes of the spec in `metadata.generation` and changes of the template in an
//! annotation, and keeps the selector immutable.
//!
//! Upstream: `pkg/registry/apps/daemonset/strategy.go` and `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::{add, fill, is_text, part, pod},
    field::Field,
    field_errors::{Errors, text},
    kinds::apps::validation::is_none,
    registry::kind::{
        Cell, Defaults, Environment, Kind, ManagedFields, Metadata, NewStatus, OwnedState, Plugin, Requests, Strategy,
        TableColumns, Undecoded, Validation,
    },
    validation::{self, declared, selector, status::Numbers},
};

pub(crate) static KIND: Kind = Kind {
    group: "apps",
    resource: "daemonsets",
    kind: "DaemonSet",
    metadata: Metadata { has_defaults: true, ..Metadata::COUNTED },
    requests: Requests {
        complete_bookmark: |object| object["metadata"]["annotations"][TEMPLATE_COUNT] = "0".into(),
        ..Requests::DEFAULT
    },
    admission: &[Plugin::PodSecurityForTemplates("/spec/template")],
    defaults: Defaults {
        decode_error: wrong_template_count,
        set: default,
        later: &[(TEMPLATE_COUNT_POINTER, Undecoded::Text("0"))],
        ..Defaults::DEFAULT
    },
    strategy: Strategy {
        new_status: NewStatus::Empty,
        prepare_create,
        prepare_update: |_, old, new| increment_template_generation(old, new),
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validate,
        validate_status: |old, new, errors| validation::status::validate_numbers(&STATUS, old, new, errors),
        ..super::VALIDATION
    },
    managed_fields: ManagedFields {
        complete_owned: set_zero_template_generation,
        owned_state: OwnedState::Sent,
        ..ManagedFields::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Int("/status/desiredNumberScheduled"),
        Cell::Int("/status/currentNumberScheduled"),
        Cell::Int("/status/numberReady"),
        Cell::Int("/status/updatedNumberScheduled"),
        Cell::Int("/status/numberAvailable"),
        Cell::Labels("/spec/template/spec/nodeSelector"),
        Cell::Age,
        Cell::Containers("/spec/template"),
        Cell::Images("/spec/template"),
        Cell::Labels("/spec/selector"),
    ]),
    ..Kind::DEFAULT
};

/// Counts of the status that may not be negative (`validateDaemonSetStatus`). No two of them are compared.
const STATUS: Numbers = Numbers {
    counts: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    subsets: &[],
};

/// The annotation that holds the generation of the template. Upstream stores a deprecated internal field in it
/// (`Convert_apps_DaemonSet_To_v1_DaemonSet` in `pkg/apis/apps/v1/conversion.go`).
const TEMPLATE_COUNT: &str = "deprecated.daemonset.template.generation";
/// JSON pointer to the annotation `TEMPLATE_COUNT`. The key has no `/`, so it needs no escape.
const TEMPLATE_COUNT_POINTER: &str = "/metadata/annotations/deprecated.daemonset.template.generation";

/// Sets the generation of the template to 1, unless the client sent a positive one
/// (`daemonSetStrategy.PrepareForCreate`).
fn prepare_create(_: &mut dyn Environment, object: &mut Value) {
    let annotation = object["metadata"]["annotations"][TEMPLATE_COUNT].as_str();
    if annotation.and_then(|count| count.parse::<i64>().ok()).is_none_or(|count| count < 1) {
        object["metadata"]["annotations"][TEMPLATE_COUNT] = "1".into();
    }
}

/// Increments the generation of the template if the template has changed. An update cannot set it
/// (`daemonSetStrategy.PrepareForUpdate`). A stored object without a valid generation starts again from 0.
fn increment_template_generation(old: &Value, new: &mut Value) {
    let previous = old["metadata"]["annotations"][TEMPLATE_COUNT].as_str().and_then(|count| count.parse::<i64>().ok());
    let is_another = old["spec"]["template"] != new["spec"]["template"];
    let count = previous.unwrap_or(0).wrapping_add(i64::from(is_another));
    new["metadata"]["annotations"][TEMPLATE_COUNT] = count.to_string().into();
}

/// Sets the template generation of a `DaemonSet` that was sent without one: Go decodes it as 0, and the field manager
/// owns this value.
fn set_zero_template_generation(sent: &Value, object: &mut Value) {
    if sent["metadata"]["annotations"][TEMPLATE_COUNT].is_null() {
        object["metadata"]["annotations"][TEMPLATE_COUNT] = "0".into();
    }
}

/// Returns the error of a template generation that is not a number. The request then fails with 400, because upstream
/// parses the annotation when it decodes the object (`Convert_v1_DaemonSet_To_apps_DaemonSet`).
fn wrong_template_count(object: &Value) -> Option<String> {
    let annotation = object["metadata"]["annotations"][TEMPLATE_COUNT].as_str()?;
    annotation
        .parse::<i64>()
        .is_err()
        .then(|| format!("annotation {TEMPLATE_COUNT}: must be a number, found {annotation:?}"))
}

/// Validates the spec (`ValidateDaemonSetSpec`).
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (given, template) = (spec.at("selector"), spec.at("template"));
    if given.passes(selector::validate_selector) {
        selector::validate_matches_template(&given, &template);
    }
    given.invalid_if(!given.is_null() && selector::is_empty(&given), "must not be empty");
    template.check(validation::pod::validate_template);
    validation::pod::validate_restart_always(&template);
    spec.check_children(&["minReadySeconds", "revisionHistoryLimit"], Field::not_negative);
    update_strategy(&spec.at("updateStrategy"));
}

/// Validates `spec.updateStrategy` (`ValidateDaemonSetUpdateStrategy`). Exactly one of `maxSurge` and `maxUnavailable`
/// may be above 0.
fn update_strategy(strategy: &Field<'_>) {
    let rolling = strategy.at("rollingUpdate");
    match text(&strategy["type"]) {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_null() => rolling.required(),
        "RollingUpdate" => {
            let (surge, unavailable) = (rolling.at("maxSurge"), rolling.at("maxUnavailable"));
            for count in [&surge, &unavailable] {
                count.non_negative_int_or_percent();
                count.at_most_100_percent();
            }
            let (has_surge, has_unavailable) = (!is_none(&surge), !is_none(&unavailable));
            surge.invalid_if(has_surge && has_unavailable, "may not be set when maxUnavailable is non-zero");
            unavailable.required_with_if(!has_surge && !has_unavailable, "cannot be 0 when maxSurge is 0");
        }
        _ => strategy.unsupported(&declared::values("apps.v1.DaemonSetUpdateStrategy", "type")),
    }
}

/// Fills in the defaults of a `DaemonSet` (`SetDefaults_DaemonSet` in `pkg/apis/apps/v1/defaults.go`). A rolling update
/// first deletes the old Pod of a node, one node at a time.
fn default(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "revisionHistoryLimit", 10);
    let strategy = part(spec, "updateStrategy");
    fill(strategy, "type", "RollingUpdate");
    if is_text(strategy, "type", "RollingUpdate") {
        let update = part(strategy, "rollingUpdate");
        add(update, "maxUnavailable", 1);
        add(update, "maxSurge", 0);
    }
    pod::template(spec, "template");
    let annotations = part(part(object, "metadata"), "annotations");
    add(annotations, TEMPLATE_COUNT, "1");
}
