//! Regular expressions in Go's RE2 syntax, translated to the syntax of the `regex` crate.

use std::{iter::Peekable, str::Chars};

use regex::{Regex, RegexBuilder};

/// Maximum count of a repetition in Go's regexp (`a{1000}`).
const REPEAT_MAX: u64 = 1000;

/// Maximum size of a compiled pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 10 << 20;

/// Compiles a pattern of Go's RE2 syntax to an equivalent regular expression.
///
/// `pattern` of a schema and `matches` in CEL use it. The two syntaxes differ in details that would otherwise let a pattern pass
/// here and fail on a cluster:
///
/// ```
/// // `\d` means ASCII digits in Go, and Unicode digits in the `regex` crate.
/// assert!(!kctl_cel::pattern(r"^\d$").unwrap().is_match("٣"));
/// // Set operations are a feature of the crate, so `&&` is two literals.
/// assert!(kctl_cel::pattern("^[a&&b]$").unwrap().is_match("&"));
/// assert!(kctl_cel::pattern("a{1001}").is_err());
/// ```
///
/// # Errors
/// The pattern is invalid, or needs more than 10 MiB; the message is one line.
pub fn pattern(text: &str) -> Result<Regex, String> {
    pattern_within(text, PATTERN_BYTES_MAX)
}

/// Compiles a pattern like [`pattern`] that needs at most `bytes_max` bytes.
///
/// ```
/// assert!(kctl_cel::pattern_within("^[a-z]+$", 64 << 10).is_ok());
/// assert!(kctl_cel::pattern_within("^([a-z]{1,100}){1,100}$", 64 << 10).is_err());
/// ```
///
/// # Errors
/// The pattern is invalid, or needs more bytes; the message is one line.
pub fn pattern_within(text: &str, bytes_max: usize) -> Result<Regex, String> {
    RegexBuilder::new(&translate(text)?).size_limit(bytes_max).build().map_err(|error| {
        let text = error.to_string();
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        last.trim_start_matches("error: ").to_owned()
    })
}

/// Rewrites the parts of a pattern in which the two syntaxes differ.
///
/// In Go, Perl classes are ASCII, a brace that starts no repetition and a bracket in a class are literals, and classes have no
/// set operations.
///
/// # Errors
/// Go rejects the pattern, though the crate would accept it.
fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' if in_class => escape(&mut rest, &mut out)?,
            '\\' => escape_outside_class(&mut rest, &mut out)?,
            '[' if in_class && rest.peek() != Some(&':') => out.push_str("\\["),
            '[' if in_class => copy_posix_class(&mut rest, &mut out),
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
            '-' if in_class && rest.peek() == Some(&'-') => return Err("`--` is not a range".into()),
            '{' if !in_class && !is_repetition(rest.clone()) => out.push_str("\\{"),
            '*' | '+' | '?' | '{' if !in_class => repetition(c, &mut rest, &mut out)?,
            '(' if !in_class => {
                flags(rest.clone())?;
                out.push('(');
                // The question mark of `(?…)` starts flags or a name, and is not a repetition.
                out.extend(rest.next_if_eq(&'?'));
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

/// Copies a repetition (`*`, `+`, `?`, `{n,m}`) with its lazy mark `?`. Go rejects two repetitions in a row.
fn repetition(sign: char, rest: &mut Peekable<Chars>, out: &mut String) -> Result<(), String> {
    out.push(sign);
    if sign == '{' {
        let mut inside = String::new();
        while let Some(c) = rest.next_if(|c| *c != '}') {
            inside.push(c);
        }
        if inside.split(',').any(|bound| !bound.is_empty() && bound.parse::<u64>().is_ok_and(|n| n > REPEAT_MAX)) {
            return Err(format!("`{{{inside}}}` repeats more than {REPEAT_MAX} times"));
        }
        out.push_str(&inside);
        out.extend(rest.next_if_eq(&'}'));
    }
    out.extend(rest.next_if_eq(&'?'));
    match rest.peek().copied() {
        Some('{') if !is_repetition(rest.clone().skip(1)) => Ok(()),
        Some(next @ ('*' | '+' | '?' | '{')) => Err(format!("`{next}` after another repetition")),
        _ => Ok(()),
    }
}

/// Fails for a flag of a group that only the crate knows, such as `x`.
fn flags(mut group: Peekable<Chars>) -> Result<(), String> {
    if group.next_if_eq(&'?').is_none() {
        return Ok(());
    }
    let letters: String = group.take_while(|c| c.is_ascii_alphabetic() && *c != 'P' || *c == '-').collect();
    match letters.chars().find(|c| !"imsU-".contains(*c)) {
        Some(flag) => Err(format!("Go's regexp knows no flag `{flag}`")),
        None => Ok(()),
    }
}

/// Copies `:name:]` of a class such as `[[:alpha:]]`.
fn copy_posix_class(rest: &mut Peekable<Chars>, out: &mut String) {
    out.push('[');
    for c in rest.by_ref() {
        out.push(c);
        if c == ']' {
            break;
        }
    }
}

/// Copies an escape outside a class, where assertions and `\Q…\E` are allowed too.
fn escape_outside_class(rest: &mut Peekable<Chars>, out: &mut String) -> Result<(), String> {
    match rest.next_if(|c| "bBQEAz".contains(*c)) {
        Some('Q') => copy_literal(rest, out),
        // Go ignores `\E` without `\Q`.
        Some('E') => {}
        Some(c @ ('b' | 'B')) => out.push_str(&format!("(?-u:\\{c})")),
        Some(c) => out.extend(['\\', c]),
        None => return escape(rest, out),
    }
    Ok(())
}

/// Copies an escape that is allowed everywhere, or its meaning in Go if the crate differs.
fn escape(rest: &mut Peekable<Chars>, out: &mut String) -> Result<(), String> {
    match rest.next() {
        Some('d') => out.push_str("[0-9]"),
        Some('D') => out.push_str("[^0-9]"),
        Some('w') => out.push_str("[0-9A-Za-z_]"),
        Some('W') => out.push_str("[^0-9A-Za-z_]"),
        Some('s') => out.push_str("[\\t\\n\\x0C\\r ]"),
        Some('S') => out.push_str("[^\\t\\n\\x0C\\r ]"),
        Some('0') => octal(rest, out),
        Some(c @ ('a' | 'f' | 'n' | 'r' | 't' | 'v')) => out.extend(['\\', c]),
        Some(c @ ('x' | 'p' | 'P')) => {
            out.extend(['\\', c]);
            copy_braced(rest, out);
        }
        Some(c @ ('<' | '>')) => out.push(c),
        Some(c) if c.is_ascii() && !c.is_ascii_alphanumeric() => out.push_str(&regex::escape(&c.to_string())),
        Some(c) => return Err(format!("Go's regexp knows no `\\{c}`")),
        None => return Err("a backslash at the end".into()),
    }
    Ok(())
}

/// Copies `{…}`, the name of a class or the number of a character.
fn copy_braced(rest: &mut Peekable<Chars>, out: &mut String) {
    if rest.next_if_eq(&'{').is_none() {
        return;
    }
    out.push('{');
    for c in rest.by_ref() {
        out.push(c);
        if c == '}' {
            break;
        }
    }
}

/// Copies a literal between `\Q` and `\E`, or up to the end of the pattern.
fn copy_literal(rest: &mut Peekable<Chars>, out: &mut String) {
    let text: String = rest.clone().collect();
    let text = text.split("\\E").next().unwrap_or_default();
    out.push_str(&regex::escape(text));
    // The closing `\E` is not consumed here. It is skipped later like any `\E` without `\Q`.
    for _ in text.chars() {
        rest.next();
    }
}

/// Copies an octal escape: `\0` with up to two further digits.
fn octal(rest: &mut Peekable<Chars>, out: &mut String) {
    let mut value = 0;
    for _ in 0..2 {
        let digit = rest.next_if(|c| ('0'..='7').contains(c)).and_then(|c| c.to_digit(8));
        value = digit.map_or(value, |digit| value * 8 + digit);
    }
    out.push_str(&format!("\\x{{{value:x}}}"));
}

/// Returns `true` if `n}`, `n,}` or `n,m}` follows a brace: then it is a repetition rather than a literal.
fn is_repetition(rest: impl Iterator<Item = char>) -> bool {
    let mut is_closed = false;
    let read = rest.take_while(|&c| {
        is_closed = c == '}';
        !is_closed
    });
    let inside: String = read.collect();
    let (from, to) = inside.split_once(',').unwrap_or((&inside, ""));
    is_closed && !from.is_empty() && from.chars().chain(to.chars()).all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the patterns that are rejected.
    fn rejected(patterns: &str) -> Vec<&str> {
        patterns.split_whitespace().filter(|text| pattern(text).is_err()).collect()
    }

    #[test]
    fn patterns_that_go_reads_are_accepted() {
        let patterns = r"a*? a{2}? (a*)* ^* ^^* \01 \x41 \x{41} \Q**\E \Qa \Qa\E* a\z \_ [^]a] (?i)a (?i:a) (?s-m:a) \p{L}
            \p{greek} \PL (?P<n>a) (?<n>a) a{,5} a{1000} x{2}{ [a~~b] [[a] \< \b{start} [&&] [a-z&&[^b]]
            [[:^alpha:]] [\]] [a\-z] \b+ $*";
        assert_eq!(rejected(patterns), Vec::<&str>::new());
    }

    #[test]
    fn patterns_that_only_this_crate_reads_are_rejected() {
        let patterns = r"a** a*?? a{2}{3} a{2}* * (*) \1 a\Z \h \R \X \K \e \cA \é [z-a] [] [a (?u)a (?R)a (?x)ab (?=a) (?#c)
            \pX a{5,2} {2} [a--b] [\b] a{1,1001} \u1234 (a";
        assert_eq!(rejected(patterns), patterns.split_whitespace().collect::<Vec<_>>());
    }
}
