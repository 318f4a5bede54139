//! The cost of an expression: walks through it, and knows of each part what it costs, how large its value can be, and where
//! in the schema it is.
//!
//! Upstream: `checker/cost.go` of cel-go.

use std::rc::Rc;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr};

use super::declared::{Declared, Size, Type};

/// Reading a variable or a field.
const READ: u64 = 1;
pub(super) const LIST: u64 = 10;
pub(super) const MAP: u64 = 30;
const OBJECT: u64 = 40;

/// The most that an expression about a value costs.
pub(super) fn cost(tree: &IdedExpr, root: Declared<'_>) -> u64 {
    Walk { root, locals: Vec::new() }.of(tree).cost
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    /// It was computed.
    None,
    /// From the object: what is declared there, if the schema says that.
    At(Option<Declared<'a>>),
}

/// The keys and values of a list or map that was made by the expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries {
    pub(super) is_list: bool,
    pub(super) key: Size,
    pub(super) value: Size,
}

impl Entries {
    pub(super) fn or(self, other: Self) -> Self {
        Self { key: self.key.or(other.key), value: self.value.or(other.value), ..self }
    }
}

/// What is known of a part of an expression.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    pub(super) cost: u64,
    pub(super) size: Option<Size>,
    pub(super) entries: Option<Entries>,
    pub(super) path: Path<'a>,
    pub(super) r#type: Type<'a>,
    /// Its value, if it is a whole number that is written there.
    pub(super) number: Option<u64>,
}

impl<'a> Part<'a> {
    /// What an expression computes.
    pub(super) fn computed(cost: u64, r#type: Type<'a>) -> Self {
        let size = r#type.is_scalar().then(|| Size::exactly(1));
        Self { cost, size, entries: None, path: Path::None, r#type, number: None }
    }

    pub(super) fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

#[derive(Clone)]
struct Local<'a> {
    name: String,
    size: Option<Size>,
    entries: Option<Entries>,
    path: Path<'a>,
    r#type: Type<'a>,
}

pub(super) struct Walk<'a> {
    root: Declared<'a>,
    /// The innermost last.
    locals: Vec<Local<'a>>,
}

impl<'a> Walk<'a> {
    pub(super) fn of(&mut self, tree: &IdedExpr) -> Part<'a> {
        match &tree.expr {
            Expr::Unspecified => Part::computed(0, Type::Any),
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::List(list) => {
                let items: Vec<Part<'a>> = list.elements.iter().map(|item| self.of(item)).collect();
                let entries = Entries { is_list: true, key: Size::exactly(1), value: any_of(&items) };
                let of = items.first().map_or(Type::Any, |item| item.r#type.clone());
                made(LIST, &items, items.len(), entries, Type::List(Rc::new(of)))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        keys.push(self.of(&entry.key));
                        values.push(self.of(&entry.value));
                    }
                }
                let entries = Entries { is_list: false, key: any_of(&keys), value: any_of(&values) };
                let of = values.first().map_or(Type::Any, |value| value.r#type.clone());
                let n_entries = keys.len();
                keys.append(&mut values);
                made(MAP, &keys, n_entries, entries, Type::Map(Rc::new(of)))
            }
            Expr::Struct(_) => Part::computed(OBJECT, Type::Any),
            Expr::Comprehension(inner) => self.comprehension(inner),
            Expr::Call(call) => self.call(call),
        }
    }

    /// What an expression is with a variable of its own.
    pub(super) fn with(&mut self, locals: Vec<(String, Part<'a>)>, tree: &IdedExpr) -> Part<'a> {
        let before = self.locals.len();
        self.locals.extend(locals.into_iter().map(|(name, part)| {
            let Part { size, entries, path, r#type, .. } = part;
            Local { name, size, entries, path, r#type }
        }));
        let found = self.of(tree);
        self.locals.truncate(before);
        found
    }

    pub(super) fn is_variable(&self, name: &str) -> bool {
        ["self", "oldSelf"].contains(&name) || self.locals.iter().any(|local| local.name == name)
    }

    /// A step down from a value. Upstream leaves out the first step of each path, which is `self` where the value is from
    /// the object; what was computed is so taken for the object itself.
    pub(super) fn below(&self, path: Path<'a>, step: &str) -> Path<'a> {
        match path {
            Path::None => Path::At(Some(self.root)),
            Path::At(declared) => Path::At(declared.and_then(|declared| declared.below(step))),
        }
    }

    /// The size of what is at a path, or else of what has this type.
    pub(super) fn size_at(path: Path<'a>, r#type: &Type<'a>) -> Option<Size> {
        let declared = match path {
            Path::At(Some(declared)) => Some(Size { min: 0, max: declared.elements_max() }),
            _ => None,
        };
        declared.or_else(|| r#type.is_scalar().then(|| Size::exactly(1)))
    }

    fn variable(&self, name: &str) -> Part<'a> {
        let Some(local) = self.locals.iter().rev().find(|local| local.name == name) else {
            let path = Path::At(Some(self.root));
            let r#type = if self.is_variable(name) { self.root.r#type() } else { Type::Other };
            let size = Self::size_at(path, &r#type);
            return Part { size, path, ..Part::computed(READ, r#type) };
        };
        let size = Self::size_at(local.path, &local.r#type).or(local.size);
        Part { size, path: local.path, entries: local.entries, ..Part::computed(READ, local.r#type.clone()) }
    }

    fn select(&mut self, select: &SelectExpr) -> Part<'a> {
        let operand = self.of(&select.operand);
        if select.test {
            return Part::computed(operand.cost, Type::Scalar);
        }
        let own = if matches!(operand.r#type, Type::Map(_) | Type::Object(_)) { READ } else { 0 };
        let path = self.below(operand.path, &select.field);
        let r#type = field_of(&operand.r#type, &select.field);
        let size = Self::size_at(path, &r#type);
        Part { size, path, ..Part::computed(operand.cost.saturating_add(own), r#type) }
    }

    fn comprehension(&mut self, inner: &ComprehensionExpr) -> Part<'a> {
        let range = self.of(&inner.iter_range);
        let start = self.of(&inner.accu_init);
        let mut locals = match &inner.iter_var2 {
            Some(second) => self.pair(&range, &inner.iter_var, second),
            None => vec![(inner.iter_var.clone(), self.single(&range))],
        };
        locals.insert(0, (inner.accu_var.clone(), start.clone()));
        let condition = self.with(locals.clone(), &inner.loop_cond);
        let step = self.with(locals, &inner.loop_step);
        let accumulated = Part { r#type: step.r#type.clone(), ..start.clone() };
        let result = self.with(vec![(inner.accu_var.clone(), accumulated)], &inner.result);
        let one = step.cost.saturating_add(condition.cost);
        let cost = sum([range.cost, start.cost, range.size().max.saturating_mul(one), result.cost]);
        let mut found = Part::computed(cost, result.r#type);
        match inner.accu_init.expr {
            Expr::List(_) | Expr::Map(_) => {
                found.size = Some(range.size());
                found.entries = step.entries;
            }
            _ => found.size = start.size.or(found.size),
        }
        found
    }

    /// The variable of a loop: items of a list, keys of a map.
    pub(super) fn single(&self, range: &Part<'a>) -> Part<'a> {
        if is_list(range) { self.value(range) } else { self.key(range) }
    }

    /// The two variables of a loop: index and item, or key and value.
    pub(super) fn pair(&self, range: &Part<'a>, first: &str, second: &str) -> Vec<(String, Part<'a>)> {
        vec![(first.to_owned(), self.key(range)), (second.to_owned(), self.value(range))]
    }

    fn key(&self, range: &Part<'a>) -> Part<'a> {
        let is_list = is_list(range);
        let r#type = match &range.r#type {
            Type::List(_) => Type::Scalar,
            Type::Map(_) => Type::Text,
            _ => Type::Any,
        };
        let path = self.below(range.path, if is_list { "@indices" } else { "@keys" });
        Part { size: range.entries.map(|entries| entries.key), path, ..Part::computed(0, r#type) }
    }

    fn value(&self, range: &Part<'a>) -> Part<'a> {
        let path = self.below(range.path, if is_list(range) { "@items" } else { "@values" });
        Part { size: range.entries.map(|entries| entries.value), path, ..Part::computed(0, item_of(&range.r#type)) }
    }

    fn call(&mut self, call: &CallExpr) -> Part<'a> {
        if let Some(found) = self.macro_of(call) {
            return found;
        }
        self.function(call)
    }
}

pub(super) fn sum(costs: impl IntoIterator<Item = u64>) -> u64 {
    costs.into_iter().fold(0, u64::saturating_add)
}

fn is_list(range: &Part<'_>) -> bool {
    range.entries.map_or(matches!(range.r#type, Type::List(_)), |entries| entries.is_list)
}

/// The type of an item or a value.
pub(super) fn item_of<'a>(of: &Type<'a>) -> Type<'a> {
    match of {
        Type::List(item) | Type::Map(item) => Type::clone(item),
        _ => Type::Any,
    }
}

/// The type of a field.
pub(super) fn field_of<'a>(of: &Type<'a>, name: &str) -> Type<'a> {
    match of {
        Type::Object(declared) => declared.below(name).map_or(Type::Any, Declared::r#type),
        Type::Map(value) => Type::clone(value),
        Type::Optional(of) => Type::Optional(Rc::new(field_of(of, name))),
        _ => Type::Any,
    }
}

fn of_literal<'a>(literal: &LiteralValue) -> Part<'a> {
    let (r#type, size, number) = match literal {
        LiteralValue::String(text) => (Type::Text, text.inner().chars().count() as u64, None),
        LiteralValue::Bytes(bytes) => (Type::Bytes, bytes.inner().len() as u64, None),
        LiteralValue::Int(int) => (Type::Scalar, 1, u64::try_from(*int.inner()).ok()),
        LiteralValue::Null => (Type::Other, 1, None),
        _ => (Type::Scalar, 1, None),
    };
    Part { size: Some(Size::exactly(size)), number, ..Part::computed(0, r#type) }
}

/// The size of any of these.
fn any_of(parts: &[Part<'_>]) -> Size {
    parts.iter().map(Part::size).reduce(Size::or).unwrap_or(Size::exactly(0))
}

/// A list or map that the expression makes.
fn made<'a>(own: u64, parts: &[Part<'a>], n_entries: usize, entries: Entries, r#type: Type<'a>) -> Part<'a> {
    let cost = sum(parts.iter().map(|part| part.cost)).saturating_add(own);
    Part { size: Some(Size::exactly(n_entries as u64)), entries: Some(entries), ..Part::computed(cost, r#type) }
}
