//! `CronJob` of `batch`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{defaults, rules, warnings},
    names::NameRule,
    registry::kind::{Generation, Kind, NewStatus},
    table::{
        age::{age, since_text},
        fields::{at, list, name, text, text_or},
        labels::{NONE, selector},
        workload::containers,
    },
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
    printer: Some(cells),
    pod_template: Some("/spec/jobTemplate/spec/template"),
    ..Kind::DEFAULT
};

fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let template = &object["spec"]["jobTemplate"]["spec"]["template"];
    warnings::template(template, "spec.jobTemplate.spec.template.", warnings);
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/jobTemplate/spec/template"));
    let last = match text(object, "/status/lastScheduleTime") {
        "" => NONE.to_owned(),
        last => since_text(last, now),
    };
    let suspend = match at(object, "/spec/suspend").as_bool() {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    };
    vec![
        json!(name(object)),
        json!(text(object, "/spec/schedule")),
        json!(text_or(object, "/spec/timeZone", NONE)),
        json!(suspend),
        json!(list(object, "/status/active").len()),
        json!(last),
        json!(age(object, now)),
        names,
        images,
        json!(selector(at(object, "/spec/jobTemplate/spec/selector"))),
    ]
}
