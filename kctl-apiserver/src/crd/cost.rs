//! How dear a rule is for a value. Walks through the loops of the rule before they are evaluated and refuses those that
//! take too many steps: the evaluator cannot be stopped, and nobody else is served meanwhile.
//!
//! The ranges of loops are taken from the value where one can tell, and for as long as the longest list or text of the
//! value elsewhere. Loops are taken to go through all their items.

use kube_cel::cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr};
use serde_json::Value;

/// Steps of one rule: upstream stops it at as much.
const RULE_STEPS_MAX: usize = 1_000_000;
/// Steps of all rules of an object together.
const OBJECT_STEPS_MAX: usize = 2 * RULE_STEPS_MAX;

/// What the rules of an object may still take.
pub(super) struct Budget {
    left: usize,
}

/// Why a rule is not evaluated.
pub(super) enum Dear {
    Rule,
    Object,
}

impl Budget {
    pub(super) fn of_object() -> Self {
        Self { left: OBJECT_STEPS_MAX }
    }

    /// Takes the steps of the loops of an expression away. Expressions without loops take none.
    ///
    /// # Errors
    /// It would take too many.
    pub(super) fn take(&mut self, tree: &IdedExpr, value: &Value, old: Option<&Value>) -> Result<(), Dear> {
        if !has_loops(tree) {
            return Ok(());
        }
        let longest = longest(value).max(old.map_or(0, longest));
        let mut walk = Walk { left: RULE_STEPS_MAX, longest, bound: vec![("self", Some(value)), ("oldSelf", old)] };
        walk.expression(tree).ok_or(Dear::Rule)?;
        self.left = self.left.checked_sub(RULE_STEPS_MAX - walk.left).ok_or(Dear::Object)?;
        Ok(())
    }
}

/// The length of the longest list, map or text within a value.
fn longest(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(longest).max().unwrap_or_default().max(items.len()),
        Value::Object(fields) => fields.values().map(longest).max().unwrap_or_default().max(fields.len()),
        _ => 0,
    }
}

/// What is directly below an expression, except below a loop.
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

fn has_loops(tree: &IdedExpr) -> bool {
    matches!(tree.expr, Expr::Comprehension(_)) || parts(tree).into_iter().any(has_loops)
}

struct Walk<'a> {
    left: usize,
    longest: usize,
    /// Variables with their values, where one can tell; the last of a name counts.
    bound: Vec<(&'a str, Option<&'a Value>)>,
}

impl<'a> Walk<'a> {
    /// Nothing when there are too many steps.
    fn expression(&mut self, tree: &'a IdedExpr) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        match &tree.expr {
            Expr::Comprehension(comprehension) => self.repeated(comprehension),
            _ => parts(tree).into_iter().try_for_each(|part| self.expression(part)),
        }
    }

    fn repeated(&mut self, over: &'a ComprehensionExpr) -> Option<()> {
        self.expression(&over.iter_range)?;
        self.expression(&over.accu_init)?;
        let items = self.place(&over.iter_range);
        let n_bound = self.bound.len();
        for i in 0..self.n_items(&over.iter_range) {
            let item = items.and_then(Value::as_array).and_then(|items| items.get(i));
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

    /// How many items there are at most.
    fn n_items(&self, range: &IdedExpr) -> usize {
        match (&range.expr, self.place(range)) {
            (_, Some(Value::Array(items))) => items.len(),
            (_, Some(Value::Object(fields))) => fields.len(),
            (Expr::List(list), _) => list.elements.len(),
            (Expr::Comprehension(of), _) => self.n_items(&of.iter_range),
            _ => self.longest,
        }
    }

    /// The part of the value that an expression names.
    fn place(&self, tree: &IdedExpr) -> Option<&'a Value> {
        match &tree.expr {
            Expr::Ident(name) => self.bound.iter().rev().find(|(known, _)| known == name)?.1,
            Expr::Select(select) => self.place(&select.operand)?.get(&select.field),
            _ => None,
        }
    }
}
