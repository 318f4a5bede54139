//! Checks calls of `format` on literals: `'%d'.format([…])`.
//!
//! Upstream: `cel-go/ext/formatting.go`.

use crate::{
    Issue, IssueKind, Type,
    check::Checker,
    tree::{Expr, Item, Node},
};

/// Clauses and the types that they accept, by their names. `%s` accepts nearly all types.
const CLAUSES: [(&str, &[&str]); 4] = [
    ("do", &["int", "uint"]),
    ("fe", &["double", "string"]),
    ("b", &["int", "uint", "bool"]),
    ("xX", &["int", "uint", "bytes", "string"]),
];

/// Adds the first error of a `format` call, unless string and list are computed at evaluation.
pub(crate) fn check(at: usize, target: &Node, list: &Node, types: &Checker<'_>, errors: &mut Vec<Issue>) {
    let (Expr::Text(format), Expr::List(items)) = (&target.is, &list.is) else { return };
    match clauses(at, format, items, types) {
        Err(issue) => errors.push(issue),
        Ok(n_clauses) if n_clauses < items.len() => {
            let why = format!("the string has {n_clauses} clauses for {} arguments", items.len());
            errors.push(Issue { at, kind: IssueKind::Other(why) });
        }
        Ok(_) => {}
    }
}

/// Returns the number of clauses in a format string, after checking each with its argument. `at` is the position of the
/// call, which an error in the string has.
fn clauses(at: usize, format: &str, items: &[Item], types: &Checker<'_>) -> Result<usize, Issue> {
    let here = |why: String| Issue { at, kind: IssueKind::Other(why) };
    let mut n_clauses = 0;
    let mut rest = format;
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        let after = precision(after).ok_or_else(|| here(format!("`%{after}` has an invalid precision")))?;
        let Some(clause) = after.chars().next().filter(|clause| "sdfexXob".contains(*clause)) else {
            return Err(here(format!("`%{after}` does not begin with a clause such as `%d`")));
        };
        let Some(item) = items.get(n_clauses) else {
            return Err(here(format!("`%{clause}` has no argument")));
        };
        if let Some(node) = find_rejected(clause, &item.node, types) {
            let why = format!("`%{clause}` does not accept {}", types.type_of(node));
            return Err(Issue { at: node.at, kind: IssueKind::Other(why) });
        }
        n_clauses += 1;
        rest = &after[clause.len_utf8()..];
    }
    Ok(n_clauses)
}

/// Skips the precision of a clause: `.2` in `%.2f`. Returns `None` if it has no digits, or nothing follows it.
fn precision(text: &str) -> Option<&str> {
    let Some(digits) = text.strip_prefix('.') else { return Some(text) };
    let after = digits.trim_start_matches(|character: char| character.is_ascii_digit());
    (!after.is_empty() && after.len() < digits.len()).then_some(after)
}

/// Returns the argument, or the item in it, that a clause does not accept.
fn find_rejected<'a>(clause: char, node: &'a Node, types: &Checker<'_>) -> Option<&'a Node> {
    if clause == 's' {
        return not_printable(node, types);
    }
    let argument_type = types.type_of(node);
    // Other types are known only at evaluation.
    let is_known = !matches!(argument_type, Type::Dyn | Type::Any | Type::Error | Type::Param(_));
    let accepts = |name: &str| CLAUSES.iter().any(|(all, names)| all.contains(clause) && names.contains(&name));
    (is_known && !accepts(&argument_type.to_string())).then_some(node)
}

/// Like `find_rejected`, for `%s`. It looks into list and map literals, whose items are formatted one by one.
fn not_printable<'a>(node: &'a Node, types: &Checker<'_>) -> Option<&'a Node> {
    match (&node.is, types.type_of(node)) {
        (Expr::List(items), _) => items.iter().find_map(|item| not_printable(&item.node, types)),
        (Expr::Map(entries), _) => {
            let all = entries.iter().flat_map(|(key, value)| [&key.node, &value.node]);
            all.into_iter().find_map(|node| not_printable(node, types))
        }
        (_, Type::Optional(_) | Type::Object(_)) => Some(node),
        _ => None,
    }
}
