//! JSON with numbers in the form of Go's `encoding/json`, so that output can be compared with Karmada's.

use std::io;

use kctl_apimachinery::strconv::format_json_float;
use serde::Serialize;
use serde_json::{Serializer, Value, ser::Formatter};

/// Returns a value as one line of JSON: `2` for 2.0, and no exponent below 1e21.
pub(super) fn format_json(value: &Value) -> String {
    let mut text = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut text, Go));
    debug_assert!(written.is_ok(), "a value can always be written to memory: {written:?}");
    String::from_utf8_lossy(&text).into_owned()
}

/// A formatter that writes floating point numbers like Go.
struct Go;

impl Formatter for Go {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(format_json_float(value).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        for (number, expected) in [
            (2.0, "2"),
            (-2.0, "-2"),
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (1.0 / 3.0, "0.3333333333333333"),
            (18_446_744_073_709_551_615.0, "18446744073709552000"),
        ] {
            assert_eq!(format_json(&json!({ "a": [number] })), format!("{{\"a\":[{expected}]}}"), "{number:e}");
        }
        assert_eq!(
            format_json(&json!({ "a": "2.0", "b": i64::MAX, "c": null })),
            r#"{"a":"2.0","b":9223372036854775807,"c":null}"#
        );
    }
}
