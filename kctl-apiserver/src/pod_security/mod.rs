//! Pod Security Standards: reads the policy from the labels of a namespace, and checks a Pod against a standard.
//!
//! The standards are cumulative: `restricted` has the checks of `baseline`, some in a stricter form, and more. A check
//! sees a Pod or a Pod template alike. Exemptions by user, runtime class or namespace need a configuration file
//! upstream, and do not exist here.
//!
//! Upstream: `k8s.io/pod-security-admission` (`api/helpers.go`, `policy/registry.go`).

mod baseline;
mod pod;
mod restricted;

use serde_json::Value;

use self::pod::{Part, Pod};
use crate::field_errors::{Errors, FieldError};

/// The prefix of the labels of namespaces, and of the annotations of the audit log.
pub(crate) const PREFIX: &str = "pod-security.kubernetes.io/";
/// The last minor version that has changed a check. A higher version in a label counts as this one.
const NEWEST: u32 = 35;

/// A level, from the most to the least permissive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Unrestricted.
    Privileged,
    /// Prevents known privilege escalations.
    Baseline,
    /// Follows hardening practices.
    Restricted,
}

impl Level {
    /// Parses the value of a label. `None` for an unknown level; the comparison is exact.
    fn parse(text: &str) -> Option<Self> {
        [Self::Privileged, Self::Baseline, Self::Restricted].into_iter().find(|level| level.name() == text)
    }

    /// Returns the name of the level, as in labels.
    fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// A level as defined in a version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standard {
    /// `privileged` has no checks in any version.
    pub(crate) level: Level,
    /// The minor version; `None` is the latest.
    pub(crate) minor: Option<u32>,
}

impl std::fmt::Display for Standard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = self.minor.map_or_else(|| "latest".to_owned(), |minor| format!("v1.{minor}"));
        write!(f, "{}:{version}", self.level.name())
    }
}

/// The standards of a namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy {
    /// Violations reject a Pod.
    pub(crate) enforce: Standard,
    /// Violations are recorded in the audit log.
    pub(crate) audit: Standard,
    /// Violations are reported to the client.
    pub(crate) warn: Standard,
    /// Errors in the labels. An unknown level counts as `restricted` for `enforce`, and as `privileged` otherwise.
    pub(crate) errors: Errors,
}

impl Policy {
    /// Reads the labels of a namespace. Absent labels mean `privileged:latest` for each mode, apart from the rule about
    /// warnings.
    pub(crate) fn from_labels(labels: &Value) -> Self {
        let mut errors = Errors::default();
        let mut read = |mode: &str, unknown: Level| {
            let mut standard = Standard { level: Level::Privileged, minor: None };
            if let Some(text) = label(labels, mode) {
                standard.level = Level::parse(text).unwrap_or_else(|| {
                    errors.push(invalid(mode, text, "must be one of privileged, baseline, restricted"));
                    unknown
                });
            }
            let mode = format!("{mode}-version");
            if let Some(text) = label(labels, &mode) {
                standard.minor = parse_minor(text).unwrap_or_else(|| {
                    errors.push(invalid(&mode, text, "must be \"latest\" or \"v1.x\""));
                    None
                });
            }
            standard
        };
        let enforce = read("enforce", Level::Restricted);
        let audit = read("audit", Level::Privileged);
        let mut warn = read("warn", Level::Privileged);
        // By default the enforced level also causes warnings: workloads are not rejected, only their Pods.
        let is_known = label(labels, "enforce").is_some_and(|text| Level::parse(text).is_some());
        if label(labels, "warn").is_none() && is_known && enforce.level > warn.level {
            warn.level = enforce.level;
            if label(labels, "warn-version").is_none() {
                warn.minor = enforce.minor;
            }
        }
        Self { enforce, audit, warn, errors }
    }
}

/// Returns the value of a label with the prefix. A value that is not a string counts as absent.
fn label<'a>(labels: &'a Value, name: &str) -> Option<&'a str> {
    labels.get(format!("{PREFIX}{name}"))?.as_str()
}

/// Returns the error of an invalid label.
fn invalid(label: &str, text: &str, why: &str) -> FieldError {
    FieldError::invalid(&format!("metadata.labels[{PREFIX}{label}]"), &text.into(), why)
}

/// Parses a version: a minor version, `Some(None)` for `latest`, or `None` if it is invalid. Leading zeros are invalid.
#[expect(clippy::option_option, reason = "no version at all is another thing than the latest one")]
fn parse_minor(text: &str) -> Option<Option<u32>> {
    if text == "latest" {
        return Some(None);
    }
    let digits = text.strip_prefix("v1.")?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| is_number).map(Some)
}

/// A rule that a pod breaks.
pub(crate) struct Violation {
    /// The rule in short, without the places.
    rule: &'static str,
    /// The names of the parts that break it.
    places: Vec<String>,
}

/// A check of a standard, in one of its versions.
struct Check {
    /// The minor version that introduced the check.
    since: u32,
    /// The first minor version in which a stricter check of `restricted` replaces it.
    until_restricted: Option<u32>,
    /// The rule, as a violation reports it.
    rule: &'static str,
    /// Returns `true` for a part that breaks the rule.
    is_broken: fn(&Part<'_>) -> bool,
}

/// Creates a check, so that the table of checks has one line for each. The arguments are in the order of the fields.
const fn check(
    since: u32,
    until_restricted: Option<u32>,
    rule: &'static str,
    is_broken: fn(&Part<'_>) -> bool,
) -> Check {
    Check { since, until_restricted, rule, is_broken }
}

/// Returns how a Pod or Pod template violates a standard. Empty if it does not. A check applies since the minor version
/// that introduced it. So an upgrade of the cluster does not change the verdict of a standard with a version. Stricter
/// checks of `restricted` replace some of `baseline`. A version that is newer than all checks counts as the newest.
pub(crate) fn violations(standard: Standard, template: &Value) -> Vec<Violation> {
    if standard.level == Level::Privileged {
        return Vec::new();
    }
    let is_restricted = standard.level == Level::Restricted;
    let minor = standard.minor.map_or(NEWEST, |minor| minor.min(NEWEST));
    let pod = Pod { metadata: &template["metadata"], spec: &template["spec"], minor };
    let parts = pod.parts();
    let is_replaced =
        |check: &&Check| is_restricted && check.until_restricted.is_some_and(|replaced| replaced <= minor);
    let baseline_checks = baseline::CHECKS.iter().filter(|check| !is_replaced(check));
    let restricted_checks = restricted::CHECKS.iter().filter(|_| is_restricted);
    baseline_checks
        .chain(restricted_checks)
        .filter(|check| check.since <= minor)
        .map(|check| {
            let places = parts.iter().filter(|part| (check.is_broken)(part)).map(Part::name).collect();
            Violation { rule: check.rule, places }
        })
        .filter(|violation| !violation.places.is_empty())
        .collect()
}

/// Returns the rules with the places that break them. Places are in parentheses behind each rule.
pub(crate) fn in_detail(violations: &[Violation]) -> String {
    let rules = violations.iter().map(|Violation { rule, places }| format!("{rule} ({})", places.join(", ")));
    rules.collect::<Vec<_>>().join(", ")
}

/// Returns the rules without places, for a message about many Pods. Pods with the same violations can thus be grouped.
pub(crate) fn summarize(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.rule).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_latest_and_v1_minor_versions_are_accepted() {
        for (text, expected) in [
            ("latest", Some(None)),
            ("v1.0", Some(Some(0))),
            ("v1.35", Some(Some(35))),
            ("v1.01", None),
            ("v1.", None),
            ("v1.+1", None),
            ("v2.1", None),
            ("1.1", None),
            ("v1.99999999999999999999", None),
        ] {
            assert_eq!(parse_minor(text), expected, "{text}");
        }
    }

    #[test]
    fn enforced_level_is_also_warned_about_by_default() {
        let warn = |labels: &[(&str, &str)]| {
            let labels: Value = labels.iter().map(|(name, text)| (format!("{PREFIX}{name}"), json!(text))).collect();
            Policy::from_labels(&labels).warn.to_string()
        };
        assert_eq!(warn(&[("enforce", "baseline"), ("enforce-version", "v1.3")]), "baseline:v1.3");
        assert_eq!(warn(&[("enforce", "baseline"), ("warn-version", "v1.4")]), "baseline:v1.4");
        assert_eq!(warn(&[("enforce", "baseline"), ("warn", "privileged")]), "privileged:latest");
        assert_eq!(warn(&[("enforce", "nonsense")]), "privileged:latest");
        assert_eq!(warn(&[]), "privileged:latest");
    }
}
