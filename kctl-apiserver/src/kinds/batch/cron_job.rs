//! `CronJob` of `batch`: creates Jobs on a schedule.
//!
//! The server adds defaults, counts changes of the spec in `metadata.generation`, and validates schedule and time zone.
//! Names have at most 52 bytes: the controller appends 11 characters for the names of the Jobs.
//!
//! Upstream: `pkg/registry/batch/cronjob/strategy.go` and `pkg/apis/batch/validation/validation.go`.

mod schedule;

use serde_json::Value;

use crate::{
    defaulting::{add, fill, part, pod},
    field::Field,
    field_errors::Errors,
    kinds::batch::job::{default_failure_policy, validation::job_spec},
    names::NameRule,
    registry::kind::{Cell, Defaults, Kind, Metadata, NewStatus, Plugin, Strategy, TableColumns, Validation},
    table::{
        fields::value_at,
        labels::{NONE, UNSET},
    },
    validation::warnings,
};

pub(crate) static KIND: Kind = Kind {
    group: "batch",
    resource: "cronjobs",
    kind: "CronJob",
    metadata: Metadata { names: NameRule::CronJob, ..Metadata::COUNTED },
    admission: &[Plugin::PodSecurityForTemplates("/spec/jobTemplate/spec/template")],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { new_status: NewStatus::Empty, ..Strategy::DEFAULT },
    validation: Validation {
        validates_spec_only: true,
        validate,
        warn,
        warns_once_per_generation: true,
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Text("/spec/schedule"),
        Cell::TextOr("/spec/timeZone", NONE),
        Cell::Computed(|job, _| suspend(job).into()),
        Cell::Count("/status/active"),
        Cell::SinceOr("/status/lastScheduleTime", NONE),
        Cell::Age,
        Cell::Containers("/spec/jobTemplate/spec/template"),
        Cell::Images("/spec/jobTemplate/spec/template"),
        Cell::Labels("/spec/jobTemplate/spec/selector"),
    ]),
    ..Kind::DEFAULT
};

/// Warns about the Pod template of the Jobs, as for a Pod.
fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let template = &object["spec"]["jobTemplate"]["spec"]["template"];
    warnings::template(template, "spec.jobTemplate.spec.template.", warnings);
}

/// Returns `spec.suspend` as a word, or `<unset>`.
fn suspend(object: &Value) -> &'static str {
    match value_at(object, "/spec/suspend").as_bool() {
        None => UNSET,
        Some(true) => "True",
        Some(false) => "False",
    }
}

/// The rule for schedules.
const SCHEDULE_RULE: &str = "must be five fields such as '*/15 8-17 * * mon-fri', or '@daily', or '@every 1h30m'; set a \
                             time zone in `timeZone`";

/// Validates the spec: schedule, time zone, deadline, history limits and the template of the Jobs.
///
/// The template has no selector: each Job gets a generated one. A tag of the API requires `schedule`.
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (schedule, zone) = (spec.at("schedule"), spec.at("timeZone"));
    let is_valid = schedule.is_empty() || schedule::is_schedule(schedule.text());
    schedule.invalid_if(schedule.text().contains("TZ") || !is_valid, SCHEDULE_RULE);
    let is_valid = zone.is_null() || schedule::is_zone(zone.text());
    zone.invalid_if(!is_valid, "must be the name of an IANA time zone, such as Europe/Paris");
    let numbers = ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    spec.check_children(&numbers, Field::not_negative);
    let job = spec.at("jobTemplate").at("spec");
    job_spec(&job);
    let (selector, manual) = (job.at("selector"), job.at("manualSelector"));
    selector.invalid_if(!selector.is_null(), "must be absent: the server generates it");
    manual.unsupported_if(*manual == true, &["nil", "false"]);
}

/// Sets the defaults of a `CronJob`. In its Job template, only the Pod template and the failure policy get some:
/// `parallelism` and the like are set in each Job when it is created.
fn default(object: &mut Value) {
    let spec = part(object, "spec");
    fill(spec, "concurrencyPolicy", "Allow");
    add(spec, "suspend", false);
    add(spec, "successfulJobsHistoryLimit", 3);
    add(spec, "failedJobsHistoryLimit", 1);
    let job = part(part(spec, "jobTemplate"), "spec");
    default_failure_policy(job);
    pod::template(job, "template");
}
