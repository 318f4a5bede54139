//! `Event` of `events.k8s.io`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting::{add, part},
    registry::kind::{Kind, Quota},
    table::{
        age::since_text,
        fields::{first_text, int, name, text},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "events.k8s.io",
    resource: "events",
    kind: "Event",
    selectable_fields: &[
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ],
    creates_on_update: true,
    error_group: Some(""),
    has_no_dependents: true,
    default,
    filled_in: &["/deprecatedFirstTimestamp", "/deprecatedLastTimestamp", "/deprecatedSource"],
    validate: super::validation::new_event,
    validate_subresource: |_, old, new, errors| super::validation::fixed(old, new, errors),
    printer: Some(cells),
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};

/// Returns the cells of an event of the core group or of `events.k8s.io`, which name the fields differently.
pub(crate) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let first = first_text(object, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let last = match first_text(object, &["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp"]) {
        "" => first,
        last => last,
    };
    let count = ["/series/count", "/count", "/deprecatedCount"].map(|pointer| int(object, pointer));
    let count = count.into_iter().find(|count| *count != 0).unwrap_or(1);
    let kind = first_text(object, &["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    let about = first_text(object, &["/involvedObject/name", "/regarding/name"]);
    vec![
        json!(since_text(last, now)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(if about.is_empty() { kind } else { format!("{kind}/{about}") }),
        json!(first_text(object, &["/involvedObject/fieldPath", "/regarding/fieldPath"])),
        json!(source(object)),
        json!(first_text(object, &["/message", "/note"]).trim()),
        json!(since_text(first, now)),
        json!(count),
        json!(name(object)),
    ]
}

fn source(object: &Value) -> String {
    let component = first_text(
        object,
        &["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"],
    );
    match first_text(object, &["/source/host", "/deprecatedSource/host", "/reportingInstance"]) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

fn default(object: &mut Value) {
    for time in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
        add(object, time, Value::Null);
    }
    part(object, "deprecatedSource");
}
