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
    field_errors::{Errors, text},
    kinds::resource::validation::{opaque, selectors},
    names::{NameRule, check_label_value},
    validation::{each, entries, format::fully_qualified},
};

/// Detail of the error about a name that is neither a request nor a request with one of its
/// alternatives.
const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// Validates a new claim. An update cannot change the spec, so it does not validate it again.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    devices(&object["spec"]["devices"], "spec.devices", errors);
}

/// Validates requests, constraints and configurations of a claim.
///
/// A constraint requires that devices have the same value of an attribute, or that all values
/// differ.
pub(crate) fn devices(devices: &Value, path: &str, errors: &mut Errors) {
    let requests = &devices["requests"];
    each(requests, &format!("{path}.requests"), errors, request);
    let declared = names(requests);
    each(&devices["constraints"], &format!("{path}.constraints"), errors, |constraint, path, errors| {
        of_requests(&constraint["requests"], &declared, path, errors);
        let (same, other) = (&constraint["matchAttribute"], &constraint["distinctAttribute"]);
        if same.is_string() {
            // Tags of the API validate `matchAttribute`.
        } else if other.is_string() {
            fully_qualified(other, &format!("{path}.distinctAttribute"), errors);
        } else {
            errors.required(path, "one of matchAttribute and distinctAttribute is required");
        }
    });
    each(&devices["config"], &format!("{path}.config"), errors, |config, path, errors| {
        of_requests(&config["requests"], &declared, path, errors);
        opaque(&config["opaque"], path, errors);
    });
}

/// Returns the names of the requests, and `request/subrequest` for each alternative.
pub(crate) fn names(requests: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, request) in entries(requests) {
        let name = text(&request["name"]);
        names.insert(name.to_owned());
        names.extend(entries(&request["firstAvailable"]).map(|(_, way)| format!("{name}/{}", text(&way["name"]))));
    }
    names
}

/// Validates the list of requests that a constraint or configuration is about; an empty list means
/// all requests.
pub(crate) fn of_requests(list: &Value, declared: &BTreeSet<String>, path: &str, errors: &mut Errors) {
    each(list, &format!("{path}.requests"), errors, |name, path, errors| of_request(name, declared, path, errors));
}

/// Validates the name of a request, or `request/subrequest`. It must be in `declared`.
pub(crate) fn of_request(name: &Value, declared: &BTreeSet<String>, path: &str, errors: &mut Errors) {
    let name = text(name);
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() <= 2 {
        for part in parts {
            errors.name(path, &part.into(), NameRule::Label);
        }
    }
    if !declared.contains(name) {
        errors.invalid(path, &name.into(), NO_REQUEST);
    }
}

/// Validates a request, which is either for one kind of device (`exactly`) or has alternatives
/// (`firstAvailable`).
///
/// With both, only the tags of the API validate them.
fn request(request: &Value, path: &str, errors: &mut Errors) {
    errors.name(&format!("{path}.name"), &text(&request["name"]).into(), NameRule::Label);
    let (exactly, ways) = (&request["exactly"], &request["firstAvailable"]);
    let has_ways = entries(ways).next().is_some();
    match (exactly.is_null(), has_ways) {
        (true, false) => errors.required(path, "exactly one of `exactly` or `firstAvailable` is required"),
        (false, true) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.invalid(path, &Value::Null, detail);
        }
        (false, false) => {
            let path = format!("{path}.exactly");
            errors.required_name(&format!("{path}.deviceClassName"), &exactly["deviceClassName"], NameRule::Subdomain);
            alternative(exactly, &path, errors);
        }
        (true, true) => {
            each(ways, &format!("{path}.firstAvailable"), errors, |way, path, errors| {
                errors.name(&format!("{path}.name"), &text(&way["name"]).into(), NameRule::Label);
                alternative(way, path, errors);
            });
        }
    }
}

/// Validates the selectors, the number and the tolerations of a request.
///
/// The count is positive with `ExactCount`, and absent with `All`.
///
/// `request` is a request or one of its alternatives.
fn alternative(request: &Value, path: &str, errors: &mut Errors) {
    selectors(&request["selectors"], &format!("{path}.selectors"), errors);
    let (count, count_path) = (request["count"].as_i64().unwrap_or_default(), format!("{path}.count"));
    match text(&request["allocationMode"]) {
        "All" if count != 0 => {
            errors.invalid(&count_path, &count.into(), "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if count <= 0 => errors.invalid(&count_path, &count.into(), "must be greater than zero"),
        _ => {}
    }
    for (index, item) in entries(&request["tolerations"]) {
        toleration(item, &format!("{path}.tolerations[{index}]"), errors);
    }
}

/// Validates the value of a toleration: no value with `Exists`, and the value of a label with `Equal`.
pub(crate) fn toleration(toleration: &Value, path: &str, errors: &mut Errors) {
    let (value, value_path) = (&toleration["value"], format!("{path}.value"));
    match text(&toleration["operator"]) {
        "Exists" if !text(value).is_empty() => {
            errors.invalid(&value_path, value, "must be empty for operator `Exists`");
        }
        "Equal" => {
            if let Some(message) = check_label_value(text(value)) {
                errors.invalid(&value_path, value, message);
            }
        }
        _ => {}
    }
}
