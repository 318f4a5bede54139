//! The runtime cost of a CEL expression. Estimates the cost of its loops before the evaluation, and rejects expensive
//! expressions: the evaluator cannot be stopped, and blocks all other requests.
//!
//! The size of a loop's range is taken from the values if possible. Otherwise the longest list of all variables is
//! assumed.
//!
//! Only loops are estimated: everything else costs at most as much as the expression is long, or is checked by the
//! evaluator as it happens. An estimate above the true cost can reject an expression that upstream would just accept.

use kube_cel::cel::{
    Value as Cel,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue},
    objects::Key,
};

use crate::evaluate::EvaluationError;

/// The cost limit of one expression, at which upstream stops it (`PerCallLimit`).
const EXPRESSION_COST_MAX: usize = 1_000_000;
/// The cost limit of all rules of an object together. Upstream allows 10,000,000 (`RuntimeCELCostBudget`). This limit
/// is smaller, since the evaluation here blocks all other requests.
const OBJECT_COST_MAX: usize = 2 * EXPRESSION_COST_MAX;
/// The cost limit of all expressions of a policy, for one binding and one parameter (`RuntimeCELCostBudget`).
const POLICY_COST_MAX: usize = 10 * EXPRESSION_COST_MAX;
/// The cost limit of all match conditions of a webhook or a policy (`RuntimeCELCostBudgetMatchConditions`).
const CONDITIONS_COST_MAX: usize = 2_500_000;

/// The remaining cost budget that several expressions share.
pub(crate) struct Budget {
    /// The remaining cost. A charge that does not fit fails and leaves the budget unchanged.
    left: usize,
}

/// The reason why an expression is too expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostExceeded {
    /// It exceeds the limit of one expression.
    Expression,
    /// It exceeds the budget that is left.
    Budget,
}

impl From<CostExceeded> for EvaluationError {
    fn from(exceeded: CostExceeded) -> Self {
        match exceeded {
            CostExceeded::Expression => Self::CostExceeded,
            CostExceeded::Budget => Self::BudgetExceeded,
        }
    }
}

impl Budget {
    /// The budget of an object's rules.
    pub(crate) const OF_OBJECT: Self = Self { left: OBJECT_COST_MAX };
    /// The budget of a policy.
    pub(crate) const OF_POLICY: Self = Self { left: POLICY_COST_MAX };
    /// The budget of match conditions.
    pub(crate) const OF_CONDITIONS: Self = Self { left: CONDITIONS_COST_MAX };

    /// Charges a cost that is known in advance.
    ///
    /// The budget is not charged on failure.
    ///
    /// # Errors
    /// Fails if it would exceed the budget.
    pub(crate) fn charge_cost(&mut self, cost: usize) -> Result<(), CostExceeded> {
        self.left = self.left.checked_sub(cost).ok_or(CostExceeded::Budget)?;
        Ok(())
    }
}

/// Returns the cost of the loops of an expression.
///
/// # Errors
/// Fails if it exceeds the limit of one expression.
pub(crate) fn cost<'a>(tree: &'a IdedExpr, variables: Vec<(&'a str, &'a Cel)>) -> Result<usize, CostExceeded> {
    if !has_loops(tree) {
        return Ok(0);
    }
    let longest = variables.iter().map(|(_, value)| longest(value)).max().unwrap_or_default();
    let bound = variables.into_iter().map(|(name, value)| (name, Some(value))).collect();
    let mut measured = CostWalk { left: EXPRESSION_COST_MAX, longest, bound };
    measured.expression(tree).ok_or(CostExceeded::Expression)?;
    Ok(EXPRESSION_COST_MAX - measured.left)
}

/// Returns an entry of a map.
pub(crate) fn field<'a>(value: &'a Cel, name: &str) -> Option<&'a Cel> {
    let Cel::Map(map) = value else { return None };
    map.map.get(&Key::String(name.to_owned().into()))
}

/// Returns an item of a list.
fn item(value: &Cel, index: usize) -> Option<&Cel> {
    let Cel::List(items) = value else { return None };
    items.get(index)
}

/// Returns the size of a list or map.
fn n_items(value: &Cel) -> Option<usize> {
    match value {
        Cel::List(items) => Some(items.len()),
        Cel::Map(map) => Some(map.map.len()),
        _ => None,
    }
}

/// Returns the length of the longest list, map or string within a value.
fn longest(value: &Cel) -> usize {
    let below = |parts: &mut dyn Iterator<Item = &Cel>| parts.map(longest).max().unwrap_or_default();
    match value {
        Cel::String(text) => text.len(),
        Cel::List(items) => items.len().max(below(&mut items.iter())),
        Cel::Map(map) => map.map.len().max(below(&mut map.map.values())),
        _ => 0,
    }
}

/// Returns the depth of a tree.
pub(crate) fn depth(tree: &IdedExpr) -> usize {
    let below = match &tree.expr {
        Expr::Comprehension(inner) => {
            vec![&inner.iter_range, &inner.accu_init, &inner.loop_cond, &inner.loop_step, &inner.result]
        }
        _ => parts(tree),
    };
    1 + below.into_iter().map(depth).max().unwrap_or_default()
}

/// Returns the direct children of a node, except for a loop. Macros of two variables are calls, not loops.
fn parts(tree: &IdedExpr) -> Vec<&IdedExpr> {
    match &tree.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => {
            let below = map.entries.iter().flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            below.collect()
        }
        Expr::Unspecified | Expr::Comprehension(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => Vec::new(),
    }
}

/// Returns `true` if a tree has a loop.
fn has_loops(tree: &IdedExpr) -> bool {
    matches!(tree.expr, Expr::Comprehension(_)) || parts(tree).into_iter().any(has_loops)
}

/// Returns the cost of a node without its children. Upstream: `runtimecost.go` and `cost.go` of cel-go; creating a list
/// costs 10, a map 30, a message 40.
fn weight(tree: &IdedExpr) -> usize {
    let is_empty =
        |tree: &IdedExpr| matches!(&tree.expr, Expr::Literal(LiteralValue::String(text)) if text.inner().is_empty());
    match &tree.expr {
        Expr::Ident(_) | Expr::Select(_) => 1,
        Expr::List(_) => 10,
        Expr::Map(_) => 30,
        Expr::Struct(_) => 40,
        Expr::Call(CallExpr { func_name, args, .. }) => match func_name.as_str() {
            "_&&_" | "_||_" | "_?_:_" | "_[_]" => 0,
            "_==_" | "_!=_" => usize::from(!args.iter().any(is_empty)),
            _ => 1,
        },
        Expr::Unspecified | Expr::Literal(_) | Expr::Comprehension(_) => 0,
    }
}

/// Adds up the cost of a tree.
struct CostWalk<'a> {
    /// The cost that is left.
    left: usize,
    /// The assumed size of a range that is not a variable. No range is longer than the longest value, unless it is
    /// computed.
    longest: usize,
    /// Variables with their values, if these are known. A later entry shadows earlier ones of the same name.
    bound: Vec<(&'a str, Option<&'a Cel>)>,
}

impl<'a> CostWalk<'a> {
    /// Charges a node and its children. Returns `None` if the limit is exceeded.
    fn expression(&mut self, tree: &'a IdedExpr) -> Option<()> {
        self.left = self.left.checked_sub(weight(tree))?;
        match &tree.expr {
            Expr::Comprehension(comprehension) => self.charge_loop(comprehension),
            _ => parts(tree).into_iter().try_for_each(|part| self.expression(part)),
        }
    }

    /// Charges a loop for each item of its range.
    fn charge_loop(&mut self, over: &'a ComprehensionExpr) -> Option<()> {
        self.expression(&over.iter_range)?;
        self.expression(&over.accu_init)?;
        let items = self.place(&over.iter_range);
        let n_bound = self.bound.len();
        for i in 0..self.n_items(&over.iter_range) {
            let item = items.and_then(|items| item(items, i));
            self.bound.extend([(&*over.accu_var, None), (&*over.iter_var, item)]);
            let walked = self.expression(&over.loop_cond).and_then(|()| self.expression(&over.loop_step));
            self.bound.truncate(n_bound);
            walked?;
        }
        self.bound.push((&over.accu_var, None));
        let walked = self.expression(&over.result);
        self.bound.truncate(n_bound);
        walked
    }

    /// Returns the largest possible number of items.
    fn n_items(&self, range: &IdedExpr) -> usize {
        let value = self.place(range).and_then(n_items);
        value.unwrap_or_else(|| match &range.expr {
            Expr::List(list) => list.elements.len(),
            Expr::Comprehension(comprehension) => self.n_items(&comprehension.iter_range),
            _ => self.longest,
        })
    }

    /// Returns the part of a variable that an expression of identifiers and field selections names.
    fn place(&self, tree: &IdedExpr) -> Option<&'a Cel> {
        match &tree.expr {
            Expr::Ident(name) => self.bound.iter().rev().find(|(bound, _)| bound == name)?.1,
            Expr::Select(select) => field(self.place(&select.operand)?, &select.field),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the cost of an expression for an object with `n_keys` keys in `data`.
    fn cost_for(expression: &str, n_keys: usize) -> Result<usize, CostExceeded> {
        let data: serde_json::Map<String, Value> = (0..n_keys).map(|nth| (format!("k{nth:04}"), json!("v"))).collect();
        let object = json!({ "data": data });
        let tree = crate::cel::tree(expression).unwrap();
        cost(&tree, vec![("object", &crate::cel::to_cel(&object))])
    }

    #[test]
    fn loops_cost_what_upstream_counts() {
        // The smallest number of keys for which kube-apiserver reports the expression as too expensive, to within four.
        for (expression, n_keys) in [
            ("object.data.all(k, object.data.all(l, k != '' && l != ''))", 447),
            ("object.data.all(k, object.data.all(l, true))", 578),
            ("object.data.all(k, object.data.all(l, object.data[k] == 'v'))", 381),
            ("object.data.exists(k, object.data.exists(l, k == '')) || true", 447),
            ("object.data.filter(k, object.data.exists(l, l == '')).size() == 0", 447),
            ("object.data.all(k, object.data.all(l, k.startsWith('k')))", 447),
        ] {
            assert_eq!(cost_for(expression, n_keys + 2), Err(CostExceeded::Expression), "{expression}");
            assert!(cost_for(expression, n_keys - 6).is_ok(), "{expression}");
        }
    }

    #[test]
    fn only_loops_cost_and_budgets_remain_spent() {
        assert_eq!(cost_for("object.data.a == 'b'", 1000), Ok(0));
        let mut budget = Budget::OF_CONDITIONS;
        assert_eq!(budget.charge_cost(CONDITIONS_COST_MAX), Ok(()));
        assert_eq!(budget.charge_cost(0), Ok(()));
        assert_eq!(budget.charge_cost(1), Err(CostExceeded::Budget));
    }
}
