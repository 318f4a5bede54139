//! The message types of mutating policies, `Object{…}` and `JSONPatch{…}`: replaces them by maps for the evaluator.

use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, MapEntryExpr, MapExpr,
};

/// Returns the expression with map literals in place of message literals.
///
/// The names of messages are dropped: the type checker has validated them.
pub(super) fn as_maps(expression: &IdedExpr) -> IdedExpr {
    let mut changed = expression.clone();
    change(&mut changed);
    changed
}

/// Replaces messages by maps in a tree.
fn change(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Struct(found) => {
            let entries = std::mem::take(&mut found.entries).into_iter().map(entry).collect();
            expression.expr = Expr::Map(MapExpr { entries });
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(CallExpr { target, args, .. }) => {
            target.iter_mut().map(AsMut::as_mut).chain(args).for_each(change);
        }
        Expr::Comprehension(inner) => {
            let beginning = [&mut inner.iter_range, &mut inner.accu_init];
            let steps = [&mut inner.loop_cond, &mut inner.loop_step, &mut inner.result];
            beginning.into_iter().chain(steps).for_each(change);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(change),
        Expr::Map(map) => {
            map.entries = std::mem::take(&mut map.entries).into_iter().map(entry).collect();
        }
        Expr::Select(select) => change(&mut select.operand),
    }
}

/// Replaces a field of a message by an entry of a map.
fn entry(entry: IdedEntryExpr) -> IdedEntryExpr {
    let id = entry.id;
    let mut entry = match entry.expr {
        EntryExpr::MapEntry(entry) => entry,
        EntryExpr::StructField(field) => {
            let key = IdedExpr { id, expr: Expr::Literal(LiteralValue::String(field.field.into())) };
            MapEntryExpr { key, value: field.value, optional: field.optional }
        }
    };
    change(&mut entry.key);
    change(&mut entry.value);
    IdedEntryExpr { id, expr: EntryExpr::MapEntry(entry) }
}
