//! Operators: logical operators, checked arithmetic, comparisons and indexes.
//!
//! Numbers of different types compare, but do not add: `1 + 1.0` has no overload. Integers never
//! wrap.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::{
    Value as Cel,
    common::ast::{CallExpr, IdedExpr},
};

use super::{
    EvalResult, Evaluator, NO_OVERLOAD, OVERFLOW, as_text, bounds, optional, overloads, part, times, type_name, weight,
};

/// The error of `/` and `%` for integers; doubles divide by zero to infinity.
const BY_ZERO: &str = "division by zero";

impl<'a> Evaluator<'a> {
    /// Evaluates an operator; `None` if the call is not one. The parser gives operators names such as `_&&_` and no
    /// receiver.
    ///
    /// The logical operators and the conditional evaluate their operands themselves, all others
    /// evaluate both first.
    pub(super) fn operator(&mut self, call: &'a CallExpr) -> Option<EvalResult> {
        if call.target.is_some() {
            return None;
        }
        Some(match (call.func_name.as_str(), call.args.as_slice()) {
            ("_&&_", [one, other]) => self.both(one, other, false),
            ("_||_", [one, other]) => self.both(one, other, true),
            ("_?_:_", [condition, one, other]) => self.either(condition, one, other),
            ("!_", [of]) => self.evaluate(of).and_then(|of| match of {
                Cel::Bool(of) => Ok(Cel::Bool(!of)),
                _ => Err(NO_OVERLOAD.into()),
            }),
            ("-_", [of]) => {
                self.evaluate(of).and_then(|of| overloads::refused_operand("-_", &of).map_or_else(|| negated(&of), Err))
            }
            (name @ ("_+_" | "_-_" | "_*_" | "_/_" | "_%_"), [one, other]) => self.arithmetic(name, one, other),
            (name @ ("_<_" | "_<=_" | "_>_" | "_>=_"), [one, other]) => {
                self.pair(one, other).and_then(|(one, other)| compared(name, &one, &other))
            }
            (name @ ("_==_" | "_!=_"), [one, other]) => {
                self.pair(one, other).and_then(|(one, other)| self.equal(name, &one, &other))
            }
            ("@in", [one, other]) => self.pair(one, other).and_then(|(one, other)| self.is_in(&one, &other)),
            ("_[_]", [of, key]) => self.pair(of, key).and_then(|(of, key)| index(&of, &key)),
            _ => return None,
        })
    }

    /// Evaluates both operands, from left to right.
    ///
    /// The first error ends the evaluation.
    fn pair(&mut self, one: &'a IdedExpr, other: &'a IdedExpr) -> Result<(Cel, Cel), String> {
        Ok((self.evaluate(one)?, self.evaluate(other)?))
    }

    /// Evaluates `&&` (`deciding` is `false`) or `||` (`true`). Either side may decide the result, even if the other
    /// one fails. An error is returned only if neither side decides.
    ///
    /// This makes the operators commutative, as the CEL specification demands: `1/0 == 1 || true`
    /// is true.
    fn both(&mut self, one: &'a IdedExpr, other: &'a IdedExpr, deciding: bool) -> EvalResult {
        let mut error = None;
        for side in [one, other] {
            match self.evaluate(side) {
                Ok(Cel::Bool(value)) if value == deciding => return Ok(Cel::Bool(deciding)),
                Ok(Cel::Bool(_)) => {}
                Ok(_) => error = error.or_else(|| Some(NO_OVERLOAD.to_owned())),
                Err(why) => error = error.or(Some(why)),
            }
        }
        error.map_or(Ok(Cel::Bool(!deciding)), Err)
    }

    /// Evaluates the ternary operator; only the chosen branch is evaluated.
    ///
    /// The condition must be a boolean.
    fn either(&mut self, condition: &'a IdedExpr, one: &'a IdedExpr, other: &'a IdedExpr) -> EvalResult {
        match self.evaluate(condition)? {
            Cel::Bool(true) => self.evaluate(one),
            Cel::Bool(false) => self.evaluate(other),
            _ => Err(NO_OVERLOAD.into()),
        }
    }

    /// Evaluates `==` and `!=`. A library value compares only with a value of the same type or null.
    ///
    /// Values of different types are unequal, not an error. The weight is checked, because equality
    /// walks both trees.
    fn equal(&self, name: &str, one: &Cel, other: &Cel) -> EvalResult {
        let is_equal = name == "_==_";
        let is_of_library = matches!(one, Cel::Opaque(_)) && optional::of(one).is_none();
        if is_equal && is_of_library && *other != Cel::Null && type_name(one) != type_name(other) {
            return Err(NO_OVERLOAD.into());
        }
        weight::check([one, other])?;
        Ok(Cel::Bool(self.kinds.equal(one, other) == is_equal))
    }

    /// Evaluates `in`: membership in a list, or presence of a key in a map.
    ///
    /// For a list, equality follows the list types. Absence of a key is `false`.
    fn is_in(&self, one: &Cel, other: &Cel) -> EvalResult {
        match other {
            Cel::List(items) => {
                weight::check([one, other])?;
                Ok(Cel::Bool(items.iter().any(|item| self.kinds.equal(one, item))))
            }
            Cel::Map(_) => part(other, one).map(|found| Cel::Bool(found.is_some())),
            _ => Err(NO_OVERLOAD.into()),
        }
    }

    /// Evaluates a binary arithmetic operator. Concatenation checks its size first, so that no oversized value is
    /// built.
    ///
    /// The overload of the left operand is checked first, so that the error names the operator.
    fn arithmetic(&mut self, name: &str, one: &'a IdedExpr, other: &'a IdedExpr) -> EvalResult {
        let (one, other) = self.pair(one, other)?;
        if let Some(why) = overloads::refused_operand(name, &one) {
            return Err(why);
        }
        match (&one, &other) {
            (Cel::String(one), Cel::String(other)) if name == "_+_" => {
                bounds::check_text(one.len() + other.len())?;
                Ok(Cel::String(Arc::new(format!("{one}{other}"))))
            }
            (Cel::Bytes(one), Cel::Bytes(other)) if name == "_+_" => {
                bounds::check_text(one.len() + other.len())?;
                Ok(Cel::Bytes(Arc::new([one.as_slice(), other.as_slice()].concat())))
            }
            (Cel::List(one), Cel::List(other)) if name == "_+_" => {
                bounds::check_items(one.len() + other.len())?;
                Ok(Cel::List(Arc::new(self.kinds.added(one, other))))
            }
            _ => added(name, &one, &other).unwrap_or_else(|| Err(NO_OVERLOAD.into())),
        }
    }
}

/// Returns the result of an arithmetic operator on two numbers or times; `None` if the operands are not of such types.
/// `list.sum()` uses it, too.
///
/// Doubles have no `%`.
pub(super) fn added(name: &str, one: &Cel, other: &Cel) -> Option<EvalResult> {
    Some(match (one, other) {
        (Cel::Int(one), Cel::Int(other)) => of_integers(name, *one, *other),
        (Cel::UInt(one), Cel::UInt(other)) => of_unsigned(name, *one, *other),
        (Cel::Float(one), Cel::Float(other)) => Ok(Cel::Float(match name {
            "_+_" => one + other,
            "_-_" => one - other,
            "_*_" => one * other,
            "_/_" => one / other,
            _ => return None,
        })),
        _ => return times::arithmetic(name, one, other),
    })
}

/// Applies an operator to two signed integers with the overflow and division errors of `cel-go`.
///
/// `i64::MIN / -1` overflows.
pub(super) fn of_integers(name: &str, one: i64, other: i64) -> EvalResult {
    let made = match name {
        "_+_" => one.checked_add(other),
        "_-_" => one.checked_sub(other),
        "_*_" => one.checked_mul(other),
        _ if other == 0 => return Err(BY_ZERO.into()),
        "_/_" => one.checked_div(other),
        _ => one.checked_rem(other),
    };
    made.map(Cel::Int).ok_or(OVERFLOW.to_owned())
}

/// Applies an operator to two unsigned integers, with the same errors as `of_integers`.
fn of_unsigned(name: &str, one: u64, other: u64) -> EvalResult {
    let made = match name {
        "_+_" => one.checked_add(other),
        "_-_" => one.checked_sub(other),
        "_*_" => one.checked_mul(other),
        _ if other == 0 => return Err(BY_ZERO.into()),
        "_/_" => one.checked_div(other),
        _ => one.checked_rem(other),
    };
    made.map(Cel::UInt).ok_or(OVERFLOW.to_owned())
}

/// Evaluates the unary minus.
///
/// Unsigned integers cannot be negated.
fn negated(of: &Cel) -> EvalResult {
    match of {
        Cel::Int(number) => number.checked_neg().map(Cel::Int).ok_or(OVERFLOW.to_owned()),
        Cel::Float(number) => Ok(Cel::Float(-number)),
        Cel::Duration(_) => times::arithmetic("_-_", &Cel::Duration(chrono::TimeDelta::zero()), of)
            .unwrap_or_else(|| Err(NO_OVERLOAD.into())),
        _ => Err(NO_OVERLOAD.into()),
    }
}

/// Compares two values; `None` if they have no order. Numbers of different types compare by value.
///
/// Bytes compare by byte, strings by code point. `null` cannot be ordered, not even against itself.
pub(super) fn order(one: &Cel, other: &Cel) -> Option<Ordering> {
    match (one, other) {
        (Cel::Bytes(one), Cel::Bytes(other)) => Some(one.cmp(other)),
        (Cel::Null, _) => None,
        _ => one.partial_cmp(other),
    }
}

/// Evaluates `<`, `<=`, `>` and `>=`.
///
/// Operands without an order have no overload.
fn compared(name: &str, one: &Cel, other: &Cel) -> EvalResult {
    if let Some(why) = overloads::refused_operand(name, one) {
        return Err(why);
    }
    let order = order(one, other).ok_or(NO_OVERLOAD)?;
    Ok(Cel::Bool(match name {
        "_<_" => order.is_lt(),
        "_<=_" => order.is_le(),
        "_>_" => order.is_gt(),
        _ => order.is_ge(),
    }))
}

/// Evaluates `a[b]`. Indexing an optional value yields an optional value.
///
/// The error about a missing key or index contains it, as CEL's `string` would write it.
fn index(of: &Cel, key: &Cel) -> EvalResult {
    if let Some(there) = optional::of(of) {
        let found = there.value().and_then(|of| part(of, key).unwrap_or_default());
        return Ok(optional::made(found));
    }
    part(of, key)?.ok_or_else(|| match of {
        Cel::List(_) => format!("index out of bounds: {}", as_text(key)),
        _ => format!("no such key: {}", as_text(key)),
    })
}
