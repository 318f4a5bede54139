//! Semantic versions and their functions. Upstream: `github.com/blang/semver`, and `pkg/cel/library/semverlib.go` of
//! apiserver.
//!
//! Precedence follows semver 2.0.0, by the derived order of the fields: numbers first, then the prerelease.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::{Value as Cel, objects::Opaque};

use super::{EvalResult, Target};

/// A semantic version. Build metadata does not affect precedence and is dropped.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    /// Major, minor and patch.
    numbers: [u64; 3],
    /// Declared after the numbers, since the derived order compares fields in turn.
    before: Prerelease,
}

/// The prerelease part. A version without one follows all its prereleases.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Prerelease {
    /// The identifiers, compared one by one; a longer list with an equal start is greater.
    Identifiers(Vec<PrereleaseIdentifier>),
    /// A version without a prerelease. The variant is last, hence the greatest.
    Absent,
}

/// A prerelease identifier. Numeric identifiers precede alphanumeric ones.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PrereleaseIdentifier {
    /// Compared by value.
    Number(u64),
    /// Compared as ASCII.
    Word(String),
}

impl Opaque for Version {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.Semver"
    }
}

/// Returns the result of a version function; `None` for other functions.
///
/// With a second argument of `true` the string is normalized before it is parsed.
pub(super) fn call(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    let read = |text: &str, is_normal| if is_normal { Version::read(&normalize(text)?) } else { Version::read(text) };
    match (name, target, arguments) {
        ("semver" | "isSemver", Target::None, [Cel::String(text), rest @ ..]) => {
            let version = match rest {
                [] => read(text, false),
                [Cel::Bool(is_normal)] => read(text, *is_normal),
                _ => return None,
            };
            Some(match name {
                "isSemver" => Ok(Cel::Bool(version.is_some())),
                _ => version
                    .map(|version| Cel::Opaque(Arc::new(version)))
                    .ok_or_else(|| format!("{text:?} is not a semantic version such as 1.2.3").into()),
            })
        }
        (_, Target::Value(Cel::Opaque(left)), [Cel::Opaque(right)]) => {
            let order = left.downcast_ref::<Version>()?.cmp(right.downcast_ref()?);
            compare(name, order)
        }
        (_, Target::Value(Cel::Opaque(version)), []) => {
            let index = ["major", "minor", "patch"].iter().position(|part| *part == name)?;
            let number = version.downcast_ref::<Version>()?.numbers[index];
            Some(Ok(Cel::Int(number.cast_signed())))
        }
        _ => None,
    }
}

/// Returns the result of a comparison function of library types; `None` for other functions.
///
/// Shared with quantities. `compareTo` returns -1, 0 or 1.
pub(super) fn compare(name: &str, order: Ordering) -> Option<EvalResult> {
    Some(Ok(match name {
        "isGreaterThan" => Cel::Bool(order.is_gt()),
        "isLessThan" => Cel::Bool(order.is_lt()),
        "compareTo" => Cel::Int(order as i64),
        _ => return None,
    }))
}

/// Adds missing numbers and drops leading zeros and a leading `v` (`normalizeAndParse`). `None` if a version with less
/// than three numbers has a prerelease or build metadata.
fn normalize(text: &str) -> Option<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let part = |part: &str| {
        if part.len() < 2 {
            return part.to_owned();
        }
        let rest = part.trim_start_matches('0');
        if rest.starts_with(|first: char| first.is_ascii_digit()) { rest.to_owned() } else { format!("0{rest}") }
    };
    let mut parts: Vec<String> = text.splitn(3, '.').map(part).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return None;
    }
    parts.resize(3, "0".into());
    Some(parts.join("."))
}

impl Version {
    /// Parses a version with exactly three numbers; `None` if it is invalid. Build metadata must be well-formed, though
    /// it is dropped.
    fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts.as_slice() else { return None };
        let (rest, build) = rest.split_once('+').map_or((*rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) = rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
        if build.is_some_and(|build| !build.split('.').all(is_word)) {
            return None;
        }
        let before = match before {
            None => Prerelease::Absent,
            Some(all) => Prerelease::Identifiers(all.split('.').map(part).collect::<Option<_>>()?),
        };
        Some(Self { numbers: [number(major)?, number(minor)?, number(patch)?], before })
    }
}

/// Returns `true` for a nonempty identifier of ASCII letters, digits and hyphens.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Parses a number without leading zeros, except for `0`. Numbers beyond 64 bits are invalid.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// Parses a prerelease identifier; a numeric one must not have leading zeros.
fn part(text: &str) -> Option<PrereleaseIdentifier> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(text).map(PrereleaseIdentifier::Number);
    }
    is_word(text).then(|| PrereleaseIdentifier::Word(text.into()))
}
