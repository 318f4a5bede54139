//! The cost of what cel-go writes out before it looks at costs, and the parser here leaves as it is: loops with two
//! variables, and what is done with optional values.

use std::rc::Rc;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::{
    declared::{Size, Type},
    walk::{LIST, MAP, Part, Walk, field_of, sum},
};

impl<'a> Walk<'a> {
    /// The cost of a macro; none when it is a function.
    pub(super) fn macro_of(&mut self, call: &CallExpr) -> Option<Part<'a>> {
        let name = |expression: &IdedExpr| match &expression.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        };
        match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            ("_?._", None, [of, field]) => {
                let Expr::Literal(LiteralValue::String(field)) = &field.expr else { return None };
                let of = self.of(of);
                let found = match field_of(&of.r#type, field.inner()) {
                    found @ Type::Optional(_) => found,
                    found => Type::Optional(Rc::new(found)),
                };
                Some(Part::computed(of.cost.saturating_add(1), found))
            }
            ("optMap" | "optFlatMap", Some(of), [variable, result]) => {
                Some(self.with_value(call.func_name == "optMap", of, name(variable)?, result))
            }
            ("all" | "exists" | "existsOne" | "exists_one", Some(range), [first, second, test]) => {
                let range = self.of(range);
                let locals = self.pair(&range, &name(first)?, &name(second)?);
                let test = self.with(locals, test).cost;
                // What the accumulated truth costs beside the test, and the result.
                let (own, end) = match call.func_name.as_str() {
                    "all" => (3, 1),
                    "exists" => (4, 1),
                    _ => (2, 2),
                };
                Some(looped(&range, 0, test.saturating_add(own), end, Type::Scalar))
            }
            ("transformList" | "transformMap" | "transformMapEntry", Some(range), [first, second, rest @ ..])
                if (1..=2).contains(&rest.len()) =>
            {
                let range = self.of(range);
                let locals = self.pair(&range, &name(first)?, &name(second)?);
                let (result, test) = rest.split_last()?;
                let test = test.first().map(|test| self.with(locals.clone(), test).cost);
                let result = self.with(locals, result);
                let (start, own) = match call.func_name.as_str() {
                    "transformList" => (LIST, LIST + 2),
                    "transformMap" => (MAP, 3),
                    _ => (MAP, 2),
                };
                let step = result.cost.saturating_add(own);
                let step = test.map_or(step, |test| test.saturating_add(step.max(1)));
                let of = Rc::new(result.r#type);
                let found = if start == LIST { Type::List(of) } else { Type::Map(of) };
                let mut found = looped(&range, start, step, 1, found);
                found.size = Some(range.size());
                Some(found)
            }
            _ => None,
        }
    }

    /// A value is there or not, and what is made of it is there with it.
    fn with_value(&mut self, wraps: bool, of: &IdedExpr, name: String, result: &IdedExpr) -> Part<'a> {
        let of = self.of(of);
        let value = match &of.r#type {
            Type::Optional(value) => Type::clone(value),
            _ => Type::Any,
        };
        let result = self.with(vec![(name, Part::computed(0, value))], result);
        // It is asked whether there is a value, which is read and bound to the name.
        let bound = sum([LIST, of.cost, 1, result.cost, u64::from(wraps)]);
        let cost = sum([of.cost, 1, bound.max(1)]);
        let found = if wraps { Type::Optional(Rc::new(result.r#type)) } else { result.r#type };
        Part::computed(cost, found)
    }
}

fn looped<'a>(range: &Part<'a>, start: u64, step: u64, end: u64, r#type: Type<'a>) -> Part<'a> {
    let steps = range.size().max.saturating_mul(step);
    let mut found = Part::computed(sum([range.cost, start, steps, end]), r#type);
    if matches!(found.r#type, Type::Scalar) {
        found.size = Some(Size::exactly(1));
    }
    found
}
