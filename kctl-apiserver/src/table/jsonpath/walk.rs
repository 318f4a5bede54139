//! Evaluates the `JSONPath` of a printer column on an object.
//!
//! A step takes all values that the steps before it have found, and returns its own. Missing fields are not an error:
//! they find nothing. A wrong type is an error where it is one upstream, such as an index into an object.
//!
//! Upstream: `client-go/util/jsonpath/jsonpath.go`; `None` means an error of the whole path.

use std::cmp::Ordering;

use serde_json::Value;

use super::{End, Node, Slice, Test};

/// A value that a path finds.
#[derive(Clone, Debug)]
pub(in crate::table) enum PathValue<'a> {
    /// A part of the object.
    Stored(&'a Value),
    /// A literal in the path.
    Literal(Value),
    /// A number of a Go type that only string cells print: an integer literal in the path, or a byte of a string.
    Plain(i64),
}

impl<'a> PathValue<'a> {
    /// Returns the part of the object, unless the value is a literal.
    fn stored_value(&self) -> Option<&'a Value> {
        if let Self::Stored(value) = self { Some(value) } else { None }
    }

    /// Returns the value as JSON; null for numbers that only string cells print.
    fn value(&self) -> &Value {
        match self {
            Self::Stored(value) => value,
            Self::Literal(value) => value,
            Self::Plain(_) => &Value::Null,
        }
    }

    /// Returns the values of an object, the items of a list, or the bytes of a string. Other scalars have no children.
    /// Bytes of a string can only be printed, not compared with other strings.
    fn children(&self) -> Vec<Self> {
        match (self.stored_value(), self.value()) {
            (Some(Value::Array(items)), _) => items.iter().map(Self::Stored).collect(),
            (Some(Value::Object(fields)), _) => fields.values().map(Self::Stored).collect(),
            (_, Value::String(text)) => text.bytes().map(|byte| Self::Plain(byte.into())).collect(),
            _ => Vec::new(),
        }
    }
}

/// Maximum number of values that a step finds; more are an error of the path. Steps multiply: `..a..a..a..a` finds
/// millions of values in an object with 100 nested fields. kube-apiserver has no such bound.
const FOUND_MAX: usize = 1_000_000;

/// Applies the nodes one after the other. It stops at the first error, and at a step that finds too much.
pub(super) fn walk<'a>(nodes: &[Node], input: Vec<PathValue<'a>>) -> Option<Vec<PathValue<'a>>> {
    nodes.iter().try_fold(input, |input, node| step(node, input).filter(|found| found.len() <= FOUND_MAX))
}

/// Applies one node to all values found so far. A literal is returned once for each value found so far, except for
/// text, which is returned once.
fn step<'a>(node: &Node, input: Vec<PathValue<'a>>) -> Option<Vec<PathValue<'a>>> {
    let repeated = |literal: PathValue<'a>| Some(vec![literal; input.len()]);
    match node {
        Node::Block(nodes) => walk(nodes, input),
        Node::Text(text) => Some(vec![PathValue::Literal(text.as_str().into())]),
        Node::Int(number) => repeated(PathValue::Plain(*number)),
        Node::Float(number) => repeated(PathValue::Literal((*number).into())),
        Node::Bool(flag) => repeated(PathValue::Literal((*flag).into())),
        Node::Word => None,
        Node::Field(name) => {
            let field = |found: &PathValue<'a>| found.stored_value()?.as_object()?.get(name);
            Some(input.iter().filter_map(field).map(PathValue::Stored).collect())
        }
        Node::All => Some(input.iter().flat_map(PathValue::children).collect()),
        Node::Descend => {
            let mut all = Vec::new();
            descend(input, &mut all)?;
            Some(all)
        }
        Node::Slice(slice) => take(slice, &input),
        Node::Union(parts) => {
            let found: Option<Vec<_>> = parts.iter().map(|part| walk(part, input.clone())).collect();
            found.map(|found| found.into_iter().flatten().collect())
        }
        Node::Filter { left, test } => filter(left, test.as_ref(), &input),
    }
}

/// Collects the values that have children, each before its descendants. Scalars are left out, as in upstream: `..` is
/// followed by a field in most paths, which they do not have. `None` beyond [`FOUND_MAX`] values.
fn descend<'a>(values: Vec<PathValue<'a>>, all: &mut Vec<PathValue<'a>>) -> Option<()> {
    for value in values {
        let children = value.children();
        if !children.is_empty() {
            if all.len() >= FOUND_MAX {
                return None;
            }
            all.push(value);
            descend(children, all)?;
        }
    }
    Some(())
}

/// Returns the items of a list; `None` for other values, which fail the path.
fn items<'a>(value: &PathValue<'a>) -> Option<&'a Vec<Value>> {
    value.stored_value()?.as_array()
}

/// Applies a slice. Bounds beyond a list fail the path, but an empty slice ends it without looking at later lists.
/// Nulls are skipped.
fn take<'a>(slice: &Slice, input: &[PathValue<'a>]) -> Option<Vec<PathValue<'a>>> {
    let mut found = Vec::new();
    for value in input.iter().filter(|value| !matches!(value, PathValue::Stored(Value::Null))) {
        let items = items(value)?;
        let len = i64::try_from(items.len()).ok()?;
        let from_end = |bound: i64| if bound < 0 { bound.saturating_add(len) } else { bound };
        let end = match slice.end {
            End::Whole => len,
            End::Given(end) => from_end(end),
            End::AfterStart if slice.start == -1 => len,
            End::AfterStart => from_end(slice.start.saturating_add(1)),
        };
        let start = from_end(slice.start);
        if start == end {
            break;
        }
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        let taken = items.get(start..end)?;
        let step = usize::try_from(slice.step).ok().filter(|step| *step > 0)?;
        found.extend(taken.iter().step_by(step).map(PathValue::Stored));
    }
    Some(found)
}

/// Returns the items that pass a test, or without a test those where the path finds something. Comparing more than one
/// value fails the path. An item for which one side finds nothing does not pass.
fn filter<'a>(left: &[Node], test: Option<&Test>, input: &[PathValue<'a>]) -> Option<Vec<PathValue<'a>>> {
    let mut found = Vec::new();
    for value in input {
        for item in items(value)? {
            let itself = || vec![PathValue::Stored(item)];
            let lefts = walk(left, itself());
            let Some(test) = test else {
                // A path that fails on the item counts as present, as in upstream.
                if lefts.is_none_or(|lefts| !lefts.is_empty()) {
                    found.push(PathValue::Stored(item));
                }
                continue;
            };
            let rights = || walk(&test.right, itself());
            let is_taken = match lefts?.as_slice() {
                [] => false,
                [left] => match rights()?.as_slice() {
                    [] => false,
                    [right] => passes(&test.operator, left, right)?,
                    _ => return None,
                },
                _ => return None,
            };
            if is_taken {
                found.push(PathValue::Stored(item));
            }
        }
    }
    Some(found)
}

/// Applies a comparison operator; `None` if the operands cannot be compared. Booleans have no order.
fn passes(operator: &str, left: &PathValue<'_>, right: &PathValue<'_>) -> Option<bool> {
    let order = compare(left, right)?;
    let are_ordered = !left.value().is_boolean();
    match operator {
        "==" => Some(order.is_eq()),
        "!=" => Some(order.is_ne()),
        "<" => are_ordered.then_some(order.is_lt()),
        ">" => are_ordered.then_some(order.is_gt()),
        "<=" => are_ordered.then_some(order.is_le()),
        ">=" => are_ordered.then_some(order.is_ge()),
        _ => None,
    }
}

/// Compares two values of the same type. Integers and floats are different types. Integer literals and integers of the
/// object are the same type. Strings are compared by their bytes.
fn compare(left: &PathValue<'_>, right: &PathValue<'_>) -> Option<Ordering> {
    let whole = |found: &PathValue<'_>| match found {
        PathValue::Plain(number) => Some(*number),
        other => other.value().as_i64(),
    };
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => return Some(left.cmp(&right)),
        (None, None) => {}
        _ => return None,
    }
    match (left.value(), right.value()) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        _ => None,
    }
}
