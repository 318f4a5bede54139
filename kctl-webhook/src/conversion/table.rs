//! The paths between versions: direct, or over other versions, usually a hub.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kube::core::GroupVersionKind;

use super::Rule;
use crate::kind::format_kind;

/// The reason why conversion functions don't form a complete set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// Two functions convert between the same versions.
    #[error("{kind} {from} → {to} has two conversions: {first} and {second}; remove one of them\ncode: K0114")]
    #[non_exhaustive]
    Twice {
        /// The kind with its group.
        kind: String,
        /// The version that both take.
        from: String,
        /// The version that both make.
        to: String,
        /// A function.
        first: String,
        /// The second function for these versions.
        second: String,
    },
    /// A function returns the version that it takes, under another name.
    #[error(
        "{function} takes and returns {kind}; write another version as its result, or remove the function\ncode: K0114"
    )]
    #[non_exhaustive]
    SameVersion {
        /// The function.
        function: String,
        /// The kind with its version.
        kind: String,
    },
    /// A function returns another kind.
    #[error(
        "{function} makes {to} of {from}; write another version of the kind that it takes as its result\ncode: K0114"
    )]
    #[non_exhaustive]
    OtherKind {
        /// The function.
        function: String,
        /// The kind that it takes.
        from: String,
        /// The kind that it makes.
        to: String,
    },
    /// No functions lead from one version to another.
    #[error(
        "{kind}: there is no conversion from {from} to {to}{}; write `#[conversion] fn name(old: {from}::{short}) -> Result<{to}::{short}>`, and {} by `App::conversion`\ncode: K0113",
        list_further(further),
        describe_addition(further)
    )]
    #[non_exhaustive]
    Missing {
        /// The kind with its group.
        kind: String,
        /// The kind.
        short: String,
        /// The version that objects have.
        from: String,
        /// The version that is asked for.
        to: String,
        /// From and to of the other conversions that are missing. With these functions, paths lead to all versions.
        further: Vec<[String; 2]>,
    },
}

/// Returns the other missing conversions as a part of the sentence.
fn list_further(further: &[[String; 2]]) -> String {
    further.iter().fold(String::new(), |text, [from, to]| text + ", nor from " + from + " to " + to)
}

/// Returns the end of the help: one function is to be added, or several.
fn describe_addition(further: &[[String; 2]]) -> &'static str {
    if further.is_empty() { "add it" } else { "one for each other pair, and add them" }
}

/// For each pair of versions, the indexes of the rules in order.
type ConversionPaths = BTreeMap<(String, String), Vec<usize>>;

/// All conversions of a program, with the path between each pair of versions.
///
/// ```
/// use kctl_webhook::conversion::Conversions;
///
/// let none = Conversions::default();
/// assert!(none.is_empty());
/// assert!(!none.has("example.com", "Web"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Conversions {
    rules: Vec<Rule>,
    /// By group and kind.
    kinds: BTreeMap<(String, String), ConversionPaths>,
}

impl Conversions {
    /// Finds the shortest path between each two versions of each kind that has a conversion.
    ///
    /// `versions` are the versions of the CRDs. Pass them so that a version which no function knows is found now, and not at
    /// the first request.
    ///
    /// ```
    /// use k8s_openapi::api::autoscaling::{v1, v2};
    /// use kctl_webhook::{FunctionInfo, conversion::{ConversionError, Conversions, Rule}};
    ///
    /// let up = Rule::new(FunctionInfo::new("up", file!(), line!()), |old: v1::HorizontalPodAutoscaler| async move {
    ///     Ok(v2::HorizontalPodAutoscaler { metadata: old.metadata, ..Default::default() })
    /// });
    /// // There is no way back:
    /// let error = Conversions::new(vec![up], &[]).unwrap_err();
    /// assert!(matches!(error, ConversionError::Missing { from, to, .. } if from == "v2" && to == "v1"));
    /// ```
    ///
    /// # Errors
    /// No functions lead from one version to another, two convert between the same, or a function
    /// leads to another kind.
    pub fn new(rules: Vec<Rule>, versions: &[GroupVersionKind]) -> Result<Self, ConversionError> {
        let mut kinds: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for rule in &rules {
            let ([from, to], location) = ([&rule.from, &rule.to].map(format_kind), rule.about.named_location());
            if from == to {
                return Err(ConversionError::SameVersion { function: location, kind: from });
            }
            if (&rule.from.group, &rule.from.kind) != (&rule.to.group, &rule.to.kind) {
                return Err(ConversionError::OtherKind { function: location, from, to });
            }
            let versions_of_kind = kinds.entry((rule.from.group.clone(), rule.from.kind.clone())).or_default();
            versions_of_kind.extend([rule.from.version.clone(), rule.to.version.clone()]);
        }
        for GroupVersionKind { group, version, kind } in versions {
            if let Some(versions_of_kind) = kinds.get_mut(&(group.clone(), kind.clone())) {
                versions_of_kind.insert(version.clone());
            }
        }
        let mut paths = BTreeMap::new();
        for (kind, versions) in kinds {
            let found = conversion_paths(&rules, &kind.0, &kind.1, &versions)?;
            paths.insert(kind, found);
        }
        Ok(Self { rules, kinds: paths })
    }

    /// Returns `true` if the table has no conversions.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns `true` if objects of a kind are converted.
    pub fn has(&self, group: &str, kind: &str) -> bool {
        self.kinds.contains_key(&(group.to_owned(), kind.to_owned()))
    }

    /// Returns the functions, in order, that convert an object of one version into another. Returns `None` if the kind
    /// or a version is unknown.
    pub(super) fn path(&self, group: &str, kind: &str, from: &str, to: &str) -> Option<Vec<&Rule>> {
        let paths = self.kinds.get(&(group.to_owned(), kind.to_owned()))?;
        let path = paths.get(&(from.to_owned(), to.to_owned()))?;
        Some(path.iter().map(|idx| &self.rules[*idx]).collect())
    }
}

fn conversion_paths(
    rules: &[Rule],
    group: &str,
    short: &str,
    versions: &BTreeSet<String>,
) -> Result<ConversionPaths, ConversionError> {
    let kind_in_group = || format!("{short}.{group}");
    let mut edges: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (idx, rule) in rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| (rule.from.group.as_str(), rule.from.kind.as_str()) == (group, short))
    {
        let (from, to) = (rule.from.version.as_str(), rule.to.version.as_str());
        if let Some(first) = edges.insert((from, to), idx) {
            let (first, second) = (rules[first].about.named_location(), rule.about.named_location());
            return Err(ConversionError::Twice {
                kind: kind_in_group(),
                from: from.into(),
                to: to.into(),
                first,
                second,
            });
        }
    }
    let mut missing = missing_conversions(&edges, versions).into_iter();
    if let Some([from, to]) = missing.next() {
        let (kind, short, further) = (kind_in_group(), short.to_owned(), missing.collect());
        return Err(ConversionError::Missing { kind, short, from, to, further });
    }
    let mut paths = ConversionPaths::new();
    for from in versions {
        let reached = shortest_paths(&edges, from);
        debug_assert_eq!(reached.len(), versions.len(), "no conversion is missing");
        paths.extend(reached.into_iter().map(|(to, path)| ((from.clone(), to.to_owned()), path)));
    }
    Ok(paths)
}

/// Returns the conversions to write, so that paths lead from each version to each other one. A conversion counts for the
/// pairs after it: a new version needs one from the hub and one back.
fn missing_conversions<'a>(
    edges: &BTreeMap<(&'a str, &'a str), usize>,
    versions: &'a BTreeSet<String>,
) -> Vec<[String; 2]> {
    let (mut edges, mut missing) = (edges.clone(), Vec::new());
    for from in versions {
        for to in versions {
            if !shortest_paths(&edges, from).contains_key(to.as_str()) {
                edges.insert((from.as_str(), to.as_str()), usize::MAX);
                missing.push([from.clone(), to.clone()]);
            }
        }
    }
    missing
}

/// Returns the shortest path to each reachable version. Ties are broken by name.
fn shortest_paths<'a>(edges: &BTreeMap<(&'a str, &'a str), usize>, from: &'a str) -> BTreeMap<&'a str, Vec<usize>> {
    let mut paths = BTreeMap::from([(from, Vec::new())]);
    let mut next = VecDeque::from([from]);
    while let Some(version) = next.pop_front() {
        let path = paths[version].clone();
        for ((_, to), idx) in edges.range((version, "")..).take_while(|((start, _), _)| *start == version) {
            if !paths.contains_key(to) {
                paths.insert(to, path.iter().copied().chain([*idx]).collect());
                next.push_back(to);
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::autoscaling::{v1, v2::HorizontalPodAutoscaler};

    use super::*;
    use crate::call::FunctionInfo;

    #[test]
    fn conversion_to_the_same_version_is_reported() {
        let about = FunctionInfo::new("same", "lib.rs", 1);
        let same = Rule::new(about, |old: HorizontalPodAutoscaler| async move { Ok(old) });
        let error = Conversions::new(vec![same], &[]).unwrap_err().to_string();
        let expected = "`same` (lib.rs:1) takes and returns autoscaling/v2, Kind=HorizontalPodAutoscaler; write another version \
                        as its result, or remove the function\ncode: K0114";
        assert_eq!(error, expected);
    }

    #[test]
    fn all_missing_conversions_are_named_at_once() {
        let up = Rule::new(FunctionInfo::new("up", "lib.rs", 1), |old: v1::HorizontalPodAutoscaler| async move {
            Ok(HorizontalPodAutoscaler { metadata: old.metadata, ..HorizontalPodAutoscaler::default() })
        });
        let third = GroupVersionKind::gvk("autoscaling", "v3", "HorizontalPodAutoscaler");
        let error = Conversions::new(vec![up], &[third]).unwrap_err().to_string();
        let expected = "HorizontalPodAutoscaler.autoscaling: there is no conversion from v1 to v3, nor from v2 to v1, nor from \
                        v3 to v1; write `#[conversion] fn name(old: v1::HorizontalPodAutoscaler) -> \
                        Result<v3::HorizontalPodAutoscaler>`, and one for each other pair, and add them by \
                        `App::conversion`\ncode: K0113";
        assert_eq!(error, expected);
    }
}
