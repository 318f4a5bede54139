//! `Event` of `events.k8s.io`.

use crate::{
    admit::defaults,
    registry::kind::{Kind, Quota},
    table,
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
    default: defaults::api::new_event,
    filled_in: &["/deprecatedFirstTimestamp", "/deprecatedLastTimestamp", "/deprecatedSource"],
    validate: super::validation::new_event,
    validate_subresource: |_, old, new, errors| super::validation::fixed(old, new, errors),
    printer: Some(table::core::event),
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
