//! Checks of literals whose types fit: durations, timestamps, patterns, formats, and lists and maps of mixed types.
//!
//! Upstream: `cel-go/cel/validator.go`.

use kctl_apimachinery::{duration, time};

use crate::{
    Issue, IssueKind, Type,
    check::Checker,
    format_call,
    tree::{Expr, Item, Node},
};

/// Adds the errors in the literals of an expression without type errors.
///
/// API servers turn these validators on for new expressions: `cel.ASTValidators` in `pkg/cel/environment/base.go`.
pub(crate) fn check(tree: &Node, types: &Checker<'_>, errors: &mut Vec<Issue>) {
    let mut scope = Scope { types, n_formats: 0, errors };
    scope.check(tree);
}

/// The state of the walk over the tree.
struct Scope<'a, 'b> {
    types: &'a Checker<'b>,
    /// Number of `format` calls around the node: their lists may mix types.
    n_formats: usize,
    errors: &'a mut Vec<Issue>,
}

impl<'a> Scope<'a, '_> {
    /// Checks a node and its children.
    fn check(&mut self, node: &'a Node) {
        let n_formats = self.n_formats;
        match &node.is {
            Expr::Call { target, name, arguments } => {
                literal(name, target.as_deref(), arguments, self.errors);
                if let (Some(target), "format", [list]) = (target.as_deref(), name.as_str(), arguments.as_slice()) {
                    format_call::check(node.at, target, list, self.types, self.errors);
                }
                self.n_formats += usize::from(name == "format");
            }
            Expr::List(items) if self.n_formats == 0 => self.uniform(items.iter(), 1),
            Expr::Map(entries) if self.n_formats == 0 => {
                self.uniform(entries.iter().map(|(key, _)| key), usize::MAX);
                self.uniform(entries.iter().map(|(_, value)| value), usize::MAX);
            }
            _ => {}
        }
        for part in node.parts() {
            self.check(part);
        }
        self.n_formats = n_formats;
    }

    /// Reports items whose type differs from the first one's, up to `n_reported`.
    fn uniform(&mut self, mut items: impl Iterator<Item = &'a Item>, n_reported: usize) {
        let Some(expected) = items.next().map(|item| self.type_of(item)) else { return };
        let all =
            items.map(|item| (item.at, self.type_of(item))).filter(|(_, found)| *found != expected).take(n_reported);
        let issues: Vec<Issue> = all
            .map(|(at, found)| Issue { at, kind: IssueKind::Mismatch { expected: expected.clone(), found } })
            .collect();
        self.errors.extend(issues);
    }

    /// Returns the type of an item; for `?item` the type of its value.
    fn type_of(&self, item: &Item) -> Type {
        match self.types.type_of(&item.node) {
            Type::Optional(inner) if item.is_optional => *inner,
            is => is,
        }
    }
}

/// Checks the literal argument of a function, or of a method of `target`. A literal that is not constant is checked at evaluation.
fn literal(name: &str, target: Option<&Node>, arguments: &[Node], errors: &mut Vec<Issue>) {
    let Some(last) = arguments.last() else { return };
    let is_right = match (name, &last.is) {
        ("matches", Expr::Text(pattern)) => crate::pattern(pattern).is_ok(),
        ("timestamp", Expr::Text(text)) if target.is_none() => time::parse_with_offset(text).is_some(),
        ("duration", Expr::Text(text)) if target.is_none() => duration::parse(text).is_some(),
        ("duration", Expr::Int(_)) if target.is_none() => false,
        ("timestamp", Expr::Int(seconds)) if target.is_none() => time::SECONDS.contains(seconds),
        _ => true,
    };
    if !is_right {
        let text = if let Expr::Text(text) = &last.is { text.clone() } else { String::new() };
        errors.push(Issue { at: last.at, kind: IssueKind::Literal { function: name.into(), text } });
    }
}
