//! Preserves the order of keys: gopher-lua visits them in the order in which they were set (`LTable.Next` in
//! `table.go`), Lua 5.1 in hash order.
//!
//! Each table constructor in a source is wrapped into a call of a library function, with the names of its fields in
//! order: `{a = 1, b = 2}` becomes `ordered({a = 1, b = 2}, "a", "b")`. The library stores the order, and `pairs`
//! follows it. Line numbers do not change.

use std::borrow::Cow;

use super::tokens::{Edit, Token, apply, tokens};

/// The name of the function in the chunk; no script has it by chance.
pub(super) const ORDERED: &str = "kctl_ordered";

/// Names of one table that keep their order. Lua has room for 250 arguments.
const NAMES_MAX: usize = 200;

/// A table that is open: its brace, whether it is rewritten, and the names found so far.
struct Open<'a> {
    start: usize,
    is_expression: bool,
    names: Vec<&'a str>,
}

/// Rewrites the table constructors of a source. A source with unbalanced braces is returned unchanged.
pub(super) fn rewrite(source: &str) -> Cow<'_, str> {
    let tokens: Vec<Token<'_>> = tokens(source).collect();
    let (mut open, mut edits): (Vec<Open<'_>>, Vec<Edit>) = (Vec::new(), Vec::new());
    for (idx, token) in tokens.iter().enumerate() {
        let before = idx.checked_sub(1).map(|idx| tokens[idx]);
        match token.text {
            "{" => open.push(Open { start: token.start, is_expression: !is_call(before), names: Vec::new() }),
            "}" => {
                let Some(table) = open.pop() else { return Cow::Borrowed(source) };
                // A `(` after the table begins the next statement. It would call the result of `ordered`, so this table
                // is not wrapped.
                let is_last = tokens.get(idx + 1).is_none_or(|next| next.text != "(");
                if table.is_expression && is_last {
                    edits.push((table.start, table.start, format!("{ORDERED}(")));
                    edits.push((token.end, token.end, closing(&table.names)));
                }
            }
            _ => {
                let is_first = before.is_some_and(|before| matches!(before.text, "{" | "," | ";"));
                if let Some(table) = open.last_mut()
                    && is_first
                    && token.is_name()
                    && is_assigned(&tokens[idx + 1..])
                    && table.names.len() < NAMES_MAX
                {
                    table.names.push(token.text);
                }
            }
        }
    }
    if edits.is_empty() || !open.is_empty() {
        return Cow::Borrowed(source);
    }
    Cow::Owned(apply(source, edits))
}

/// Returns `true` if a table after the token is the argument of a call, as in `f{}` and `f{}{}`.
fn is_call(before: Option<Token<'_>>) -> bool {
    before.is_some_and(|token| match token.text {
        ")" | "]" | "}" => true,
        "and" | "or" | "not" | "in" | "return" => false,
        _ => token.is_name(),
    })
}

/// Returns `true` if the tokens begin with `=`, and not with `==`.
fn is_assigned(tokens: &[Token<'_>]) -> bool {
    match tokens {
        [first, second, ..] => first.text == "=" && !(second.text == "=" && second.start == first.end),
        [first] => first.text == "=",
        [] => false,
    }
}

fn closing(names: &[&str]) -> String {
    let names: String = names.iter().flat_map(|name| [", \"", name, "\""]).collect();
    format!("{names})")
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn tables_go_through_the_function_with_their_names() {
        for (source, expected) in [
            ("x = {}", "x = ordered({})"),
            (
                "x = {a = 1, b = {c = 2}; d = 3}",
                "x = ordered({a = 1, b = ordered({c = 2}, \"c\"); d = 3}, \"a\", \"b\", \"d\")",
            ),
            ("return {1, a == b, ['k'] = 2}", "return ordered({1, a == b, ['k'] = 2})"),
            ("f{} g{a = 1} t[1]{} (h){}", "f{} g{a = 1} t[1]{} (h){}"),
            ("x = f{a = 1}{b = {}}", "x = f{a = 1}{b = ordered({})}"),
            ("for k in pairs({}) do end", "for k in pairs(ordered({})) do end"),
            ("x = {}\n(f)()", "x = {}\n(f)()"),
            ("x = y or {}", "x = y or ordered({})"),
            ("x = '{}' -- {}", "x = '{}' -- {}"),
            ("x = { end", "x = { end"),
            ("x = }", "x = }"),
            ("", ""),
        ] {
            let rewritten = rewrite(source).replace("kctl_ordered", "ordered");
            assert_eq!(rewritten, expected, "{source}");
        }
    }
}
