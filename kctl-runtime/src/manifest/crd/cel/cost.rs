//! What a rule may cost at most, by the sizes that the schema allows (the cost model of cel-go's `checker/cost.go`, and what
//! `pkg/cel/library/cost.go` of apiserver adds): an upper bound that API servers put a limit on.

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use super::types::{REQUEST_BYTES_MAX, max_elements};

/// What one rule may cost (`StaticEstimatedCostLimit` of apiextensions-apiserver).
pub(super) const RULE_MAX: u64 = 10_000_000;
/// What all rules of a version may cost (`StaticEstimatedCRDCostLimit`).
pub(super) const TOTAL_MAX: u64 = 100_000_000;
pub(super) const HELP: &str = "say how many there can be: `max_items`, `max_properties` and `max_length` on the fields that it reads and on the lists above";

/// How many times a cost is over its limit.
#[expect(clippy::cast_precision_loss, reason = "it is for people to read")]
pub(super) fn factor(cost: u64, limit: u64) -> f64 {
    cost as f64 / limit as f64
}

/// The most that an evaluation costs.
pub(super) fn estimate(expression: &IdedExpr, schema: &Value) -> u64 {
    let of_self = Shape { schema: Some(schema), size: size_of(schema) };
    let variables = vec![("self".to_owned(), of_self), ("oldSelf".to_owned(), of_self)];
    Costs { variables }.of(expression).0
}

/// What is known of a value.
#[derive(Clone, Copy)]
struct Shape<'a> {
    schema: Option<&'a Value>,
    /// Items, fields or bytes.
    size: u64,
}

const SCALAR: Shape<'static> = Shape { schema: None, size: 1 };

fn size_of(schema: &Value) -> u64 {
    if schema["x-kubernetes-int-or-string"] == true { REQUEST_BYTES_MAX - 2 } else { max_elements(schema) }
}

struct Costs<'a> {
    variables: Vec<(String, Shape<'a>)>,
}

/// A walk over text costs a tenth of its bytes.
fn walk(bytes: u64) -> u64 {
    bytes.div_ceil(10)
}

impl<'a> Costs<'a> {
    fn of(&mut self, expression: &IdedExpr) -> (u64, Shape<'a>) {
        match &expression.expr {
            Expr::Unspecified => (0, SCALAR),
            Expr::Literal(literal) => (0, Shape { schema: None, size: literal_size(literal) }),
            Expr::Ident(name) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                (1, known.map_or(SCALAR, |(_, shape)| *shape))
            }
            Expr::Select(select) => {
                let (cost, shape) = self.of(&select.operand);
                (cost.saturating_add(1), below(shape, Some(&select.field)))
            }
            Expr::List(list) => {
                let all: Vec<_> = list.elements.iter().map(|item| self.of(item)).collect();
                let cost = all.iter().fold(10, |sum: u64, (cost, _)| sum.saturating_add(*cost));
                (cost, Shape { schema: None, size: all.len() as u64 })
            }
            Expr::Map(map) => {
                let mut cost: u64 = 30;
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        cost = cost.saturating_add(self.of(&entry.key).0).saturating_add(self.of(&entry.value).0);
                    }
                }
                (cost, Shape { schema: None, size: map.entries.len() as u64 })
            }
            Expr::Struct(_) => (40, SCALAR),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> (u64, Shape<'a>) {
        let (range_cost, range) = self.of(&comprehension.iter_range);
        let (start_cost, start) = self.of(&comprehension.accu_init);
        let before = self.variables.len();
        self.variables.push((comprehension.accu_var.clone(), start));
        let item = below(range, None);
        // Keys are what a map is walked by.
        let is_map = range.schema.is_some_and(|schema| schema["additionalProperties"].is_object());
        let item = if is_map { Shape { schema: None, size: REQUEST_BYTES_MAX / range.size.max(1) } } else { item };
        self.variables.push((comprehension.iter_var.clone(), item));
        let (cond, _) = self.of(&comprehension.loop_cond);
        let (step, _) = self.of(&comprehension.loop_step);
        let (end, _) = self.of(&comprehension.result);
        self.variables.truncate(before);
        let loops = range.size.saturating_mul(cond.saturating_add(step));
        let cost = range_cost.saturating_add(start_cost).saturating_add(loops).saturating_add(end);
        // A list that is made of the items has at most as many.
        let makes_list = matches!(comprehension.accu_init.expr, Expr::List(_));
        (cost, if makes_list { Shape { schema: range.schema, size: range.size } } else { SCALAR })
    }

    fn call(&mut self, call: &CallExpr) -> (u64, Shape<'a>) {
        let mut cost: u64 = 0;
        let mut shapes = Vec::new();
        for part in call.target.as_deref().into_iter().chain(&call.args) {
            let (of_part, shape) = self.of(part);
            cost = cost.saturating_add(of_part);
            shapes.push(shape);
        }
        let size = |index: usize| shapes.get(index).map_or(1, |shape: &Shape| shape.size);
        let (own, result) = match call.func_name.as_str() {
            "_&&_" | "_||_" | "!_" | "@not_strictly_false" => (u64::from(call.func_name == "!_"), SCALAR),
            "_?_:_" => (0, Shape { schema: shapes.get(1).and_then(|shape| shape.schema), size: size(1).max(size(2)) }),
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => (walk(size(0).min(size(1))).max(1), SCALAR),
            "_+_" => {
                let sum = size(0).saturating_add(size(1));
                let is_list = call.args.iter().any(|part| matches!(part.expr, Expr::List(_)));
                let cost = if is_list { 1 } else { walk(sum).max(1) };
                (cost, Shape { schema: shapes.first().and_then(|shape| shape.schema), size: sum })
            }
            "_[_]" | "_[?_]" => (1, below(shapes.first().copied().unwrap_or(SCALAR), None)),
            "@in" => {
                let is_list =
                    shapes.get(1).and_then(|shape| shape.schema).is_none_or(|schema| schema["type"] != "object");
                (if is_list { size(1).max(1) } else { 1 }, SCALAR)
            }
            "contains" => (walk(size(0)).saturating_mul(walk(size(1)).max(1)), SCALAR),
            "matches" | "find" | "findAll" => (
                walk(size(0).saturating_add(1)).saturating_mul(size(1).div_ceil(4).max(1)),
                Shape { schema: None, size: size(0) },
            ),
            // How long the text of a number is, is not known; nor is that of texts that are joined.
            "string"
                if shapes.first().is_none_or(|shape| shape.schema.is_none_or(|schema| schema["type"] != "string")) =>
            {
                (1, Shape { schema: None, size: u64::MAX })
            }
            // Nor is what may be there or not.
            "_?._" | "none" => (1, Shape { schema: None, size: u64::MAX }),
            "join" if shapes.first().is_none_or(|shape| shape.schema.is_none()) => (u64::MAX, SCALAR),
            "startsWith" | "endsWith" => (walk(size(1)).max(1), SCALAR),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => (size(0), SCALAR),
            "lowerAscii" | "upperAscii" | "substring" | "trim" | "replace" | "split" | "join" | "format" | "string"
            | "url" | "isURL" | "quantity" | "isQuantity" | "ip" | "isIP" | "cidr" | "isCIDR" | "semver"
            | "isSemver" => (walk(size(0)).max(1), Shape { schema: None, size: size(0) }),
            _ => (1, Shape { schema: shapes.first().and_then(|shape| shape.schema), size: size(0) }),
        };
        let result = if call.func_name == "size" { SCALAR } else { result };
        (cost.saturating_add(own), result)
    }
}

fn literal_size(literal: &LiteralValue) -> u64 {
    match literal {
        LiteralValue::String(text) => text.inner().len() as u64,
        _ => 1,
    }
}

/// A field, or an item or value.
fn below<'a>(shape: Shape<'a>, name: Option<&str>) -> Shape<'a> {
    let Some(schema) = shape.schema else { return SCALAR };
    let field = name.and_then(|name| schema["properties"].get(name));
    let inner = ["items", "additionalProperties"].into_iter().map(|key| &schema[key]).find(|inner| inner.is_object());
    field.or(inner).map_or(SCALAR, |schema| Shape { schema: Some(schema), size: size_of(schema) })
}
