//! Joins the versions of one kind into one CRD.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{DefinitionError, Version};

/// Groups versions by the name of their CRD, sorted.
pub(super) fn by_name(versions: Vec<Version>) -> Vec<Vec<Version>> {
    let mut named: BTreeMap<String, Vec<Version>> = BTreeMap::new();
    for version in versions {
        named.entry(version.crd.metadata.name.clone().unwrap_or_default()).or_default().push(version);
    }
    named.into_values().collect()
}

/// Checks that each kind of a group has one plural. An API server serves only the first of two CRDs with one kind.
///
/// # Errors
/// [`DefinitionError::Versions`] with the first kind that has two plurals.
pub(super) fn check_plurals(crds: &[Vec<Version>]) -> Result<(), DefinitionError> {
    let kind_of = |version: &Version| (version.crd.spec.names.kind.clone(), version.crd.spec.group.clone());
    let firsts: Vec<&Version> = crds.iter().filter_map(|versions| versions.first()).collect();
    for (index, second) in firsts.iter().copied().enumerate() {
        let (kind, group) = kind_of(second);
        let is_same = |first: &&Version| kind_of(first) == kind_of(second);
        let Some(first) = firsts[..index].iter().copied().find(is_same) else { continue };
        let (one, other) = (&first.crd.spec.names.plural, &second.crd.spec.names.plural);
        return Err(DefinitionError::Versions {
            name: format!("{kind}.{group}"),
            what: format!("{} have the plurals `{one}` and `{other}`", list_versions(&[first, second])),
            help: "write the same `plural = \"…\"` in both".into(),
        });
    }
    Ok(())
}

/// Returns one CRD with all versions, the most recent first. It begins as the CRD of the storage version.
///
/// Short names, categories and the conversion belong to the kind, so one version may give them for all. Labels and
/// annotations of all versions are added up.
///
/// # Errors
/// [`DefinitionError::Versions`] if not exactly one version is stored, or the versions differ in scope,
/// names, conversion, or the value of a label or annotation.
pub(super) fn join(versions: &[Version]) -> Result<CustomResourceDefinition, DefinitionError> {
    let name = versions.first().and_then(|version| version.crd.metadata.name.clone()).unwrap_or_default();
    let error = &|what: String, help: &str| DefinitionError::Versions { name: name.clone(), what, help: help.into() };
    let root = stored_version(versions, error)?;
    let mut crd = root.crd.clone();
    for version in versions {
        let (one, other) = (&root.crd.spec, &version.crd.spec);
        for (what, differs) in [
            ("scope", one.scope != other.scope),
            ("kind", one.names.kind != other.names.kind),
            ("singular", one.names.singular != other.names.singular),
            ("list kind", one.names.list_kind != other.names.list_kind),
        ] {
            if differs {
                let what = format!("{} differ in {what}", list_versions(&[root, version]));
                return Err(error(what, "write the same in both"));
            }
        }
        if let Err((what, help)) = join_metadata(&mut crd, &version.crd) {
            return Err(error(format!("{} differ in {what}", list_versions(&[root, version])), help));
        }
        if version.name() != root.name() {
            crd.spec.versions.extend(version.crd.spec.versions.iter().cloned());
        }
        match (&crd.spec.conversion, &version.crd.spec.conversion) {
            (None, _) => crd.spec.conversion.clone_from(&version.crd.spec.conversion),
            (Some(one), Some(other)) if one != other => {
                let with = versions.iter().filter(|version| version.crd.spec.conversion.is_some()).collect::<Vec<_>>();
                let what = format!("{} differ in `conversion(…)`", list_versions(&with));
                return Err(error(what, "a kind has one converter: write `conversion(…)` in one of them"));
            }
            (Some(_), _) => {}
        }
    }
    crd.spec.versions.sort_by_key(|version| std::cmp::Reverse(priority(&version.name)));
    Ok(crd)
}

/// Returns the one version that is stored.
///
/// # Errors
/// None of the versions is stored, or several are.
fn stored_version<'a>(
    versions: &'a [Version],
    error: &impl Fn(String, &str) -> DefinitionError,
) -> Result<&'a Version, DefinitionError> {
    let is_stored = |version: &&Version| version.crd.spec.versions.iter().any(|version| version.storage);
    let stored: Vec<&Version> = versions.iter().filter(is_stored).collect();
    match stored.as_slice() {
        [root] => Ok(*root),
        [] => {
            let all: Vec<&Version> = versions.iter().collect();
            Err(error(
                format!("none of {} is the storage version", list_versions(&all)),
                "leave out `storage = false` in one of them",
            ))
        }
        several => Err(error(
            format!("{} are both the storage version", list_versions(several)),
            "write `storage = false` in all of them but one",
        )),
    }
}

/// Names versions with their places in the code, for an error.
fn list_versions(versions: &[&Version]) -> String {
    let named: Vec<_> = versions.iter().map(|version| format!("{} ({})", version.name(), version.location)).collect();
    named.join(" and ")
}

/// Adds short names, categories, labels and annotations of another version.
///
/// # Errors
/// The difference, and the remedy.
fn join_metadata(
    crd: &mut CustomResourceDefinition,
    other: &CustomResourceDefinition,
) -> Result<(), (String, &'static str)> {
    let (names, others) = (&mut crd.spec.names, &other.spec.names);
    for (what, joined, other) in [
        ("short names", &mut names.short_names, &others.short_names),
        ("categories", &mut names.categories, &others.categories),
    ] {
        if !join_names(joined, other.as_ref()) {
            let help = "a kind has one set of names: write the same in both, or write it in one of them";
            return Err((what.to_owned(), help));
        }
    }
    for (what, joined, other) in [
        ("label", &mut crd.metadata.labels, &other.metadata.labels),
        ("annotation", &mut crd.metadata.annotations, &other.metadata.annotations),
    ] {
        let help = "the versions share one CRD: write the same value in both";
        join_pairs(joined, other.as_ref()).map_err(|key| (format!("the {what} `{key}`"), help))?;
    }
    Ok(())
}

/// Adds the names of another version unless there are names already. Returns `false` if both versions give different ones; their
/// order does not count.
fn join_names(joined: &mut Option<Vec<String>>, other: Option<&Vec<String>>) -> bool {
    let Some(other) = other.filter(|other| !other.is_empty()) else { return true };
    if let Some(joined) = joined.as_ref().filter(|joined| !joined.is_empty()) {
        return joined.iter().collect::<BTreeSet<_>>() == other.iter().collect();
    }
    *joined = Some(other.clone());
    true
}

/// Adds the labels or annotations of another version.
///
/// # Errors
/// The first key that has two values.
fn join_pairs(
    joined: &mut Option<BTreeMap<String, String>>,
    other: Option<&BTreeMap<String, String>>,
) -> Result<(), String> {
    for (key, value) in other.into_iter().flatten() {
        let existing = joined.get_or_insert_default().entry(key.clone()).or_insert_with(|| value.clone());
        if existing != value {
            return Err(key.clone());
        }
    }
    Ok(())
}

/// Orders versions as API servers prefer them (`CompareKubeAwareVersionStrings` of apimachinery): v2, v1,
/// v1beta1, others.
fn priority(name: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let other = (0, 0, 0, std::cmp::Reverse(name.to_owned()));
    let Some(rest) = name.strip_prefix('v') else { return other };
    let digits = rest.len() - rest.trim_start_matches(|char: char| char.is_ascii_digit()).len();
    let (major, rest) = rest.split_at(digits);
    let Ok(major) = major.parse() else { return other };
    let same = std::cmp::Reverse(String::new());
    if rest.is_empty() {
        return (3, major, 0, same);
    }
    for (word, level) in [("beta", 2), ("alpha", 1)] {
        if let Some(Ok(minor)) = rest.strip_prefix(word).map(str::parse) {
            return (level, major, minor, same);
        }
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_api_servers() {
        let mut names = ["v1alpha1", "v1", "foo", "v2beta1", "v10", "v1beta2", "v2", "v1beta1"];
        names.sort_by_key(|name| std::cmp::Reverse(priority(name)));
        assert_eq!(names, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
