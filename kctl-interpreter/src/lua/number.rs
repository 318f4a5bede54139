//! Converts numbers to strings and back like gopher-lua: integers without a point, other numbers as Go prints them
//! (`LNumber.String` in `value.go`, `parseNumber` in `utils.go`).

use kctl_apimachinery::strconv;

/// The bounds of Go's `int64` as doubles; the upper one itself does not fit.
const INT64_MIN: f64 = -9_223_372_036_854_775_808.0;
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

/// Returns the number as an integer if it is one that fits 64 bits.
pub(super) fn as_int(number: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked, and a fraction was excluded")]
    (number.fract() == 0.0 && (INT64_MIN..INT64_END).contains(&number)).then_some(number as i64)
}

/// Truncates to 64 bits as Go does on amd64: what does not fit becomes the smallest number.
pub(super) fn truncate(number: f64) -> i64 {
    as_int(number.trunc()).unwrap_or(i64::MIN)
}

/// Truncates to 32 bits as Go does on amd64: what does not fit becomes the smallest number.
pub(super) fn truncate_32(number: f64) -> i32 {
    as_int(number.trunc()).and_then(|int| i32::try_from(int).ok()).unwrap_or(i32::MIN)
}

/// Formats a number as `tostring` does.
pub(super) fn text(number: f64) -> String {
    as_int(number).map_or_else(|| strconv::format_float(number), |int| int.to_string())
}

/// Reads a number as the arithmetic of Lua does: decimal or hexadecimal, spaces around it.
pub(super) fn parse(text: &str) -> Option<f64> {
    let text = text.trim_matches([' ', '\n', '\t']);
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        // `from_str_radix` accepts a sign.
        let digits = Some(digits).filter(|digits| !digits.starts_with(['-', '+']));
        #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
        return digits.and_then(|digits| i64::from_str_radix(digits, 16).ok()).map(|int| sign * int as f64);
    }
    // Rust also parses `inf` and `nan`, which are not numbers in Lua, and reads a number that is too large as infinite.
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Parses a number like `tonumber(text, base)`. Without a point only an integer of that base is valid, so `1e3` is not.
pub(super) fn to_number(text: &str, base: Option<u32>) -> Option<f64> {
    let mut text = text.trim_matches([' ', '\n', '\t']);
    if text.contains('.') {
        return parse(text);
    }
    let mut base = base;
    if base.is_none() && text.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x")) {
        (base, text) = (Some(16), &text[2..]);
    }
    #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
    i64::from_str_radix(text, base.unwrap_or(10)).ok().map(|int| int as f64)
}

#[cfg(test)]
mod tests {
    use super::{parse, text, to_number, truncate_32};

    #[test]
    fn numbers_are_printed_as_by_go() {
        for (number, expected) in [
            (3.0, "3"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (1e15, "1000000000000000"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1e100, "1e+100"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1e-7, "1e-07"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
            (1e19, "1e+19"),
            (123_456.5, "123456.5"),
            (1_234_567.5, "1.2345675e+06"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    #[test]
    fn tonumber_reads_what_gopher_lua_reads() {
        for (input, base, expected) in [
            ("10", None, Some(10.0)),
            (" 10\n", None, Some(10.0)),
            ("0x1F", None, Some(31.0)),
            ("1.5e3", None, Some(1500.0)),
            ("1e3", None, None),
            ("ff", Some(16), Some(255.0)),
            ("", None, None),
            ("abc", None, None),
            ("1.2.3", None, None),
            ("-7", None, Some(-7.0)),
            ("1.5e400", None, None),
        ] {
            assert_eq!(to_number(input, base), expected, "{input:?}");
        }
    }

    #[test]
    fn arithmetic_reads_exponents_and_no_words() {
        for (input, expected) in [
            ("1e3", Some(1000.0)),
            ("-0x10", Some(-16.0)),
            ("--0x10", None),
            ("0x-10", None),
            ("--1", None),
            ("inf", None),
            ("nan", None),
            ("", None),
        ] {
            assert_eq!(parse(input), expected, "{input:?}");
        }
    }

    #[test]
    fn number_that_does_not_fit_becomes_the_smallest() {
        for (number, expected) in
            [(2.9, 2), (-2.9, -2), (f64::NAN, i32::MIN), (3e9, i32::MIN), (2_147_483_647.0, i32::MAX)]
        {
            assert_eq!(truncate_32(number), expected);
        }
    }
}
