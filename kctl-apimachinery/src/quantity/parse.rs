//! Reads quantities: number, fraction and suffix (`parseQuantityString`, `suffix.go`).

use super::{Amount, BINARY, DECIMAL, Format, Quantity, QuantityError, SCALE_MIN, divided_up, power_of_ten};

/// Maximum number of digits that are kept of a large number. Upstream keeps all of them.
const DIGITS_MAX: usize = 36;
/// Decimal digits that always fit into an `int64` (`maxInt64Factors`).
const INT64_DIGITS: usize = 18;

/// Returns `whole.fraction` in the unit of a suffix, rounded up to a nano unit.
pub(super) fn magnitude(whole: &str, fraction: &str, suffix: &Suffix) -> Quantity {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    // The cut digits are below all kept digits; they only decide if the result is rounded up.
    let (kept, cut) = digits.split_at(digits.len().min(DIGITS_MAX));
    let len = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let mut mantissa = kept.bytes().fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    mantissa += i128::from(cut.bytes().any(|digit| digit != b'0'));
    let mut scale = len(cut).saturating_sub(len(fraction)).saturating_add(suffix.power_of_ten);
    let times = 1_i128 << suffix.power_of_two;
    while mantissa.checked_mul(times).is_none() {
        (mantissa, scale) = (divided_up(mantissa, 10), scale + 1);
    }
    mantissa *= times;
    if scale < SCALE_MIN {
        (mantissa, scale) = (divided_up(mantissa, power_of_ten(SCALE_MIN - scale)), SCALE_MIN);
    }
    Quantity { mantissa, scale, ..Quantity::default() }
}

/// A quantity as it is written: `whole.fraction` and a suffix.
pub(super) struct Parts<'a> {
    pub(super) is_negative: bool,
    /// The digits before the point, without leading zeros.
    pub(super) whole: &'a str,
    pub(super) fraction: &'a str,
    pub(super) suffix: Suffix,
}

/// The meaning of a suffix: `10^power_of_ten * 2^power_of_two`.
pub(super) struct Suffix {
    power_of_ten: i64,
    power_of_two: u8,
    pub(super) format: Format,
}

impl<'a> Parts<'a> {
    /// Splits a quantity (`parseQuantityString`).
    pub(super) fn parse(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::FormatWrong);
        }
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let split = |text: &'a str| text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let (written, rest) = split(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split);
        let suffix = Suffix::parse(suffix)?;
        // Upstream parses a number without digits as 0 if it is an `int64Amount`, and otherwise rejects it.
        let is_int64 =
            if suffix.format == Format::BinarySi { suffix.power_of_two < 50 } else { suffix.power_of_ten >= -9 };
        if written.is_empty() && fraction.is_empty() && !is_int64 {
            return Err(QuantityError::NumberMissing);
        }
        let whole = written.trim_start_matches('0');
        Ok(Self { is_negative: text.starts_with('-'), whole, fraction, suffix })
    }

    /// Returns the type in which upstream keeps the amount.
    pub(super) fn amount(&self) -> Amount {
        let n_whole = self.whole.len().max(1);
        let is_int64 = if self.suffix.format == Format::BinarySi {
            // Upstream estimates the digits of the product.
            self.fraction.is_empty() && n_whole + usize::from(self.suffix.power_of_two) * 3 / 10 < 15
        } else {
            n_whole + self.fraction.len() <= INT64_DIGITS && self.scale() >= SCALE_MIN
        };
        if is_int64 { Amount::Int64 } else { Amount::Decimal }
    }

    /// Returns the power of ten of the last digit.
    fn scale(&self) -> i64 {
        self.suffix.power_of_ten.saturating_sub(i64::try_from(self.fraction.len()).unwrap_or(i64::MAX))
    }

    /// Returns `true` if upstream considers the string canonical, and keeps it.
    pub(super) fn is_kept(&self) -> bool {
        if self.amount() != Amount::Int64 {
            return false;
        }
        if self.suffix.format == Format::BinarySi {
            return self.whole.parse::<i64>().is_ok_and(|number| number % 8 != 0);
        }
        let digits = format!("{}{}", self.whole, self.fraction);
        !self.whole.is_empty() && self.scale() % 3 == 0 && !digits.ends_with("000")
    }
}

impl Suffix {
    fn parse(suffix: &str) -> Result<Self, QuantityError> {
        let shape = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let digits = shape.strip_prefix(['+', '-']).unwrap_or(shape);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(QuantityError::FormatWrong);
        }
        if let Some((_, power_of_ten)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Ok(Self { power_of_ten: *power_of_ten, power_of_two: 0, format: Format::DecimalSi });
        }
        if let Some((_, power)) = BINARY.iter().zip(0_u8..).find(|(name, _)| **name == suffix) {
            return Ok(Self { power_of_ten: 0, power_of_two: power * 10, format: Format::BinarySi });
        }
        let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::SuffixUnknown)?;
        let exponent: i32 = exponent.parse().map_err(|_| QuantityError::SuffixUnknown)?;
        Ok(Self { power_of_ten: exponent.into(), power_of_two: 0, format: Format::DecimalExponent })
    }
}
