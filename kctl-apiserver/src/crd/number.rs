//! Numbers: limits, multiples and equality as Go computes them, where a number is an `int64` or a `float64`.
//!
//! JSON has one number type. Go decodes `1` as `int64` and `1.0` as `float64`, and kube-openapi converts between both
//! at each comparison. The conversions lose fractions and precision in ways that clients can see, so this module
//! reproduces them.

use std::cmp::Ordering;

use serde_json::Value;

use crate::{
    field_errors::{Errors, FieldError},
    schema::Schema,
};

/// 2^53 - 1, the largest magnitude up to which every integer has its own float.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
/// The difference from a whole number, relative to the sum of number and whole part, that `swag.IsFloat64AJSONInteger`
/// tolerates.
const EPSILON: f64 = 1e-9;

/// Returns `true` if a number counts as an integer.
///
/// Every `i64` is an integer. Other numbers, including larger `u64` ones, are integers up to 2^53 - 1.
pub(super) fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.as_f64().is_some_and(whole)
}

/// Returns `true` for a whole number within rounding errors, as `swag.IsFloat64AJSONInteger`. Numbers between -1 and 1
/// other than 0 never count, since their whole part is 0.
fn whole(number: f64) -> bool {
    if number.abs() > WHOLE_MAX {
        return false;
    }
    let difference = (number - number.trunc()).abs();
    difference == 0.0 || (number.trunc() != 0.0 && difference / (number.abs() + number.trunc().abs()) < EPSILON)
}

/// Returns `true` if a value equals an `enum` entry. Go converts the value to the type of the entry first, so 1.5
/// equals 1.
///
/// Only numbers are converted; other values are compared as JSON. The conversion goes one way:
/// value 1 does not equal the entry 1.5.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as upstream")]
pub(super) fn equals(value: &Value, other: &Value) -> bool {
    let (Value::Number(a), Value::Number(b)) = (value, other) else { return value == other };
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a == b,
        (Some(a), None) => b.as_f64() == Some(a as f64),
        (None, Some(b)) => a.as_f64().is_some_and(|a| a as i64 == b),
        (None, None) => a.as_f64() == b.as_f64(),
    }
}

/// Checks the range of the format, `multipleOf`, `minimum` and `maximum`.
///
/// Order of the errors: range of the value, `multipleOf`, `minimum`, `maximum`. A keyword that does not fit the type
/// itself is reported each time a number is validated, without a field path. The number is then compared as a float.
pub(super) fn check(schema: Schema, range: &Range<'_>, value: &Value, errors: &mut Errors) {
    let path = range.path;
    errors.extend(range.check(value));
    let json = schema.json();
    if let Some(factor) = json.get("multipleOf").filter(|factor| factor.is_number()) {
        let value = range.comparable(value, factor, errors);
        errors.extend(multiple(&value, factor, path));
    }
    for (key, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let Some(bound) = json.get(key).filter(|bound| bound.is_number()) else { continue };
        let value = range.comparable(value, bound, errors);
        let (within, than) = if key == "minimum" { (Ordering::Greater, "greater") } else { (Ordering::Less, "less") };
        let is_exclusive = schema.flag(exclusive);
        if compare(&value, bound).is_some_and(|order| order != within && (is_exclusive || order.is_ne())) {
            let or_equal = if is_exclusive { "" } else { " or equal" };
            errors.invalid(path, &value, &format!("must be {than} than{or_equal} {bound}"));
        }
    }
}

/// Compares a number with a bound. The bound of an integer loses its fraction first, as in upstream.
#[expect(clippy::cast_possible_truncation, reason = "upstream truncates the limit of an integer")]
fn compare(value: &Value, bound: &Value) -> Option<Ordering> {
    let bound = bound.as_f64()?;
    value.as_i64().map_or_else(|| value.as_f64()?.partial_cmp(&bound), |number| Some(number.cmp(&(bound as i64))))
}

/// The type and format whose value range a number must fit.
pub(super) struct Range<'a> {
    /// The single type of the schema; `None` for int-or-string and for alternatives.
    pub(super) r#type: Option<&'a str>,
    /// `int32`, `int64`, `float` or `double`; `None` for an unknown format.
    pub(super) format: Option<&'a str>,
    /// The path of the number, part of the message.
    pub(super) path: &'a str,
}

impl Range<'_> {
    /// Returns a number as it is compared with a keyword and reported: as a float, which prints with a fraction, if the
    /// keyword is out of the range. That is another error.
    fn comparable(&self, value: &Value, keyword: &Value, errors: &mut Errors) -> Value {
        match self.check(keyword) {
            None => value.clone(),
            Some(error) => {
                errors.push(error);
                value.as_f64().into()
            }
        }
    }

    /// Checks that a number is in the range of the type and format: 32 or 64 bits, or `f32::MAX` for `float`. The error
    /// is `FieldValueInvalid` at `<nil>`.
    fn check(&self, value: &Value) -> Option<FieldError> {
        let number = value.as_f64()?;
        // Upstream prints the number and parses it as an integer. A float without a fraction is compared as `i128`,
        // which gives the same result.
        let integer = value.as_i64().map(i128::from).or_else(|| whole_number(number));
        let fits = match (self.r#type, self.format) {
            (Some("integer"), Some("int32")) => integer.is_some_and(|integer| i32::try_from(integer).is_ok()),
            (Some("integer"), _) => integer.is_some_and(|integer| i64::try_from(integer).is_ok()),
            (_, Some("float")) => number.abs() <= f64::from(f32::MAX),
            _ => true,
        };
        let format = self.format.or(self.r#type).unwrap_or_default();
        (!fits).then(|| FieldError::without_field(&format!("{}: {value} is out of the range of {format}", self.path)))
    }
}

/// Returns the float as an integer, if it has no fraction.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates far above the ranges of all formats")]
fn whole_number(number: f64) -> Option<i128> {
    (number.fract() == 0.0).then_some(number as i128)
}

/// Returns the error of `multipleOf`. A factor of 0 or below never divides. An integer is divided by the factor without
/// its fraction: `multipleOf: 0.5` rejects every integer, as in upstream.
#[expect(clippy::cast_possible_truncation, reason = "upstream truncates the factor of an integer")]
fn multiple(value: &Value, factor: &Value, path: &str) -> Option<FieldError> {
    let divides = if let Some(number) = value.as_i64() {
        let factor = factor.as_f64()? as i64;
        factor > 0 && number % factor == 0
    } else {
        let (number, divisor) = (value.as_f64()?, factor.as_f64()?);
        divisor > 0.0 && whole(if divisor < 1.0 { 1.0 / divisor * number } else { number / divisor })
    };
    (!divides).then(|| FieldError::invalid(path, value, &format!("must be a multiple of {factor}")))
}
