//! Regular expressions in Go's syntax, compiled once.

use std::{collections::HashMap, sync::LazyLock};

use kctl_cel::PATTERN_BYTES_MAX;
use parking_lot::Mutex;
use regex::Regex;

/// Maximum number of bytes of the compiled patterns that are kept. At the bound all are dropped.
const BYTES_MAX: usize = 64 << 20;
/// The bytes that a compiled pattern of usual size counts for. A larger one counts as [`PATTERN_BYTES_MAX`].
const SMALL_BYTES_MAX: usize = 64 << 10;

/// Compiled patterns; `None` for invalid ones.
static COMPILED: LazyLock<Mutex<PatternCache>> = LazyLock::new(Mutex::default);

/// Compiled patterns, with a bound on their bytes.
#[derive(Default)]
struct PatternCache {
    by_text: HashMap<String, Option<Regex>>,
    /// An upper bound of the bytes.
    n_bytes: usize,
}

impl PatternCache {
    /// Returns a kept pattern, or compiles it.
    fn get(&mut self, pattern: &str) -> Option<Regex> {
        if let Some(known) = self.by_text.get(pattern) {
            return known.clone();
        }
        let small = kctl_cel::pattern_within(pattern, SMALL_BYTES_MAX).ok().map(|regex| (Some(regex), SMALL_BYTES_MAX));
        let large = || kctl_cel::pattern(pattern).ok().map(|regex| (Some(regex), PATTERN_BYTES_MAX));
        let (regex, n_bytes) = small.or_else(large).unwrap_or_default();
        let n_bytes = n_bytes + pattern.len();
        if self.n_bytes + n_bytes > BYTES_MAX {
            *self = Self::default();
        }
        self.n_bytes += n_bytes;
        self.by_text.insert(pattern.to_owned(), regex.clone());
        regex
    }
}

/// Returns `true` if a pattern occurs in a string. An invalid pattern occurs nowhere.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    compile(pattern).is_some_and(|regex| regex.is_match(text))
}

/// Returns `true` if a pattern compiles.
pub(crate) fn is_valid(pattern: &str) -> bool {
    compile(pattern).is_some()
}

/// Returns the compiled regular expression; `None` if it is invalid.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    COMPILED.lock().get(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_patterns_are_bounded_in_bytes() {
        let mut compiled = PatternCache::default();
        for n in 0..20 {
            // Each copy of `\pL` has tens of kilobytes.
            assert!(compiled.get(&format!("^\\pL{{1,20}}{n}$")).is_some());
            assert!(compiled.n_bytes <= BYTES_MAX && compiled.by_text.len() <= BYTES_MAX / PATTERN_BYTES_MAX);
        }
        assert!(compiled.get(&"(".repeat(1 << 20)).is_none() && compiled.n_bytes > 1 << 20, "an invalid one counts");
    }

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
            ("^a{01}$", "a{01}", true),
            ("^[\\w-z]$", "-", true),
            ("^[+--]$", ",", true),
            ("^\\p{^L}$", "a", false),
            ("^\\101$", "A", true),
            ("(a", "(a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
