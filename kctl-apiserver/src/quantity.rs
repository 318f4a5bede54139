//! Quantities of resources and their canonical form.
//!
//! Upstream: `k8s.io/apimachinery/pkg/api/resource/quantity.go`, `CanonicalizeBytes`.

/// The format of a quantity, which its canonical form keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuantityFormat {
    /// `1500m`, `1k`.
    Decimal,
    /// `1Ki`.
    Binary,
    /// `1e3`.
    Exponent,
}

/// Decimal places of quantities that are counted. Smaller fractions are rounded up; `SetDefaults_ResourceList` keeps
/// thousandths.
const PLACES: u32 = 3;
/// Decimal places of other quantities (`Nano`).
const FINE_PLACES: u32 = 9;

/// An amount, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    format: QuantityFormat,
    /// The amount in thousandths.
    thousandths: i128,
}

impl Quantity {
    pub(crate) const ZERO: Self = Self { format: QuantityFormat::Decimal, thousandths: 0 };

    /// Parses a quantity; `None` if it is invalid or too large.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (format, thousandths, negative) = read(text, PLACES)?;
        Some(Self { format, thousandths: if negative { -thousandths } else { thousandths } })
    }

    /// Returns a number of items.
    pub(crate) fn count(amount: i64) -> Self {
        Self { format: QuantityFormat::Decimal, thousandths: i128::from(amount) * 1000 }
    }

    /// Returns the amount in thousandths.
    pub(crate) fn thousandths(self) -> i128 {
        self.thousandths
    }

    /// Returns the amount in whole units, rounded up.
    pub(crate) fn units(self) -> i128 {
        self.thousandths.div_euclid(1000) + i128::from(self.thousandths.rem_euclid(1000) != 0)
    }

    /// Rounds up to an integer.
    pub(crate) fn rounded(self) -> Self {
        Self { thousandths: self.units().saturating_mul(1000), ..self }
    }

    /// Returns the sum in the format of the first operand, or of the second if the first is zero.
    pub(crate) fn plus(self, other: Self) -> Self {
        let format = if self.thousandths == 0 { other.format } else { self.format };
        Self { format, thousandths: self.thousandths.saturating_add(other.thousandths) }
    }

    /// Returns the difference, in the format that `plus` chooses.
    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(Self { thousandths: other.thousandths.saturating_neg(), ..other })
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let thousandths = self.thousandths.saturating_abs();
        let shown = match self.format {
            QuantityFormat::Binary if thousandths >= 1_024_000 && thousandths % 1000 == 0 => {
                show_binary(thousandths / 1000)
            }
            QuantityFormat::Exponent => show_decimal(thousandths, -3, |exponent| format!("e{exponent}")),
            _ => show_decimal(thousandths, -3, |exponent| decimal_suffix(exponent).to_owned()),
        };
        f.write_str(if self.thousandths < 0 { "-" } else { "" })?;
        f.write_str(&shown)
    }
}

/// Returns the canonical form of a quantity: without a fraction, and with the largest suffix that fits.
///
/// Returns `None` if the string is not a quantity, or if its amount is above about 10^35.
pub(crate) fn canonical(text: &str) -> Option<String> {
    Quantity::parse(text).map(|quantity| quantity.to_string())
}

/// Returns the canonical form of a quantity that is not an amount of a resource: with a precision of 10^-9.
pub(crate) fn canonical_fine(text: &str) -> Option<String> {
    let Some((format, fine, negative)) = read(text, FINE_PLACES) else { return canonical(text) };
    if fine % 10_i128.pow(FINE_PLACES - PLACES) == 0 {
        return canonical(text);
    }
    let shown = show_decimal(fine, -9, |exponent| match format {
        QuantityFormat::Exponent => format!("e{exponent}"),
        _ => decimal_suffix(exponent).to_owned(),
    });
    Some(if negative { format!("-{shown}") } else { shown })
}

/// Parses a quantity to thousandths; `None` if it is invalid.
pub(crate) fn amount(text: &str) -> Option<i128> {
    Quantity::parse(text).map(Quantity::thousandths)
}

/// Parses a quantity: its format, its amount with this many decimal places, and if it is negative.
fn read(text: &str, n_places: u32) -> Option<(QuantityFormat, i128, bool)> {
    let (digits, negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    let digits = digits.strip_prefix('+').filter(|_| !negative).unwrap_or(digits);
    let end = digits.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (format, base, exponent) = unit(suffix)?;
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let n_behind = u32::try_from(fraction.len()).ok()?;
    Some((format, rounded_up(mantissa, n_behind, base, exponent, n_places)?, negative))
}

/// Returns format, base and exponent of a suffix.
fn unit(suffix: &str) -> Option<(QuantityFormat, i128, i32)> {
    const DECIMAL: [(&str, i32); 10] =
        [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((QuantityFormat::Decimal, 10, *exponent));
    }
    if let Some(idx) = BINARY.iter().position(|name| *name == suffix) {
        return Some((QuantityFormat::Binary, 1024, i32::try_from(idx).ok()? + 1));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((QuantityFormat::Exponent, 10, exponent))
}

/// Returns the amount with at most the allowed number of decimal places, rounded up.
fn rounded_up(mantissa: i128, n_behind: u32, base: i128, exponent: i32, n_places: u32) -> Option<i128> {
    let power = |exponent: u32| base.checked_pow(exponent);
    let mut above = mantissa.checked_mul(10_i128.pow(n_places))?;
    let mut below = 10_i128.checked_pow(n_behind)?;
    match u32::try_from(exponent) {
        Ok(exponent) => above = above.checked_mul(power(exponent)?)?,
        Err(_) => below = below.checked_mul(power(exponent.unsigned_abs())?)?,
    }
    Some(above / below + i128::from(above % below != 0))
}

/// Formats an amount with a binary suffix.
fn show_binary(mut amount: i128) -> String {
    let mut suffixes = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].into_iter();
    let mut suffix = "";
    while amount % 1024 == 0
        && let Some(next) = suffixes.next()
    {
        amount /= 1024;
        suffix = next;
    }
    format!("{amount}{suffix}")
}

/// Formats an amount of the smallest unit, which is `10^exponent`.
fn show_decimal(mut amount: i128, mut exponent: i32, suffix: impl Fn(i32) -> String) -> String {
    while amount != 0 && amount % 1000 == 0 && exponent < 18 {
        amount /= 1000;
        exponent += 3;
    }
    if amount == 0 || exponent == 0 { amount.to_string() } else { format!("{amount}{}", suffix(exponent)) }
}

/// Returns the decimal suffix of an exponent.
fn decimal_suffix(exponent: i32) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sent: &str, stored: &str) {
        assert_eq!(canonical(sent).as_deref(), Some(stored));
        assert_eq!(canonical(stored).as_deref(), Some(stored), "a canonical form is its own");
    }

    #[test]
    fn fractions_are_thousandths() {
        for (sent, stored) in [("1.50", "1500m"), ("0.5", "500m"), (".5", "500m"), ("1.0", "1"), ("100000m", "100")] {
            check(sent, stored);
        }
        for tiny in ["0.0001", "1u", "1n", "0.001"] {
            check(tiny, "1m");
        }
    }

    #[test]
    fn other_quantities_keep_billionths() {
        for (sent, stored) in [
            ("0.0001", "100u"),
            ("1e-6", "1e-6"),
            ("1n", "1n"),
            ("0.5n", "1n"),
            ("1.0000000001", "1000000001n"),
            ("-0.0001", "-100u"),
            ("0.5", "500m"),
            ("1024Ki", "1Mi"),
        ] {
            assert_eq!(canonical_fine(sent).as_deref(), Some(stored), "{sent}");
        }
    }

    #[test]
    fn the_largest_unit_is_shown() {
        for (sent, stored) in
            [("1000000", "1M"), ("1000k", "1M"), ("+5", "5"), ("1024", "1024"), ("1E", "1E"), ("0", "0")]
        {
            check(sent, stored);
        }
        check("12345678901234567890", "12345678901234567890");
        check("1000m", "1");
    }

    #[test]
    fn binary_amounts_stay_binary_where_they_are_whole() {
        for (sent, stored) in [("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("1025Ki", "1025Ki"), ("1000Ki", "1000Ki")] {
            check(sent, stored);
        }
        check("0.1Gi", "107374182400m");
    }

    #[test]
    fn exponents_stay_exponents() {
        for (sent, stored) in [("1e3", "1e3"), ("1e4", "10e3"), ("10e3", "10e3"), ("1e-3", "1e-3")] {
            check(sent, stored);
        }
    }

    #[test]
    fn other_texts_are_no_quantities() {
        for text in ["", "-", ".", "1.2.3", "1x", "x", "1e", "é", "1é", "1e999", "1Kii", "--1"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
