//! `string.format`: in gopher-lua it is Go's `fmt.Sprintf` (`strFormat` in `stringlib.go`), so a wrong verb shows in the
//! result and raises no error.

use kctl_apimachinery::strconv;
use mlua::{MultiValue, Value};

use super::args::{Args, display};
use super::table::OUTPUT_BYTES_MAX;
use crate::lua::number;

/// The maximum width and precision of a verb. Go allows a million; a script has no use for so much
/// padding.
const WIDTH_MAX: usize = 1000;

/// `string.format(format, …)`. A missing argument gives `%!d(MISSING)`, and extra arguments are
/// ignored.
pub(super) fn format(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let format = args.bounded_string(1)?;
    let format = format.as_bytes();
    let mut rest: &[u8] = &format;
    let mut text: Vec<u8> = Vec::new();
    let mut n_used = 0;
    while let Some(percent) = rest.iter().position(|byte| *byte == b'%') {
        text.extend_from_slice(&rest[..percent]);
        let (spec, after) = Spec::parse(&rest[percent + 1..]);
        rest = after;
        match spec.verb {
            None => text.extend_from_slice(b"%!(NOVERB)"),
            Some('%') => text.push(b'%'),
            Some(verb) => {
                n_used += 1;
                if let Some(Value::String(_)) = args.values.get(n_used) {
                    // The whole string is read, even if `%.1s` prints one character of it. Copies of it are outside of
                    // the memory limit of the run.
                    args.bounded_string(n_used + 1)?;
                }
                let formatted = match args.values.get(n_used) {
                    None => format!("%!{verb}(MISSING)").into_bytes(),
                    Some(value) => spec.value(verb, value),
                };
                text.extend_from_slice(&formatted);
                args.budget.charge(1 + formatted.len() as u64 / 8)?;
            }
        }
        if text.len() > OUTPUT_BYTES_MAX {
            return Err(
                args.error_at_caller(format_args!("string.format: the result is longer than {OUTPUT_BYTES_MAX} bytes"))
            );
        }
    }
    text.extend_from_slice(rest);
    args.text(text)
}

/// One verb with its flags, width and precision.
#[expect(clippy::struct_excessive_bools, reason = "the flags of a verb are independent of each other")]
#[derive(Default)]
struct Spec {
    /// `+`: a sign also for positive numbers.
    plus: bool,
    /// `-`: padding on the right.
    minus: bool,
    /// `#`: a prefix such as `0x`.
    sharp: bool,
    /// A space where the sign would be.
    space: bool,
    /// `0`: padding of numbers with zeros.
    zero: bool,
    /// The minimum number of characters.
    width: Option<usize>,
    /// The digits of a number, or the maximum characters of a string.
    precision: Option<usize>,
    /// The verb; `None` at the end of the format.
    verb: Option<char>,
}

/// The sign of a number. A plus is written only if the verb asks for it.
#[derive(Clone, Copy)]
enum Sign {
    Minus,
    Plus,
}

/// The characters that fill a number up to its width.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Zeros,
    Spaces,
}

impl Spec {
    /// Reads a specification after its `%`, and returns the rest of the format.
    fn parse(mut rest: &[u8]) -> (Self, &[u8]) {
        let mut spec = Self::default();
        while let Some((flag, after)) = rest.split_first() {
            match flag {
                b'+' => spec.plus = true,
                b'-' => spec.minus = true,
                b'#' => spec.sharp = true,
                b' ' => spec.space = true,
                b'0' => spec.zero = true,
                _ => break,
            }
            rest = after;
        }
        (spec.width, rest) = read_number(rest);
        if let Some(after) = rest.strip_prefix(b".") {
            let (precision, after) = read_number(after);
            spec.precision = Some(precision.unwrap_or(0));
            rest = after;
        }
        let n_bytes =
            rest.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next()).map_or(1, char::len_utf8);
        let (verb, after) = rest.split_at(n_bytes.min(rest.len()));
        spec.verb = String::from_utf8_lossy(verb).chars().next();
        (spec, after)
    }

    fn value(&self, verb: char, value: &Value) -> Vec<u8> {
        #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
        match value {
            Value::Number(value) => self.number(verb, *value),
            Value::Integer(value) => self.number(verb, *value as f64),
            Value::String(string) => self.bytes(verb, &string.as_bytes()),
            Value::Boolean(value) if verb == 't' => self.pad(value.to_string().into_bytes()),
            Value::Boolean(value) => self.other(verb, "lua.LBool", &value.to_string()),
            value => self.other(verb, value.type_name(), &display(value)),
        }
    }

    /// Formats a value that has no verb of its kind, or names its Go type as `Sprintf` does.
    fn other(&self, verb: char, kind: &str, text: &str) -> Vec<u8> {
        if matches!(verb, 'v' | 's' | 'q' | 'x' | 'X') {
            return self.text(verb, text.as_bytes());
        }
        format!("%!{verb}({kind}={text})").into_bytes()
    }

    /// Formats a number. Integer verbs truncate it.
    fn number(&self, verb: char, number: f64) -> Vec<u8> {
        let int = number::truncate(number);
        match verb {
            'q' | 's' => self.text(verb, number::text(number).as_bytes()),
            'd' | 'i' | 'b' | 'o' | 'x' | 'X' | 'c' | 'U' => self.int(verb, int),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => self.float(verb, number),
            'v' if number::as_int(number).is_some() => self.int('d', int),
            'v' => self.float('g', number),
            _ if number::as_int(number).is_some() => format!("%!{verb}(int64={int})").into_bytes(),
            _ => format!("%!{verb}(float64={})", strconv::format_float(number)).into_bytes(),
        }
    }

    /// Formats a string. As in gopher-lua, `%d` prints 0 for a string that is not a number, and the
    /// string itself otherwise.
    fn bytes(&self, verb: char, bytes: &[u8]) -> Vec<u8> {
        match verb {
            'd' | 'i' if std::str::from_utf8(bytes).ok().and_then(number::parse).is_none() => self.int('d', 0),
            'd' | 'i' => self.text('s', bytes),
            'v' | 's' | 'q' | 'x' | 'X' => self.text(verb, bytes),
            _ => format!("%!{verb}(string={})", String::from_utf8_lossy(bytes)).into_bytes(),
        }
    }

    /// Formats a string, cut to the precision: that many bytes for hexadecimal digits, and characters otherwise.
    fn text(&self, verb: char, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if let Some(precision) = self.precision {
            let n_bytes = match verb {
                'x' | 'X' => precision,
                _ => char_lengths(&bytes).take(precision).sum::<usize>(),
            };
            bytes.truncate(n_bytes);
        }
        self.pad(match verb {
            'x' => hex(&bytes, b"0123456789abcdef"),
            'X' => hex(&bytes, b"0123456789ABCDEF"),
            'q' => quote(&bytes).into_bytes(),
            _ => bytes,
        })
    }

    /// Formats an integer in the base of the verb.
    fn int(&self, verb: char, int: i64) -> Vec<u8> {
        let magnitude = int.unsigned_abs();
        let mut digits = match verb {
            'b' => format!("{magnitude:b}"),
            'o' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'U' => return self.pad(format!("U+{magnitude:04X}").into_bytes()),
            'c' => {
                let char = u32::try_from(int).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                return self.pad(char.to_string().into_bytes());
            }
            _ => magnitude.to_string(),
        };
        if let Some(precision) = self.precision {
            digits = format!("{digits:0>precision$}");
        }
        if self.sharp {
            digits.insert_str(
                0,
                match verb {
                    'x' => "0x",
                    'X' => "0X",
                    'o' => "0",
                    'b' => "0b",
                    _ => "",
                },
            );
        }
        let sign = if int < 0 { Sign::Minus } else { Sign::Plus };
        let padding = if self.zero && self.precision.is_none() { Padding::Zeros } else { Padding::Spaces };
        self.add_sign(sign, &digits, padding)
    }

    /// Formats a double with Go's rules for exponents.
    fn float(&self, verb: char, number: f64) -> Vec<u8> {
        let magnitude = number.abs();
        let digits = match (verb.to_ascii_lowercase(), self.precision) {
            _ if !number.is_finite() => strconv::format_float(magnitude).trim_start_matches('+').to_owned(),
            ('f', precision) => format!("{magnitude:.*}", precision.unwrap_or(6)),
            ('e', precision) => strconv::go_exponent(&format!("{magnitude:.*e}", precision.unwrap_or(6))),
            (_, None) => strconv::format_float(magnitude),
            (_, Some(precision)) => format_significant(magnitude, precision.max(1)),
        };
        let digits = if verb.is_ascii_uppercase() && number.is_finite() { digits.to_ascii_uppercase() } else { digits };
        let plus = self.plus || number == f64::INFINITY;
        let sign = if number.is_sign_negative() && !number.is_nan() { Sign::Minus } else { Sign::Plus };
        let padding = if self.zero && number.is_finite() { Padding::Zeros } else { Padding::Spaces };
        Self { plus, ..*self }.add_sign(sign, &digits, padding)
    }

    /// Adds the sign, and the padding with zeros or spaces.
    fn add_sign(&self, sign: Sign, digits: &str, padding: Padding) -> Vec<u8> {
        let sign = match (sign, self.plus, self.space) {
            (Sign::Minus, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let n_digits = self.width.unwrap_or(0).saturating_sub(sign.len());
        if padding == Padding::Zeros && !self.minus {
            return format!("{sign}{digits:0>n_digits$}").into_bytes();
        }
        self.pad(format!("{sign}{digits}").into_bytes())
    }

    /// Pads with spaces to the width, counted in characters.
    fn pad(&self, mut text: Vec<u8>) -> Vec<u8> {
        let n_chars = char_lengths(&text).count();
        let padding = vec![b' '; self.width.unwrap_or(0).saturating_sub(n_chars)];
        if self.minus {
            text.extend(padding);
        } else {
            text.splice(..0, padding);
        }
        text
    }
}

/// Returns the length in bytes of each character. A byte that is not UTF-8 counts as a character, as in Go.
fn char_lengths(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(char::len_utf8);
        valid.chain(chunk.invalid().iter().map(|_byte| 1))
    })
}

/// Reads a number, at most [`WIDTH_MAX`]; `None` without a digit.
fn read_number(bytes: &[u8]) -> (Option<usize>, &[u8]) {
    let n_digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = bytes.split_at(n_digits);
    let number = digits.iter().fold(0, |number: usize, digit| {
        number.saturating_mul(10).saturating_add(usize::from(digit - b'0')).min(WIDTH_MAX)
    });
    ((n_digits > 0).then_some(number), rest)
}

fn hex(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]).collect()
}

/// Formats with `precision` significant digits and without trailing zeros, as `%.3g` does.
fn format_significant(magnitude: f64, precision: usize) -> String {
    let scientific = format!("{magnitude:.*e}", precision - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let n_digits = mantissa.trim_end_matches(['0', '.']).chars().filter(char::is_ascii_digit).count().max(1);
    let n_before = usize::try_from(exponent + 1).unwrap_or(0);
    let threshold = if precision > n_digits && n_digits >= n_before { n_digits } else { precision };
    if exponent < -4 || exponent >= i32::try_from(threshold).unwrap_or(i32::MAX) {
        return strconv::go_exponent(&format!("{magnitude:.*e}", n_digits - 1));
    }
    let n_decimals = i32::try_from(n_digits).unwrap_or(i32::MAX) - (exponent + 1);
    format!("{magnitude:.*}", usize::try_from(n_decimals).unwrap_or(0))
}

/// Quotes a string as Go's `strconv.Quote` does: a byte that is not UTF-8 is an escape such as `\xff`.
fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::with_capacity(bytes.len() + 2);
    quoted.push('"');
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|char| quote_char(char, &mut quoted));
        quoted.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    quoted.push('"');
    quoted
}

/// Adds a character of a quoted string, or its escape.
fn quote_char(char: char, quoted: &mut String) {
    match char {
        '"' => quoted.push_str("\\\""),
        '\\' => quoted.push_str("\\\\"),
        '\n' => quoted.push_str("\\n"),
        '\t' => quoted.push_str("\\t"),
        '\r' => quoted.push_str("\\r"),
        '\u{7}' => quoted.push_str("\\a"),
        '\u{8}' => quoted.push_str("\\b"),
        '\u{b}' => quoted.push_str("\\v"),
        '\u{c}' => quoted.push_str("\\f"),
        char if char.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(char))),
        char if is_printable(char) => quoted.push(char),
        char if u32::from(char) <= 0xffff => quoted.push_str(&format!("\\u{:04x}", u32::from(char))),
        char => quoted.push_str(&format!("\\U{:08x}", u32::from(char))),
    }
}

/// Returns `true` for a character that Go prints as it is (`IsPrint` in `strconv/quote.go`): a letter, a mark, a number,
/// punctuation, a symbol or the space of ASCII. A no-break space and a byte order mark are escaped.
///
/// The standard library escapes the same characters, and a mark at the start of a string, so it is asked for the second
/// character of one.
fn is_printable(char: char) -> bool {
    char.is_ascii() || format!("a{char}").escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::Spec;

    #[test]
    fn numbers_and_text_look_as_in_go() {
        let number = |format: &str, value: f64| {
            let (spec, _) = Spec::parse(&format.as_bytes()[1..]);
            String::from_utf8(spec.number(spec.verb.unwrap(), value)).unwrap()
        };
        for (format, value, expected) in [
            ("%d", 3.9, "3"),
            ("%5d", -42.0, "  -42"),
            ("%05d", -42.0, "-0042"),
            ("%-5d", 42.0, "42   "),
            ("%+d", 5.0, "+5"),
            ("%x", 255.0, "ff"),
            ("%#X", 255.0, "0XFF"),
            ("%.2f", 1.239, "1.24"),
            ("%8.3f", -2.5, "  -2.500"),
            ("%e", 12345.678, "1.234568e+04"),
            ("%g", 0.1, "0.1"),
            ("%g", 1e6, "1e+06"),
            ("%.3g", 1234.5, "1.23e+03"),
            ("%.3g", 100.0, "100"),
            ("%.10g", 1.5, "1.5"),
            ("%s", 1.5, "1.5"),
            ("%c", 65.0, "A"),
            ("%u", 5.0, "%!u(int64=5)"),
            ("%v", 2.5, "2.5"),
            ("%i", 7.0, "7"),
            ("%f", f64::INFINITY, "+Inf"),
            ("%999999999d", 1.0, &format!("{:>1000}", 1)),
        ] {
            assert_eq!(number(format, value), expected, "{format} {value}");
        }
        let text = |format: &str, value: &str| {
            let (spec, _) = Spec::parse(&format.as_bytes()[1..]);
            String::from_utf8(spec.bytes(spec.verb.unwrap(), value.as_bytes())).unwrap()
        };
        for (format, value, expected) in [
            ("%s", "x", "x"),
            ("%5s", "é", "    é"),
            ("%-4s", "ab", "ab  "),
            ("%.2s", "héllo", "hé"),
            ("%q", "a\"b\n", "\"a\\\"b\\n\""),
            ("%x", "AB", "4142"),
            ("%d", "12", "12"),
            ("%d", "x", "0"),
            ("%f", "x", "%!f(string=x)"),
            ("%q", "\u{7f}\u{85}", "\"\\x7f\\u0085\""),
            ("%q", "it's\u{a0}\u{feff}\u{e0001}", "\"it's\\u00a0\\ufeff\\U000e0001\""),
            ("%q", "e\u{301}😀", "\"e\u{301}😀\""),
        ] {
            assert_eq!(text(format, value), expected, "{format} {value}");
        }
        let (quoted, _) = Spec::parse(b"q");
        assert_eq!(quoted.bytes('q', b"a\xff"), b"\"a\\xff\"");
    }

    #[test]
    fn bytes_that_are_not_utf8_count_as_characters() {
        let cases: [(&str, &[u8], &[u8]); 6] = [
            ("%.2s", b"\xff\xffab", b"\xff\xff"),
            ("%.3s", b"\xe2\x82a\xff", b"\xe2\x82a"),
            ("%4s", b"\xe2\x82", b"  \xe2\x82"),
            ("%.1q", b"\xffa", b"\"\\xff\""),
            ("%.2x", "é!".as_bytes(), b"c3a9"),
            ("%.1X", "é!".as_bytes(), b"C3"),
        ];
        for (format, value, expected) in cases {
            let (spec, _) = Spec::parse(&format.as_bytes()[1..]);
            assert_eq!(spec.bytes(spec.verb.unwrap(), value), expected, "{format} {value:?}");
        }
    }
}
