//! Validation of `ResourceClaim`s, and of those in templates (`pkg/apis/resource/validation/validation.go`).
//!
//! ```text
//! devices:
//!   requests:
//!   - name: gpu
//!     exactly: {deviceClassName: gpu.example.com, count: 2}
//!   constraints:
//!   - requests: [gpu]
//!     matchAttribute: example.com/numa
//! ```
//!
//! A request of several alternatives has `firstAvailable` instead of `exactly`. Other parts of the
//! claim name one of its alternatives as `gpu/large`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    kinds::resource::validation::{validate_opaque_config, validate_selectors},
    names::NameRule,
};

/// Validates a new claim. An update cannot change the spec, so it does not validate it again.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    validate_devices(&Field::new(&object["spec"]["devices"], "spec.devices", errors));
}

/// Validates requests, constraints and configurations of a claim.
///
/// A constraint requires that devices have the same value of an attribute, or that all values differ. Tags of the API
/// validate the names of the attributes.
pub(crate) fn validate_devices(devices: &Field<'_>) {
    devices.at("requests").items().for_each(|item| validate_request(&item));
    let declared = request_names(&devices["requests"]);
    for constraint in devices.at("constraints").items() {
        validate_request_names(&constraint, &declared);
        let (same, other) = (constraint.at("matchAttribute"), constraint.at("distinctAttribute"));
        let has_none = !same.is_string() && !other.is_string();
        constraint.required_with_if(has_none, "exactly one of matchAttribute and distinctAttribute must be set");
    }
    validate_configurations(devices, &declared);
}

/// Validates the configurations of devices, each for requests with the declared names.
pub(crate) fn validate_configurations(devices: &Field<'_>, declared: &BTreeSet<String>) {
    for config in devices.at("config").items() {
        validate_request_names(&config, declared);
        validate_opaque_config(&config);
    }
}

/// Returns the names of the requests, and `request/subrequest` for each alternative.
pub(crate) fn request_names(requests: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, request) in entries(requests) {
        let name = text(&request["name"]);
        names.insert(name.to_owned());
        names.extend(entries(&request["firstAvailable"]).map(|(_, way)| format!("{name}/{}", text(&way["name"]))));
    }
    names
}

/// Validates the list of requests that a constraint or configuration is about; an empty list means all requests.
pub(crate) fn validate_request_names(part: &Field<'_>, declared: &BTreeSet<String>) {
    part.at("requests").items().for_each(|name| validate_request_name(&name, declared));
}

/// Validates the name of a request, or `request/subrequest`. It must be in `declared`.
pub(crate) fn validate_request_name(name: &Field<'_>, declared: &BTreeSet<String>) {
    let parts: Vec<&str> = name.text().split('/').collect();
    let has_wrong_part = parts.len() <= 2 && parts.iter().any(|part| NameRule::Label.check(part).is_some());
    let detail =
        "must be the name of a request in the claim, or of a request and one of its alternatives separated by '/'";
    name.invalid_if(has_wrong_part || !declared.contains(name.text()), detail);
}

/// Validates a request, which is either for one kind of device (`exactly`) or has alternatives (`firstAvailable`). With
/// both, only the tags of the API validate them.
fn validate_request(request: &Field<'_>) {
    request.at("name").name(NameRule::Label);
    let (exactly, ways) = (request.at("exactly"), request.at("firstAvailable"));
    match (exactly.is_null(), !ways.is_empty()) {
        (true, false) => request.required_with("exactly one of `exactly` and `firstAvailable` must be set"),
        (false, true) => request.invalid("must have only one of `exactly` and `firstAvailable`"),
        (false, false) => {
            exactly.at("deviceClassName").required_name(NameRule::Subdomain);
            validate_alternative(&exactly);
        }
        (true, true) => {
            for way in ways.items() {
                way.at("name").name(NameRule::Label);
                validate_alternative(&way);
            }
        }
    }
}

/// Validates the selectors, the number and the tolerations of a request or of one of its alternatives.
fn validate_alternative(request: &Field<'_>) {
    validate_selectors(&request.at("selectors"));
    let count = request.at("count");
    let (number, mode) = (count.as_i64().unwrap_or_default(), text(&request["allocationMode"]));
    let is_wrong = (mode == "All" && number != 0) || (mode == "ExactCount" && number <= 0);
    count.invalid_if(is_wrong, "must be greater than 0 with 'ExactCount', and absent with 'All'");
    request.at("tolerations").items().for_each(|item| validate_toleration(&item));
}

/// Validates the value of a toleration: no value with `Exists`, and the value of a label with `Equal`.
pub(crate) fn validate_toleration(toleration: &Field<'_>) {
    let value = toleration.at("value");
    match text(&toleration["operator"]) {
        "Exists" => value.invalid_if(!value.is_empty(), "must be empty for operator `Exists`"),
        "Equal" => value.label_value(),
        _ => {}
    }
}
