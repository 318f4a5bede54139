//! The cost of macros that cel-go expands before it estimates, and that the parser here leaves as calls: those with two variables,
//! and those on optional values.
//!
//! The constants count the operations of the expansion in `cel-go/ext/comprehensions.go` and `cel-go/cel/library.go`.

use std::rc::Rc;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::{
    estimator::{CostEstimator, Estimate, LIST, MAP, field_of, sum},
    value_schema::{Size, Type},
};

impl<'a> CostEstimator<'a> {
    /// Estimates a macro; returns `None` for a function.
    pub(super) fn macro_of(&mut self, call: &CallExpr) -> Option<Estimate<'a>> {
        let name = |expression: &IdedExpr| match &expression.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        };
        match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            ("_?._", None, [of, field]) => {
                let Expr::Literal(LiteralValue::String(field)) = &field.expr else { return None };
                let of = self.estimate(of);
                let found = match field_of(&of.r#type, field.inner()) {
                    found @ Type::Optional(_) => found,
                    found => Type::Optional(Rc::new(found)),
                };
                Some(Estimate::for_computed(of.cost.saturating_add(1), found))
            }
            ("optMap" | "optFlatMap", Some(of), [variable, result]) => {
                Some(self.with_value(&call.func_name, of, name(variable)?, result))
            }
            ("all" | "exists" | "existsOne" | "exists_one", Some(range), [first, second, test]) => {
                let range = self.estimate(range);
                let locals = self.pair(&range, &name(first)?, &name(second)?);
                let test = self.with(locals, test).cost;
                // Cost per iteration without the test, and of the final result.
                let (per_iteration, result) = match call.func_name.as_str() {
                    "all" => (3, 1),
                    "exists" => (4, 1),
                    _ => (2, 2),
                };
                Some(loop_estimate(&range, 0, test.saturating_add(per_iteration), result, Type::Scalar))
            }
            ("transformList" | "transformMap" | "transformMapEntry", Some(range), [first, second, rest @ ..])
                if (1..=2).contains(&rest.len()) =>
            {
                let range = self.estimate(range);
                let locals = self.pair(&range, &name(first)?, &name(second)?);
                let (result, test) = rest.split_last()?;
                let test = test.first().map(|test| self.with(locals.clone(), test).cost);
                let result = self.with(locals, result);
                let (start, per_iteration) = match call.func_name.as_str() {
                    "transformList" => (LIST, LIST + 2),
                    "transformMap" => (MAP, 3),
                    _ => (MAP, 2),
                };
                let step = result.cost.saturating_add(per_iteration);
                let step = test.map_or(step, |test| test.saturating_add(step.max(1)));
                let of = Rc::new(result.r#type);
                let found = if start == LIST { Type::List(of) } else { Type::Map(of) };
                let mut found = loop_estimate(&range, start, step, 1, found);
                found.size = Some(range.size());
                Some(found)
            }
            _ => None,
        }
    }

    /// Estimates `optMap` and `optFlatMap`: the expression runs if there is a value.
    fn with_value(&mut self, function: &str, of: &IdedExpr, name: String, result: &IdedExpr) -> Estimate<'a> {
        let of = self.estimate(of);
        let value = match &of.r#type {
            Type::Optional(value) => Type::clone(value),
            _ => Type::Any,
        };
        // `optFlatMap` returns the optional value of its expression as it is.
        let wraps = function == "optMap";
        let result = self.with(vec![(name, Estimate::for_computed(0, value))], result);
        // The expansion is `has_value ? bind(name, value, result) : none`, and `bind` is a loop over an empty list.
        let bound = sum([LIST, of.cost, 1, result.cost, u64::from(wraps)]);
        let cost = sum([of.cost, 1, bound.max(1)]);
        let found = if wraps { Type::Optional(Rc::new(result.r#type)) } else { result.r#type };
        Estimate::for_computed(cost, found)
    }
}

/// Returns the estimate of a loop from the costs of the range, the start, one iteration and the final result.
fn loop_estimate<'a>(range: &Estimate<'a>, start: u64, iteration: u64, result: u64, r#type: Type<'a>) -> Estimate<'a> {
    let iterations = range.size().max.saturating_mul(iteration);
    let mut found = Estimate::for_computed(sum([range.cost, start, iterations, result]), r#type);
    if matches!(found.r#type, Type::Scalar) {
        found.size = Some(Size::exactly(1));
    }
    found
}
