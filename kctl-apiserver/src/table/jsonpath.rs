//! The part of `JSONPath` that printer columns of a `CustomResourceDefinition` use: fields, indexes, slices, wildcards
//! and filters. Upstream: `client-go/util/jsonpath`, with its ways: `['a.b']` is two fields, `['a\.b']` is one.

use std::cmp::Ordering;

use serde_json::Value;

/// A path that was understood.
#[derive(Debug)]
pub(super) struct Path {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Field(String),
    /// Every value of an object or of a list.
    All,
    /// The value and everything below it.
    Descend,
    Slices(Vec<Slice>),
    Filter {
        left: Path,
        test: Option<(Test, Value)>,
    },
}

#[derive(Debug)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: usize,
}

#[derive(Clone, Copy, Debug)]
struct Test {
    accepts: fn(Ordering) -> bool,
}

/// The longer operators come first: `<` begins `<=`.
const TESTS: [(&str, Test); 6] = [
    ("==", Test { accepts: Ordering::is_eq }),
    ("!=", Test { accepts: Ordering::is_ne }),
    ("<=", Test { accepts: Ordering::is_le }),
    (">=", Test { accepts: Ordering::is_ge }),
    ("<", Test { accepts: Ordering::is_lt }),
    (">", Test { accepts: Ordering::is_gt }),
];

impl Path {
    /// Returns the path, or nothing if the server would not understand it either.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        let mut steps = Vec::new();
        while !rest.is_empty() {
            rest = if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Descend);
                field(after, &mut steps)?
            } else if let Some(after) = rest.strip_prefix('.') {
                if after.starts_with('[') { after } else { field(after, &mut steps)? }
            } else {
                bracket(rest.strip_prefix('[')?, &mut steps)?
            };
        }
        Some(Self { steps })
    }

    /// Returns the first value that the path leads to. A filter that compares what cannot be compared finds nothing.
    pub(super) fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        let mut found = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.take(value, &mut next)?;
            }
            found = next;
        }
        found.first().copied()
    }
}

impl Step {
    /// Adds what the step finds in `value`; nothing is returned if the whole path fails.
    fn take<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) -> Option<()> {
        match self {
            Self::Field(name) => found.extend(value.as_object().and_then(|fields| fields.get(name))),
            Self::All => children(value, found),
            Self::Descend => descend(value, found),
            Self::Slices(slices) => {
                let items = value.as_array()?;
                return slices.iter().try_for_each(|slice| slice.take(items, found));
            }
            Self::Filter { left, test } => {
                for item in value.as_array().into_iter().flatten() {
                    let Some(left) = left.first(item) else { continue };
                    let is_taken = match test {
                        None => true,
                        Some((test, right)) => (test.accepts)(compare(left, right)?),
                    };
                    if is_taken {
                        found.push(item);
                    }
                }
            }
        }
        Some(())
    }
}

impl Slice {
    /// What begins or ends beyond the list fails, unless it is nothing (`evalArray` of `client-go/util/jsonpath`).
    fn take<'a>(&self, items: &'a [Value], found: &mut Vec<&'a Value>) -> Option<()> {
        let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let bound = |bound: i64| if bound < 0 { bound.saturating_add(len) } else { bound };
        let (start, end) = (bound(self.start.unwrap_or(0)), bound(self.end.unwrap_or(len)));
        if start != end {
            let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
            found.extend(items.get(start..end)?.iter().step_by(self.step));
        }
        Some(())
    }
}

fn children<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => found.extend(items),
        Value::Object(fields) => found.extend(fields.values()),
        _ => {}
    }
}

fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(value);
    let mut below = Vec::new();
    children(value, &mut below);
    for child in below {
        descend(child, found);
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        _ => None,
    }
}

/// Reads a field up to the next step; a backslash takes the next character as it is. Returns what follows.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let mut rest = "";
    while let Some((idx, char)) = chars.next() {
        match char {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => {
                rest = &text[idx..];
                break;
            }
            ' ' | ',' | ']' | '{' | '}' | '\'' | '"' | '$' => return None,
            _ => name.push(char),
        }
    }
    match name.as_str() {
        "" => return None,
        "*" => steps.push(Step::All),
        _ => steps.push(Step::Field(name)),
    }
    Some(rest)
}

/// Reads what stands between brackets. Returns what follows.
fn bracket<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let end = closing(text)?;
    let (inner, rest) = (text[..end].trim(), &text[end + 1..]);
    if inner == "*" {
        steps.push(Step::All);
    } else if let Some(filter) = inner.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        steps.push(parse_filter(filter)?);
    } else if let Some(quoted) = inner.strip_prefix('\'').and_then(|quoted| quoted.strip_suffix('\'')) {
        let mut names = quoted;
        while !names.is_empty() {
            names = field(names.strip_prefix('.').unwrap_or(names), steps)?;
        }
    } else {
        steps.push(Step::Slices(inner.split(',').map(parse_slice).collect::<Option<_>>()?));
    }
    Some(rest)
}

/// Returns where the bracket ends that is open at the start.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (idx, char) in text.char_indices() {
        match (quote, char) {
            (Some(open), _) if open == char => quote = None,
            (None, '\'' | '"') => quote = Some(char),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(idx),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn parse_slice(text: &str) -> Option<Slice> {
    let parts: Vec<_> = text.split(':').map(str::trim).collect();
    let number = |idx: usize| match parts.get(idx).copied().unwrap_or_default() {
        "" => Some(None),
        part => part.parse::<i64>().ok().map(Some),
    };
    match parts.len() {
        1 => {
            let idx = number(0)??;
            Some(Slice { start: Some(idx), end: (idx != -1).then(|| idx.saturating_add(1)), step: 1 })
        }
        2 | 3 => {
            let step = usize::try_from(number(2)?.unwrap_or(1)).ok().filter(|step| *step > 0)?;
            Some(Slice { start: number(0)?, end: number(1)?, step })
        }
        _ => None,
    }
}

fn parse_filter(text: &str) -> Option<Step> {
    let found = TESTS.iter().filter_map(|(sign, test)| text.find(sign).map(|at| (at, sign, test)));
    let Some((at, sign, test)) = found.min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len()))) else {
        return Some(Step::Filter { left: parse_operand(text)?, test: None });
    };
    let right = text[at + sign.len()..].trim();
    let quoted = ['\'', '"'].iter().find_map(|quote| right.strip_prefix(*quote)?.strip_suffix(*quote));
    let right = match quoted {
        Some(quoted) => Value::String(quoted.to_owned()),
        None => serde_json::from_str(right).ok().filter(|right: &Value| right.is_number() || right.is_boolean())?,
    };
    Some(Step::Filter { left: parse_operand(&text[..at])?, test: Some((*test, right)) })
}

fn parse_operand(text: &str) -> Option<Path> {
    Path::parse(text.trim().strip_prefix('@')?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_that_is_not_understood_is_told() {
        for text in
            [".a[\"b\"]", ".a, .b", ".a[", ".a[x]", ".a[?(b)]", "a.b", ".a[1:2:0]", ".", ".a[?(@.b==c)]", ".a\\"]
        {
            assert!(Path::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn indexes_at_the_bounds_of_a_list() {
        let value = json!(["a", "b"]);
        let cases = [("[0]", Some("a")), ("[1]", Some("b")), ("[2]", None), ("[-1]", Some("b")), ("[-2]", Some("a"))];
        for (text, expected) in cases {
            let path = Path::parse(text).unwrap();
            assert_eq!(path.first(&value).and_then(Value::as_str), expected, "{text}");
        }
    }
}
