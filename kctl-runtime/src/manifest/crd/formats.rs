//! Checks values against formats, as far as API servers do (kube-openapi, `pkg/validation/strfmt`).
//!
//! A format is checked only for defaults, because an API server rejects a CRD whose default is not valid. Values of
//! objects are checked by the API server alone. Hyphens in the name of a format do not count, and unknown formats accept
//! every value: `date-time` is `datetime`, and `ip` accepts anything.

use serde_json::Value;

/// Returns why a value does not have the format of its schema.
pub(super) fn format_error(schema: &Value, given: &Value) -> Option<String> {
    let format = schema["format"].as_str()?;
    let fits = match given {
        Value::String(text) => fits_text(format, text),
        Value::Number(number) if format == "int32" => {
            number.as_f64().is_none_or(|number| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number))
        }
        Value::Number(number) if format == "float" => {
            number.as_f64().is_none_or(|number| number.abs() <= f64::from(f32::MAX))
        }
        _ => true,
    };
    (!fits).then(|| format!("it is not a valid {format}"))
}

/// Returns `true` if a string has a format. Without the feature `rules`, which compiles patterns, any string has.
#[cfg(feature = "rules")]
fn fits_text(format: &str, text: &str) -> bool {
    kctl_apimachinery::formats::matches(format, text)
}

#[cfg(not(feature = "rules"))]
fn fits_text(_format: &str, _text: &str) -> bool {
    true
}
