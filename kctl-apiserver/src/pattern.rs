//! Regular expressions in Go's syntax, compiled once.

use std::{collections::HashMap, sync::LazyLock};

use parking_lot::Mutex;
use regex::Regex;

/// The number of compiled patterns that are kept. At the bound all are dropped.
const COMPILED_LEN_MAX: usize = 1024;

/// Compiled patterns; `None` for invalid ones.
static COMPILED: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);

/// Returns `true` if a pattern occurs in a string. An invalid pattern occurs nowhere.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    compiled(pattern).is_some_and(|regex| regex.is_match(text))
}

/// Returns `true` if a pattern compiles.
pub(crate) fn is_valid(pattern: &str) -> bool {
    compiled(pattern).is_some()
}

/// Returns the compiled regular expression; `None` if it is invalid.
pub(crate) fn compiled(pattern: &str) -> Option<Regex> {
    let mut all = COMPILED.lock();
    if all.len() >= COMPILED_LEN_MAX {
        all.clear();
    }
    all.entry(pattern.to_owned()).or_insert_with(|| kctl_cel::pattern(pattern).ok()).clone()
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
