//! Regular expression functions. Upstream: `pkg/cel/library/regex.go` of apiserver, and `Match` of
//! `common/types/string.go` in `cel-go`.
//!
//! Patterns are RE2, compiled by the `regex` crate, whose matching is linear in the string.
//! Compiled patterns are cached (`pattern`).

use std::sync::Arc;

use kube_cel::cel::Value as Cel;

use super::{EvalResult, Target};
use crate::pattern;

/// Returns the result of `matches`, `find` or `findAll`; `None` for other functions. A negative limit of `findAll`
/// means no limit.
///
/// `matches` looks for a match anywhere, not for a full match. `find` without a match returns the empty string.
pub(super) fn call(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    let (text, pattern, rest) = match (target, arguments) {
        (Target::Value(Cel::String(text)), [Cel::String(pattern), rest @ ..]) => (text, pattern, rest),
        (Target::None, [Cel::String(text), Cel::String(pattern)]) if name == "matches" => (text, pattern, &[][..]),
        _ => return None,
    };
    let n_max = match (name, rest) {
        ("matches" | "find" | "findAll", []) => usize::MAX,
        ("findAll", [Cel::Int(n_max)]) => usize::try_from(*n_max).unwrap_or(usize::MAX),
        _ => return None,
    };
    let Some(regex) = pattern::compile(pattern) else {
        return Some(Err(format!("{pattern:?} is not a valid regular expression").into()));
    };
    let made = |text: &str| Cel::String(Arc::new(text.to_owned()));
    Some(Ok(match name {
        "matches" => Cel::Bool(regex.is_match(text)),
        "find" => made(regex.find(text).map(|found| found.as_str()).unwrap_or_default()),
        _ => Cel::List(Arc::new(regex.find_iter(text).take(n_max).map(|found| made(found.as_str())).collect())),
    }))
}
