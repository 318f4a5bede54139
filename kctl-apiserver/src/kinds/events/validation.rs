//! Validation of Events: lax in the core group, strict in `events.k8s.io` (`pkg/apis/core/validation/events.go`).
//!
//! As in kube-apiserver, both are validated in the form of the core group, so errors have the names of its fields.
//!
//! An event of the core group without `eventTime` is an old one; only its namespace is validated.

use serde_json::Value;

use super::conversion::convert;
use crate::{
    field::Field,
    field_errors::{Errors, text},
};

/// Longest message of a new event, in bytes.
const MESSAGE_LEN_MAX: usize = 1_024;
/// Longest reason, action or reporting instance of a new event, in bytes.
const WORD_LEN_MAX: usize = 128;

/// Validates an `Event` of the core group (`ValidateEventCreate` for the core version).
pub(crate) fn core_event(object: &Value, errors: &mut Errors) {
    let event = Field::new(object, "", errors);
    validate_every_event(&event, &event.at("reportingComponent"));
}

/// Validates an `Event` of `events.k8s.io` (`ValidateEventCreate`). Fields that begin with `deprecated` are there to
/// read events of older clients.
pub(crate) fn new_event(object: &Value, errors: &mut Errors) {
    let object = convert("v1", object);
    let event = Field::new(&object, "", errors);
    validate_every_event(&event, &event.at("reportingController").with(&event["reportingComponent"]));
    let (series, time, kind) = (event.at("series"), event.at("eventTime"), event.at("type"));
    if series.is_object() {
        // A series has the time of its last event, and at least two.
        let (count, last) = (series.at("count"), series.at("lastObservedTime"));
        count.invalid_if(count.as_i64().unwrap_or(0) < 2, "must be at least 2");
        last.required_if(last.is_null());
    }
    time.required_if(time.is_null());
    kind.invalid_if(!["Normal", "Warning"].contains(&kind.text()), "must be 'Normal' or 'Warning'");
    event.check_children(&["firstTimestamp", "lastTimestamp", "count", "source"], |field| {
        field.invalid_if(!field.is_empty() && **field != 0, "needs to be unset");
    });
}

/// Validates that an event is in the namespace of its object, or in `default` for a cluster-scoped object
/// (`legacyValidateEvent`).
///
/// New events, those with `eventTime`, may be in any namespace. If their object is cluster-scoped, they may be in
/// `default` or `kube-system`. The rules about reporters apply only to them.
fn validate_every_event(event: &Field<'_>, controller: &Field<'_>) {
    let (about, own) = (event.at("involvedObject").at("namespace"), text(&event["metadata"]["namespace"]));
    let is_new = !event["eventTime"].is_null();
    let is_right = match about.text() {
        "" => own == "default" || (is_new && own == "kube-system"),
        about => is_new || own == about,
    };
    about.invalid_if(!is_right, "must be the namespace of the event");
    if !event["eventTime"].is_string() {
        return;
    }
    controller.required_if(controller.is_empty());
    controller.qualified_name();
    for word in ["reportingInstance", "action", "reason"].map(|name| event.at(name)) {
        word.required_if(word.is_empty());
        validate_length(&word, WORD_LEN_MAX);
    }
    validate_length(&event.at("message"), MESSAGE_LEN_MAX);
}

/// Bounds a string, in bytes. The error does not repeat it.
fn validate_length(text: &Field<'_>, most: usize) {
    text.invalid_without_value_if(text.text().len() > most, format_args!("can have at most {most} bytes"));
}

/// Validates that an update changes nothing but the series (`ValidateEventUpdate`).
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (old, new) = (convert("v1", old), convert("v1", new));
    let event = Field::new(&new, "", errors);
    for name in [
        "involvedObject",
        "reason",
        "message",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "reportingInstance",
        "related",
    ] {
        event.at(name).immutable(&old[name]);
    }
    event.at("reportingController").with(&new["reportingComponent"]).immutable(&old["reportingComponent"]);
}
