//! Validation of a custom resource against its schema, with the reasons and field paths of kube-apiserver.
//!
//! Upstream: `pkg/validation/validate` of kube-openapi, `pkg/apiserver/schema/{listtype,objectmeta}` of
//! apiextensions-apiserver.
//!
//! Ratcheting is on: an error at a value that an update did not change is dropped. Without an old object everything is
//! reported. The first walk ignores the old object. A second walk compares with it only if the first one found errors,
//! since most objects have none.

use kctl_apimachinery::formats;
use serde_json::Value;

use super::{correlation::CorrelatedValue, error_limit::is_limit_reached, lists, number};
use crate::schema::Schema;
use crate::{
    field_errors::{Errors, FieldError},
    pattern,
};

/// Validates an object after pruning and defaulting. Returns no errors if it is valid.
///
/// Embedded metadata that is not a valid `ObjectMeta` is not reported: kube-apiserver rejects it while decoding.
/// Errors at values that are unchanged since `old` are dropped (ratcheting).
///
/// CEL rules are not part of this; call `Rules::validate` with the result.
pub(crate) fn validate(schema: Schema, object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = by_schema(schema, object, old);
    validate_new_duplicates(schema, object, old, &mut errors);
    lists::validate_embedded_objects(schema, object, "", &mut errors);
    errors
}

/// Validates the status of an object only; embedded objects are not validated. Field paths in messages start at the
/// status (`ValidateStatusUpdate` of `pkg/registry/customresource/validator.go`).
///
/// Only errors below `status` are returned. The rest of the object is taken from the stored one and
/// was valid when it was stored.
pub(crate) fn validate_status(schema: Schema, object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::default();
    if let Some((status_schema, status)) = schema.property("status").zip(object.get("status")) {
        errors = by_schema(status_schema, status, old.and_then(|old| old.get("status")));
        for error in errors.iter_mut() {
            error.field = match error.field.as_str() {
                "" | "<nil>" => "status".to_owned(),
                item if item.starts_with('[') => format!("status{item}"),
                field => format!("status.{field}"),
            };
        }
    }
    let start = errors.len();
    validate_new_duplicates(schema, object, old, &mut errors);
    let duplicates = errors.split_off(start);
    errors.extend(duplicates.into_iter().filter(|error| error.field.starts_with("status")));
    errors
}

/// Validates a value against the schema. Errors at values that are unchanged since `old` are dropped.
fn by_schema(schema: Schema, value: &Value, old: Option<&Value>) -> Errors {
    let errors = node(schema, value, "", None).errors;
    match old.filter(|_| !errors.is_empty()) {
        Some(old) => validate_ratcheting(schema, CorrelatedValue::new(schema, value, old), "").errors,
        None => errors,
    }
}

/// Reports duplicates, unless the old object already had some. Upstream ratchets per object here, not per list.
fn validate_new_duplicates(schema: Schema, object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let mut old_errors = Errors::default();
    old.inspect(|old| lists::duplicates(schema, old, "", &mut old_errors));
    if old_errors.is_empty() {
        lists::duplicates(schema, object, "", errors);
    }
}

/// Validates a value on its own, such as a default. Duplicates in lists are not checked.
///
/// Embedded objects are validated, because a default is written into objects as it is.
pub(super) fn once(schema: Schema, value: &Value) -> Errors {
    let mut errors = node(schema, value, "", None).errors;
    lists::validate_embedded_objects(schema, value, "", &mut errors);
    errors
}

/// The result of validating a value against a schema.
#[derive(Default)]
pub(super) struct Outcome {
    /// The errors of the value and of those below it.
    pub(super) errors: Errors,
    /// Number of checks made. If all alternatives fail, the one with the most checks is reported.
    n_checks: usize,
}

impl Outcome {
    /// Adds the errors and the number of checks of a nested value.
    fn merge(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.n_checks += other.n_checks;
    }
}

/// Validates a value and drops its errors if it is unchanged. `path` is the field path of the value and of its old
/// value.
fn validate_ratcheting(schema: Schema, past: CorrelatedValue, path: &str) -> Outcome {
    let mut outcome = node(schema, past.value, path, Some(past));
    if !outcome.errors.is_empty() && past.is_unchanged() {
        outcome.errors.clear();
    }
    outcome
}

/// Validates a value against the schema; duplicates and embedded objects are checked elsewhere. Errors below the value
/// are dropped where it is unchanged, except inside alternatives.
///
/// A null is only checked by type and `enum`. Checks are counted as upstream does: one for a type,
/// four for each value that is not null.
pub(super) fn node(schema: Schema, value: &Value, path: &str, past: Option<CorrelatedValue>) -> Outcome {
    let mut outcome = Outcome::default();
    let types = Types::from_schema(schema);
    outcome.errors.extend(types.check(value, path));
    outcome.n_checks += usize::from(!types.names.is_empty());
    if value.is_null() {
        outcome.errors.extend(enumeration(schema, value, path));
        return outcome;
    }
    validate_alternatives(schema, value, path, &mut outcome);
    match value {
        Value::String(text) => {
            outcome.errors.extend(string(schema, text, path));
            let format = types.format.filter(|format| !formats::matches(format, text));
            outcome.errors.extend(format.map(|format| mismatch(path, format, text)));
        }
        Value::Number(_) => {
            let format = types.format.filter(|_| !types.names.is_empty());
            let range = number::Range { r#type: types.single(), format, path };
            number::check(schema, &range, value, &mut outcome.errors);
        }
        Value::Array(items) => validate_list(schema, items, path, past, &mut outcome),
        _ => {}
    }
    outcome.errors.extend(enumeration(schema, value, path));
    if let Value::Object(_) = value {
        validate_object(schema, value, path, past, &mut outcome);
    }
    outcome.n_checks += 4;
    outcome
}

/// Returns the error of a value of the wrong type, with the expected type or format and the actual one.
fn mismatch(path: &str, expected: &str, actual: &str) -> FieldError {
    FieldError::new("FieldValueTypeInvalid", path, format!("must be of type {expected}, found {actual:?}"))
}

/// The types that a schema allows, with the format if it is one that upstream checks.
struct Types<'a> {
    /// One type; two for int-or-string; empty for an alternative.
    names: Vec<&'a str>,
    /// Unknown formats are ignored, as JSON schema demands.
    format: Option<&'a str>,
    /// `null` is then valid for any type.
    nullable: bool,
}

impl<'a> Types<'a> {
    /// Reads the keywords of one schema. The set of checked formats depends on the type.
    fn from_schema(schema: Schema<'a>) -> Self {
        let names: Vec<&str> = match schema.type_name() {
            _ if schema.flag("x-kubernetes-int-or-string") => vec!["integer", "string"],
            Some(name) => vec![name],
            None => Vec::new(),
        };
        let is_checked = |format: &&str| match names.first() {
            Some(&"integer") => ["int32", "int64"].contains(format),
            Some(&"number") => ["float", "double"].contains(format),
            // A schema below `anyOf`, `oneOf`, `allOf` or `not` has no type. Formats of numbers are unknown there.
            Some(&"string") | None => formats::is_known(format),
            Some(_) => false,
        };
        let format = schema.text("format").filter(is_checked);
        Self { names, format, nullable: schema.flag("nullable") }
    }

    /// Returns the type, if there is exactly one.
    fn single(&self) -> Option<&'a str> {
        if let [name] = self.names.as_slice() { Some(name) } else { None }
    }

    /// Returns the error of a value that is of none of the types. A whole number such as `1.0` fits `integer`.
    fn check(&self, value: &Value, path: &str) -> Option<FieldError> {
        if value.is_null() && (self.names.is_empty() || self.nullable) {
            return None;
        }
        let (actual, actual_format) = type_of(value);
        if self.names.is_empty() {
            // Without a type only the format is checked: numbers, booleans and objects never have a string format
            // (`typeValidator.Validate` of `kube-openapi/pkg/validation/validate/type.go`).
            let format = self.format.filter(|_| !value.is_string() && !value.is_array())?;
            return Some(mismatch(path, format, actual_format));
        }
        let is_numeric = self.names.contains(&"integer") || self.names.contains(&"number");
        let fits = self.names.contains(&actual)
            || (actual == "integer" && self.names.contains(&"number"))
            || (actual == "number" && self.names.contains(&"integer") && number::is_integer(value));
        match (self.format, value) {
            // A list is accepted as a string with a format, because upstream treats it as bytes.
            (Some(_), Value::String(_) | Value::Array(_)) if !is_numeric => return None,
            (Some(_), Value::Null | Value::String(_) | Value::Array(_)) | (None, _) => {}
            (Some(format), _) if !fits && format != actual_format => {
                return Some(mismatch(path, format, actual_format));
            }
            (Some(_), _) => {}
        }
        (!fits).then(|| mismatch(path, &self.names.join(","), actual))
    }
}

/// Returns the type of a value and its format, as error messages name them.
///
/// A number is an integer if JSON writes it without a fraction and it fits an `i64`.
pub(super) fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Returns the first violated limit of a string: `maxLength`, `minLength`, then `pattern`. Lengths are in characters.
fn string(schema: Schema, text: &str, path: &str) -> Option<FieldError> {
    let n_chars = text.chars().count();
    if let Some(max) = non_negative_integer(schema, "maxLength").filter(|&max| n_chars > max) {
        return Some(FieldError::too_long(path, max));
    }
    if let Some(min) = non_negative_integer(schema, "minLength").filter(|&min| n_chars < min) {
        return Some(FieldError::invalid(path, &text.into(), &format!("must have at least {min} characters")));
    }
    let pattern = schema.text("pattern").filter(|pattern| !pattern::matches(pattern, text))?;
    Some(FieldError::invalid(path, &text.into(), &format!("must match {pattern}")))
}

/// Returns an integer keyword such as `maxItems`. Negative values and fractions count as absent.
fn non_negative_integer(schema: Schema, key: &str) -> Option<usize> {
    let bound = schema.json().get(key)?.as_u64()?;
    Some(usize::try_from(bound).unwrap_or(usize::MAX))
}

/// Validates the items of a list and their number. Only items of map lists have an old value.
fn validate_list(schema: Schema, items: &[Value], path: &str, past: Option<CorrelatedValue>, outcome: &mut Outcome) {
    if let Some(schema) = schema.items() {
        let pasts = past.map(CorrelatedValue::items).unwrap_or_default();
        for (i, item) in items.iter().enumerate() {
            if is_limit_reached(&outcome.errors, path) {
                break;
            }
            let path = format!("{path}[{i}]");
            outcome.merge(match pasts.get(i).copied().flatten() {
                Some(past) => validate_ratcheting(schema, past, &path),
                None => node(schema, item, &path, None),
            });
        }
    }
    validate_size(schema, ITEMS, items.len(), path, &mut outcome.errors);
}

/// Validates the fields of an object, their number and `required`, which a null satisfies.
fn validate_object(schema: Schema, value: &Value, path: &str, past: Option<CorrelatedValue>, outcome: &mut Outcome) {
    let Some(fields) = value.as_object() else { return };
    validate_size(schema, PROPERTIES, fields.len(), path, &mut outcome.errors);
    let join = |name: &str| match path {
        // Only a default can be a map at the root.
        "" if schema.property(name).is_none() && schema.additional_properties().is_some() => format!(".{name}"),
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    };
    for (name, value) in fields {
        if is_limit_reached(&outcome.errors, path) {
            break;
        }
        if let Some(field) = schema.field(name) {
            // Both objects are converted to one version, so these fields cannot show whether they changed.
            let is_meta = path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
            outcome.merge(match past.filter(|_| !is_meta).and_then(|past| past.field(name)) {
                Some(past) => validate_ratcheting(field, past, &join(name)),
                None => node(field, value, &join(name), None),
            });
        }
    }
    for name in schema.json()["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) && !is_limit_reached(&outcome.errors, path) {
            outcome.errors.required(&join(name), "");
        }
    }
}

/// The keywords that bound the number of items or fields.
#[derive(Clone, Copy)]
struct SizeKeywords {
    /// The keyword of the lowest valid number.
    min: &'static str,
    /// The keyword of the highest valid number.
    max: &'static str,
}

/// The bounds of a list.
const ITEMS: SizeKeywords = SizeKeywords { min: "minItems", max: "maxItems" };
/// The bounds of an object.
const PROPERTIES: SizeKeywords = SizeKeywords { min: "minProperties", max: "maxProperties" };

/// Checks the number of items or fields. Too few is `FieldValueInvalid`, too many `FieldValueTooMany`.
fn validate_size(schema: Schema, keywords: SizeKeywords, n: usize, path: &str, errors: &mut Errors) {
    if let Some(min) = non_negative_integer(schema, keywords.min).filter(|&min| n < min) {
        errors.invalid(path, &n.into(), &format!("must have at least {min} items"));
    }
    if let Some(max) = non_negative_integer(schema, keywords.max).filter(|&max| n > max) {
        errors.too_many(path, n, max);
    }
}

/// Returns the error of a value that `enum` does not contain.
fn enumeration(schema: Schema, value: &Value, path: &str) -> Option<FieldError> {
    let allowed = schema.json().get("enum")?.as_array().filter(|allowed| !allowed.is_empty())?;
    // Upstream never matches null, even if the `enum` contains it.
    if !value.is_null() && allowed.iter().any(|allowed_value| number::equals(value, allowed_value)) {
        return None;
    }
    let unquoted = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    Some(FieldError::not_supported(path, value, &allowed.iter().map(unquoted).collect::<Vec<_>>()))
}

/// Checks `anyOf`, `oneOf`, `allOf` and `not`. Each failure adds an error without a field path, plus errors of
/// alternatives: of the closest one for `anyOf` and `oneOf`, of all for `allOf`. Alternatives see no old value, so
/// nothing in them is ratcheted.
fn validate_alternatives(schema: Schema, value: &Value, path: &str, outcome: &mut Outcome) {
    let all = |key: &str| {
        let alternatives = schema.json()[key].as_array().into_iter().flatten();
        alternatives.map(|schema| node(Schema::structural(schema), value, path, None)).collect::<Vec<_>>()
    };
    let nameless = |text: &str| FieldError::without_field(&format!("{path:?} must {text}"));
    let is_valid = |alternative: &&Outcome| alternative.errors.is_empty();
    let any_of = all("anyOf");
    if !any_of.is_empty() && any_of.iter().filter(is_valid).count() == 0 {
        outcome.errors.push(nameless("validate at least one schema of anyOf"));
        outcome.merge(select_failure(any_of));
    }
    let one_of = all("oneOf");
    let n_valid = one_of.iter().filter(is_valid).count();
    if n_valid != 1 && !one_of.is_empty() {
        outcome.errors.push(nameless(&format!("validate one schema of oneOf, but validates {n_valid}")));
        if n_valid == 0 {
            outcome.merge(select_failure(one_of));
        }
    }
    let all_of = all("allOf");
    if all_of.iter().filter(is_valid).count() < all_of.len() {
        for alternative in all_of {
            outcome.merge(alternative);
        }
        outcome.errors.push(nameless("validate all schemas of allOf"));
    }
    if let Some(not) = schema.json().get("not").filter(|not| not.is_object())
        && node(Schema::structural(not), value, path, None).errors.is_empty()
    {
        outcome.errors.push(nameless("not validate the schema of not"));
    }
}

/// Returns the failure to report: the first one with the most checks, since it matched further.
fn select_failure(failures: Vec<Outcome>) -> Outcome {
    failures
        .into_iter()
        .reduce(|best, failure| if failure.n_checks > best.n_checks { failure } else { best })
        .unwrap_or_default()
}
