//! Amounts of resources: quantities with a precision of thousandths.
//!
//! Upstream: `SetDefaults_ResourceList` of `pkg/apis/core/v1/defaults.go`. Smaller fractions are rounded up.

pub(crate) use kctl_apimachinery::quantity::Quantity;

/// Decimal places of an amount of a resource.
const PLACES: u8 = 3;

/// Parses an amount of a resource; `None` if it is invalid.
pub(crate) fn parse(text: &str) -> Option<Quantity> {
    text.parse().ok().map(|quantity: Quantity| quantity.rounded_up(PLACES))
}

/// Returns the canonical form of an amount of a resource; `None` if it is invalid.
pub(crate) fn canonical(text: &str) -> Option<String> {
    parse(text).map(|quantity| quantity.to_string())
}

/// Returns the canonical form of a quantity that is not an amount of a resource, with a precision of 10^-9.
pub(crate) fn canonical_fine(text: &str) -> Option<String> {
    text.parse().ok().map(|quantity: Quantity| quantity.to_string())
}

/// Parses an amount of a resource to thousandths; `None` if it is invalid.
pub(crate) fn amount(text: &str) -> Option<i128> {
    parse(text).map(|quantity| quantity.in_steps(PLACES))
}

/// Returns a number of items.
pub(crate) fn count(items: i64) -> Quantity {
    Quantity::units(items, kctl_apimachinery::quantity::Format::DecimalSi)
}
