//! Semantic versions, and what is asked of them. Upstream: `github.com/blang/semver`, and `pkg/cel/library/semverlib.go` of
//! apiserver.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::{Value as Cel, objects::Opaque};

use super::{Said, Target};
use crate::go::quote;

/// A version; what was built does not count, and is not kept.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    numbers: [u64; 3],
    before: Before,
}

/// What a version is before: nothing, which is after all else, or one of these.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    Release(Vec<Part>),
    Nothing,
}

/// Numbers are before words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Opaque for Version {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.Semver"
    }
}

/// What a function says of a version, or of a text that should be one; none if it is another function.
pub(super) fn called(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<Said> {
    let read = |text: &str, is_normal: bool| if is_normal { normalized(text)?.parse() } else { text.parse() };
    match (name, target, arguments) {
        ("semver" | "isSemver", Target::None, [Cel::String(text), rest @ ..]) => {
            let version: Result<Version, String> = match rest {
                [] => read(text, false),
                [Cel::Bool(is_normal)] => read(text, *is_normal),
                _ => return None,
            };
            Some(match name {
                "isSemver" => Ok(Cel::Bool(version.is_ok())),
                _ => version.map(|version| Cel::Opaque(Arc::new(version))),
            })
        }
        (_, Target::Value(Cel::Opaque(one)), [Cel::Opaque(other)]) => {
            let order = one.downcast_ref::<Version>()?.cmp(other.downcast_ref()?);
            compared(name, order)
        }
        (_, Target::Value(Cel::Opaque(version)), []) => {
            let index = ["major", "minor", "patch"].iter().position(|known| *known == name)?;
            let number = version.downcast_ref::<Version>()?.numbers[index];
            Some(Ok(Cel::Int(number.cast_signed())))
        }
        _ => None,
    }
}

/// What a function says of the order of two values; none if it asks for something else.
pub(super) fn compared(name: &str, order: Ordering) -> Option<Said> {
    Some(Ok(match name {
        "isGreaterThan" => Cel::Bool(order.is_gt()),
        "isLessThan" => Cel::Bool(order.is_lt()),
        "compareTo" => Cel::Int(order as i64),
        _ => return None,
    }))
}

/// A version with three numbers that do not begin with a nought (`normalizeAndParse`).
fn normalized(text: &str) -> Result<String, String> {
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
        return Err("short version cannot contain PreRelease/Build meta data".into());
    }
    parts.resize(3, "0".into());
    Ok(parts.join("."))
}

impl std::str::FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".into());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts.as_slice() else { return Err("No Major.Minor.Patch elements found".into()) };
        let (major, minor) = (number("major", major)?, number("minor", minor)?);
        let (rest, build) = rest.split_once('+').map_or((*rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) = rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
        let patch = number("patch", patch)?;
        let before: Option<Vec<Part>> = before.map(|all| all.split('.').map(part).collect()).transpose()?;
        for word in build.into_iter().flat_map(|build| build.split('.')) {
            if word.is_empty() {
                return Err("Build meta data is empty".into());
            }
            if !is_word(word) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(word)));
            }
        }
        Ok(Self { numbers: [major, minor, patch], before: before.map_or(Before::Nothing, Before::Release) })
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {name} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        let title = name[..1].to_uppercase() + &name[1..];
        return Err(format!("{title} number must not contain leading zeroes {}", quote(text)));
    }
    parsed(text)
}

fn parsed(text: &str) -> Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
}

fn part(text: &str) -> Result<Part, String> {
    match text {
        "" => Err("Prerelease is empty".into()),
        _ if is_number(text) && text.len() > 1 && text.starts_with('0') => {
            Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)))
        }
        _ if is_number(text) => parsed(text).map(Part::Number),
        _ if is_word(text) => Ok(Part::Word(text.into())),
        _ => Err(format!("Invalid character(s) found in prerelease {}", quote(text))),
    }
}
