//! Validation that the kinds of `resource.k8s.io` share (`pkg/apis/resource/validation/validation.go`).

use kctl_cel::{Environment, Type};
use serde_json::Value;

use crate::{
    cel::type_of,
    field_errors::{Errors, text},
    names::check_label_value,
    validation::{each, entries, unique},
};

/// Longest CEL expression of a selector, in bytes (`CELSelectorExpressionMaxLength`): 10 KiB.
const EXPRESSION_LEN_MAX: usize = 10 * 1024;
/// Longest parameters for a driver, and longest `data` of a device's status, in bytes of JSON
/// (`OpaqueParametersMaxLength`): 10 KiB.
const PARAMETERS_LEN_MAX: usize = 10 * 1024;

/// Validates selectors of devices: CEL expressions that return a `bool`. All of them must hold for
/// a device.
///
/// An expression that is too long is not compiled.
pub(crate) fn selectors(list: &Value, path: &str, errors: &mut Errors) {
    each(list, path, errors, |selector, path, errors| {
        if selector["cel"].is_null() {
            errors.required(&format!("{path}.cel"), "");
        } else if text(&selector["cel"]["expression"]).len() > EXPRESSION_LEN_MAX {
            errors.too_long(&format!("{path}.cel.expression"), EXPRESSION_LEN_MAX);
        } else if let Some(why) = problem(text(&selector["cel"]["expression"])) {
            errors.invalid(&format!("{path}.cel.expression"), &selector["cel"]["expression"], &why);
        }
    });
}

/// Returns the problem of a CEL selector. Its cost is not limited, because this server does not evaluate it.
fn problem(expression: &str) -> Option<String> {
    match type_of(expression, &Environment::for_device()) {
        Err(why) => Some(format!("compilation failed: {why}")),
        Ok(Some(found)) if !matches!(found, Type::Bool | Type::Any) => {
            Some(format!("must evaluate to bool or the unknown type, not {found}"))
        }
        Ok(_) => None,
    }
}

/// Validates parameters that only the driver reads: they are required, and a JSON object.
pub(crate) fn opaque(opaque: &Value, path: &str, errors: &mut Errors) {
    let path = format!("{path}.opaque");
    if opaque.is_null() {
        return errors.required(&path, "");
    }
    let (parameters, path) = (&opaque["parameters"], format!("{path}.parameters"));
    if parameters.is_null() {
        errors.required(&path, "");
    } else {
        of_driver(parameters, &path, errors);
    }
}

/// Validates an object whose fields only a driver knows, by its size and type. Errors do not show
/// it.
pub(crate) fn of_driver(object: &Value, path: &str, errors: &mut Errors) {
    if object.to_string().len() > PARAMETERS_LEN_MAX {
        errors.too_long(path, PARAMETERS_LEN_MAX);
    } else if !object.is_object() {
        errors.invalid_as_such(path, "must be a valid JSON object");
    }
}

/// Validates the conditions that make an allocated device ready for a Pod, and those that report a failure.
///
/// Either both lists are given or neither; names are qualified and unique, and no name is in both
/// lists.
pub(crate) fn bindings(device: &Value, path: &str, errors: &mut Errors) {
    /// The two lists of conditions, each with the other one.
    const BOTH: [(&str, &str); 2] =
        [("bindingConditions", "bindingFailureConditions"), ("bindingFailureConditions", "bindingConditions")];
    for (field, _) in BOTH {
        let path = format!("{path}.{field}");
        each(&device[field], &path, errors, |name, path, errors| errors.qualified_name(path, text(name)));
        if !errors.is_too_long(&path) {
            unique(&device[field], &path, errors, |name| name);
        }
    }
    for (index, failure) in entries(&device["bindingFailureConditions"]) {
        if entries(&device["bindingConditions"]).any(|(_, condition)| condition == failure) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.invalid(&format!("{path}.bindingFailureConditions[{index}]"), failure, detail);
        }
    }
    for (field, other) in BOTH {
        if entries(&device[field]).next().is_some() && entries(&device[other]).next().is_none() {
            let detail = format!("{other} are required to use {field}");
            errors.invalid(&format!("{path}.{other}"), &Value::Null, &detail);
        }
    }
}

/// Validates key and value of a taint. The effect is checked by the schema's own rules.
pub(crate) fn taint(taint: &Value, path: &str, errors: &mut Errors) {
    errors.qualified_name(&format!("{path}.key"), text(&taint["key"]));
    if let Some(message) = check_label_value(text(&taint["value"])) {
        errors.invalid(&format!("{path}.value"), &taint["value"], message);
    }
}
