//! Parses the `JSONPath` of a printer column.
//!
//! Each function takes the rest of the path after the characters that selected it, appends nodes, and returns what it
//! has not consumed. `None` is a syntax error.
//!
//! Upstream: `client-go/util/jsonpath/parser.go`; each function corresponds to the one of the same name there.

use super::{End, Node, Slice, Test};
use crate::go;

/// Digits of numbers.
const DIGITS: std::ops::RangeInclusive<char> = '0'..='9';
/// Characters of comparison operators.
const OPERATOR_CHARS: [char; 4] = ['!', '<', '>', '='];

/// Parses blocks in braces and the literal text between them. A closing brace outside of a block is literal text.
pub(super) fn blocks(text: &str) -> Option<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let start = rest.find('{').unwrap_or(rest.len());
        if start > 0 {
            nodes.push(Node::Text(rest[..start].to_owned()));
        }
        let Some(inside) = rest.get(start + 1..) else { break };
        let mut block = Vec::new();
        rest = action(inside, &mut block)?;
        nodes.push(Node::Block(block));
    }
    Some(nodes)
}

/// Parses the inside of a block's braces. Used for the parts of a union, for quoted keys and for the sides of a
/// comparison, which are paths themselves.
fn block(text: &str) -> Option<Vec<Node>> {
    match blocks(&format!("{{{text}}}"))?.into_iter().next()? {
        Node::Block(nodes) => Some(nodes),
        _ => None,
    }
}

/// Parses up to the brace that ends a block and returns the rest. Spaces and the root marks `@` and `$` have no meaning
/// here.
fn action<'a>(text: &'a str, nodes: &mut Vec<Node>) -> Option<&'a str> {
    let mut rest = text;
    loop {
        rest = if let Some(after) = rest.strip_prefix('}') {
            return Some(after);
        } else if let Some(after) = rest.strip_prefix("[?(") {
            filter(after, nodes)?
        } else if let Some(after) = rest.strip_prefix("..") {
            recursive(after, nodes)?
        } else {
            let first = rest.chars().next()?;
            let after = &rest[first.len_utf8()..];
            match first {
                ' ' | '@' | '$' => after,
                '[' => array(after, nodes)?,
                '"' | '\'' => quote(after, first, nodes)?,
                '.' => field(after, nodes),
                '+' | '-' => number(rest, nodes)?,
                _ if DIGITS.contains(&first) => number(rest, nodes)?,
                _ if is_alphanumeric(first) => identifier(rest, nodes),
                _ => return None,
            }
        };
    }
}

/// Returns `true` for characters that begin a word or a field.
fn is_alphanumeric(char: char) -> bool {
    char == '_' || char.is_alphanumeric()
}

/// Returns `true` for characters that end a word or a field, unless a backslash precedes them.
fn is_terminator(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// Parses a bare word; only `true` and `false` are values.
fn identifier<'a>(text: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let (word, rest) = text.split_at(text.find(is_terminator).unwrap_or(text.len()));
    nodes.push(match word {
        "true" => Node::Bool(true),
        "false" => Node::Bool(false),
        _ => Node::Word,
    });
    rest
}

/// Parses `..`; two in a row are an error. A field may follow without another dot, as in `..name`.
fn recursive<'a>(text: &'a str, nodes: &mut Vec<Node>) -> Option<&'a str> {
    if matches!(nodes.last(), Some(Node::Descend)) {
        return None;
    }
    nodes.push(Node::Descend);
    Some(if text.starts_with(is_alphanumeric) { field(text, nodes) } else { text })
}

/// Parses an integer or a float. A number with two dots is an error.
fn number<'a>(text: &'a str, nodes: &mut Vec<Node>) -> Option<&'a str> {
    let signed = text.strip_prefix(['+', '-']).unwrap_or(text);
    let len = signed.find(|char| char != '.' && !DIGITS.contains(&char)).unwrap_or(signed.len());
    let (number, rest) = text.split_at(text.len() - signed.len() + len);
    nodes.push(match number.parse() {
        Ok(whole) => Node::Int(whole),
        Err(_) => Node::Float(number.parse().ok()?),
    });
    Some(rest)
}

/// Parses a field up to the next step. A backslash escapes the next character. An empty field, as in `.` alone, is the
/// key `""`. A single star selects all values.
fn field<'a>(text: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let mut chars = text.char_indices();
    let mut len = text.len();
    while let Some((position, char)) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if is_terminator(char) {
            len = position;
            break;
        }
    }
    let (name, rest) = text.split_at(len);
    nodes.push(if name == "*" { Node::All } else { Node::Field(name.replace('\\', "")) });
    rest
}

/// Parses the inside of brackets: an index, a slice, a union or quoted keys. The first `]` ends the brackets, even
/// within quotes. `[*]` is the slice `[:]`.
fn array<'a>(text: &'a str, nodes: &mut Vec<Node>) -> Option<&'a str> {
    let (inner, rest) = text.split_once(']').filter(|(inner, _)| !inner.contains('\n'))?;
    if inner.contains(',') {
        let parts = inner.split(',').map(|part| block(&format!("[{}]", part.trim_matches(' '))));
        nodes.push(Node::Union(parts.collect::<Option<_>>()?));
    } else if let Some(key) = inner.strip_prefix('\'').and_then(|key| key.strip_suffix('\''))
        && !key.contains('\'')
    {
        nodes.extend(block(&format!(".{key}"))?);
    } else {
        nodes.push(Node::Slice(slice(if inner == "*" { ":" } else { inner })?));
    }
    Some(rest)
}

/// Parses `start:end:step`; all three are optional. A single index is a slice that ends after it; `[]` is `[0]`.
fn slice(text: &str) -> Option<Slice> {
    let mut parts = text.split(':');
    let start = parts.next().filter(|start| !start.is_empty()).map_or(Some(0), number_of)?;
    let end = match parts.next() {
        None => End::AfterStart,
        Some("") => End::Whole,
        Some(end) => End::Given(number_of(end)?),
    };
    let step = parts.next().filter(|step| !step.is_empty()).map_or(Some(1), number_of)?;
    parts.next().is_none().then_some(Slice { start, end, step })
}

/// Parses an integer; a leading plus sign is invalid here.
fn number_of(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// Parses the condition between `[?(` and `)]`. A bracket in quotes does not end it. The scan reproduces upstream's:
/// after one quoted string has been closed, `)` ends the condition again, and a second quoted string does not protect
/// it.
fn filter<'a>(text: &'a str, nodes: &mut Vec<Node>) -> Option<&'a str> {
    let mut quoted_by = None;
    let mut is_closed = false;
    let mut before = '(';
    let mut end = None;
    for (position, char) in text.char_indices() {
        match char {
            '\n' => return None,
            '"' | '\'' if quoted_by.is_none() => quoted_by = Some(char),
            '"' | '\'' => is_closed |= before != '\\' && quoted_by == Some(char),
            ')' if quoted_by.is_some() == is_closed => {
                end = Some(position);
                break;
            }
            _ => {}
        }
        before = char;
    }
    let (condition, rest) = text.split_at(end?);
    nodes.push(condition_of(condition)?);
    rest.strip_prefix(")]")
}

/// Splits a condition at its operator. A condition without one tests for presence. The first operator is used.
/// Consecutive characters of operators form one operator; evaluation rejects unknown ones.
fn condition_of(text: &str) -> Option<Node> {
    let parts = text.find(OPERATOR_CHARS).filter(|position| *position > 0).and_then(|position| {
        let (left, rest) = text.split_at(position);
        let len = rest.find(|char| !OPERATOR_CHARS.contains(&char)).unwrap_or(rest.len() - 1);
        (len > 0).then(|| (left, rest.split_at(len)))
    });
    let Some((left, (operator, right))) = parts else { return Some(Node::Filter { left: block(text)?, test: None }) };
    let test = Test { operator: operator.to_owned(), right: block(right)? };
    Some(Node::Filter { left: block(left)?, test: Some(test) })
}

/// Parses a quoted string. A quote after a backslash does not end the string. Line breaks in it are an error.
fn quote<'a>(text: &'a str, mark: char, nodes: &mut Vec<Node>) -> Option<&'a str> {
    let is_end = |position: &usize| !text[..*position].ends_with('\\');
    let end = text.match_indices(mark).map(|(position, _)| position).find(is_end)?;
    let (quoted, rest) = (&text[..end], &text[end + 1..]);
    if quoted.contains('\n') {
        return None;
    }
    nodes.push(Node::Text(go::unquote(quoted, mark)?));
    Some(rest)
}
