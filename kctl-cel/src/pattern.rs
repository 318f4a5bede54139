//! Regular expressions in Go's RE2 syntax, translated to the syntax of the `regex` crate.

use regex::{Regex, RegexBuilder};

/// Maximum count of a repetition in Go's regexp (`a{1000}`), also of nested ones together (`(a{10}){100}`).
const REPEAT_MAX: u64 = 1000;

/// Names of the POSIX classes (`[[:alpha:]]`), which both syntaxes have.
const POSIX_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// Letters that name a class after a backslash. Such a class neither begins nor ends a range.
const CLASS_LETTERS: &str = "dDsSwWpP";

const OCTAL_DIGITS: &str = "01234567";

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
/// assert!(kctl_cel::pattern_within(r"^\pL{100}$", 64 << 10).is_err());
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
    let out = String::with_capacity(pattern.len());
    let mut translator = Translator { rest: pattern, out, groups: vec![1], last: 1, may_name_class: true };
    while let Some(c) = translator.next() {
        translator.outside_class(c)?;
    }
    Ok(translator.out)
}

/// The state of a translation.
struct Translator<'a> {
    /// The part of the pattern that is not read yet.
    rest: &'a str,
    /// The translated part.
    out: String,
    /// The largest number of copies of an expression in the whole pattern and in each open group, the innermost group
    /// last. Invariant: never empty.
    groups: Vec<u64>,
    /// The number of copies of the expression that a repetition at this point would repeat.
    last: u64,
    /// `false` once no `:]` follows, so that a pattern with many `[:` is not searched for it again and again.
    may_name_class: bool,
}

impl Translator<'_> {
    /// Returns the next character, and moves behind it.
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Returns `true` if the next character is one of these.
    fn is_next(&self, characters: &str) -> bool {
        self.rest.starts_with(|c: char| characters.contains(c))
    }

    /// Copies the next character if it is `expected`.
    fn copy_if(&mut self, expected: char) {
        if let Some(rest) = self.rest.strip_prefix(expected) {
            self.out.push(expected);
            self.rest = rest;
        }
    }

    /// Copies the next bytes.
    fn copy(&mut self, n_bytes: usize) {
        let (copied, rest) = self.rest.split_at(n_bytes);
        self.out.push_str(copied);
        self.rest = rest;
    }

    /// Translates what begins with a character outside a class.
    fn outside_class(&mut self, c: char) -> Result<(), String> {
        match c {
            '*' | '+' | '?' => {
                self.out.push(c);
                return self.end_repetition();
            }
            '{' if is_repetition(self.rest) => return self.counted_repetition(),
            '(' => return self.open_group(),
            ')' => {
                self.close_group();
                return Ok(());
            }
            _ => self.begin_expression(),
        }
        match c {
            '\\' => return self.escape_outside_class(),
            '[' => return self.class(),
            '{' => self.out.push_str("\\{"),
            c => self.out.push(c),
        }
        Ok(())
    }

    /// Copies `{n}`, `{n,}` or `{n,m}` after its brace.
    ///
    /// Go counts the copies that a repetition and the repetitions in it make together (`repeatIsValid` in
    /// `regexp/syntax/parse.go`): `(a{100}){100}` is invalid.
    fn counted_repetition(&mut self) -> Result<(), String> {
        let inside = self.rest.split('}').next().unwrap_or_default();
        let bound = |digits: &str| digits.parse::<u64>().unwrap_or(u64::MAX);
        let (from, to) = inside.split_once(',').unwrap_or((inside, inside));
        let copies = match (bound(from), to) {
            (from, "") => from.max(1).saturating_mul(self.last),
            (from, to) => from.max(bound(to)).saturating_mul(if bound(to) == 0 { 1 } else { self.last }),
        };
        if copies > REPEAT_MAX {
            return Err(format!("`{{{inside}}}` repeats more than {REPEAT_MAX} times"));
        }
        self.last = copies.max(1);
        self.out.push('{');
        self.copy(inside.len() + 1);
        self.end_repetition()
    }

    /// Copies the lazy mark `?` of a repetition. Go rejects two repetitions in a row.
    fn end_repetition(&mut self) -> Result<(), String> {
        self.copy_if('?');
        match self.rest.chars().next() {
            Some('{') if !is_repetition(&self.rest[1..]) => Ok(()),
            Some(next @ ('*' | '+' | '?' | '{')) => Err(format!("`{next}` after another repetition")),
            _ => Ok(()),
        }
    }

    /// Begins another expression of the same group: nothing repeats the last one any more.
    fn begin_expression(&mut self) {
        if let Some(group) = self.groups.last_mut() {
            *group = self.last.max(*group);
        }
        self.last = 1;
    }

    /// Copies the beginning of a group. Fails for a flag that only the crate knows, such as `x`.
    fn open_group(&mut self) -> Result<(), String> {
        if let Some(group) = self.rest.strip_prefix('?') {
            let mut letters = group.chars().take_while(|c| c.is_ascii_alphabetic() && *c != 'P' || *c == '-');
            if let Some(flag) = letters.find(|c| !"imsU-".contains(*c)) {
                return Err(format!("Go's regexp has no flag `{flag}`"));
            }
        }
        self.begin_expression();
        self.groups.push(1);
        self.out.push('(');
        // The question mark of `(?…)` starts flags or a name, and is not a repetition.
        self.copy_if('?');
        Ok(())
    }

    /// Copies the end of a group. The crate reports one that was not opened.
    fn close_group(&mut self) {
        self.out.push(')');
        self.begin_expression();
        if self.groups.len() > 1 {
            self.last = self.groups.pop().unwrap_or(1);
        }
        debug_assert!(!self.groups.is_empty(), "the whole pattern is never closed");
    }

    /// Translates a class after its `[`. The crate reports one that is not closed.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        self.copy_if('^');
        let mut is_first = true;
        while let Some(c) = self.next() {
            match c {
                ']' if !is_first => {
                    self.out.push(']');
                    break;
                }
                '[' if self.posix_class()? => {}
                c => self.class_item(c)?,
            }
            is_first = false;
        }
        Ok(())
    }

    /// Copies `:name:]` of a class such as `[[:alpha:]]`. Returns `false` if the class has no name here.
    fn posix_class(&mut self) -> Result<bool, String> {
        let Some(after) = self.rest.strip_prefix(':').filter(|_| self.may_name_class) else { return Ok(false) };
        let Some((name, rest)) = after.split_once(":]") else {
            self.may_name_class = false;
            return Ok(false);
        };
        if !POSIX_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("Go's regexp has no class `[:{name}:]`"));
        }
        self.out.push_str(&format!("[:{name}:]"));
        self.rest = rest;
        Ok(true)
    }

    /// Translates a character, a range or an escaped class within a class.
    fn class_item(&mut self, c: char) -> Result<(), String> {
        if c == '\\' && self.is_next(CLASS_LETTERS) {
            return self.escape();
        }
        self.class_character(c)?;
        if self.rest.len() < 2 || !self.is_next("-") || self.rest.starts_with("-]") {
            return Ok(());
        }
        self.copy_if('-');
        match self.next() {
            Some('\\') if self.is_next(CLASS_LETTERS) => Err("a class can't end a range".into()),
            Some(end) => self.class_character(end),
            None => Ok(()),
        }
    }

    /// Translates one character of a class, which may be an escape.
    fn class_character(&mut self, c: char) -> Result<(), String> {
        if c == '\\' {
            return self.escape();
        }
        self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        Ok(())
    }

    /// Translates an escape outside a class, where assertions and `\Q…\E` are allowed too.
    fn escape_outside_class(&mut self) -> Result<(), String> {
        if !self.is_next("bBQAz") {
            return self.escape();
        }
        match self.next() {
            Some('Q') => {
                let (text, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.out.push_str(&regex::escape(text));
                self.rest = rest;
            }
            Some(c @ ('b' | 'B')) => self.out.push_str(&format!("(?-u:\\{c})")),
            c => self.out.extend(['\\'].into_iter().chain(c)),
        }
        Ok(())
    }

    /// Translates an escape that is allowed everywhere.
    fn escape(&mut self) -> Result<(), String> {
        match self.next() {
            Some('d') => self.out.push_str("[0-9]"),
            Some('D') => self.out.push_str("[^0-9]"),
            Some('w') => self.out.push_str("[0-9A-Za-z_]"),
            Some('W') => self.out.push_str("[^0-9A-Za-z_]"),
            Some('s') => self.out.push_str("[\\t\\n\\x0C\\r ]"),
            Some('S') => self.out.push_str("[^\\t\\n\\x0C\\r ]"),
            // A single digit from 1 to 9 would be a backreference.
            Some(c @ '0'..='7') if c == '0' || self.is_next(OCTAL_DIGITS) => self.octal(c),
            Some(c @ ('a' | 'f' | 'n' | 'r' | 't' | 'v')) => self.out.extend(['\\', c]),
            Some('x') => {
                self.out.push_str("\\x");
                self.copy_braced();
            }
            Some(c @ ('p' | 'P')) => return self.unicode_class(c),
            Some(c) if c.is_ascii() && !c.is_ascii_alphanumeric() => self.out.push_str(&regex::escape(&c.to_string())),
            Some(c) => return Err(format!("Go's regexp has no escape `\\{c}`")),
            None => return Err("a backslash at the end".into()),
        }
        Ok(())
    }

    /// Translates a Unicode class after `\p` or `\P`. In Go, `\p{^L}` is `\P{L}`, and properties have no values.
    /// The name is translated here, so that its last letter begins no range of a class.
    fn unicode_class(&mut self, c: char) -> Result<(), String> {
        let Some(after) = self.rest.strip_prefix('{') else {
            // A name of one letter, as in `\pL`.
            let name = self.next();
            self.out.extend(['\\', c].into_iter().chain(name));
            return Ok(());
        };
        // A missing brace ends the translation: a search for it from each class would take quadratic time.
        let (name, rest) = after.split_once('}').ok_or("a class name without `}`")?;
        if name.contains(['=', ':']) {
            return Err(format!("Go's regexp has no class `{name}`"));
        }
        let (c, name) = match name.strip_prefix('^') {
            Some(name) => (if c == 'p' { 'P' } else { 'p' }, name),
            None => (c, name),
        };
        self.out.push_str(&format!("\\{c}{{{name}}}"));
        self.rest = rest;
        Ok(())
    }

    /// Copies `{…}`, the number of a character.
    fn copy_braced(&mut self) {
        if self.is_next("{") {
            self.copy(self.rest.find('}').map_or(self.rest.len(), |end| end + 1));
        }
    }

    /// Translates an octal escape after its first digit: up to two more digits follow.
    fn octal(&mut self, first: char) {
        let n_more = self.rest.chars().take(2).take_while(|c| OCTAL_DIGITS.contains(*c)).count();
        let (more, rest) = self.rest.split_at(n_more);
        let digits = [first].into_iter().chain(more.chars());
        let value = digits.filter_map(|digit| digit.to_digit(8)).fold(0, |value, digit| value * 8 + digit);
        self.out.push_str(&format!("\\x{{{value:x}}}"));
        self.rest = rest;
    }
}

/// Returns `true` if `n}`, `n,}` or `n,m}` follows a brace: then it is a repetition rather than a literal. A number has no
/// leading zeros.
fn is_repetition(rest: &str) -> bool {
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(rest.len());
    let (inside, after) = rest.split_at(end);
    let (from, to) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |digits: &str| digits == "0" || !digits.is_empty() && !digits.starts_with('0');
    after.starts_with('}') && is_number(from) && (to.is_empty() || is_number(to)) && !to.contains(',')
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
            [[:^alpha:]] [\]] [a\-z] \b+ $* [+--] [--/] [\w-z] [\pL-z] [[:] \12 \p{^Greek} (a{30}){1,33}
            (a{500}){1,} ((a{500}){0}){500} (a{500}|b{2}){2}";
        assert_eq!(rejected(patterns), Vec::<&str>::new());
    }

    #[test]
    fn patterns_that_only_this_crate_reads_are_rejected() {
        let patterns = r"a** a*?? a{2}{3} a{2}* * (*) \1 a\Z \h \R \X \K \e \cA \é [z-a] [] [a (?u)a (?R)a (?x)ab (?=a) (?#c)
            \pX a{5,2} {2} [a--b] [\b] a{1,1001} \u1234 (a a\E \Qa\E\E \p{L [.-\d] [+-\pL] [[:foo:]] [[:a-b:]]
            \p{Script=Greek} \12\8 ([a-z]{1,63}\.){1,127} ((a{500})*){3} (a{500}){3,} (b|a{501}){2}
            a{99999999999999999999}";
        assert_eq!(rejected(patterns), patterns.split_whitespace().collect::<Vec<_>>());
    }

    /// Takes minutes if each class is searched for its brace in the whole rest.
    #[test]
    fn many_classes_without_a_brace_are_rejected() {
        assert!(pattern(&r"\p{".repeat(1_000_000)).is_err());
    }
}
