//! Patterns: regular expressions in the syntax of Go, translated to that of the `regex` crate.

use std::{collections::HashMap, iter::Peekable, str::Chars, sync::LazyLock};

use parking_lot::Mutex;
use regex::Regex;

/// How many patterns are kept compiled; then all are forgotten.
const COMPILED_LEN_MAX: usize = 1024;

static COMPILED: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);

/// Whether a pattern is found in a text. A pattern that cannot be compiled is found nowhere.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    compiled(pattern).is_some_and(|regex| regex.is_match(text))
}

/// Whether a pattern can be compiled.
pub(crate) fn is_valid(pattern: &str) -> bool {
    compiled(pattern).is_some()
}

fn compiled(pattern: &str) -> Option<Regex> {
    let mut all = COMPILED.lock();
    if all.len() >= COMPILED_LEN_MAX {
        all.clear();
    }
    all.entry(pattern.to_owned()).or_insert_with(|| Regex::new(&translate(pattern)).ok()).clone()
}

/// Rewrites what the two syntaxes do not share: Perl classes are ASCII in Go, braces that are no repetition and
/// brackets in a class are literals, and classes know no set operations.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => escape(&mut rest, &mut out),
            '[' if in_class && rest.peek() != Some(&':') => out.push_str("\\["),
            '[' if in_class => posix(&mut rest, &mut out),
            '[' => {
                in_class = true;
                out.push('[');
                out.extend(rest.next_if_eq(&'^'));
                if rest.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => out.extend(['\\', c]),
            '{' if !in_class && !is_repetition(rest.clone()) => out.push_str("\\{"),
            _ => out.push(c),
        }
    }
    out
}

/// Copies `:name:]` of a class such as `[[:alpha:]]`.
fn posix(rest: &mut Peekable<Chars>, out: &mut String) {
    out.push('[');
    for c in rest.by_ref() {
        out.push(c);
        if c == ']' {
            break;
        }
    }
}

fn escape(rest: &mut Peekable<Chars>, out: &mut String) {
    match rest.next() {
        Some('d') => out.push_str("[0-9]"),
        Some('D') => out.push_str("[^0-9]"),
        Some('w') => out.push_str("[0-9A-Za-z_]"),
        Some('W') => out.push_str("[^0-9A-Za-z_]"),
        Some('s') => out.push_str("[\\t\\n\\x0C\\r ]"),
        Some('S') => out.push_str("[^\\t\\n\\x0C\\r ]"),
        Some('b') => out.push_str("(?-u:\\b)"),
        Some(c @ ('<' | '>')) => out.push(c),
        Some(c) => out.extend(['\\', c]),
        None => out.push('\\'),
    }
}

/// Whether what follows a brace is `n}`, `n,}` or `n,m}`.
fn is_repetition(rest: Peekable<Chars>) -> bool {
    let inside: String = rest.take_while(|&c| c != '}').collect();
    let (from, to) = inside.split_once(',').unwrap_or((&inside, ""));
    !from.is_empty() && from.chars().chain(to.chars()).all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, expected) in [
            ("^[a-z]+$", "abc", true),
            ("^\\d+$", "12", true),
            ("^\\d+$", "१", false),
            ("^[\\w.-]+$", "a_b.c-d", true),
            ("^[[]$", "[", true),
            ("^[]a]+$", "]a", true),
            ("^[[:alpha:]]+$", "ab", true),
            ("^a{b$", "a{b", true),
            ("^a{2}$", "aa", true),
            ("^[a&&b]+$", "&", true),
            ("^\\<a\\/$", "<a/", true),
            ("^(?P<x>a)\\d$", "a1", true),
            ("(a", "(a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
