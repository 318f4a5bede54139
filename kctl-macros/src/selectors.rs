//! Label and field selectors that API servers can parse, for literals in attributes.
//!
//! The parser of labels is that of `kctl-apimachinery`, without its result. A dependency on that crate would make every
//! attribute wait for the crates that it needs for times. API servers know which fields a kind can be selected by.

use crate::names::{is_label_value, is_qualified_name};

/// Returns `true` for a label selector as for `kubectl get -l`; the empty one selects all objects.
///
/// Upstream: `k8s.io/apimachinery/pkg/labels/selector.go`.
pub(crate) fn is_label_selector(text: &str) -> bool {
    let mut parser = LabelParser { rest: text.trim() };
    parser.rest.is_empty() || parser.requirements()
}

/// A recursive descent parser of label selectors. `rest` begins with a token.
struct LabelParser<'a> {
    rest: &'a str,
}

impl<'a> LabelParser<'a> {
    /// Takes requirements up to the end, separated by commas.
    fn requirements(&mut self) -> bool {
        self.requirement() && (self.rest.is_empty() || (self.eat(",") && self.requirements()))
    }

    fn requirement(&mut self) -> bool {
        if self.eat("!") {
            return self.key();
        }
        if !self.key() {
            return false;
        }
        if self.rest.is_empty() || self.rest.starts_with(',') {
            return true;
        }
        if self.eat("==") || self.eat("=") || self.eat("!=") {
            return self.value();
        }
        if self.eat(">") || self.eat("<") {
            let word = self.word();
            return is_label_value(word) && word.parse::<i64>().is_ok();
        }
        matches!(self.word(), "in" | "notin") && self.values()
    }

    /// Takes the next word, which is empty before an operator.
    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| c.is_whitespace() || "=!,()<>".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// Takes a token, if it is next.
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        rest.map(|rest| self.rest = rest.trim_start()).is_some()
    }

    fn key(&mut self) -> bool {
        is_qualified_name(self.word())
    }

    fn value(&mut self) -> bool {
        let begins_with_operator = self.rest.starts_with(['=', '!', '(', '<', '>']);
        is_label_value(self.word()) && !begins_with_operator
    }

    /// Takes a list of values in parentheses.
    fn values(&mut self) -> bool {
        let mut is_open = self.eat("(");
        while is_open {
            if !is_label_value(self.word()) {
                return false;
            }
            if self.eat(")") {
                return true;
            }
            is_open = self.eat(",");
        }
        false
    }
}

/// Returns `true` for a field selector as for `kubectl get --field-selector`; empty terms count as nothing.
///
/// Upstream: `ParseSelector` of `k8s.io/apimachinery/pkg/fields/selector.go`. It keeps spaces, which no field's name has.
pub(crate) fn is_field_selector(text: &str) -> bool {
    terms(text).iter().all(|term| term.is_empty() || is_field_term(term))
}

/// Splits a field selector at the commas without a backslash before them.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start) = (Vec::new(), 0);
    for (at, c) in unescaped(text) {
        if c == ',' {
            terms.push(&text[start..at]);
            start = at + 1;
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Returns the characters that are neither a backslash nor behind one, with their offsets.
fn unescaped(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_escaped = false;
    text.char_indices().filter(move |(_, c)| {
        let is_plain = !is_escaped && *c != '\\';
        is_escaped = !is_escaped && *c == '\\';
        is_plain
    })
}

/// Returns `true` for `field=value`, `field==value` or `field!=value`.
fn is_field_term(term: &str) -> bool {
    let parts = unescaped(term).find_map(|(at, _)| {
        let value = ["!=", "==", "="].iter().find_map(|operator| term[at..].strip_prefix(*operator))?;
        Some((&term[..at], value))
    });
    parts.is_some_and(|(field, value)| {
        let is_field = !field.is_empty() && !field.contains(char::is_whitespace);
        is_field && is_field_value(value)
    })
}

/// Returns `true` if commas and equals signs in a value are escaped, and nothing else is.
fn is_field_value(value: &str) -> bool {
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        let is_valid = match c {
            '\\' => characters.next().is_some_and(|escaped| "\\,=".contains(escaped)),
            c => c != ',' && c != '=',
        };
        if !is_valid {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_are_parsed_as_by_kubectl() {
        for selector in [
            "",
            "app",
            "!app",
            "app=web",
            "app==web,tier=2",
            "app!=web",
            "app in (db, web)",
            "app notin (db,web)",
            "tier>1",
            "tier<3",
            " app = web , !other ",
            "app=",
            "app in ()",
            "app in (,web)",
            "app in (web,,)",
            "app notin (web,,db)",
            "example.com/app=web",
        ] {
            assert!(is_label_selector(selector), "{selector}");
        }
        for selector in [
            "a in",
            "a in (b",
            "a in b)",
            "a in (b c)",
            "a in (,b",
            "a,",
            ",a",
            "=a",
            "a>b",
            "tier<-3",
            "a b",
            "a within (b)",
            "a/b/c=d",
            "a=b c",
            "a=-b",
            "a=b=c",
            "!",
            "…",
        ] {
            assert!(!is_label_selector(selector), "{selector}");
        }
    }

    #[test]
    fn field_selectors_are_parsed_as_by_kubectl() {
        for selector in ["", "metadata.name=a", "a==b,c!=d", "a=", "a=b,", r"a=b\,c\=d\\", "spec.color=dark red"] {
            assert!(is_field_selector(selector), "{selector}");
        }
        for selector in ["spec.nodeName", "=a", "a=b=c", "a=b, c=d", "a in (b)", r"a=b\c", r"a=b\", "…"] {
            assert!(!is_field_selector(selector), "{selector}");
        }
    }
}
