//! Validation of Events: lax for those of the core group, strict for those of `events.k8s.io`
//! (`pkg/apis/core/validation/events.go`).
//!
//! An event of the core group without `eventTime` is an old one; only its namespace is validated. Some errors use the
//! names of the core fields and the empty string as the value, as in kube-apiserver.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::check_qualified_name,
};

/// Longest `note` or `message` of a new event, in bytes.
const NOTE_LEN_MAX: usize = 1_024;
/// Longest reason, action or reporting instance of a new event, in bytes.
const WORD_LEN_MAX: usize = 128;
/// Detail of each error about a changed field.
const IMMUTABLE: &str = "field is immutable";

/// The fields that both groups validate, with their names in each.
struct Names {
    /// The object that the event is about.
    about: &'static str,
    /// The human-readable description.
    note: &'static str,
    /// The name of the controller that reports the event, such as `example.com/controller`.
    controller: &'static str,
}

/// Names of the core group.
const CORE: Names = Names { about: "involvedObject", note: "message", controller: "reportingComponent" };

/// Names of `events.k8s.io`.
const OWN: Names = Names { about: "regarding", note: "note", controller: "reportingController" };

/// Validates an `Event` of the core group (`ValidateEventCreate` for the core version).
///
/// The rules about reporters apply only to events with an `eventTime`, which newer clients set.
pub(crate) fn core_event(object: &Value, errors: &mut Errors) {
    namespace(object, &CORE, errors);
    if object["eventTime"].is_string() {
        reported(object, &CORE, errors);
    }
}

/// Validates an `Event` of `events.k8s.io` (`ValidateEventCreate`).
///
/// `eventTime` is required, and the type is `Normal` or `Warning`. Fields that begin with
/// `deprecated` must be unset: they are there to read events of older clients.
pub(crate) fn new_event(object: &Value, errors: &mut Errors) {
    namespace(object, &OWN, errors);
    if object["eventTime"].is_string() {
        reported(object, &OWN, errors);
    }
    series(&object["series"], errors);
    if object["eventTime"].is_null() {
        errors.required("eventTime", "");
    }
    let kind = text(&object["type"]);
    if !["Normal", "Warning"].contains(&kind) {
        errors.invalid("type", &kind.into(), "must be 'Normal' or 'Warning'");
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        let value = &object[field];
        let is_set = match value {
            Value::Object(source) => !source.is_empty(),
            Value::Null => false,
            other => *other != 0,
        };
        if is_set {
            errors.invalid(shown, value, "needs to be unset");
        }
    }
}

/// Validates that an event is in the namespace of its object, or in `default` for a cluster-scoped object
/// (`legacyValidateEvent`).
///
/// New events, those with `eventTime`, may be in any namespace. If their object is cluster-scoped, they may be in
/// `default` or `kube-system`.
fn namespace(object: &Value, names: &Names, errors: &mut Errors) {
    let (about, own) = (text(&object[names.about]["namespace"]), text(&object["metadata"]["namespace"]));
    let is_new = !object["eventTime"].is_null();
    let is_right = match about {
        "" => own == "default" || (is_new && own == "kube-system"),
        about => is_new || own == about,
    };
    if !is_right {
        errors.invalid("involvedObject.namespace", &about.into(), "does not match event.namespace");
    }
}

/// Validates the fields that identify the controller and its action: reporter, instance, action and reason are
/// required.
fn reported(object: &Value, names: &Names, errors: &mut Errors) {
    let controller = text(&object[names.controller]);
    if controller.is_empty() {
        errors.required(names.controller, "");
    }
    if let Some(message) = check_qualified_name(controller) {
        errors.invalid(names.controller, &controller.into(), message);
    }
    for field in ["reportingInstance", "action", "reason"] {
        let value = text(&object[field]);
        if value.is_empty() {
            errors.required(field, "");
        } else if value.len() > WORD_LEN_MAX {
            errors.invalid_as_such(field, &format!("can have at most {WORD_LEN_MAX} characters"));
        }
    }
    if text(&object[names.note]).len() > NOTE_LEN_MAX {
        errors.invalid_as_such("message", &format!("can have at most {NOTE_LEN_MAX} characters"));
    }
}

/// Validates the series of a repeated event: at least 2 occurrences, and the time of the last one.
fn series(series: &Value, errors: &mut Errors) {
    if !series.is_object() {
        return;
    }
    if series["count"].as_i64().unwrap_or(0) < 2 {
        errors.invalid("series.count", &series["count"], "must be at least 2");
    }
    if series["lastObservedTime"].is_null() {
        errors.required("series.lastObservedTime", "");
    }
}

/// Validates that an update changes nothing but the series.
///
/// Upstream: `ValidateEventUpdate`.
pub(crate) fn fixed(old: &Value, new: &Value, errors: &mut Errors) {
    if old["regarding"] != new["regarding"] {
        errors.invalid("involvedObject", &new["regarding"], IMMUTABLE);
    }
    for (field, name) in [
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if old[field] != new[field] {
            errors.invalid(name, &new[field], IMMUTABLE);
        }
    }
    if old["related"] != new["related"] {
        errors.invalid("related", &new["related"], IMMUTABLE);
    }
}
