//! Checks that the default of a schema is a valid value of it.
//!
//! An API server fills in defaults when it reads a request and when it reads from etcd, before it validates. With an
//! invalid default no object without the field could be stored, so it rejects the CRD (apiextensions-apiserver,
//! `pkg/apiserver/schema/defaulting/validation.go`). Rust doesn't notice: `#[kctl(default = 0, minimum = 1)]` compiles.
//!
//! Checked are type, bounds, enum, format, pattern, required and unknown fields, `oneOf` and its relatives, and, with the
//! feature `rules`, CEL rules. The default of an object has all required fields, also those that have a default
//! themselves: API servers validate it before they fill in nested defaults.

use serde_json::{Map, Value};

use super::{Problem, formats};

/// Returns the problems for which an API server rejects the default of a field.
///
/// `path` is the place in the object.
pub(super) fn check(schema: &Value, path: &str) -> Vec<Problem> {
    violations(schema, path).iter().map(|rule| problem(schema, rule)).collect()
}

/// Returns the problems for which an API server rejects the default of a whole object. It needs `apiVersion` and `kind`.
pub(super) fn check_object(schema: &Value) -> Vec<Problem> {
    let mut found = violations(schema, "");
    for name in ["apiVersion", "kind"].into_iter().filter(|name| schema["default"].get(name).is_none()) {
        found.push(BrokenRule { path: String::new(), reason: format!("`{name}` is missing") });
    }
    found.iter().map(|rule| problem(schema, rule)).collect()
}

/// A rule of the schema that the value at a path breaks.
struct BrokenRule {
    path: String,
    reason: String,
}

/// Returns the problem of a default whose value breaks a rule of the schema.
fn problem(schema: &Value, rule: &BrokenRule) -> Problem {
    let default = &schema["default"];
    let display_path = if rule.path.is_empty() { "the object" } else { &rule.path };
    Problem::new(
        display_path,
        format!("the default {default} is not a value of its field: {}", rule.reason),
        "write another default",
    )
}

/// Returns the rules of a schema that its default breaks.
fn violations(schema: &Value, path: &str) -> Vec<BrokenRule> {
    let default = &schema["default"];
    let mut found = Vec::new();
    check_value(schema, default, path, SchemaRole::Type, &mut found);
    #[cfg(feature = "rules")]
    if found.is_empty() {
        let failed = kube_cel::Validator::new().validate(schema, default, None);
        let first = failed.err().and_then(|errors| errors.as_slice().first().map(|error| error.message.clone()));
        found.extend(first.map(|reason| BrokenRule { path: path.to_owned(), reason }));
    }
    found
}

/// Checks a value, and adds the rules that it breaks.
fn check_value(schema: &Value, given: &Value, path: &str, role: SchemaRole, found: &mut Vec<BrokenRule>) {
    let mut push = |reason: String| found.push(BrokenRule { path: path.to_owned(), reason });
    if given.is_null() {
        if schema["nullable"] != true && role == SchemaRole::Type {
            push("it is null".to_owned());
        }
        return;
    }
    if let Some(what) = wrong_type(schema, given) {
        push(what);
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(given)
    {
        push("it is not one of the allowed values".to_owned());
    }
    check_size(schema, given, &mut push);
    if let Some(what) = formats::format_error(schema, given) {
        push(what);
    }
    if let Some(what) = wrong_alternative(schema, given) {
        push(what.to_owned());
    }
    match given {
        Value::Object(fields) => check_fields(schema, fields, path, role, found),
        Value::Array(items) => {
            for item in items {
                check_value(&schema["items"], item, &format!("{path}[]"), role, found);
            }
        }
        _ => {}
    }
}

/// Checks the fields of an object: the required ones, the declared ones, and those that the schema does not know.
fn check_fields(
    schema: &Value,
    fields: &Map<String, Value>,
    path: &str,
    role: SchemaRole,
    found: &mut Vec<BrokenRule>,
) {
    let mut push = |reason: String| found.push(BrokenRule { path: path.to_owned(), reason });
    let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        // Defaults of nested fields were not applied yet, so a required field with a default counts as missing.
        if !fields.contains_key(name) {
            push(format!("`{name}` is missing"));
        }
    }
    if role == SchemaRole::Type && is_embedded {
        for name in ["apiVersion", "kind"].into_iter().filter(|name| !fields.contains_key(*name)) {
            push(format!("`{name}` of the embedded object is missing"));
        }
    }
    let keeps_unknown =
        schema["x-kubernetes-preserve-unknown-fields"] == true || schema["additionalProperties"] == true;
    for (name, below) in fields {
        let child = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some(field) = schema["properties"].get(name) {
            check_value(field, below, &child, role, found);
        } else if schema["additionalProperties"].is_object() {
            check_value(&schema["additionalProperties"], below, &format!("{path}{{}}"), role, found);
        } else if role == SchemaRole::Type && !keeps_unknown && !(is_embedded && is_type_meta(name)) {
            found.push(BrokenRule { path: child, reason: "unknown field".to_owned() });
        }
    }
}

/// The authority of a schema: a type describes the whole value, an alternative restricts named parts of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaRole {
    /// Null, unknown fields and embedded objects are checked as well.
    Type,
    /// Only the keywords of the alternative are checked. It may leave out fields of the value.
    Alternative,
}

/// Returns the problem of a value with `anyOf`, `oneOf`, `allOf` or `not`.
fn wrong_alternative(schema: &Value, given: &Value) -> Option<&'static str> {
    let fits = |one: &Value| {
        let mut found = Vec::new();
        check_value(one, given, "", SchemaRole::Alternative, &mut found);
        found.is_empty()
    };
    let n_fit = |key: &str| schema[key].as_array().map(|all| (all.iter().filter(|one| fits(one)).count(), all.len()));
    let is_int_or_string = schema["x-kubernetes-int-or-string"] == true;
    if !is_int_or_string && n_fit("anyOf").is_some_and(|(n, _)| n == 0) {
        return Some("no schema of `anyOf` fits");
    }
    if n_fit("oneOf").is_some_and(|(n, _)| n != 1) {
        return Some("not exactly one schema of `oneOf` fits");
    }
    if !is_int_or_string && n_fit("allOf").is_some_and(|(n, all)| n != all) {
        return Some("not all schemas of `allOf` fit");
    }
    (schema["not"].is_object() && fits(&schema["not"])).then_some("the schema of `not` fits")
}

fn is_type_meta(name: &str) -> bool {
    ["apiVersion", "kind", "metadata"].contains(&name)
}

/// Returns why a value is not of the schema's type. API servers don't check it for `IntOrString`.
fn wrong_type(schema: &Value, given: &Value) -> Option<String> {
    if schema["x-kubernetes-int-or-string"] == true {
        // API servers do not check the type of such a default. `bounds` reports it.
        return None;
    }
    let name = schema["type"].as_str().unwrap_or_default();
    let fits = match name {
        "array" => given.is_array(),
        "boolean" => given.is_boolean(),
        "integer" if given.is_u64() && !given.is_i64() => return Some(format!("it is greater than {}", i64::MAX)),
        "integer" => given.is_i64() || given.is_u64() || given.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => given.is_number(),
        "object" => given.is_object(),
        "string" => given.is_string(),
        _ => true,
    };
    (!fits).then(|| format!("it is not of type {name}"))
}

/// Greatest relative error of a quotient that counts as whole (`epsilon` of `IsFloat64AJSONInteger`).
const EPSILON: f64 = 1e-9;

/// Returns `true` if an API server takes a number for a multiple (kube-apiserver 1.36.3).
///
/// 0.3 is a multiple of 0.1, although neither is exact. A factor below 1 is inverted first, and a small error is
/// allowed upwards. 4.35 is not a multiple of 0.01, because the quotient is just below 435. For a value without a
/// fraction, the factor is truncated to an integer. So 5 is a multiple neither of 2.5 nor of any factor below 1
/// (kube-openapi, `pkg/validation/validate/values.go`, `MultipleOf`; go-openapi/swag, `IsFloat64AJSONInteger`).
#[expect(clippy::cast_possible_truncation, reason = "upstream cuts the factor of an integer")]
fn is_multiple(schema: &Value, given: &Value, number: f64, factor: f64) -> bool {
    if factor <= 0.0 || (schema["type"] == "integer" && factor.fract() != 0.0) {
        return false;
    }
    if let Some(number) = given.as_i64() {
        let factor = factor as i64;
        return factor > 0 && number % factor == 0;
    }
    let quotient = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
    let difference = (quotient - quotient.trunc()).abs();
    difference == 0.0 || difference / (quotient.abs() + quotient.trunc().abs()) < EPSILON
}

/// Checks bounds of numbers and lengths. Strings are measured in characters, as API servers do.
fn check_size(schema: &Value, given: &Value, push: &mut impl FnMut(String)) {
    let bound = |key: &str| schema[key].as_f64();
    if let Some(number) = given.as_f64() {
        let is_low = |low: f64| number < low || (schema["exclusiveMinimum"] == true && number <= low);
        let is_high = |high: f64| number > high || (schema["exclusiveMaximum"] == true && number >= high);
        if bound("minimum").is_some_and(is_low) || bound("maximum").is_some_and(is_high) {
            push("it is out of bounds".to_owned());
        }
        if bound("multipleOf").is_some_and(|factor| !is_multiple(schema, given, number, factor)) {
            push("it is not a multiple of `multipleOf`".to_owned());
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
    let length = match given {
        Value::String(text) => Some((text.chars().count() as f64, "Length")),
        Value::Array(items) => Some((items.len() as f64, "Items")),
        Value::Object(fields) => Some((fields.len() as f64, "Properties")),
        _ => None,
    };
    if let Some((length, what)) = length {
        let is_short = bound(&format!("min{what}")).is_some_and(|low| length < low);
        if is_short || bound(&format!("max{what}")).is_some_and(|high| length > high) {
            push("it is too short or too long".to_owned());
        }
    }
    #[cfg(feature = "rules")]
    if let (Value::String(text), Some(pattern)) = (given, schema["pattern"].as_str())
        && kctl_cel::pattern(pattern).is_ok_and(|pattern| !pattern.is_match(text))
    {
        push(format!("it does not match `{pattern}`"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn default_above_int64_is_reported() {
        for (given, fits) in
            [(json!(i64::MAX), true), (json!(i64::MAX.unsigned_abs() + 1), false), (json!(u64::MAX), false)]
        {
            let schema = json!({ "type": "integer", "default": given });
            assert_eq!(check(&schema, "spec.a").is_empty(), fits, "{given}");
        }
    }

    #[test]
    fn default_that_is_not_a_multiple_is_reported() {
        for (kind, factor, given, fits) in [
            ("number", json!(0.1), json!(0.3), true),
            ("number", json!(0.1), json!(0.7), true),
            ("number", json!(0.3), json!(0.9), true),
            ("number", json!(0.5), json!(3.5), true),
            ("number", json!(0.1), json!(0.25), false),
            ("number", json!(0.01), json!(4.35), false),
            ("number", json!(2.5), json!(5), false),
            ("number", json!(0.5), json!(3), false),
            ("number", json!(2), json!(9_007_199_254_740_993_i64), false),
            ("integer", json!(2), json!(10), true),
            ("integer", json!(2), json!(9), false),
            ("integer", json!(1.5), json!(3), false),
        ] {
            let schema = json!({ "type": kind, "multipleOf": factor, "default": given });
            assert_eq!(check(&schema, "spec.a").is_empty(), fits, "{given} of {factor}");
        }
    }
}
