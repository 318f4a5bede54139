//! `Event` of `events.k8s.io`.
//!
//! It is the same object as an `Event` of the core group, with other names of the fields: `regarding` is
//! `involvedObject`, and `note` is `message`. Only the series of an event may be changed.
//!
//! Upstream: `pkg/registry/core/event/strategy.go` and `pkg/apis/core/validation/events.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    registry::kind::{DeleteStrategy, Kind, ManagedFields, Quota, Requests, Strategy, TableColumns, Validation},
    table::{
        age::since_text,
        fields::{first_text, int, name, text},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "events.k8s.io",
    resource: "events",
    kind: "Event",
    requests: Requests {
        selectable_fields: &[
            "metadata.namespace",
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
        error_group: Some(""),
        ..Requests::DEFAULT
    },
    strategy: Strategy { creates_on_update: true, ..Strategy::DEFAULT },
    validation: Validation {
        validate: super::validation::new_event,
        validate_subresource: |_, old, new, errors| super::validation::validate_update(old, new, errors),
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        filled_in: &["/deprecatedFirstTimestamp", "/deprecatedLastTimestamp", "/deprecatedSource"],
        ..ManagedFields::DEFAULT
    },
    delete: DeleteStrategy { is_ignored_by_gc: true, ..DeleteStrategy::DEFAULT },
    table: TableColumns::printer(cells),
    quota: Quota::NOT_COUNTED,
    shared_table: Some(&crate::kinds::core::event::EVENTS),
    ..Kind::DEFAULT
};

/// Returns the cells of an event of the core group or of `events.k8s.io`, which name the fields differently. It was
/// last seen at the last observation of the series, or at `lastTimestamp`, or when it was first seen.
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

/// Returns the component, and the host after a comma if it is known.
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
