//! Rules that classes of devices, claims for devices and slices of devices share: names, selectors, settings of drivers.
//!
//! Behaviour: `pkg/apis/resource/validation/validation.go`, asked of kube-apiserver 1.36.

use std::collections::BTreeSet;

use kctl_cel::{Environment, Type};
use serde_json::Value;

use super::{Errors, entries, text};
use crate::{cel::type_of, names::NameRule};

/// The longest name of a driver, and of a domain of names (`DriverNameMaxLength`).
const DRIVER_LEN_MAX: usize = 63;
/// The longest name of an attribute behind its domain (`DeviceMaxIDLength`).
const ID_LEN_MAX: usize = 32;
/// The longest expression (`CELSelectorExpressionMaxLength`), in bytes.
const EXPRESSION_LEN_MAX: usize = 10 * 1024;
/// The longest settings of a driver (`OpaqueParametersMaxLength`), and the longest word of it about a device, in bytes of JSON.
const PARAMETERS_LEN_MAX: usize = 10 * 1024;
/// The longest name of a pool (`PoolNameMaxLength`).
const POOL_LEN_MAX: usize = 253;
const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

pub(crate) fn class(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    selectors(&spec["selectors"], "spec.selectors", errors);
    each(&spec["config"], "spec.config", errors, |config, at, errors| opaque(&config["opaque"], at, errors));
}

/// Validates each item of a list, unless the tags of the list have found it too long.
pub(crate) fn each(list: &Value, at: &str, errors: &mut Errors, mut validate: impl FnMut(&Value, &str, &mut Errors)) {
    if errors.is_too_long(at) {
        return;
    }
    for (index, item) in entries(list) {
        validate(item, &format!("{at}[{index}]"), errors);
    }
}

/// Reports items with the same name.
pub(crate) fn unique<'a>(list: &'a Value, at: &str, errors: &mut Errors, name: impl Fn(&'a Value) -> &'a Value) {
    let mut known = BTreeSet::new();
    for (index, item) in entries(list) {
        let name = text(name(item));
        if !known.insert(name) {
            errors.duplicate(&format!("{at}[{index}]"), &Value::from(name).to_string());
        }
    }
}

pub(crate) fn selectors(list: &Value, at: &str, errors: &mut Errors) {
    each(list, at, errors, |selector, at, errors| {
        if selector["cel"].is_null() {
            errors.required(&format!("{at}.cel"), "");
        } else if text(&selector["cel"]["expression"]).len() > EXPRESSION_LEN_MAX {
            errors.too_long(&format!("{at}.cel.expression"), EXPRESSION_LEN_MAX);
        } else if let Some(why) = problem(text(&selector["cel"]["expression"])) {
            errors.invalid(&format!("{at}.cel.expression"), &selector["cel"]["expression"], &why);
        }
    });
}

/// What is wrong with a selector. Nobody evaluates it here, so its cost is not judged.
fn problem(expression: &str) -> Option<String> {
    match type_of(expression, &Environment::of_device()) {
        Err(why) => Some(format!("compilation failed: {why}")),
        Ok(Some(found)) if !matches!(found, Type::Bool | Type::Any) => {
            Some(format!("must evaluate to bool or the unknown type, not {}", found.whole_name()))
        }
        Ok(_) => None,
    }
}

/// Settings that only their driver reads.
pub(crate) fn opaque(opaque: &Value, at: &str, errors: &mut Errors) {
    let at = format!("{at}.opaque");
    if opaque.is_null() {
        return errors.required(&at, "");
    }
    let (parameters, at) = (&opaque["parameters"], format!("{at}.parameters"));
    if parameters.is_null() {
        errors.required(&at, "");
    } else {
        of_driver(parameters, &at, errors);
    }
}

/// An object that only a driver knows the fields of.
pub(crate) fn of_driver(object: &Value, at: &str, errors: &mut Errors) {
    if object.to_string().len() > PARAMETERS_LEN_MAX {
        errors.too_long(at, PARAMETERS_LEN_MAX);
    } else if !object.is_object() {
        errors.invalid(at, &"<value omitted>".into(), "must be a valid JSON object");
    }
}

/// The name of a driver, which may have capital letters here.
pub(crate) fn driver(name: &Value, at: &str, errors: &mut Errors) {
    if text(name).is_empty() {
        return errors.required(at, "");
    }
    if text(name).len() > DRIVER_LEN_MAX {
        errors.too_long(at, DRIVER_LEN_MAX);
    }
    for message in NameRule::Subdomain.check(&text(name).to_lowercase()) {
        errors.invalid(at, name, &message);
    }
}

/// The name of a pool: names of domains, with slashes between them.
pub(crate) fn pool_name(name: &Value, at: &str, errors: &mut Errors) {
    let name = text(name);
    if name.is_empty() {
        return errors.required(at, "");
    }
    if name.len() > POOL_LEN_MAX {
        errors.too_long(at, POOL_LEN_MAX);
    }
    name.split('/').for_each(|part| errors.name(at, &part.into(), NameRule::Subdomain));
}

/// Conditions that make a device ready for a pod, and those that say that it will not be.
pub(crate) fn bindings(device: &Value, at: &str, errors: &mut Errors) {
    const BOTH: [(&str, &str); 2] =
        [("bindingConditions", "bindingFailureConditions"), ("bindingFailureConditions", "bindingConditions")];
    for (field, _) in BOTH {
        let at = format!("{at}.{field}");
        each(&device[field], &at, errors, |name, at, errors| errors.qualified_name(at, text(name)));
        if !errors.is_too_long(&at) {
            unique(&device[field], &at, errors, |name| name);
        }
    }
    for (index, failure) in entries(&device["bindingFailureConditions"]) {
        if entries(&device["bindingConditions"]).any(|(_, one)| one == failure) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.invalid(&format!("{at}.bindingFailureConditions[{index}]"), failure, detail);
        }
    }
    for (field, other) in BOTH {
        if entries(&device[field]).next().is_some() && entries(&device[other]).next().is_none() {
            let detail = format!("{other} are required to use {field}");
            errors.invalid(&format!("{at}.{other}"), &Value::Null, &detail);
        }
    }
}

/// The name of an attribute or a capacity, with or without a domain.
pub(crate) fn qualified(name: &Value, at: &str, errors: &mut Errors) {
    let parts: Vec<&str> = text(name).split('/').collect();
    match parts[..] {
        [id] => identifier(id, at, errors),
        [domain, id] => {
            if domain.is_empty() {
                errors.invalid(at, &"".into(), "the domain must not be empty");
            } else {
                driver(&domain.into(), at, errors);
            }
            if id.is_empty() {
                errors.invalid(at, &"".into(), "the name must not be empty");
            } else {
                identifier(id, at, errors);
            }
        }
        // The real server says nothing of more parts.
        _ => {}
    }
}

/// A name that needs its domain.
pub(crate) fn fully_qualified(name: &Value, at: &str, errors: &mut Errors) {
    qualified(name, at, errors);
    if !text(name).contains('/') {
        errors.invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash");
    }
}

fn identifier(id: &str, at: &str, errors: &mut Errors) {
    if id.len() > ID_LEN_MAX {
        errors.too_long(at, ID_LEN_MAX);
    }
    let begins = id.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !begins || !id.chars().all(|one| one.is_ascii_alphanumeric() || one == '_') {
        errors.invalid(at, &id.into(), C_IDENTIFIER);
    }
}
