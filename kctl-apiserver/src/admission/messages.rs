//! The messages of CEL that mutating policies make, `Object{…}` and `JSONPatch{…}`: to the evaluator they are maps.

use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, MapEntryExpr, MapExpr, StructExpr,
};

/// The first message of an expression.
pub(super) fn holds(expression: &IdedExpr) -> Option<&StructExpr> {
    match &expression.expr {
        Expr::Struct(found) => Some(found),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => None,
        Expr::Call(call) => call.target.as_deref().and_then(holds).or_else(|| call.args.iter().find_map(holds)),
        Expr::Comprehension(inner) => {
            let parts = [&inner.iter_range, &inner.accu_init, &inner.loop_cond, &inner.loop_step, &inner.result];
            parts.into_iter().find_map(holds)
        }
        Expr::List(list) => list.elements.iter().find_map(holds),
        Expr::Map(map) => map.entries.iter().find_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => holds(&entry.key).or_else(|| holds(&entry.value)),
            EntryExpr::StructField(field) => holds(&field.value),
        }),
        Expr::Select(select) => holds(&select.operand),
    }
}

/// The expression with a map for each message.
pub(super) fn as_maps(expression: &IdedExpr) -> IdedExpr {
    let mut changed = expression.clone();
    change(&mut changed);
    changed
}

fn change(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Struct(found) => {
            let entries = std::mem::take(&mut found.entries).into_iter().map(entry).collect();
            expression.expr = Expr::Map(MapExpr { entries });
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(CallExpr { target, args, .. }) => {
            for part in target.iter_mut().map(AsMut::as_mut).chain(args) {
                change(part);
            }
        }
        Expr::Comprehension(inner) => {
            for part in [
                &mut inner.iter_range,
                &mut inner.accu_init,
                &mut inner.loop_cond,
                &mut inner.loop_step,
                &mut inner.result,
            ] {
                change(part);
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(change),
        Expr::Map(map) => {
            map.entries = std::mem::take(&mut map.entries).into_iter().map(entry).collect();
        }
        Expr::Select(select) => change(&mut select.operand),
    }
}

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
