//! `Event` of the core group.
//!
//! The same objects are served by `events.k8s.io`, whose file has the printer and the validation of both.
//!
//! Upstream: `pkg/registry/core/event/strategy.go` and `pkg/apis/core/validation/events.go`.

use serde_json::Value;

use crate::{
    names::NameRule,
    registry::kind::{
        DeleteStrategy, Kind, ManagedFields, Metadata, Quota, Requests, SharedTable, Strategy, TableColumns, Validation,
    },
};

pub(crate) static KIND: Kind = Kind {
    resource: "events",
    kind: "Event",
    metadata: Metadata { names: NameRule::PathSegment, ..Metadata::DEFAULT },
    requests: Requests {
        selectable_fields: &[
            "metadata.namespace",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        selected_value: |event, path| (path == "source").then(|| source(event)),
        ..Requests::DEFAULT
    },
    strategy: Strategy { creates_on_update: true, ..Strategy::DEFAULT },
    validation: Validation {
        validates_metadata_last: true,
        validate: crate::kinds::events::validation::core_event,
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        filled_in: &["/eventTime", "/firstTimestamp", "/lastTimestamp", "/reportingComponent", "/reportingInstance"],
        ..ManagedFields::DEFAULT
    },
    delete: DeleteStrategy { is_ignored_by_gc: true, ..DeleteStrategy::DEFAULT },
    table: TableColumns::printer(crate::kinds::events::event::cells),
    quota: Quota::NOT_COUNTED,
    shared_table: Some(&EVENTS),
    ..Kind::DEFAULT
};

/// The Events of both groups, which are stored in the form of the core group.
pub(crate) static EVENTS: SharedTable = SharedTable {
    owner: &KIND,
    other: &crate::kinds::events::event::KIND,
    convert: crate::kinds::events::conversion::convert,
};

/// Returns the source of an Event (`ToSelectableFields` of the strategy). The component of the old API takes precedence
/// over the component of the new one.
pub(in crate::kinds) fn source(event: &Value) -> String {
    let texts = [&event["source"]["component"], &event["reportingComponent"]];
    let named = texts.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty());
    named.unwrap_or_default().to_owned()
}
