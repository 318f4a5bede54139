//! Quantities of resources, as Kubernetes parses, adds, rounds and prints them.
//!
//! Upstream: `k8s.io/apimachinery/pkg/api/resource` (`quantity.go`, `amount.go`, `suffix.go`). Amounts below a nano
//! unit are rounded up to one, and a quantity with a binary suffix is at most 2^63-1 units.
//!
//! ```
//! use kctl_apimachinery::quantity::Quantity;
//!
//! let (memory, more): (Quantity, Quantity) = ("512Mi".parse()?, "1Gi".parse()?);
//! assert_eq!(memory.plus(more).to_string(), "1536Mi");
//! assert!(memory < more);
//! # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
//! ```

mod parse;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, fmt, str::FromStr};

use self::parse::{Parts, magnitude};

/// Exponent of the smallest amount, a nano unit. Smaller amounts are rounded up to it.
const SCALE_MIN: i64 = -9;
/// Exponent of the largest decimal suffix, `E`.
const SUFFIX_EXPONENT_MAX: i64 = 18;
/// Decimal suffixes with their powers of ten.
const DECIMAL: [(&str, i64); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Binary suffixes: powers of 1024.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The family of suffixes in which a quantity is printed. Parsing keeps the one that the string has.
///
/// ```
/// use kctl_apimachinery::quantity::{Format, Quantity};
///
/// let one_thousand_and_24 = |format| Quantity::units(1024, format).to_string();
/// assert_eq!(one_thousand_and_24(Format::BinarySi), "1Ki");
/// assert_eq!(one_thousand_and_24(Format::DecimalSi), "1024");
/// ```
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

/// Upstream's type of an amount. [`Quantity::as_int64`] and [`Quantity::approximate_float64`] differ between the two
/// types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Amount {
    /// `int64Amount`: few digits.
    #[default]
    Int64,
    /// `infDecAmount`: any number of digits.
    Decimal,
}

/// An amount of a resource, such as `500m` of CPU or `1Gi` of memory, with the format in which it was written.
///
/// Two quantities are equal, and are ordered, by their amounts: `1k` equals `1000`. The default is 0 in
/// [`Format::DecimalSi`]. Up to 36 digits are exact.
///
/// ```
/// use kctl_apimachinery::quantity::Quantity;
///
/// let quantity = |text: &str| text.parse::<Quantity>().unwrap();
/// assert_eq!(quantity("1k"), quantity("1000"));
/// assert!(quantity("1Ki") > quantity("1k"));
/// assert_eq!(quantity("0.5").to_string(), "500m");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    /// The amount is `mantissa * 10^scale`.
    mantissa: i128,
    scale: i64,
    format: Format,
    amount: Amount,
}

/// The error of a string that is not a quantity.
///
/// ```
/// use kctl_apimachinery::quantity::{Quantity, QuantityError};
///
/// assert_eq!("1K".parse::<Quantity>(), Err(QuantityError::SuffixUnknown));
/// assert_eq!("one".parse::<Quantity>(), Err(QuantityError::FormatWrong));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuantityError {
    /// The string is empty, or has a character that no quantity has.
    FormatWrong,
    /// The string has no digits, and its suffix is too large or too small for the string to be accepted as 0.
    NumberMissing,
    /// The characters after the number are not a suffix.
    SuffixUnknown,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FormatWrong => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::NumberMissing => "unable to parse numeric part of quantity",
            Self::SuffixUnknown => "unable to parse quantity's suffix",
        })
    }
}

impl std::error::Error for QuantityError {}

impl Quantity {
    /// Creates a quantity of whole units.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::{Format, Quantity};
    ///
    /// assert_eq!(Quantity::units(2048, Format::BinarySi).to_string(), "2Ki");
    /// ```
    #[must_use]
    pub fn units(units: i64, format: Format) -> Self {
        Self { mantissa: units.into(), scale: 0, format, amount: Amount::Int64 }
    }

    /// Creates a quantity of thousandths of a unit, such as millicores of CPU.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::{Format, Quantity};
    ///
    /// assert_eq!(Quantity::millis(1500, Format::DecimalSi), "1.5".parse()?);
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn millis(millis: i64, format: Format) -> Self {
        Self { scale: -3, ..Self::units(millis, format) }
    }

    /// Returns the number of whole units, rounded away from zero; 0 if it does not fit into an `i64`, as in Kubernetes.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// let cpu: Quantity = "1500m".parse()?;
    /// assert_eq!((cpu.value(), cpu.milli_value()), (2, 1500));
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn value(self) -> i64 {
        self.scaled_value(0)
    }

    /// Returns the number of thousandths, rounded away from zero; 0 if it does not fit into an `i64`, as in Kubernetes.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// assert_eq!("1.5m".parse::<Quantity>()?.milli_value(), 2);
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn milli_value(self) -> i64 {
        self.scaled_value(3)
    }

    /// Returns the amount as a multiple of 10^-`places`, rounded up. An amount that does not fit into an `i128` is
    /// clamped to its largest or smallest number.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// let size: Quantity = "1.5Ki".parse()?;
    /// assert_eq!((size.in_steps(0), size.in_steps(3)), (1536, 1_536_000));
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn in_steps(self, places: u8) -> i128 {
        let power = self.scale + i64::from(places);
        if power < 0 {
            let step = power_of_ten(-power);
            return self.mantissa.div_euclid(step) + i128::from(self.mantissa.rem_euclid(step) != 0);
        }
        let bound = if self.mantissa < 0 { i128::MIN } else { i128::MAX };
        self.mantissa_at(-i64::from(places)).unwrap_or(bound)
    }

    /// Returns the amount as an integer (`AsInt64`). `None` if it has a fraction, does not fit, or is written with so
    /// many digits that Kubernetes does not keep it as an integer.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// assert_eq!("2k".parse::<Quantity>()?.as_int64(), Some(2000));
    /// assert_eq!("1.5".parse::<Quantity>()?.as_int64(), None);
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn as_int64(self) -> Option<i64> {
        let is_integer = self.amount == Amount::Int64 && self.scale >= 0;
        i64::try_from(self.mantissa_at(0).filter(|_| is_integer)?).ok()
    }

    /// Returns the amount as a float, with the rounding errors of `AsApproximateFloat64`.
    ///
    /// An amount that is too large is infinite. A zero that is written with an exponent above 308, such as `0e400`, is
    /// NaN, as in Kubernetes: it multiplies the digits by an infinite power of ten.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// assert_eq!("1.5Ki".parse::<Quantity>()?.approximate_float64(), 1536.0);
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn approximate_float64(self) -> f64 {
        // Parsing gives the double that is closest to a literal; `powi` is not exact for negative powers.
        let float = |text: String| text.parse::<f64>().unwrap_or(f64::NAN);
        let scale = if self.amount == Amount::Int64 { self.scale } else { SCALE_MIN };
        let mantissa = float(format!("{}e{}", self.mantissa, self.scale - scale));
        if scale == 0 { mantissa } else { mantissa * float(format!("1e{scale}")) }
    }

    /// Returns -1, 0 or 1 for a negative quantity, zero and a positive one.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// assert_eq!("-1m".parse::<Quantity>()?.signum(), -1);
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn signum(self) -> i8 {
        match self.mantissa.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Returns `true` if the quantity is 0.
    ///
    /// ```
    /// assert!(kctl_apimachinery::quantity::Quantity::default().is_zero());
    /// ```
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Returns `true` if the quantity is below 0.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// assert!("-1Ki".parse::<Quantity>()?.is_negative());
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.mantissa < 0
    }

    /// Rounds to at most this many decimal places, away from zero (`RoundUp`).
    ///
    /// API servers round amounts of resources to thousandths.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// assert_eq!("1.2345".parse::<Quantity>()?.rounded_up(3).to_string(), "1235m");
    /// assert_eq!("1u".parse::<Quantity>()?.rounded_up(3).to_string(), "1m");
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn rounded_up(self, places: u8) -> Self {
        let scale = -i64::from(places);
        if self.scale >= scale {
            return self;
        }
        let mantissa = divided_up(self.mantissa, power_of_ten(scale - self.scale));
        Self { mantissa, scale, ..self }
    }

    /// Returns the sum. It has the format of `self`; if `self` is 0, the format of `other`.
    ///
    /// If the sizes of the amounts differ so much that the exact sum has more than 38 digits, the larger one is
    /// returned.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// let (size, more): (Quantity, Quantity) = ("1Ki".parse()?, "1k".parse()?);
    /// assert_eq!(size.plus(more).to_string(), "2024");
    /// assert_eq!(Quantity::default().plus(size).to_string(), "1Ki");
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        if self.is_zero() {
            return other;
        }
        if other.is_zero() {
            return self;
        }
        let scale = self.scale.min(other.scale);
        let sum = self.mantissa_at(scale).zip(other.mantissa_at(scale)).and_then(|(one, other)| one.checked_add(other));
        let Some(mantissa) = sum else {
            let larger = if self.magnitude() < other.magnitude() { other } else { self };
            return Self { format: self.format, amount: Amount::Decimal, ..larger };
        };
        let fits = i64::try_from(mantissa).is_ok() && [self.amount, other.amount] == [Amount::Int64; 2];
        Self { mantissa, scale, format: self.format, amount: if fits { Amount::Int64 } else { Amount::Decimal } }
    }

    /// Returns the difference, in the format that [`plus`](Self::plus) chooses.
    ///
    /// ```
    /// use kctl_apimachinery::quantity::Quantity;
    ///
    /// assert_eq!("1Gi".parse::<Quantity>()?.minus("2Gi".parse()?).to_string(), "-1Gi");
    /// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
    /// ```
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self { mantissa: other.mantissa.saturating_neg(), ..other })
    }

    /// Returns the amount as a multiple of 10^-`places` (`ScaledValue`). Upstream rounds an `infDecAmount` up instead.
    fn scaled_value(self, places: u8) -> i64 {
        let rounded = if self.amount == Amount::Int64 { self.rounded_up(places) } else { self };
        i64::try_from(rounded.in_steps(places)).unwrap_or_default()
    }

    /// Returns the mantissa for another scale, which is not above the quantity's; `None` on overflow.
    fn mantissa_at(self, scale: i64) -> Option<i128> {
        if self.mantissa == 0 {
            return Some(0);
        }
        let n_zeros = u32::try_from(self.scale.checked_sub(scale)?).ok()?;
        self.mantissa.checked_mul(10_i128.checked_pow(n_zeros)?)
    }

    /// Returns the exponent of the first digit, to compare quantities whose scales are far apart.
    fn magnitude(self) -> i64 {
        i64::from(self.mantissa.unsigned_abs().checked_ilog10().unwrap_or_default()) + self.scale
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs.is_ne() || self.mantissa == 0 {
            return signs;
        }
        let scale = self.scale.min(other.scale);
        match (self.mantissa_at(scale), other.mantissa_at(scale)) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ if self.mantissa < 0 => other.magnitude().cmp(&self.magnitude()),
            _ => self.magnitude().cmp(&other.magnitude()),
        }
    }
}

/// Returns a power of ten. If the exponent is too large, the largest power that fits is returned.
fn power_of_ten(exponent: i64) -> i128 {
    10_i128.pow(u32::try_from(exponent.clamp(0, 38)).unwrap_or_default())
}

/// Divides and rounds away from zero.
fn divided_up(number: i128, by: i128) -> i128 {
    number / by + if number % by == 0 { 0 } else { number.signum() }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::parse(text)?;
        let Parts { is_negative, whole, fraction, suffix } = &parts;
        let mut quantity = Self { format: suffix.format, amount: parts.amount(), ..magnitude(whole, fraction, suffix) };
        let max = Self::units(i64::MAX, suffix.format);
        if suffix.format == Format::BinarySi && quantity > max {
            quantity = Self { amount: Amount::Decimal, ..max };
        }
        Ok(if *is_negative { Self { mantissa: -quantity.mantissa, ..quantity } } else { quantity })
    }
}

/// Returns a quantity as Kubernetes serializes it after parsing: in canonical form, or unchanged.
///
/// `ParseQuantity` keeps the string of numbers with few digits and a plain suffix. That preserves signs and leading
/// zeros, which the canonical form of [`Quantity`] does not have.
///
/// # Errors
/// The string is not a quantity.
///
/// ```
/// use kctl_apimachinery::quantity::reserialize;
///
/// assert_eq!(reserialize("1000")?, "1k");
/// assert_eq!(reserialize("+3Gi")?, "+3Gi");
/// # Ok::<_, kctl_apimachinery::quantity::QuantityError>(())
/// ```
pub fn reserialize(text: &str) -> Result<String, QuantityError> {
    Ok(if Parts::parse(text)?.is_kept() { text.to_owned() } else { text.parse::<Quantity>()?.to_string() })
}

/// Prints the canonical form: without a fraction, and with the largest suffix that fits (`CanonicalizeBytes`).
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        // A binary suffix is only used for integers of at least 1024. Other amounts would lose digits or be confusing.
        if self.format == Format::BinarySi
            && let Some(units) = self.integer().filter(|units| units.unsigned_abs() >= 1024)
        {
            let (mut units, mut power) = (units, 0);
            while units % 1024 == 0 && power < BINARY.len() - 1 {
                (units, power) = (units / 1024, power + 1);
            }
            return write!(f, "{units}{}", BINARY[power]);
        }
        let (mut mantissa, mut exponent) = (self.mantissa, self.scale);
        while exponent % 3 != 0 {
            (mantissa, exponent) = (mantissa.saturating_mul(10), exponent - 1);
        }
        if self.format == Format::DecimalExponent {
            while mantissa % 1000 == 0 {
                (mantissa, exponent) = (mantissa / 1000, exponent + 3);
            }
            return if exponent == 0 { write!(f, "{mantissa}") } else { write!(f, "{mantissa}e{exponent}") };
        }
        while mantissa % 1000 == 0 && exponent < SUFFIX_EXPONENT_MAX {
            (mantissa, exponent) = (mantissa / 1000, exponent + 3);
        }
        while exponent > SUFFIX_EXPONENT_MAX && mantissa.checked_mul(1000).is_some() {
            (mantissa, exponent) = (mantissa * 1000, exponent - 3);
        }
        let suffix = DECIMAL.iter().find(|(_, power)| *power == exponent.min(SUFFIX_EXPONENT_MAX));
        write!(f, "{mantissa}{}", suffix.map_or("", |(name, _)| name))
    }
}

impl Quantity {
    /// Returns the amount if it is an integer that fits.
    fn integer(self) -> Option<i128> {
        if self.scale >= 0 {
            return self.mantissa_at(0);
        }
        let step = power_of_ten(-self.scale);
        (self.mantissa % step == 0).then_some(self.mantissa / step)
    }
}
