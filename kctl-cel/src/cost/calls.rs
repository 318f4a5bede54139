//! The cost of operators and functions, from the sizes of their arguments.
//!
//! Upstream: `functionCost` in `checker/cost.go` of cel-go, `ext/lists.go` and `ext/sets.go` there, and
//! `pkg/cel/library/cost.go` of apiserver.

use std::rc::Rc;

use kube_cel::cel::common::ast::{CallExpr, Expr};

use super::{
    estimator::{CostEstimator, Estimate, LIST, Path, item_of, sum},
    value_schema::{Size, Type},
};

/// Cost per character of a string that is walked through (`StringTraversalCostFactor`).
const TEXT: f64 = 0.1;
/// Cost per character of a regular expression (`RegexStringLengthCostFactor`).
const PATTERN: f64 = 0.25;
/// Maximum length of the pattern of a named format, in characters.
const FORMAT_LEN_MAX: f64 = 128.0;
/// Prefixes of functions, such as `math` in `math.abs`: no variables.
const GROUPS: [&str; 7] = ["format", "ip", "lists", "math", "optional", "sets", "strings"];

/// The cost of a call without its arguments, and its result.
struct Outcome<'a> {
    cost: u64,
    size: Option<Size>,
    r#type: Type<'a>,
}

/// Returns an outcome whose size follows from its type.
fn outcome(cost: u64, r#type: Type<'_>) -> Outcome<'_> {
    Outcome { cost, size: None, r#type }
}

/// Multiplies a size with a cost factor, and rounds up.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "as upstream")]
fn scale(size: u64, factor: f64) -> u64 {
    // The conversion saturates at `u64::MAX`.
    (size as f64 * factor).ceil() as u64
}

impl<'a> CostEstimator<'a> {
    /// Estimates a function, a method or an operator.
    pub(super) fn function(&mut self, call: &CallExpr) -> Estimate<'a> {
        let arguments: Vec<Estimate<'a>> = call.args.iter().map(|argument| self.estimate(argument)).collect();
        let group = call.target.as_deref().and_then(|target| match &target.expr {
            Expr::Ident(name) if GROUPS.contains(&name.as_str()) && !self.is_variable(name) => Some(name.as_str()),
            _ => None,
        });
        let target = call.target.as_deref().filter(|_| group.is_none()).map(|target| self.estimate(target));
        let name = group.map_or_else(|| call.func_name.clone(), |group| format!("{group}.{}", call.func_name));
        let inner = sum(arguments.iter().chain(&target).map(|part| part.cost));
        match (name.as_str(), arguments.as_slice()) {
            ("dyn", [container]) => {
                Estimate { cost: inner.saturating_add(1), path: Path::None, r#type: Type::Any, ..container.clone() }
            }
            ("_?_:_", [condition, one, other]) => {
                let cost = condition.cost.saturating_add(one.cost.max(other.cost));
                let entries = one.entries.zip(other.entries).map(|(one, other)| one.or(other));
                let r#type = if matches!(one.r#type, Type::Any) { &other.r#type } else { &one.r#type };
                Estimate {
                    size: Some(one.size().or(other.size())),
                    entries,
                    ..Estimate::for_computed(cost, r#type.clone())
                }
            }
            ("_[_]", [container, _]) => {
                let r#type = item_of(&container.r#type);
                let step = if matches!(container.r#type, Type::List(_)) { "@items" } else { "@values" };
                let path = self.below(container.path, step);
                let size = container.entries.map(|entries| entries.value).or_else(|| Self::size_at(path, &r#type));
                Estimate { size, path, ..Estimate::for_computed(inner.saturating_add(1), r#type) }
            }
            (name, arguments) => {
                let own = operator(name, arguments)
                    .or_else(|| target.as_ref().and_then(|target| self.method(name, target, arguments)))
                    .or_else(|| global(name, arguments))
                    .unwrap_or_else(|| outcome(1, result_of(name, target.as_ref(), arguments)));
                let entries = match (name, arguments) {
                    ("_+_", [one, other]) => one.entries.zip(other.entries).map(|(one, other)| one.or(other)),
                    _ => None,
                };
                let found = Estimate::for_computed(inner.saturating_add(own.cost), own.r#type);
                Estimate { size: own.size.or(found.size), entries, ..found }
            }
        }
    }

    /// Estimates a method. Returns `None` if it costs 1 like most, or is a function without receiver.
    fn method(&self, name: &str, target: &Estimate<'a>, arguments: &[Estimate<'a>]) -> Option<Outcome<'a>> {
        let text = target.size();
        let first = arguments.first().map(Estimate::size);
        let r#type = result_of(name, Some(target), arguments);
        let made = |factor: f64, size: Size| Outcome {
            cost: scale(size.max, factor).saturating_add(1 + LIST),
            size: Some(size),
            r#type: r#type.clone(),
        };
        let (cost, size) = match name {
            "startsWith" | "endsWith" => (scale(first?.max, TEXT), None),
            "contains" => (scale(text.max, TEXT).saturating_mul(scale(first?.max, TEXT)), None),
            "matches" | "find" | "findAll" => {
                let walked = scale(text.max.saturating_add(1), TEXT);
                let found = (name != "matches").then_some(Size { min: 0, max: text.max });
                (walked.saturating_mul(scale(first?.max, PATTERN)), found)
            }
            "format" => (scale(text.max, TEXT), None),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => (scale(text.max, TEXT), Some(text)),
            "replace" => {
                let size = replaced_size(text, first?, arguments.get(1)?.size());
                (scale(text.max, 2.0 * TEXT), Some(size))
            }
            "split" => {
                let max = arguments.get(1).and_then(|count| count.number).unwrap_or(text.max);
                (scale(text.max, 2.0 * TEXT), Some(Size { min: 0, max }))
            }
            "join" => {
                let size = joined_size(text, self.item_size(target), first);
                (scale(size.max, TEXT), Some(size))
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                let Some(item) = self.item_size(target) else {
                    return Some(outcome(scale(text.max, TEXT), r#type));
                };
                let is_text = matches!(item_of(&target.r#type), Type::Text | Type::Bytes);
                let per_item = if is_text { scale(item.max, TEXT).saturating_add(1) } else { 1 };
                (text.max.saturating_mul(per_item), None)
            }
            "slice" => {
                let (start, end) = (arguments.first()?.number.unwrap_or(0), arguments.get(1)?.number);
                return Some(made(1.0, Size::exactly(end.unwrap_or(text.max).wrapping_sub(start))));
            }
            "reverse" | "flatten" => return Some(made(1.0, text)),
            "distinct" => return Some(made(2.0, text.times(text))),
            "sort" => {
                let is_text = matches!(item_of(&target.r#type), Type::Text | Type::Bytes);
                return Some(made(if is_text { 2.0 + TEXT } else { 2.0 }, text.times(text)));
            }
            // An address has at most 16 bytes; the constants come from upstream's `containsIP` and `containsCIDR`.
            "containsIP" | "containsCIDR" => {
                let own = if name == "containsIP" { 4 } else { 4 + 2 + 1 };
                let is_text = matches!(arguments.first()?.r#type, Type::Text);
                (if is_text { scale(first?.max, TEXT).saturating_add(own) } else { own }, None)
            }
            "validate" => (scale(scale(first?.max, TEXT), FORMAT_LEN_MAX * PATTERN), None),
            _ => return None,
        };
        Some(Outcome { cost, size, r#type })
    }

    /// Returns the size of the items of a list; `None` if the value is not a list.
    fn item_size(&self, list: &Estimate<'a>) -> Option<Size> {
        if !matches!(list.r#type, Type::List(_) | Type::Map(_) | Type::Optional(_)) {
            return None;
        }
        let declared = match list.path {
            Path::None => None,
            path @ Path::At(_) => match self.below(path, "@items") {
                Path::At(Some(item)) => Some(Size { min: 0, max: item.elements_max() }),
                _ => None,
            },
        };
        Some(declared.unwrap_or(Size::UNKNOWN))
    }
}

/// Estimates a binary operator. Returns `None` for those that cost 1.
fn operator<'a>(name: &str, all: &[Estimate<'a>]) -> Option<Outcome<'a>> {
    let is_text = |part: &Estimate<'a>| matches!(part.r#type, Type::Text | Type::Bytes);
    let are_unknown = all.iter().all(|part| matches!(part.r#type, Type::Any));
    let [one, other] = all else { return None };
    let (size, compared) = (one.size().saturating_add(other.size()), one.size().max.min(other.size().max));
    Some(match name {
        "_&&_" | "_||_" => outcome(0, Type::Scalar),
        "_==_" if matches!((&one.r#type, &other.r#type), (Type::Opaque, Type::Opaque)) => outcome(1, Type::Scalar),
        "_==_" | "_!=_" => outcome(scale(compared, TEXT), Type::Scalar),
        "_<_" | "_<=_" | "_>_" | "_>=_" if are_unknown || all.iter().any(is_text) => {
            outcome(scale(compared, TEXT).max(u64::from(are_unknown)), Type::Scalar)
        }
        "_+_" => {
            let lists = all.iter().find(|part| matches!(part.r#type, Type::List(_)));
            if let Some(list) = lists {
                let typed = all.iter().find(|part| !matches!(item_of(&part.r#type), Type::Any)).unwrap_or(list);
                return Some(Outcome { cost: 1, size: Some(size), r#type: typed.r#type.clone() });
            }
            if are_unknown || all.iter().any(is_text) {
                let r#type = all.iter().find(|part| is_text(part)).map_or(Type::Any, |part| part.r#type.clone());
                return Some(Outcome { cost: scale(size.max, TEXT), size: Some(size), r#type });
            }
            outcome(1, one.r#type.clone())
        }
        "@in" if !matches!(other.r#type, Type::Map(_)) => outcome(other.size().max, Type::Scalar),
        _ => return None,
    })
}

/// Estimates a function without receiver. Returns `None` for those that cost 1.
fn global<'a>(name: &str, arguments: &[Estimate<'a>]) -> Option<Outcome<'a>> {
    let first = arguments.first()?;
    let (size, r#type) = (first.size(), result_of(name, None, arguments));
    let (cost, size) = match name {
        "url" => (scale(size.max, TEXT), Some(size)),
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            (scale(size.max, TEXT), None)
        }
        "ip.isCanonical" => (scale(size.max, 2.0 * TEXT), None),
        "bytes" if matches!(first.r#type, Type::Text | Type::Any) => {
            (scale(size.max, TEXT), Some(Size { min: size.min, max: size.max.wrapping_mul(4) }))
        }
        "string" if matches!(first.r#type, Type::Bytes | Type::Any) => {
            (scale(size.max, TEXT), Some(Size { min: size.min / 4, max: size.max }))
        }
        "strings.quote" => {
            let quoted = Size { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
            (scale(size.max, TEXT), Some(quoted))
        }
        "lists.range" => {
            let size = Size::exactly(first.number.unwrap_or(u64::MAX));
            (scale(size.max, 1.0).saturating_add(1 + LIST), Some(size))
        }
        "sets.contains" | "sets.intersects" | "sets.equivalent" => {
            let both = size.times(arguments.get(1)?.size()).max;
            let factor = if name == "sets.equivalent" { 2 } else { 1 };
            (both.saturating_mul(factor).saturating_add(1), None)
        }
        _ => return None,
    };
    Some(Outcome { cost, size, r#type })
}

/// Returns the size of a string after `replace`: it may grow with each occurrence, and between all characters if the replaced
/// string is empty.
fn replaced_size(text: Size, old: Size, new: Size) -> Size {
    let most = if old.min == 0 {
        text.max.saturating_add(1).saturating_mul(new.max).saturating_add(text.max)
    } else if new.max <= old.min {
        text.max
    } else {
        text.max.div_ceil(old.min).saturating_mul(new.max)
    };
    let least = if old.max == 0 {
        text.min.saturating_add(1).saturating_mul(new.min).saturating_add(text.min)
    } else if old.max <= new.min {
        text.min
    } else {
        text.min.div_ceil(old.max).saturating_mul(new.min)
    };
    Size { min: least, max: most }
}

/// Returns the size of `list.join(separator)`.
fn joined_size(list: Size, item: Option<Size>, separator: Option<Size>) -> Size {
    let items = item.map_or(Size::exactly(0), |item| list.times(item));
    let between = Size { min: list.min.saturating_sub(1), max: list.max.saturating_sub(1) };
    separator.map_or(items, |separator| items.saturating_add(separator.times(between)))
}

/// Returns the result type of a function, by its name only: the type checker has accepted the call.
fn result_of<'a>(name: &str, target: Option<&Estimate<'a>>, arguments: &[Estimate<'a>]) -> Type<'a> {
    let own = target.map_or(Type::Any, |target| target.r#type.clone());
    let first = || arguments.first().map_or(Type::Any, |first| first.r#type.clone());
    let list = |item: Type<'a>| Type::List(Rc::new(item));
    let optional = |value: Type<'a>| Type::Optional(Rc::new(value));
    match name {
        "charAt" | "find" | "format" | "getHost" | "getHostname" | "getPort" | "getScheme" | "getEscapedPath"
        | "join" | "lowerAscii" | "replace" | "string" | "strings.quote" | "substring" | "trim" | "upperAscii" => {
            Type::Text
        }
        "findAll" | "split" => list(Type::Text),
        "lists.range" => list(Type::Scalar),
        "getQuery" => Type::Map(Rc::new(list(Type::Text))),
        "bytes" => Type::Bytes,
        "reverse" | "distinct" | "slice" | "sort" | "or" => own,
        "min" | "max" | "sum" => item_of(&own),
        "flatten" => list(Type::Any),
        "first" | "last" => optional(item_of(&own)),
        "value" | "orValue" => match own {
            Type::Optional(value) => Type::clone(&value),
            _ => Type::Any,
        },
        "optional.of" | "optional.ofNonZeroValue" => optional(first()),
        "optional.none" => optional(Type::Any),
        "_[?_]" => optional(item_of(&first())),
        "validate" => optional(list(Type::Text)),
        "url" | "quantity" | "ip" | "cidr" | "semver" | "masked" | "add" | "sub" => Type::Opaque,
        "type" => Type::Other,
        name if name.starts_with("format.") => Type::Other,
        "_-_" | "-_" | "_*_" | "_/_" | "_%_" => first(),
        // Counts, comparisons and conversions.
        _ => Type::Scalar,
    }
}
