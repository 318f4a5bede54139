//! Operators: logical operators, checked arithmetic, comparisons and indexes.
//!
//! Numbers of different types compare, but do not add: `1 + 1.0` has no overload. Integers never wrap.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::{
    Value as Cel,
    common::ast::{CallExpr, IdedExpr},
};

use super::{
    EvalResult, EvaluationError, Evaluator, NO_OVERLOAD, OVERFLOW, as_text, optional, part, steps, times, type_name,
    value_size,
};

/// The error of `/` and `%` for integers; doubles divide by zero to infinity.
const BY_ZERO: &str = "division by zero";

/// A logical operator over booleans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    /// `&&` and `all`: `false` decides the result.
    And,
    /// `||` and `exists`: `true` decides the result.
    Or,
}

impl<'a> Evaluator<'a> {
    /// Evaluates an operator; `None` if the call is not one. The parser gives operators names such as `_&&_` and no
    /// receiver.
    ///
    /// The logical operators and the conditional evaluate their operands themselves, all others evaluate both first.
    pub(super) fn operator(&mut self, call: &'a CallExpr) -> Option<EvalResult> {
        if call.target.is_some() {
            return None;
        }
        Some(match (call.func_name.as_str(), call.args.as_slice()) {
            ("_&&_", [left, right]) => self.evaluate_logical(left, right, Logic::And),
            ("_||_", [left, right]) => self.evaluate_logical(left, right, Logic::Or),
            ("_?_:_", [condition, left, right]) => self.evaluate_ternary(condition, left, right),
            ("!_", [operand]) => self.evaluate(operand).and_then(|operand| match operand {
                Cel::Bool(operand) => Ok(Cel::Bool(!operand)),
                _ => Err(NO_OVERLOAD.into()),
            }),
            ("-_", [operand]) => self.evaluate(operand).and_then(|operand| negate(&operand)),
            (name @ ("_+_" | "_-_" | "_*_" | "_/_" | "_%_"), [left, right]) => self.arithmetic(name, left, right),
            (name @ ("_<_" | "_<=_" | "_>_" | "_>=_"), [left, right]) => {
                self.evaluate_operands(left, right).and_then(|(left, right)| compare(name, &left, &right))
            }
            (name @ ("_==_" | "_!=_"), [left, right]) => {
                self.evaluate_operands(left, right).and_then(|(left, right)| self.equal(name, &left, &right))
            }
            ("@in", [left, right]) => {
                self.evaluate_operands(left, right).and_then(|(left, right)| self.is_in(&left, &right))
            }
            ("_[_]", [operand, key]) => {
                self.evaluate_operands(operand, key).and_then(|(operand, key)| index(&operand, &key))
            }
            _ => return None,
        })
    }

    /// Evaluates both operands, from left to right.
    fn evaluate_operands(&mut self, left: &'a IdedExpr, right: &'a IdedExpr) -> EvalResult<(Cel, Cel)> {
        Ok((self.evaluate(left)?, self.evaluate(right)?))
    }

    /// Evaluates `&&` or `||`. An error is returned only if neither side decides, as the CEL specification demands:
    /// `1/0 == 1 || true` is true.
    fn evaluate_logical(&mut self, left: &'a IdedExpr, right: &'a IdedExpr, logic: Logic) -> EvalResult {
        combine_logical(logic, [left, right].into_iter().map(|side| self.evaluate(side)))
    }

    /// Evaluates the ternary operator; only the chosen branch is evaluated.
    fn evaluate_ternary(
        &mut self,
        condition: &'a IdedExpr,
        if_true: &'a IdedExpr,
        if_false: &'a IdedExpr,
    ) -> EvalResult {
        match self.evaluate(condition)? {
            Cel::Bool(true) => self.evaluate(if_true),
            Cel::Bool(false) => self.evaluate(if_false),
            _ => Err(NO_OVERLOAD.into()),
        }
    }

    /// Evaluates `==` and `!=`. A library value compares only with a value of the same type or null. Other values of
    /// different types are unequal. The weight is checked, because equality walks both trees.
    fn equal(&self, name: &str, left: &Cel, right: &Cel) -> EvalResult {
        let is_equal = name == "_==_";
        let is_library_value = matches!(left, Cel::Opaque(_)) && optional::downcast(left).is_none();
        if is_equal && is_library_value && *right != Cel::Null && type_name(left) != type_name(right) {
            return Err(NO_OVERLOAD.into());
        }
        value_size::check([left, right])?;
        Ok(Cel::Bool(self.kinds.equal(left, right) == is_equal))
    }

    /// Evaluates `in`: membership in a list, by the list types, or presence of a key in a map.
    fn is_in(&self, value: &Cel, container: &Cel) -> EvalResult {
        match container {
            Cel::List(items) => {
                value_size::check([value, container])?;
                Ok(Cel::Bool(items.iter().any(|item| self.kinds.equal(value, item))))
            }
            Cel::Map(_) => part(container, value).map(|found| Cel::Bool(found.is_some())),
            _ => Err(NO_OVERLOAD.into()),
        }
    }

    /// Evaluates a binary arithmetic operator. Concatenation checks its size first, so that no oversized value is
    /// built.
    fn arithmetic(&mut self, name: &str, left: &'a IdedExpr, right: &'a IdedExpr) -> EvalResult {
        let (left, right) = self.evaluate_operands(left, right)?;
        match (&left, &right) {
            (Cel::String(left), Cel::String(right)) if name == "_+_" => {
                steps::check_text(left.len() + right.len())?;
                Ok(Cel::String(Arc::new(format!("{left}{right}"))))
            }
            (Cel::Bytes(left), Cel::Bytes(right)) if name == "_+_" => {
                steps::check_text(left.len() + right.len())?;
                Ok(Cel::Bytes(Arc::new([left.as_slice(), right.as_slice()].concat())))
            }
            (Cel::List(left), Cel::List(right)) if name == "_+_" => {
                steps::check_items(left.len() + right.len())?;
                Ok(Cel::List(Arc::new(self.kinds.concat(left, right))))
            }
            _ => number_arithmetic(name, &left, &right).unwrap_or_else(|| Err(NO_OVERLOAD.into())),
        }
    }
}

/// Returns the deciding boolean of `logic` if one of the results equals it. Otherwise returns the first error, or the
/// opposite.
///
/// A result of another type has no overload. No result after the deciding one is evaluated.
pub(super) fn combine_logical(logic: Logic, results: impl Iterator<Item = EvalResult>) -> EvalResult {
    let deciding = logic == Logic::Or;
    let mut error = None;
    for result in results {
        match result {
            Ok(Cel::Bool(value)) if value == deciding => return Ok(Cel::Bool(deciding)),
            Ok(Cel::Bool(_)) => {}
            Ok(_) => error = error.or_else(|| Some(NO_OVERLOAD.into())),
            Err(why) => error = error.or(Some(why)),
        }
    }
    error.map_or(Ok(Cel::Bool(!deciding)), Err)
}

/// Returns the result of an arithmetic operator on two numbers or times; `None` if the operands are not of such types.
/// `list.sum()` uses it, too.
///
/// Doubles have no `%`.
pub(super) fn number_arithmetic(name: &str, left: &Cel, right: &Cel) -> Option<EvalResult> {
    Some(match (left, right) {
        (Cel::Int(left), Cel::Int(right)) => int_arithmetic(name, *left, *right),
        (Cel::UInt(left), Cel::UInt(right)) => uint_arithmetic(name, *left, *right),
        (Cel::Float(left), Cel::Float(right)) => Ok(Cel::Float(match name {
            "_+_" => left + right,
            "_-_" => left - right,
            "_*_" => left * right,
            "_/_" => left / right,
            _ => return None,
        })),
        _ => return times::arithmetic(name, left, right),
    })
}

/// Defines a function that applies an operator to two integers of one type, with the overflow and division errors of
/// `cel-go`.
macro_rules! integer_arithmetic {
    ($(#[$doc:meta])* fn $function:ident($integer:ty) -> $variant:path) => {
        $(#[$doc])*
        fn $function(name: &str, left: $integer, right: $integer) -> EvalResult {
            let result = match name {
                "_+_" => left.checked_add(right),
                "_-_" => left.checked_sub(right),
                "_*_" => left.checked_mul(right),
                _ if right == 0 => return Err(BY_ZERO.into()),
                "_/_" => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            result.map($variant).ok_or_else(|| OVERFLOW.into())
        }
    };
}

integer_arithmetic! {
    /// Applies an operator to two signed integers. `i64::MIN / -1` and `i64::MIN % -1` overflow.
    fn int_arithmetic(i64) -> Cel::Int
}
integer_arithmetic! {
    /// Applies an operator to two unsigned integers. A difference below 0 overflows.
    fn uint_arithmetic(u64) -> Cel::UInt
}

/// Evaluates the unary minus.
fn negate(value: &Cel) -> EvalResult {
    match value {
        Cel::Int(number) => number.checked_neg().map(Cel::Int).ok_or_else(|| OVERFLOW.into()),
        Cel::Float(number) => Ok(Cel::Float(-number)),
        Cel::Duration(_) => times::arithmetic("_-_", &Cel::Duration(chrono::TimeDelta::zero()), value)
            .unwrap_or_else(|| Err(NO_OVERLOAD.into())),
        _ => Err(NO_OVERLOAD.into()),
    }
}

/// Compares two values; `None` if they have no order. Numbers of different types compare by value.
///
/// Bytes compare by byte, strings by code point. `null` cannot be ordered, not even against itself.
pub(super) fn order(left: &Cel, right: &Cel) -> Option<Ordering> {
    match (left, right) {
        (Cel::Bytes(left), Cel::Bytes(right)) => Some(left.cmp(right)),
        (Cel::Null, _) => None,
        _ => left.partial_cmp(right),
    }
}

/// Evaluates `<`, `<=`, `>` and `>=`.
fn compare(name: &str, left: &Cel, right: &Cel) -> EvalResult {
    // Lists, maps, null and library values have no order.
    if matches!(left, Cel::List(_) | Cel::Map(_) | Cel::Null | Cel::Opaque(_) | Cel::Function(..)) {
        return Err(NO_OVERLOAD.into());
    }
    let order = order(left, right).ok_or(NO_OVERLOAD)?;
    Ok(Cel::Bool(match name {
        "_<_" => order.is_lt(),
        "_<=_" => order.is_le(),
        "_>_" => order.is_gt(),
        _ => order.is_ge(),
    }))
}

/// Evaluates `a[b]`. Indexing an optional value yields an optional value.
fn index(container: &Cel, key: &Cel) -> EvalResult {
    if let Some(there) = optional::downcast(container) {
        let found = there.value().and_then(|container| part(container, key).unwrap_or_default());
        return Ok(optional::wrap(found));
    }
    part(container, key)?.ok_or_else(|| match container {
        Cel::List(_) => format!("index out of bounds: {}", as_text(key)).into(),
        _ => EvaluationError::NoSuchKey(as_text(key)),
    })
}
