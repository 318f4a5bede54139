//! Walks through an expression and estimates each part: its cost, the size of its value, and its place in the schema.
//!
//! Upstream: `checker/cost.go` of cel-go.

use std::rc::Rc;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr};

use super::value_schema::{Size, Type, ValueSchema};

/// Cost of reading a variable or a field (`SelectAndIdentCost`).
const READ: u64 = 1;
/// Cost of creating a list (`ListCreateBaseCost`).
pub(super) const LIST: u64 = 10;
/// Cost of creating a map (`MapCreateBaseCost`).
pub(super) const MAP: u64 = 30;
/// Cost of constructing an object (`StructCreateBaseCost`).
const OBJECT: u64 = 40;

/// Returns the maximum cost of an expression, whose `self` is the root.
pub(super) fn cost(tree: &IdedExpr, root: ValueSchema<'_>) -> u64 {
    CostEstimator { root, locals: Vec::new() }.estimate(tree).cost
}

/// The origin of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    /// The expression computed it.
    None,
    /// A part of the object, with its schema if that is known.
    At(Option<ValueSchema<'a>>),
}

/// The sizes of keys and values of a list or map that the expression creates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries {
    /// `true` for a list, whose keys are indexes.
    pub(super) is_list: bool,
    pub(super) key: Size,
    pub(super) value: Size,
}

impl Entries {
    /// Returns the sizes of either of two values.
    pub(super) fn or(self, other: Self) -> Self {
        Self { key: self.key.or(other.key), value: self.value.or(other.value), ..self }
    }
}

/// The estimate for a part of an expression.
#[derive(Clone, Debug)]
pub(super) struct Estimate<'a> {
    /// Maximum cost, including its operands.
    pub(super) cost: u64,
    /// Size of its value: characters, bytes or items. `None` if nothing bounds it.
    pub(super) size: Option<Size>,
    /// Sizes of keys and values, if the expression creates the list or map.
    pub(super) entries: Option<Entries>,
    /// Origin of its value, for bounds from the schema.
    pub(super) path: Path<'a>,
    /// Type of its value.
    pub(super) r#type: Type<'a>,
    /// Its value, if it is an integer literal: `lists.range(3)` has three items.
    pub(super) number: Option<u64>,
}

impl<'a> Estimate<'a> {
    /// Returns the estimate of a computed value. Scalars have size 1.
    pub(super) fn for_computed(cost: u64, r#type: Type<'a>) -> Self {
        let size = r#type.is_scalar().then(|| Size::exactly(1));
        Self { cost, size, entries: None, path: Path::None, r#type, number: None }
    }

    /// Returns the size, or an unlimited one.
    pub(super) fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

/// A variable of a macro, as its value was estimated.
#[derive(Clone)]
struct Local<'a> {
    name: String,
    size: Option<Size>,
    entries: Option<Entries>,
    path: Path<'a>,
    r#type: Type<'a>,
}

/// Walks through one expression.
pub(super) struct CostEstimator<'a> {
    /// The schema of `self`.
    root: ValueSchema<'a>,
    /// Variables of the macros around; the innermost is last and shadows the others.
    locals: Vec<Local<'a>>,
}

impl<'a> CostEstimator<'a> {
    /// Estimates a part of the expression.
    pub(super) fn estimate(&mut self, tree: &IdedExpr) -> Estimate<'a> {
        match &tree.expr {
            Expr::Unspecified => Estimate::for_computed(0, Type::Any),
            Expr::Literal(literal) => estimate_literal(literal),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::List(list) => {
                let items: Vec<Estimate<'a>> = list.elements.iter().map(|item| self.estimate(item)).collect();
                let entries = Entries { is_list: true, key: Size::exactly(1), value: any_of(&items) };
                let of = items.first().map_or(Type::Any, |item| item.r#type.clone());
                literal_estimate(LIST, &items, items.len(), entries, Type::List(Rc::new(of)))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        keys.push(self.estimate(&entry.key));
                        values.push(self.estimate(&entry.value));
                    }
                }
                let entries = Entries { is_list: false, key: any_of(&keys), value: any_of(&values) };
                let of = values.first().map_or(Type::Any, |value| value.r#type.clone());
                let n_entries = keys.len();
                keys.append(&mut values);
                literal_estimate(MAP, &keys, n_entries, entries, Type::Map(Rc::new(of)))
            }
            Expr::Struct(_) => Estimate::for_computed(OBJECT, Type::Any),
            Expr::Comprehension(inner) => self.comprehension(inner),
            Expr::Call(call) => self.call(call),
        }
    }

    /// Estimates a part with further variables in scope.
    pub(super) fn with(&mut self, locals: Vec<(String, Estimate<'a>)>, tree: &IdedExpr) -> Estimate<'a> {
        let before = self.locals.len();
        self.locals.extend(locals.into_iter().map(|(name, part)| {
            let Estimate { size, entries, path, r#type, .. } = part;
            Local { name, size, entries, path, r#type }
        }));
        let found = self.estimate(tree);
        self.locals.truncate(before);
        found
    }

    /// Returns `true` if the name is a variable here, and not the prefix of a function such as `math`.
    pub(super) fn is_variable(&self, name: &str) -> bool {
        ["self", "oldSelf"].contains(&name) || self.locals.iter().any(|local| local.name == name)
    }

    /// Returns the path of a field or item. Upstream drops the first step of each path, which is `self` for parts of the object.
    /// So a part of a computed value is looked up as if it were a part of the object. The estimates agree only if this
    /// does the same.
    pub(super) fn below(&self, path: Path<'a>, step: &str) -> Path<'a> {
        match path {
            Path::None => Path::At(Some(self.root)),
            Path::At(declared) => Path::At(declared.and_then(|declared| declared.below(step))),
        }
    }

    /// Returns the size by the schema at a path, or else by the type.
    pub(super) fn size_at(path: Path<'a>, r#type: &Type<'a>) -> Option<Size> {
        let declared = match path {
            Path::At(Some(declared)) => Some(Size { min: 0, max: declared.elements_max() }),
            _ => None,
        };
        declared.or_else(|| r#type.is_scalar().then(|| Size::exactly(1)))
    }

    /// Estimates a variable of a loop, or else of the environment.
    fn variable(&self, name: &str) -> Estimate<'a> {
        let Some(local) = self.locals.iter().rev().find(|local| local.name == name) else {
            let path = Path::At(Some(self.root));
            let r#type = if self.is_variable(name) { self.root.r#type() } else { Type::Other };
            let size = Self::size_at(path, &r#type);
            return Estimate { size, path, ..Estimate::for_computed(READ, r#type) };
        };
        let size = Self::size_at(local.path, &local.r#type).or(local.size);
        Estimate {
            size,
            path: local.path,
            entries: local.entries,
            ..Estimate::for_computed(READ, local.r#type.clone())
        }
    }

    /// Estimates a field selection; `has(…)` costs only its operand.
    fn select(&mut self, select: &SelectExpr) -> Estimate<'a> {
        let operand = self.estimate(&select.operand);
        if select.test {
            return Estimate::for_computed(operand.cost, Type::Scalar);
        }
        let own = if matches!(operand.r#type, Type::Map(_) | Type::Object(_)) { READ } else { 0 };
        let path = self.below(operand.path, &select.field);
        let r#type = field_of(&operand.r#type, &select.field);
        let size = Self::size_at(path, &r#type);
        Estimate { size, path, ..Estimate::for_computed(operand.cost.saturating_add(own), r#type) }
    }

    /// Estimates a macro with one variable, which the parser has expanded: steps × cost of a step.
    fn comprehension(&mut self, inner: &ComprehensionExpr) -> Estimate<'a> {
        let range = self.estimate(&inner.iter_range);
        let start = self.estimate(&inner.accu_init);
        let mut locals = match &inner.iter_var2 {
            Some(second) => self.pair(&range, &inner.iter_var, second),
            None => vec![(inner.iter_var.clone(), self.single(&range))],
        };
        locals.insert(0, (inner.accu_var.clone(), start.clone()));
        let condition = self.with(locals.clone(), &inner.loop_cond);
        let step = self.with(locals, &inner.loop_step);
        let accumulated = Estimate { r#type: step.r#type.clone(), ..start.clone() };
        let result = self.with(vec![(inner.accu_var.clone(), accumulated)], &inner.result);
        let one = step.cost.saturating_add(condition.cost);
        let cost = sum([range.cost, start.cost, range.size().max.saturating_mul(one), result.cost]);
        let mut found = Estimate::for_computed(cost, result.r#type);
        match inner.accu_init.expr {
            Expr::List(_) | Expr::Map(_) => {
                found.size = Some(range.size());
                found.entries = step.entries;
            }
            _ => found.size = start.size.or(found.size),
        }
        found
    }

    /// Returns the only variable of a macro: items of a list, keys of a map.
    pub(super) fn single(&self, range: &Estimate<'a>) -> Estimate<'a> {
        if is_list(range) { self.value(range) } else { self.key(range) }
    }

    /// Returns the two variables of a macro: index and item, or key and value.
    pub(super) fn pair(&self, range: &Estimate<'a>, first: &str, second: &str) -> Vec<(String, Estimate<'a>)> {
        vec![(first.to_owned(), self.key(range)), (second.to_owned(), self.value(range))]
    }

    /// Estimates a key of a map, or an index of a list.
    fn key(&self, range: &Estimate<'a>) -> Estimate<'a> {
        let is_list = is_list(range);
        let r#type = match &range.r#type {
            Type::List(_) => Type::Scalar,
            Type::Map(_) => Type::Text,
            _ => Type::Any,
        };
        let path = self.below(range.path, if is_list { "@indices" } else { "@keys" });
        Estimate { size: range.entries.map(|entries| entries.key), path, ..Estimate::for_computed(0, r#type) }
    }

    /// Estimates an item of a list, or a value of a map.
    fn value(&self, range: &Estimate<'a>) -> Estimate<'a> {
        let path = self.below(range.path, if is_list(range) { "@items" } else { "@values" });
        Estimate {
            size: range.entries.map(|entries| entries.value),
            path,
            ..Estimate::for_computed(0, item_of(&range.r#type))
        }
    }

    /// Estimates a macro that the parser did not expand, or a function.
    fn call(&mut self, call: &CallExpr) -> Estimate<'a> {
        if let Some(found) = self.macro_of(call) {
            return found;
        }
        self.function(call)
    }
}

/// Adds costs; the sum saturates at `u64::MAX`.
pub(super) fn sum(costs: impl IntoIterator<Item = u64>) -> u64 {
    costs.into_iter().fold(0, u64::saturating_add)
}

/// Returns `true` if a macro iterates over a list.
fn is_list(range: &Estimate<'_>) -> bool {
    range.entries.map_or(matches!(range.r#type, Type::List(_)), |entries| entries.is_list)
}

/// Returns the type of the items of a list, or of the values of a map.
pub(super) fn item_of<'a>(of: &Type<'a>) -> Type<'a> {
    match of {
        Type::List(item) | Type::Map(item) => Type::clone(item),
        _ => Type::Any,
    }
}

/// Returns the type of a field, or of a value of a map.
pub(super) fn field_of<'a>(of: &Type<'a>, name: &str) -> Type<'a> {
    match of {
        Type::Object(declared) => declared.below(name).map_or(Type::Any, ValueSchema::r#type),
        Type::Map(value) => Type::clone(value),
        Type::Optional(of) => Type::Optional(Rc::new(field_of(of, name))),
        _ => Type::Any,
    }
}

/// Estimates a literal, which costs nothing and has an exact size.
fn estimate_literal<'a>(literal: &LiteralValue) -> Estimate<'a> {
    let (r#type, size, number) = match literal {
        LiteralValue::String(text) => (Type::Text, text.inner().chars().count() as u64, None),
        LiteralValue::Bytes(bytes) => (Type::Bytes, bytes.inner().len() as u64, None),
        LiteralValue::Int(int) => (Type::Scalar, 1, u64::try_from(*int.inner()).ok()),
        LiteralValue::Null => (Type::Other, 1, None),
        _ => (Type::Scalar, 1, None),
    };
    Estimate { size: Some(Size::exactly(size)), number, ..Estimate::for_computed(0, r#type) }
}

/// Returns a size that covers all parts: the smallest minimum and the largest maximum.
fn any_of(parts: &[Estimate<'_>]) -> Size {
    parts.iter().map(Estimate::size).reduce(Size::or).unwrap_or(Size::exactly(0))
}

/// Returns the estimate of a list or map literal. `own` is the cost of creating it.
fn literal_estimate<'a>(
    own: u64,
    parts: &[Estimate<'a>],
    n_entries: usize,
    entries: Entries,
    r#type: Type<'a>,
) -> Estimate<'a> {
    let cost = sum(parts.iter().map(|part| part.cost)).saturating_add(own);
    Estimate {
        size: Some(Size::exactly(n_entries as u64)),
        entries: Some(entries),
        ..Estimate::for_computed(cost, r#type)
    }
}
