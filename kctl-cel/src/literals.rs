//! What the real server refuses of literals, where the types fit: durations, times, patterns, formats, and lists and maps of
//! several types.
//!
//! Upstream: `cel-go/cel/validator.go`.

use crate::{
    Issue, Type, Why,
    check::Checker,
    formatted, times,
    tree::{Item, Node, Part},
};

/// What is wrong with the literals of an expression whose types fit.
pub(crate) fn check(tree: &Node, types: &Checker<'_>, errors: &mut Vec<Issue>) {
    let mut scope = Scope { types, n_formats: 0, errors };
    scope.of(tree);
}

struct Scope<'a, 'b> {
    types: &'a Checker<'b>,
    /// How many calls of `format` there are around: what is formatted may be of several types.
    n_formats: usize,
    errors: &'a mut Vec<Issue>,
}

impl<'a> Scope<'a, '_> {
    fn of(&mut self, node: &'a Node) {
        let n_formats = self.n_formats;
        match &node.is {
            Part::Call { target, name, arguments } => {
                literal(name, target.is_some(), arguments, self.errors);
                if let (Some(target), "format", [list]) = (target.as_deref(), name.as_str(), arguments.as_slice()) {
                    formatted::check(node.at, target, list, self.types, self.errors);
                }
                self.n_formats += usize::from(name == "format");
            }
            Part::List(items) if self.n_formats == 0 => self.uniform(items.iter(), 1),
            Part::Map(entries) if self.n_formats == 0 => {
                self.uniform(entries.iter().map(|(key, _)| key), usize::MAX);
                self.uniform(entries.iter().map(|(_, value)| value), usize::MAX);
            }
            _ => {}
        }
        for part in node.parts() {
            self.of(part);
        }
        self.n_formats = n_formats;
    }

    /// The items of a literal are of the type of its first; so many that are not are told.
    fn uniform(&mut self, mut items: impl Iterator<Item = &'a Item>, n_told: usize) {
        let Some(wanted) = items.next().map(|item| self.type_of(item)) else { return };
        let all = items.map(|item| (item.at, self.type_of(item))).filter(|(_, found)| *found != wanted).take(n_told);
        let issues: Vec<Issue> =
            all.map(|(at, found)| Issue { at, why: Why::Mismatch { wanted: wanted.clone(), found } }).collect();
        self.errors.extend(issues);
    }

    fn type_of(&self, item: &Item) -> Type {
        match self.types.type_of(&item.node) {
            Type::Optional(inner) if item.is_optional => *inner,
            is => is,
        }
    }
}

fn literal(name: &str, is_method: bool, arguments: &[Node], errors: &mut Vec<Issue>) {
    let Some(last) = arguments.last() else { return };
    let is_right = match (name, &last.is) {
        ("matches", Part::Text(pattern)) => crate::pattern(pattern).is_ok(),
        ("timestamp", Part::Text(text)) if !is_method => times::timestamp(text).is_some(),
        ("duration", Part::Text(text)) if !is_method => times::duration(text).is_some(),
        ("duration", Part::Int(_)) if !is_method => false,
        ("timestamp", Part::Int(seconds)) if !is_method => times::SECONDS.contains(seconds),
        _ => true,
    };
    if !is_right {
        let text = if let Part::Text(text) = &last.is { text.clone() } else { String::new() };
        errors.push(Issue { at: last.at, why: Why::Literal { function: name.into(), text } });
    }
}
