//! Quantities of Kubernetes: read, added and written as `k8s.io/apimachinery/pkg/api/resource` does.

use std::fmt;

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    DecimalSi,
    BinarySi,
    DecimalExponent,
}

/// A number `unscaled * 10^exponent` with a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quantity {
    unscaled: i128,
    /// At least [`NANO`].
    exponent: i32,
    format: Format,
}

/// The smallest exponent; what is finer is rounded up.
const NANO: i32 = -9;

/// The largest value, as upstream: what is larger becomes it.
const VALUE_MAX: i128 = i64::MAX as i128;

const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// The text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse '{0}' as a quantity: write a number with a suffix like m, k, Mi, Gi or e3")]
pub(super) struct QuantityError(String);

impl Quantity {
    pub(super) const ZERO: Self = Self { unscaled: 0, exponent: 0, format: Format::DecimalSi };

    pub(super) fn parse(text: &str) -> Result<Self, QuantityError> {
        Self::try_parse(text).ok_or_else(|| QuantityError(text.chars().take(64).collect()))
    }

    fn try_parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_negative = text.starts_with('-');
        let n_number = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(n_number);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let (format, power) = suffix_power(suffix)?;
        let (mut unscaled, mut exponent, mut is_rounded) = (0_i128, 0_i32, false);
        for (idx, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
            let is_fraction = idx >= whole.len();
            // 25 digits are more than the largest value has in the smallest unit.
            if unscaled > 10_i128.pow(25) {
                is_rounded |= is_fraction && digit != b'0';
                if !is_fraction {
                    return Some(Self::capped(is_negative, format));
                }
                continue;
            }
            unscaled = unscaled * 10 + i128::from(digit - b'0');
            exponent -= i32::from(is_fraction);
        }
        let mut quantity = match power {
            Power::Ten(power) => Self { unscaled, exponent: exponent.saturating_add(power), format },
            Power::Two(power) => Self { unscaled: unscaled.checked_mul(1 << power)?, exponent, format },
        };
        quantity.normalize(is_rounded);
        if is_negative {
            quantity.unscaled = -quantity.unscaled;
        }
        Some(quantity)
    }

    fn capped(is_negative: bool, format: Format) -> Self {
        Self { unscaled: if is_negative { -VALUE_MAX } else { VALUE_MAX }, exponent: 0, format }
    }

    /// Rounds what is finer than nano up and caps what is too large; for numbers that are not negative.
    fn normalize(&mut self, mut is_rounded: bool) {
        if self.unscaled == 0 {
            self.exponent = 0;
            return;
        }
        while self.exponent < NANO || self.unscaled > VALUE_MAX.saturating_mul(NANOS_PER_UNIT) {
            is_rounded |= self.unscaled % 10 != 0;
            self.unscaled /= 10;
            self.exponent += 1;
        }
        self.unscaled += i128::from(is_rounded);
        if self.nanos() >= VALUE_MAX * NANOS_PER_UNIT {
            *self = Self::capped(false, self.format);
        } else if self.format == Format::BinarySi && self.nanos() < NANOS_PER_UNIT {
            self.format = Format::DecimalSi;
        }
    }

    fn nanos(&self) -> i128 {
        let power = u32::try_from(self.exponent - NANO).unwrap_or(0);
        10_i128.checked_pow(power).map_or(i128::MAX, |power| self.unscaled.saturating_mul(power))
    }

    /// Adds; a zero takes the other's format.
    pub(super) fn add(&mut self, other: &Self) {
        let format = if self.unscaled == 0 { other.format } else { self.format };
        let bound = VALUE_MAX * NANOS_PER_UNIT;
        let nanos = self.nanos().saturating_add(other.nanos()).clamp(-bound, bound);
        *self = Self { unscaled: nanos, exponent: NANO, format };
    }

    /// Returns the number as a double: the digits times a power of ten, with the error that this makes upstream.
    #[expect(clippy::cast_precision_loss, reason = "an approximation is what is asked for")]
    pub(super) fn approximate(&self) -> f64 {
        let base = self.unscaled as f64;
        if self.exponent == 0 {
            return base;
        }
        // A literal is the closest double; `powi` is not for negative powers.
        base * format!("1e{}", self.exponent).parse::<f64>().unwrap_or(f64::NAN)
    }
}

enum Power {
    Ten(i32),
    Two(u32),
}

fn suffix_power(suffix: &str) -> Option<(Format, Power)> {
    const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(idx) = DECIMAL.iter().position(|decimal| *decimal == suffix) {
        return Some((Format::DecimalSi, Power::Ten(3 * i32::try_from(idx).ok()? - 9)));
    }
    if let Some(idx) = BINARY.iter().position(|binary| *binary == suffix) {
        return Some((Format::BinarySi, Power::Two(10 * (u32::try_from(idx).ok()? + 1))));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
    Some((Format::DecimalExponent, Power::Ten(exponent)))
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut nanos = self.nanos();
        if nanos == 0 {
            return f.write_str("0");
        }
        let units = nanos / NANOS_PER_UNIT;
        if self.format == Format::BinarySi && nanos % NANOS_PER_UNIT == 0 && units.abs() >= 1024 {
            let n = (0..6).take_while(|n| units % (1 << (10 * (n + 1))) == 0).count();
            return write!(f, "{}{}", units >> (10 * n), ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][n]);
        }
        let mut exponent = NANO;
        while nanos % 1000 == 0 && exponent < 18 {
            nanos /= 1000;
            exponent += 3;
        }
        match self.format {
            Format::DecimalExponent if exponent != 0 => write!(f, "{nanos}e{exponent}"),
            _ => {
                let idx = usize::try_from((exponent - NANO) / 3).unwrap_or(3);
                write!(f, "{nanos}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][idx])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn text_is_canonical() {
        for (text, expected) in [
            ("1", "1"),
            ("1.5", "1500m"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("1E", "1E"),
            ("0.5Ki", "512"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("-1.5Gi", "-1536Mi"),
            ("0", "0"),
            ("-0", "0"),
            (".5", "500m"),
            ("5.", "5"),
            ("0.0000000001", "1n"),
            ("1000000000000000000000", "9223372036854775807"),
            ("00012k", "12k"),
            ("0.1Ki", "102400m"),
            ("250n", "250n"),
            ("100Ei", "9223372036854775807"),
        ] {
            assert_eq!(Quantity::parse(text).map(|q| q.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_an_error() {
        for text in ["", "x", "1x", "1.2.3", "1K", "1 Gi", "Gi", "--1", "1e", "1eX", ".", "é"] {
            assert!(Quantity::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_sum_has_the_format_of_its_first_part_that_is_not_zero() {
        for (parts, expected) in [
            (&["1", "500m"][..], "1500m"),
            (&["1Gi", "1G"], "2073741824"),
            (&["0", "1Ki"], "1Ki"),
            (&["1e3", "1"], "1001"),
            (&["-1", "3"], "2"),
            (&["8E", "8E"], "9223372036854775807"),
        ] {
            let mut sum = Quantity::ZERO;
            for part in parts {
                sum.add(&Quantity::parse(part).unwrap());
            }
            assert_eq!(sum.to_string(), expected, "{parts:?}");
        }
    }

    #[test]
    fn approximations_are_those_of_upstream() {
        for (text, expected) in
            [("100m", 0.1), ("1Gi", 1_073_741_824.0), ("1.5G", 1_500_000_000.0), ("250n", 2.500_000_000_000_000_4e-7)]
        {
            #[expect(clippy::float_cmp, reason = "the doubles are the same to the bit")]
            let is_same = Quantity::parse(text).unwrap().approximate() == expected;
            assert!(is_same, "{text}");
        }
    }
}
