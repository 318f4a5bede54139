//! Optional values: `a.?b`, `a[?b]`, `optional.of(a)` and their functions.
//!
//! An optional value is either present with a value or absent. Selection on it is optional again, so a
//! chain needs one `?` only: `object.?spec.replicas` is absent if any step is.

use std::sync::Arc;

use kube_cel::cel::{
    Value as Cel,
    common::ast::{CallExpr, Expr, IdedExpr},
    objects::OptionalValue,
};

use super::{EvalResult, Evaluator, NO_OVERLOAD, Target, part};

/// Returns the optional value that `value` holds; `None` if it has another type.
pub(super) fn downcast(value: &Cel) -> Option<&OptionalValue> {
    let Cel::Opaque(value) = value else { return None };
    value.downcast_ref::<OptionalValue>()
}

/// Creates an optional value: `optional.of(value)`, or `optional.none()` for `None`.
pub(crate) fn wrap(value: Option<Cel>) -> Cel {
    Cel::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// Returns the result of `optional.unwrap` or `unwrapOpt`; `None` for other functions.
///
/// Both drop absent items and unwrap the others. A list with an item that is not optional has no overload.
pub(super) fn call(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    let (("unwrap", Target::Library("optional"), [Cel::List(items)])
    | ("unwrapOpt", Target::Value(Cel::List(items)), [])) = (name, target, arguments)
    else {
        return None;
    };
    let values: Option<Vec<_>> = items.iter().map(downcast).collect();
    let there = |values: Vec<&OptionalValue>| values.into_iter().filter_map(|value| value.value().cloned()).collect();
    Some(values.map(|values| Cel::List(Arc::new(there(values)))).ok_or_else(|| NO_OVERLOAD.into()))
}

impl<'a> Evaluator<'a> {
    /// Evaluates a function of optional values; `None` for other functions.
    ///
    /// Functions whose arguments are evaluated only if needed must be handled before ordinary functions.
    pub(super) fn optional(&mut self, call: &'a CallExpr) -> Option<EvalResult> {
        Some(match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            ("_?._" | "_[?_]", None, [operand, key]) => self.optional_part(operand, key),
            ("of" | "none" | "ofNonZeroValue", Some(target), values) if self.is_library(target) => {
                self.construct(&call.func_name, values)
            }
            ("hasValue" | "value" | "or" | "orValue", Some(target), values) => {
                self.optional_call(&call.func_name, target, values)
            }
            (name @ ("optMap" | "optFlatMap"), Some(target), [variable, result]) => {
                self.opt_map(name, target, variable, result)
            }
            _ => return None,
        })
    }

    /// Returns `true` if `optional` names the library, rather than a variable that shadows it.
    fn is_library(&self, target: &IdedExpr) -> bool {
        matches!(&target.expr, Expr::Ident(name) if name == "optional" && self.variable(name).is_none())
    }

    /// Evaluates an expression of an optional type; an operand of another type has no overload.
    fn evaluate_optional(&mut self, tree: &'a IdedExpr) -> EvalResult<Option<Cel>> {
        let value = self.evaluate(tree)?;
        Ok(downcast(&value).ok_or(NO_OVERLOAD)?.value().cloned())
    }

    /// Evaluates `a.?b` and `a[?b]`. On a plain value an index of the wrong type is an error; on an optional value it
    /// yields an absent value.
    fn optional_part(&mut self, tree: &'a IdedExpr, key: &'a IdedExpr) -> EvalResult {
        let value = self.evaluate(tree)?;
        let key = self.evaluate(key)?;
        let found = match downcast(&value) {
            Some(there) => there.value().and_then(|value| part(value, &key).unwrap_or_default()),
            None => part(&value, &key)?,
        };
        Ok(wrap(found))
    }

    /// Evaluates `optional.of`, `optional.none` and `optional.ofNonZeroValue`.
    fn construct(&mut self, name: &str, values: &'a [IdedExpr]) -> EvalResult {
        let [value] = values else {
            return if name == "none" && values.is_empty() { Ok(wrap(None)) } else { Err(NO_OVERLOAD.into()) };
        };
        let value = self.evaluate(value)?;
        Ok(wrap(Some(value).filter(|value| name == "of" || !is_zero(value))))
    }

    /// Evaluates `hasValue`, `value`, `or` and `orValue`. `or` takes and returns an optional value, `orValue` a plain
    /// value.
    fn optional_call(&mut self, name: &str, target: &'a IdedExpr, values: &'a [IdedExpr]) -> EvalResult {
        let value = self.evaluate(target)?;
        // `orValue` of a value that is not optional returns the value.
        if let ("orValue", [_], None) = (name, values, downcast(&value)) {
            return Ok(value);
        }
        let there = downcast(&value).ok_or(NO_OVERLOAD)?.value().cloned();
        match (name, values) {
            ("hasValue", []) => Ok(Cel::Bool(there.is_some())),
            ("value", []) => there.ok_or_else(|| "optional.none() dereference".into()),
            // The alternative is evaluated only if the value is absent.
            ("or", [other]) => match there {
                Some(value) => Ok(wrap(Some(value))),
                None => Ok(wrap(self.evaluate_optional(other)?)),
            },
            ("orValue", [other]) => there.map_or_else(|| self.evaluate(other), Ok),
            _ => Err(NO_OVERLOAD.into()),
        }
    }

    /// Evaluates `optMap` and `optFlatMap`; the expression is evaluated only if the value is present. `optMap` wraps
    /// the result, `optFlatMap` expects an optional result.
    fn opt_map(
        &mut self,
        name: &str,
        target: &'a IdedExpr,
        variable: &'a IdedExpr,
        result: &'a IdedExpr,
    ) -> EvalResult {
        let Expr::Ident(variable) = &variable.expr else { return Err(NO_OVERLOAD.into()) };
        let Some(value) = self.evaluate_optional(target)? else { return Ok(wrap(None)) };
        let mapped = self.with(&[(variable.as_str(), value)], |evaluator| evaluator.evaluate(result))?;
        Ok(if name == "optMap" { wrap(Some(mapped)) } else { mapped })
    }
}

/// Returns `true` for the zero value of a type, which `optional.ofNonZeroValue` treats as absent. Timestamps and
/// library values are never zero.
fn is_zero(value: &Cel) -> bool {
    match value {
        Cel::Null | Cel::Bool(false) | Cel::Int(0) | Cel::UInt(0) => true,
        Cel::Float(number) => *number == 0.0,
        Cel::String(text) => text.is_empty(),
        Cel::Bytes(bytes) => bytes.is_empty(),
        Cel::List(items) => items.is_empty(),
        Cel::Map(map) => map.map.is_empty(),
        Cel::Duration(duration) => duration.is_zero(),
        _ => false,
    }
}
