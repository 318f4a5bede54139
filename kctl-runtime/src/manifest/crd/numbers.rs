//! Writes whole numbers without a fraction, as people and controller-gen do: 1 instead of 1.0.
//!
//! Bounds are floats in the type `JSONSchemaProps`, so serde prints `minimum: 1.0`. It is the same number to an API
//! server, but a diff against a CRD of controller-gen would show a change in each bound.

use serde_json::Value;

/// Greatest number up to which a float holds every whole number.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Converts floats without a fraction to integers. To an API server both are the same number.
pub(super) fn shorten(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(integer) = number.as_f64().and_then(to_integer) {
                *number = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked: it is whole and within what is exact")]
fn to_integer(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_bounds_are_written_without_a_fraction() {
        let mut schema =
            json!({ "minimum": 0.0, "items": [{ "maximum": -3.0, "multipleOf": 0.5 }], "default": 1e300, "x": "1.0" });
        shorten(&mut schema);
        assert_eq!(
            schema.to_string(),
            r#"{"default":1e+300,"items":[{"maximum":-3,"multipleOf":0.5}],"minimum":0,"x":"1.0"}"#
        );
    }
}
