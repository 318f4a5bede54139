//! Validation that the kinds of `resource.k8s.io` share (`pkg/apis/resource/validation/validation.go`).

use kctl_cel::{Environment, Type};
use serde_json::Value;

use crate::{
    cel::type_of,
    field_errors::{Errors, text},
    validation::{each, entries, unique},
};

/// The longest expression (`CELSelectorExpressionMaxLength`), in bytes.
const EXPRESSION_LEN_MAX: usize = 10 * 1024;
/// The longest settings of a driver (`OpaqueParametersMaxLength`), and the longest word of it about a device, in bytes of JSON.
const PARAMETERS_LEN_MAX: usize = 10 * 1024;

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

/// Returns the problem of a CEL selector. Its cost is not limited, because this server does not evaluate it.
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
