//! Rules of claims for devices, and of their templates: what is asked for, and what of it belongs together.
//!
//! Behaviour: `pkg/apis/resource/validation/validation.go`, asked of kube-apiserver 1.36.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Errors,
    device::{EFFECTS, ITEMS_MAX, few, few_different, fully_qualified, opaque, selectors},
    entries, text,
};
use crate::admit::{
    metadata,
    names::{NameRule, check_label_value},
};

/// Ways out of a request (`FirstAvailableDeviceRequestMaxSize`).
const WAYS_MAX: usize = 8;
const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

pub(crate) fn claim(object: &Value, errors: &mut Errors) {
    devices(&object["spec"]["devices"], "spec.devices", errors);
}

pub(crate) fn template(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    metadata_of_template(&spec["metadata"], "spec.metadata", errors);
    devices(&spec["spec"]["devices"], "spec.spec.devices", errors);
}

/// The metadata of what is made for a pod: it has labels and annotations alone.
pub(crate) fn metadata_of_template(meta: &Value, at: &str, errors: &mut Errors) {
    errors.annotations(&format!("{at}.annotations"), &meta["annotations"]);
    errors.labels(&format!("{at}.labels"), &meta["labels"]);
    for field in metadata::FIELDS.into_iter().filter(|field| !matches!(*field, "labels" | "annotations")) {
        let value = &meta[field];
        let is_zero = *value == "" || (*value == 0 && field == "generation");
        if !value.is_null() && !is_zero {
            // Go makes the name of the field by writing its first letter small.
            let field = if field == "uid" { "uID" } else { field };
            errors.forbidden(&format!("{at}.{field}"), "cannot be set");
        }
    }
}

fn devices(devices: &Value, at: &str, errors: &mut Errors) {
    let requests = &devices["requests"];
    few_different(requests, ITEMS_MAX, &format!("{at}.requests"), errors, |one| &one["name"], request);
    let known = names(requests);
    few(&devices["constraints"], ITEMS_MAX, &format!("{at}.constraints"), errors, |constraint, at, errors| {
        of_requests(&constraint["requests"], &known, at, errors);
        let (same, other) = (&constraint["matchAttribute"], &constraint["distinctAttribute"]);
        if same.is_string() {
            fully_qualified(same, &format!("{at}.matchAttribute"), errors);
        } else if other.is_string() {
            fully_qualified(other, &format!("{at}.distinctAttribute"), errors);
        } else {
            // The text is that of the real server.
            let detail =
                "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
            errors.required(at, detail);
        }
    });
    few(&devices["config"], ITEMS_MAX, &format!("{at}.config"), errors, |config, at, errors| {
        of_requests(&config["requests"], &known, at, errors);
        opaque(&config["opaque"], at, errors);
    });
}

/// The names of requests, and of the ways out of them.
pub(crate) fn names(requests: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, request) in entries(requests) {
        let name = text(&request["name"]);
        names.insert(name.to_owned());
        names.extend(entries(&request["firstAvailable"]).map(|(_, way)| format!("{name}/{}", text(&way["name"]))));
    }
    names
}

/// Which requests something is about; without any it is about all.
pub(crate) fn of_requests(list: &Value, known: &BTreeSet<String>, at: &str, errors: &mut Errors) {
    few_different(
        list,
        ITEMS_MAX,
        &format!("{at}.requests"),
        errors,
        |name| name,
        |name, at, errors| of_request(name, known, at, errors),
    );
}

/// The name of a request, or of a way out of one.
pub(crate) fn of_request(name: &Value, known: &BTreeSet<String>, at: &str, errors: &mut Errors) {
    let name = text(name);
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() <= 2 {
        for part in parts {
            errors.name(at, &part.into(), NameRule::Label);
        }
    }
    if !known.contains(name) {
        errors.invalid(at, &name.into(), NO_REQUEST);
    }
}

fn request(request: &Value, at: &str, errors: &mut Errors) {
    errors.name(&format!("{at}.name"), &text(&request["name"]).into(), NameRule::Label);
    let (exactly, ways) = (&request["exactly"], &request["firstAvailable"]);
    let has_ways = entries(ways).next().is_some();
    match (exactly.is_null(), has_ways) {
        (true, false) => errors.required(at, "exactly one of `exactly` or `firstAvailable` is required"),
        (false, true) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.invalid(at, &Value::Null, detail);
        }
        (false, false) => asked(exactly, &format!("{at}.exactly"), errors),
        (true, true) => {
            let at = format!("{at}.firstAvailable");
            few_different(
                ways,
                WAYS_MAX,
                &at,
                errors,
                |way| &way["name"],
                |way, at, errors| {
                    errors.name(&format!("{at}.name"), &text(&way["name"]).into(), NameRule::Label);
                    asked(way, at, errors);
                },
            );
        }
    }
}

/// What is asked for: devices of a class, how many, and which.
fn asked(asked: &Value, at: &str, errors: &mut Errors) {
    errors.required_name(&format!("{at}.deviceClassName"), &asked["deviceClassName"], NameRule::Subdomain);
    selectors(&asked["selectors"], &format!("{at}.selectors"), errors);
    let (count, count_at) = (asked["count"].as_i64().unwrap_or_default(), format!("{at}.count"));
    match text(&asked["allocationMode"]) {
        "All" if count != 0 => {
            errors.invalid(&count_at, &count.into(), "must not be specified when allocationMode is 'All'");
        }
        "All" => {}
        "ExactCount" if count <= 0 => errors.invalid(&count_at, &count.into(), "must be greater than zero"),
        _ => errors.always_one_of(&format!("{at}.allocationMode"), &asked["allocationMode"], &["All", "ExactCount"]),
    }
    for (index, one) in entries(&asked["tolerations"]) {
        toleration(one, &format!("{at}.tolerations[{index}]"), errors);
    }
}

fn toleration(toleration: &Value, at: &str, errors: &mut Errors) {
    let (key, value) = (text(&toleration["key"]), &toleration["value"]);
    if !key.is_empty() {
        errors.qualified_name(&format!("{at}.key"), key);
    }
    let value_at = format!("{at}.value");
    match text(&toleration["operator"]) {
        "Exists" if !text(value).is_empty() => errors.invalid(&value_at, value, "must be empty for operator `Exists`"),
        "Exists" => {}
        "Equal" => {
            for message in check_label_value(text(value)) {
                errors.invalid(&value_at, value, &message);
            }
        }
        _ => errors.always_one_of(&format!("{at}.operator"), &toleration["operator"], &["Equal", "Exists"]),
    }
    if !text(&toleration["effect"]).is_empty() {
        errors.one_of(&format!("{at}.effect"), &toleration["effect"], EFFECTS);
    }
}
