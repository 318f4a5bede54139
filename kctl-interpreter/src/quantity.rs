//! Quantities of resources, as Kubernetes reads, adds, rounds and prints them.
//!
//! The behaviour is that of `k8s.io/apimachinery/pkg/api/resource`: nothing below a nano unit is kept, and a quantity
//! with a binary suffix is at most 2^63-1 units.
//!
//! ```
//! use kctl_interpreter::quantity::Quantity;
//!
//! let (memory, more): (Quantity, Quantity) = ("512Mi".parse()?, "1Gi".parse()?);
//! assert_eq!(memory.plus(more).to_string(), "1536Mi");
//! # Ok::<_, kctl_interpreter::quantity::QuantityError>(())
//! ```

use std::{fmt, str::FromStr};

/// Nano units in a unit: the finest step that Kubernetes keeps.
const NANOS: i128 = 1_000_000_000;
/// The largest quantity with a binary suffix (`maxAllowed` upstream: 2^63-1 units).
const NANOS_MAX_BINARY: i128 = (i64::MAX as i128) * NANOS;
/// The largest quantity otherwise. Upstream has no bound; this one is beyond every real resource and fits the type.
const NANOS_MAX: i128 = i128::MAX / 4;
/// Powers of ten above this are the largest quantity, whatever the digits.
const EXPONENT_MAX: i64 = 40;
/// Digits that can matter between a nano unit and the largest quantity; more of them only round.
const DIGITS_MAX: usize = 36;

/// Digits that upstream handles as a 64 bit number (`maxInt64Factors`).
const FAST_DIGITS_MAX: usize = 18;

/// The family of suffixes in which a quantity is printed. Parsing keeps the one that the string has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Powers of ten, such as `12e6`.
    DecimalExponent,
    /// Binary suffixes, such as `12Mi` for 12 × 2^20.
    BinarySi,
    /// Decimal suffixes, such as `12M` and `500m`.
    #[default]
    DecimalSi,
}

/// An amount of a resource, such as `500m` of CPU or `1Gi` of memory, with the format in which it was written.
///
/// It is a fixed-point number with nano units as the smallest step. The default is 0 in [`Format::DecimalSi`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// An invalid quantity, with the messages of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The string is empty, or has a character that no quantity has.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    FormatWrong,
    /// The string has no digits, and its suffix is too large or too small for that to pass as 0.
    #[error("unable to parse numeric part of quantity")]
    NumberMissing,
    /// The characters after the number are not a suffix.
    #[error("unable to parse quantity's suffix")]
    SuffixUnknown,
}

impl Quantity {
    /// Creates a quantity of whole units.
    pub fn units(units: i64, format: Format) -> Self {
        Self { nanos: i128::from(units) * NANOS, format }
    }

    /// Creates a quantity of thousandths of a unit, such as millicores of CPU.
    pub fn millis(millis: i64, format: Format) -> Self {
        Self { nanos: i128::from(millis) * (NANOS / 1000), format }
    }

    /// Returns the number of whole units, rounded up; 0 if it does not fit into an `i64`, as in Kubernetes.
    ///
    /// ```
    /// use kctl_interpreter::quantity::Quantity;
    ///
    /// let cpu: Quantity = "1500m".parse()?;
    /// assert_eq!((cpu.value(), cpu.milli_value()), (2, 1500));
    /// # Ok::<_, kctl_interpreter::quantity::QuantityError>(())
    /// ```
    pub fn value(self) -> i64 {
        i64::try_from(ceil_div(self.nanos, NANOS)).unwrap_or_default()
    }

    /// Returns the number of thousandths, rounded up; 0 if it does not fit into an `i64`, as in Kubernetes.
    pub fn milli_value(self) -> i64 {
        i64::try_from(ceil_div(self.nanos, NANOS / 1000)).unwrap_or_default()
    }

    /// Returns `true` if the quantity is 0.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Returns `true` if the quantity is below 0.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Returns the sum. It has the format of `self`; if `self` is 0, that of `other`.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nanos: (self.nanos + other.nanos).clamp(-NANOS_MAX, NANOS_MAX), format }
    }
}

/// Quantities are equal when their numbers are, whatever they were written as.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

fn ceil_div(number: i128, by: i128) -> i128 {
    number.div_euclid(by) + i128::from(number.rem_euclid(by) != 0)
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let Parts { negative, whole, fraction, base, exponent, format } = Parts::of(text)?;
        let magnitude = nanos(whole, fraction, base, exponent);
        let magnitude = if format == Format::BinarySi { magnitude.min(NANOS_MAX_BINARY) } else { magnitude };
        Ok(Self { nanos: if negative { -magnitude } else { magnitude }, format })
    }
}

/// A quantity as it is written: `whole.fraction * base^exponent`.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    base: u32,
    exponent: i64,
    format: Format,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            None => return Err(QuantityError::FormatWrong),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let is_digit = |c: char| c.is_ascii_digit();
        let whole_len = unsigned.find(|c| !is_digit(c)).unwrap_or(unsigned.len());
        let (whole, rest) = unsigned.split_at(whole_len);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len())),
            None => ("", rest),
        };
        let (base, exponent, format) = suffix_of(suffix)?;
        // Upstream reads a number of no digits as 0 where it takes its fast path, and else refuses it.
        let is_fast = if format == Format::BinarySi { exponent < 50 } else { exponent >= -9 };
        if whole.is_empty() && fraction.is_empty() && !is_fast {
            return Err(QuantityError::NumberMissing);
        }
        Ok(Self { negative, whole, fraction, base, exponent, format })
    }
}

/// Returns a quantity as a float, with the rounding errors of Kubernetes' `AsApproximateFloat64`.
///
/// # Errors
/// The string is not a quantity.
#[expect(clippy::cast_precision_loss, reason = "an approximation is what is asked for")]
pub fn approximate(text: &str) -> Result<f64, QuantityError> {
    let Parts { negative, whole, fraction, base, exponent, .. } = Parts::of(text)?;
    let digits = format!("{whole}{fraction}");
    let mantissa: f64 = if digits.is_empty() { 0.0 } else { digits.parse().unwrap_or(f64::INFINITY) };
    let scale = -i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let (mantissa, power) = match base {
        2 => (mantissa * (1_i128 << exponent) as f64, scale),
        _ => (mantissa, scale.saturating_add(exponent)),
    };
    // A literal is the closest double; `powi` is not for negative powers.
    let number = if power == 0 { mantissa } else { mantissa * format!("1e{power}").parse().unwrap_or(f64::NAN) };
    Ok(if negative { -number } else { number })
}

/// Returns a quantity as Kubernetes serializes it: in canonical form, or unchanged on `ParseQuantity`'s fast path.
///
/// Upstream keeps the input of numbers with few digits and a plain suffix. That preserves signs and leading zeros, which the canonical
/// form does not have.
///
/// # Errors
/// The string is not a quantity.
pub fn rewritten(text: &str) -> Result<String, QuantityError> {
    let quantity: Quantity = text.parse()?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches('0');
    let number = unsigned.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_kept = match quantity.format {
        // The digits of the exponent don't belong to the number, so it is cut off first.
        Format::DecimalExponent => {
            let (number, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, ""));
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            is_decimal_kept(whole, fraction, exponent.parse().unwrap_or_default())
        }
        Format::DecimalSi => is_decimal_kept(whole, fraction, suffix_of(&unsigned[number.len()..])?.1),
        Format::BinarySi => is_binary_kept(whole, fraction, suffix_of(&unsigned[number.len()..])?.1),
    };
    Ok(if is_kept { text.to_owned() } else { quantity.to_string() })
}

fn is_decimal_kept(whole: &str, fraction: &str, exponent: i64) -> bool {
    let scale = exponent - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let digits = format!("{whole}{fraction}");
    let is_exact = !whole.is_empty() && digits.len() <= FAST_DIGITS_MAX && scale >= -9;
    is_exact && scale % 3 == 0 && !digits.ends_with("000")
}

fn is_binary_kept(whole: &str, fraction: &str, exponent: i64) -> bool {
    let digits = 15 - i64::try_from(whole.len().max(1)).unwrap_or(i64::MAX) - exponent * 3 / 10 - 1;
    let is_odd = whole.parse::<i64>().is_ok_and(|number| number % 8 != 0);
    fraction.is_empty() && digits >= 0 && is_odd
}

/// Reads a suffix as a power of 2 or 10 and the format that it stands for.
fn suffix_of(suffix: &str) -> Result<(u32, i64, Format), QuantityError> {
    let shape = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = shape.strip_prefix(['+', '-']).unwrap_or(shape);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::FormatWrong);
    }
    let exponent = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        "Ki" => return Ok((2, 10, Format::BinarySi)),
        "Mi" => return Ok((2, 20, Format::BinarySi)),
        "Gi" => return Ok((2, 30, Format::BinarySi)),
        "Ti" => return Ok((2, 40, Format::BinarySi)),
        "Pi" => return Ok((2, 50, Format::BinarySi)),
        "Ei" => return Ok((2, 60, Format::BinarySi)),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::SuffixUnknown)?;
            let exponent = exponent.parse().map_err(|_| QuantityError::SuffixUnknown)?;
            return Ok((10, exponent, Format::DecimalExponent));
        }
    };
    Ok((10, exponent, Format::DecimalSi))
}

/// The digits that a number lost, which decide whether it is rounded up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Zero,
    More,
}

/// Returns the nano units of `whole.fraction * base^exponent`, rounded away from zero.
fn nanos(whole: &str, fraction: &str, base: u32, exponent: i64) -> i128 {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // The cut digits are below all digits that count; they only decide if the result is rounded up.
    let (kept, cut) = digits.split_at(digits.len().min(DIGITS_MAX));
    let mantissa = kept.bytes().fold(0i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let power = 9 - i64::try_from(fraction.len()).unwrap_or(i64::MAX) + i64::try_from(cut.len()).unwrap_or(i64::MAX);
    let (power, doublings) = if base == 2 { (power, exponent) } else { (power.saturating_add(exponent), 0) };
    let rest = if cut.bytes().all(|digit| digit == b'0') { Rest::Zero } else { Rest::More };
    let mut scaled = mantissa;
    if doublings > 0 {
        match scaled.checked_mul(1i128 << doublings) {
            Some(product) => scaled = product,
            // A binary suffix on more digits than fit: drop digits below a nano unit, if there are any.
            None if power < -6 => return nanos_wide(mantissa, doublings, power, rest),
            None => return NANOS_MAX,
        }
    }
    ten_powers(scaled, power, rest).min(NANOS_MAX)
}

/// Multiplies after dividing, for a mantissa with too many digits to multiply first.
fn nanos_wide(mantissa: i128, doublings: i64, power: i64, rest: Rest) -> i128 {
    let step = 10i128.pow(6);
    let (quotient, remainder) = (mantissa / step, mantissa % step);
    let rest = if remainder == 0 { rest } else { Rest::More };
    match quotient.checked_mul(1i128 << doublings) {
        Some(product) => ten_powers(product, power + 6, rest).min(NANOS_MAX),
        None if power + 6 < -6 => nanos_wide(quotient, doublings, power + 6, rest),
        None => NANOS_MAX,
    }
}

/// Returns `number * 10^power`, rounded up when something is lost.
fn ten_powers(number: i128, power: i64, rest: Rest) -> i128 {
    if power > EXPONENT_MAX {
        return NANOS_MAX;
    }
    if power < -EXPONENT_MAX {
        return 1;
    }
    let factor = 10i128.checked_pow(u32::try_from(power.abs()).unwrap_or(u32::MAX));
    match factor {
        Some(factor) if power >= 0 => {
            number.checked_mul(factor).unwrap_or(NANOS_MAX).saturating_add(i128::from(rest == Rest::More))
        }
        Some(factor) => number / factor + i128::from(rest == Rest::More || number % factor != 0),
        None if power >= 0 => NANOS_MAX,
        None => 1,
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let small = -1024 * NANOS < self.nanos && self.nanos < 1024 * NANOS;
        // A binary suffix is for whole numbers of at least 1024: anything else would lose digits or confuse.
        if self.format == Format::BinarySi && !small && self.nanos % NANOS == 0 {
            let (mut mantissa, mut suffixes) = (self.nanos / NANOS, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter());
            let mut suffix = suffixes.next();
            while mantissa % 1024 == 0 {
                mantissa /= 1024;
                suffix = suffixes.next();
            }
            return write!(f, "{mantissa}{}", suffix.unwrap_or(&""));
        }
        let (mut mantissa, mut exponent) = (self.nanos, -9);
        while mantissa % 1000 == 0 && (exponent < 18 || self.format == Format::DecimalExponent) {
            mantissa /= 1000;
            exponent += 3;
        }
        if self.format == Format::DecimalExponent {
            return if exponent == 0 { write!(f, "{mantissa}") } else { write!(f, "{mantissa}e{exponent}") };
        }
        let suffix = match exponent {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            0 => "",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            _ => "E",
        };
        write!(f, "{mantissa}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_printed_in_its_canonical_form() {
        // Left: as written; right: what `resource.Quantity` of Kubernetes 1.36 prints.
        let cases = [
            ("0", "0"),
            ("0.000", "0"),
            ("1.5", "1500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1000Ki", "1000Ki"),
            ("1000", "1k"),
            ("1e3", "1e3"),
            ("1E", "1E"),
            ("1E3", "1e3"),
            ("12e-1", "1200e-3"),
            ("100m", "100m"),
            ("1500u", "1500u"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("+5", "5"),
            ("5.", "5"),
            (".5", "500m"),
            ("-1.5Gi", "-1536Mi"),
            ("128974848", "128974848"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854775808"),
            ("8Ei", "9223372036854775807"),
            ("1e24", "1e24"),
            ("-", "0"),
            ("0.3Ki", "307200m"),
        ];
        for (written, printed) in cases {
            assert_eq!(
                written.parse::<Quantity>().map(|quantity| quantity.to_string()).as_deref(),
                Ok(printed),
                "{written}"
            );
        }
    }

    #[test]
    fn quantity_round_trips_where_it_does_in_kubernetes() {
        let cases = [
            ("+0055e3", "+0055e3"),
            ("0077", "0077"),
            ("566.", "566."),
            ("1203.123456789e3", "1203.123456789e3"),
            ("30.1234567891e10", "30.1234567891e10"),
            ("1.5", "1500m"),
            ("1000", "1k"),
            ("1e2", "100"),
            ("0.125", "125m"),
            ("+3Gi", "+3Gi"),
            ("+8Gi", "8Gi"),
            ("3.Gi", "3.Gi"),
            ("1234567890123456789", "1234567890123456789"),
            ("+1234567890123456789", "1234567890123456789"),
            ("0", "0"),
            ("00", "0"),
        ];
        for (written, back) in cases {
            assert_eq!(rewritten(written).as_deref(), Ok(back), "{written}");
        }
    }

    #[test]
    fn rounding_is_up() {
        for (written, units, millis) in [
            ("1m", 1, 1),
            ("1001m", 2, 1001),
            ("1500u", 1, 2),
            ("-1500m", -1, -1500),
            ("2", 2, 2000),
            ("8Ei", i64::MAX, 0),
            ("10E", 0, 0),
        ] {
            let quantity: Quantity = written.parse().unwrap();
            assert_eq!((quantity.value(), quantity.milli_value()), (units, millis), "{written}");
        }
    }

    #[test]
    fn text_without_a_quantity_is_refused_as_in_kubernetes() {
        let cases = [
            ("", QuantityError::FormatWrong),
            ("x", QuantityError::FormatWrong),
            ("1x", QuantityError::FormatWrong),
            ("1 ", QuantityError::FormatWrong),
            ("1.2.3", QuantityError::FormatWrong),
            ("1K", QuantityError::SuffixUnknown),
            ("1mi", QuantityError::SuffixUnknown),
            ("1e", QuantityError::SuffixUnknown),
            ("Pi", QuantityError::NumberMissing),
            ("e-12", QuantityError::NumberMissing),
        ];
        for (written, error) in cases {
            assert_eq!(written.parse::<Quantity>(), Err(error), "{written}");
        }
    }

    #[test]
    fn sum_keeps_the_format_of_its_first_nonzero_part() {
        for (left, right, sum) in
            [("1Gi", "1000M", "2073741824"), ("0", "1Gi", "1Gi"), ("1", "1Gi", "1073741825"), ("1k", "1Ki", "2024")]
        {
            let parts: Vec<Quantity> = [left, right].iter().map(|part| part.parse().unwrap()).collect();
            assert_eq!(parts[0].plus(parts[1]).to_string(), sum, "{left} + {right}");
        }
    }

    #[test]
    fn approximations_are_those_of_upstream() {
        let cases = [
            ("100m", 0.1),
            ("1Gi", 1_073_741_824.0),
            ("1.5G", 1_500_000_000.0),
            ("-2", -2.0),
            ("250n", 2.500_000_000_000_000_4e-7),
        ];
        for (written, expected) in cases {
            #[expect(clippy::float_cmp, reason = "the doubles are the same to the bit")]
            let is_same = approximate(written).unwrap() == expected;
            assert!(is_same, "{written}");
        }
        assert_eq!(approximate("1K"), Err(QuantityError::SuffixUnknown));
    }
}
