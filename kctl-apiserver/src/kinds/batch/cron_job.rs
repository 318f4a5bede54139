//! `CronJob` of `batch`.

use serde_json::Value;

use crate::{
    admit::{defaults, rules, warnings},
    names::NameRule,
    registry::kind::{Generation, Kind, NewStatus},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "batch",
    resource: "cronjobs",
    kind: "CronJob",
    names: NameRule::CronJob,
    generation: Generation::Counted,
    new_status: NewStatus::Empty,
    default: defaults::workload::cron_job,
    validate: rules::job::cron_job,
    validates_spec_only: true,
    warn,
    warns_once_per_generation: true,
    printer: Some(table::workload::cron_job),
    pod_template: Some("/spec/jobTemplate/spec/template"),
    ..Kind::DEFAULT
};

fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let template = &object["spec"]["jobTemplate"]["spec"]["template"];
    warnings::template(template, "spec.jobTemplate.spec.template.", warnings);
}
