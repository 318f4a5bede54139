//! Quantities of resources in expressions. Upstream: `pkg/cel/library/quantity.go` of apiserver.

use std::sync::Arc;

use kctl_apimachinery::quantity::{Format, Quantity};
use kube_cel::cel::{Value as Cel, objects::Opaque};

use super::{EvalResult, Target, versions};

/// A quantity as a value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QuantityValue(Quantity);

impl Opaque for QuantityValue {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.Quantity"
    }
}

/// Returns the result of a quantity function; `None` for other functions.
///
/// `quantity` fails if the string does not parse; `isQuantity` returns a boolean. For operands of the wrong type this
/// returns `None`, and the call fails with `no such overload`.
pub(super) fn call(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    let quantity_of = |value: &Cel| {
        let Cel::Opaque(value) = value else { return None };
        value.downcast_ref::<QuantityValue>().map(|value| value.0)
    };
    let made = |quantity: Quantity| Cel::Opaque(Arc::new(QuantityValue(quantity)));
    let sum = |left: Quantity, right| if name == "sub" { left.minus(right) } else { left.plus(right) };
    match (name, target, arguments) {
        ("quantity", Target::None, [Cel::String(text)]) => {
            Some(text.parse().map(made).map_err(|_| format!("{text:?} is not a valid quantity").into()))
        }
        ("isQuantity", Target::None, [Cel::String(text)]) => Some(Ok(Cel::Bool(text.parse::<Quantity>().is_ok()))),
        ("sign", Target::None, [value]) => quantity_of(value).map(|quantity| Ok(Cel::Int(quantity.signum().into()))),
        ("add" | "sub", Target::Value(value), [Cel::Int(number)]) => {
            Some(Ok(made(sum(quantity_of(value)?, Quantity::units(*number, Format::DecimalSi)))))
        }
        ("add" | "sub", Target::Value(value), [right]) => Some(Ok(made(sum(quantity_of(value)?, quantity_of(right)?)))),
        (_, Target::Value(value), [right]) => versions::compare(name, quantity_of(value)?.cmp(&quantity_of(right)?)),
        (_, Target::Value(value), []) => part(quantity_of(value)?, name),
        _ => None,
    }
}

/// Returns the result of a function with a quantity as its only operand.
fn part(quantity: Quantity, function: &str) -> Option<EvalResult> {
    let whole = quantity.as_int64();
    Some(match function {
        "isInteger" => Ok(Cel::Bool(whole.is_some())),
        "asInteger" => whole.map(Cel::Int).ok_or_else(|| "cannot convert value to integer".into()),
        "asApproximateFloat" => Ok(Cel::Float(quantity.approximate_float64())),
        "sign" => Ok(Cel::Int(quantity.signum().into())),
        _ => return None,
    })
}
