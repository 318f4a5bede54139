//! Validation that the kinds of `resource.k8s.io` share (`pkg/apis/resource/validation/validation.go`).

use std::collections::BTreeSet;

use kctl_cel::{Environment, Type};

use crate::{cel::type_of, field::Field, field_errors::text, json_path::entries};

/// Longest CEL expression of a selector, in bytes (`CELSelectorExpressionMaxLength`): 10 KiB.
const EXPRESSION_LEN_MAX: usize = 10 * 1024;
/// Longest parameters for a driver, and longest `data` of a device's status, in bytes of JSON
/// (`OpaqueParametersMaxLength`): 10 KiB.
const PARAMETERS_LEN_MAX: usize = 10 * 1024;

/// Validates selectors of devices: CEL expressions that return a `bool`. All of them must hold for a device. An
/// expression that is too long is not compiled.
pub(crate) fn validate_selectors(list: &Field<'_>) {
    for cel in list.items().map(|selector| selector.at("cel")) {
        let expression = cel.at("expression");
        if cel.is_null() {
            cel.required();
        } else if expression.text().len() > EXPRESSION_LEN_MAX {
            expression.max_bytes(EXPRESSION_LEN_MAX);
        } else if let Some(why) = expression_error(expression.text()) {
            expression.invalid(why);
        }
    }
}

/// Returns the problem of a CEL selector. Its cost is not limited, because this server does not evaluate it.
fn expression_error(expression: &str) -> Option<String> {
    match type_of(expression, &Environment::for_device()) {
        Err(why) => Some(format!("compilation failed: {why}")),
        Ok(Some(found)) if !matches!(found, Type::Bool | Type::Any) => {
            Some(format!("must evaluate to bool or the unknown type, not {found}"))
        }
        Ok(_) => None,
    }
}

/// Validates the `opaque` parameters of a configuration, which only the driver reads: they are required, and a JSON
/// object.
pub(crate) fn validate_opaque_config(config: &Field<'_>) {
    let opaque = config.at("opaque");
    let parameters = opaque.at("parameters");
    if opaque.is_null() {
        opaque.required();
    } else if parameters.is_null() {
        parameters.required();
    } else {
        validate_driver(&parameters);
    }
}

/// Validates an object whose fields only a driver knows, by its size and type. Errors do not show it.
pub(crate) fn validate_driver(object: &Field<'_>) {
    if object.to_string().len() > PARAMETERS_LEN_MAX {
        object.too_long(PARAMETERS_LEN_MAX);
    } else if !object.is_object() {
        object.invalid_without_value("must be a valid JSON object");
    }
}

/// Validates the conditions that make an allocated device ready for a Pod, and those that report a failure. Either both
/// lists are given or neither.
pub(crate) fn validate_binding_conditions(device: &Field<'_>) {
    let [ready, failed] = ["bindingConditions", "bindingFailureConditions"].map(|name| device.at(name));
    for (list, other) in [(&ready, &failed), (&failed, &ready)] {
        list.items().for_each(|name| name.qualified_name());
        list.unique(|name| name);
        other.invalid_if(!list.is_empty() && other.is_empty(), "is required, because the other list is given");
    }
    let ready: BTreeSet<&str> = entries(&ready).map(|(_, name)| text(name)).collect();
    // The items of a list that is too long are compared, too (`validateDeviceBindingParameters`).
    for (index, name) in entries(&failed) {
        let failure = failed.index(index);
        failure.with(name).invalid_if(ready.contains(text(name)), "must not also be in `bindingConditions`");
    }
}

/// Validates key and value of a taint. A tag of the API validates the effect.
pub(crate) fn validate_taint(taint: &Field<'_>) {
    taint.at("key").qualified_name();
    taint.at("value").label_value();
}
