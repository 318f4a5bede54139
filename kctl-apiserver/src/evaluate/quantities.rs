//! Quantities of resources as expressions see them: exact, and large ones, too. Upstream: `pkg/api/resource/quantity.go` and
//! `amount.go` of apimachinery, and `pkg/cel/library/quantity.go` of apiserver.
//!
//! `crate::quantity` parses quantities of objects in thousandths, which is enough for validation.
//! Expressions can add and compare amounts of any scale, so this form is a decimal float with 36
//! digits.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::{Value as Cel, objects::Opaque};

use super::{Said, Target, versions};

/// Decimal digits that always fit into a signed 64-bit integer (`maxInt64Factors`).
const DIGITS_OF_INT: usize = 18;
/// Digits that are kept of a large number. Upstream keeps all of them.
///
/// 36 digits leave room for a sign and for scaling within 128 bits.
const DIGITS_MAX: usize = 36;
/// Exponent of the smallest amount, a billionth; smaller amounts are rounded up to it.
const SCALE_MIN: i64 = -9;

/// An amount: `mantissa * 10^scale`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    /// Digits without a decimal point.
    mantissa: i128,
    /// At least `SCALE_MIN` after reading.
    scale: i64,
    /// Upstream keeps it as a number of 64 bits, and knows whether it is a whole one.
    ///
    /// Decides `isInteger`: a large amount is never an integer upstream, even if it has no
    /// fraction.
    is_small: bool,
}

impl Opaque for Quantity {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.Quantity"
    }
}

/// By value, regardless of scale and of `is_small`.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

impl Eq for Quantity {}

/// Returns the result of a quantity function; `None` for other functions.
///
/// `quantity` parses or fails, `isQuantity` returns a boolean. Operands of the wrong type return
/// `None` and end as an unknown overload.
pub(super) fn called(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<Said> {
    let of = |value: &Cel| {
        let Cel::Opaque(value) = value else { return None };
        value.downcast_ref::<Quantity>().copied()
    };
    let made = |quantity: Quantity| Cel::Opaque(Arc::new(quantity));
    match (name, target, arguments) {
        ("quantity", Target::None, [Cel::String(text)]) => {
            Some(Quantity::read(text).map(made).ok_or_else(|| format!("{text:?} is not a valid quantity")))
        }
        ("isQuantity", Target::None, [Cel::String(text)]) => Some(Ok(Cel::Bool(Quantity::read(text).is_some()))),
        ("sign", Target::None, [value]) => of(value).map(|of| Ok(Cel::Int(of.mantissa.signum() as i64))),
        ("add" | "sub", Target::Value(value), [Cel::Int(number)]) => {
            let other = Quantity { mantissa: i128::from(*number), scale: 0, is_small: true };
            Some(Ok(made(of(value)?.plus(other, name == "sub"))))
        }
        ("add" | "sub", Target::Value(value), [other]) => Some(Ok(made(of(value)?.plus(of(other)?, name == "sub")))),
        (_, Target::Value(value), [other]) => versions::compared(name, of(value)?.order(&of(other)?)),
        (_, Target::Value(value), []) => of(value)?.part(name),
        _ => None,
    }
}

impl Quantity {
    /// Reads a quantity (`ParseQuantity`).
    ///
    /// Binary suffixes multiply by a power of two and are bounded by 2^63 - 1, as upstream.
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let Written { is_negative, whole, fraction, suffix } = written(text)?;
        let (base, exponent) = unit(suffix)?;
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let n_dropped = digits.len().saturating_sub(DIGITS_MAX);
        let mantissa: i128 = format!("0{}", &digits[..digits.len() - n_dropped]).parse().ok()?;
        let n_places = i64::try_from(fraction.len()).ok()?;
        let scale = i64::try_from(n_dropped).ok()? - n_places;
        let (mantissa, scale, is_small) = if base == 2 {
            // Upstream estimates the number of digits to decide whether it fits into 64 bits.
            let n_digits = whole.len() + usize::try_from(exponent * 3 / 10).unwrap_or_default() + 1;
            let times = 1_i128.checked_shl(u32::try_from(exponent).unwrap_or(u32::MAX)).unwrap_or(1);
            (mantissa.saturating_mul(times), scale, fraction.is_empty() && n_digits <= 15)
        } else {
            let scale = scale.saturating_add(exponent);
            (mantissa, scale, whole.len() + fraction.len() <= DIGITS_OF_INT && scale >= SCALE_MIN)
        };
        let mut read = Self { mantissa, scale, is_small };
        read.round_up();
        if base == 2 {
            read.mantissa = read.mantissa.min(i128::from(i64::MAX).saturating_mul(power(read.scale.saturating_neg())));
        }
        Some(Self { mantissa: if is_negative { -read.mantissa } else { read.mantissa }, ..read })
    }

    /// Rounds an amount below a billionth up to a multiple of it.
    ///
    /// Away from zero: the sign is applied afterwards.
    fn round_up(&mut self) {
        while self.scale < SCALE_MIN {
            if self.mantissa == 0 {
                self.scale = SCALE_MIN;
                return;
            }
            // The last step goes to one, and stays there.
            let step = power((SCALE_MIN - self.scale).min(i64::try_from(DIGITS_MAX).unwrap_or_default()));
            self.scale += (SCALE_MIN - self.scale).min(i64::try_from(DIGITS_MAX).unwrap_or_default());
            self.mantissa = self.mantissa / step + i128::from(self.mantissa % step != 0);
            if self.mantissa == 1 {
                self.scale = SCALE_MIN;
            }
        }
    }

    /// Returns the sum, or with `is_minus` the difference. If the scales are too far apart for an exact result, returns
    /// the larger operand.
    ///
    /// If both are not zero, the scale of the result is the smaller one.
    fn plus(self, other: Self, is_minus: bool) -> Self {
        let other = if is_minus { Self { mantissa: other.mantissa.saturating_neg(), ..other } } else { other };
        if other.mantissa == 0 || self.mantissa == 0 {
            return if other.mantissa == 0 { self } else { other };
        }
        let scale = self.scale.min(other.scale);
        let is_both_small = self.is_small && other.is_small;
        let sum = self.at(scale).zip(other.at(scale)).and_then(|(one, other)| one.checked_add(other));
        match sum {
            Some(mantissa) => Self { mantissa, scale, is_small: is_both_small && i64::try_from(mantissa).is_ok() },
            None if self.size() < other.size() => Self { is_small: false, ..other },
            None => Self { is_small: false, ..self },
        }
    }

    /// Returns the mantissa at a scale not above the quantity's scale; `None` on overflow.
    ///
    /// The scale difference is the number of zeros to append.
    fn at(self, scale: i64) -> Option<i128> {
        let n_noughts = u32::try_from(self.scale - scale).ok()?;
        self.mantissa.checked_mul(10_i128.checked_pow(n_noughts)?)
    }

    /// Returns the exponent of the first digit, to compare quantities whose scales are far apart.
    ///
    /// A zero mantissa has the size of its scale.
    fn size(self) -> i64 {
        i64::from(self.mantissa.unsigned_abs().checked_ilog10().unwrap_or_default()) + self.scale
    }

    /// Compares two quantities by value: `1k` equals `1000`.
    ///
    /// If an exact comparison would overflow, the exponents of the first digits are compared
    /// instead.
    fn order(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs.is_ne() || self.mantissa == 0 {
            return signs;
        }
        let scale = self.scale.min(other.scale);
        match (self.at(scale), other.at(scale)) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ if self.mantissa < 0 => other.size().cmp(&self.size()),
            _ => self.size().cmp(&other.size()),
        }
    }

    /// Returns the quantity as an integer (`AsInt64`); `None` if it has a fraction or does not fit into 64 bits.
    ///
    /// Amounts that upstream holds in arbitrary precision never convert.
    fn whole(self) -> Option<i64> {
        let amount = if self.is_small && self.scale >= 0 { self.at(0)? } else { return None };
        i64::try_from(amount).ok()
    }

    /// Returns the result of a function with a quantity as its only operand.
    ///
    /// `None` for a function that quantities do not have.
    fn part(self, function: &str) -> Option<Said> {
        let whole = self.whole();
        Some(match function {
            "isInteger" => Ok(Cel::Bool(whole.is_some())),
            "asInteger" => whole.map(Cel::Int).ok_or_else(|| "cannot convert value to integer".to_owned()),
            "asApproximateFloat" => {
                let float = |text: String| text.parse::<f64>().unwrap_or_default();
                // Upstream keeps what is large in billionths.
                let scale = if self.is_small { self.scale } else { SCALE_MIN };
                let mantissa = float(format!("{}e{}", self.mantissa, self.scale - scale));
                Ok(Cel::Float(mantissa * float(format!("1e{scale}"))))
            }
            "sign" => Ok(Cel::Int(self.mantissa.signum() as i64)),
            _ => return None,
        })
    }
}

/// Returns the power of ten, or 1 if it overflows.
///
/// Negative exponents count as overflow.
fn power(exponent: i64) -> i128 {
    u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent)).unwrap_or(1)
}

/// The parts of a quantity in its string form.
struct Written<'a> {
    /// A plus sign is accepted and dropped.
    is_negative: bool,
    /// Digits before the point, without leading zeros; `0` if no digit is left.
    whole: &'a str,
    /// Digits after the point, possibly none.
    fraction: &'a str,
    /// A unit or an exponent, not validated yet.
    suffix: &'a str,
}

/// Splits a quantity (`parseQuantityString`). Upstream takes an empty number as zero.
///
/// `None` if the suffix is followed by anything else.
fn written(text: &str) -> Option<Written<'_>> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let is_negative = text.starts_with('-');
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let rest = rest.trim_start_matches('0');
    let (whole, rest) = rest.split_at(digits(rest));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let after = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let after = after.strip_prefix(['-', '+']).unwrap_or(after);
    if digits(after) < after.len() {
        return None;
    }
    Some(Written { is_negative, whole: if whole.is_empty() { "0" } else { whole }, fraction, suffix })
}

/// Returns the base and the exponent of a suffix; `None` if the suffix is unknown.
///
/// The exponent is a power of the base. `e3` and `E3` are decimal exponents, a bare `E` is exa.
fn unit(suffix: &str) -> Option<(u32, i64)> {
    const DECIMAL: [(&str, i64); 10] =
        [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
    const BINARY: [(&str, i64); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
    let find = |all: &[(&str, i64)]| all.iter().find(|(name, _)| *name == suffix).map(|(_, exponent)| *exponent);
    if let Some(exponent) = find(&DECIMAL) {
        return Some((10, exponent));
    }
    if let Some(exponent) = find(&BINARY) {
        return Some((2, exponent));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((10, exponent.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_beyond_all_bounds_are_compared_and_added() {
        let read = |text: &str| Quantity::read(text).unwrap();
        let ascending = [
            "-1e2000000000",
            "-1e100",
            "-1",
            "-",
            "1e-2000000000",
            "1m",
            "1",
            "1Ei",
            "9Ei",
            "1e36",
            "1e100",
            "1e101",
            "2e2147483647",
        ];
        for pair in ascending.windows(2) {
            let (less, more) = (read(pair[0]), read(pair[1]));
            assert_eq!(less.order(&more), Ordering::Less, "{pair:?}");
            assert_eq!(more.plus(less, false).order(&more.plus(less, false)), Ordering::Equal, "{pair:?}");
        }
        assert_eq!(read("1e-2000000000"), read("1n"));
        assert_eq!(read("0.00000000001"), read("1n"));
        assert_eq!(read("9Ei"), read("9223372036854775807"));
        assert_eq!(read("1e100").plus(read("1"), true), read("1e100"));
        assert_eq!(read(&"9".repeat(60)).order(&read("1e59")), Ordering::Greater);
    }
}
