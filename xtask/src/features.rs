//! Checks the features of the published crates. They are read from the manifests, so new features need not be listed
//! here.

use std::path::Path;

use crate::{
    Result,
    process::{cargo, root, scratch, target},
    third_party,
};

/// The published libraries, which all have features.
pub(crate) const CRATES: [&str; 8] = [
    "kctl",
    "kctl-runtime",
    "kctl-apiserver",
    "kctl-workloads",
    "kctl-webhook",
    "kctl-interpreter",
    "kctl-cel",
    "kctl-apimachinery",
];

/// The libraries with a feature for each Kubernetes version, whose unit tests run with its types.
const WITH_TYPES: [&str; 5] = ["kctl", "kctl-runtime", "kctl-webhook", "kctl-interpreter", "kctl-workloads"];

/// Returns tables for the end of a manifest outside of the workspace. There, kctl's crates are dependencies, for which the
/// profile in `.cargo/config.toml` has no assertions.
pub(crate) fn assertions() -> String {
    CRATES.map(|krate| format!("\n[profile.dev.package.{krate}]\ndebug-assertions = true\n")).concat()
}

/// The crates and the versions of Kubernetes to check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every crate with the oldest and the newest version.
    Gate,
    /// Every crate with each version, and with each of [`PAIRS`].
    All,
}

/// Pairs of features whose code uses each other. It may compile with one of them alone and with all features together, and
/// still not with the two.
const PAIRS: [[&str; 2]; 3] = [["testing", "webhook"], ["testing", "karmada"], ["otel", "webhook"]];

/// Returns the names in the `[features]` section of a manifest. It parses lines, because xtask has no TOML parser.
fn names(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[features]").skip(1);
    let section = lines.take_while(|line| !line.starts_with('['));
    section.filter_map(|line| Some(line.split_once(" = ")?.0.trim())).filter(|name| !name.starts_with('#')).collect()
}

/// Returns the minor version in the name of a feature: 37 for `v1_37`.
fn number(name: &str) -> Option<u32> {
    name.strip_prefix("v1_")?.parse().ok()
}

/// Returns the features that select a Kubernetes version, the oldest version first.
fn versions<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut versions: Vec<&str> = names.iter().copied().filter(|name| number(name).is_some()).collect();
    versions.sort_unstable_by_key(|name| number(name));
    versions
}

/// Returns the feature of the newest Kubernetes version, such as `v1_37`.
pub(crate) fn newest() -> Result<String> {
    let manifest = manifest("kctl")?;
    versions(&names(&manifest)).pop().map(str::to_owned).ok_or_else(|| "kctl/Cargo.toml has no version".to_owned())
}

/// Returns a version followed by all features that are neither a version nor `default`, separated by commas.
fn join_features(names: &[&str], version: &str) -> String {
    let others = names.iter().copied().filter(|name| number(name).is_none() && *name != "default");
    let together: Vec<&str> = Some(version).filter(|version| !version.is_empty()).into_iter().chain(others).collect();
    together.join(",")
}

/// Returns the sets of features to check, as arguments of `--features`.
///
/// The sets are each Kubernetes version alone, each other feature with the newest version, and all features together. With
/// [`Extent::All`] they include [`PAIRS`]. All combinations would take hours, and features rarely interact.
fn sets(names: &[&str], of: Extent) -> Vec<String> {
    let versions = versions(names);
    let newest = versions.last().copied().unwrap_or_default();
    let mut sets: Vec<String> = match (of, versions.first()) {
        (Extent::Gate, Some(oldest)) if *oldest != newest => vec![(*oldest).to_owned(), newest.to_owned()],
        (Extent::All, Some(_)) => versions.iter().map(|version| (*version).to_owned()).collect(),
        _ => vec![newest.to_owned()],
    };
    let others: Vec<&str> = names.iter().copied().filter(|name| number(name).is_none() && *name != "default").collect();
    sets.extend(
        others.iter().map(|name| if newest.is_empty() { (*name).to_owned() } else { format!("{newest},{name}") }),
    );
    if of == Extent::All {
        let pairs = PAIRS.iter().filter(|pair| pair.iter().all(|name| others.contains(name)));
        sets.extend(pairs.map(|pair| join_features(pair, newest)));
    }
    if others.len() > 1 {
        sets.push(join_features(names, newest));
    }
    sets
}

/// Returns the version of Kubernetes in a set of features.
fn version_in(set: &str) -> Option<&str> {
    set.split(',').find(|name| number(name).is_some())
}

fn manifest(krate: &str) -> Result<String> {
    let file = root().join(krate).join("Cargo.toml");
    std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Returns the features in the documentation of a crate, separated by commas: its default ones, and those that its manifest
/// lists for docs.rs.
pub(crate) fn of_docs(krate: &str) -> Result<String> {
    Ok(documented_features(&manifest(krate)?).join(","))
}

/// Returns the default feature, if a manifest has one, and the features in its section for docs.rs.
fn documented_features(manifest: &str) -> Vec<&str> {
    let section = manifest.lines().skip_while(|line| line.trim() != "[package.metadata.docs.rs]").skip(1);
    let mut section = section.take_while(|line| !line.starts_with('['));
    let listed = section.find_map(|line| line.strip_prefix("features = [")?.strip_suffix(']')).unwrap_or_default();
    let listed = listed.split(", ").map(|name| name.trim_matches('"')).filter(|name| !name.is_empty());
    names(manifest).into_iter().filter(|name| *name == "default").chain(listed).collect()
}

/// Checks each published crate with each of its features alone, and with all of them.
///
/// With [`Extent::All`], clippy lints the crate and its dependencies for each set. In the gate, [`compile`] compiles the
/// crate, while third-party crates keep the features of the workspace. So the gate finds what a feature of kctl lacks.
///
/// In the gate, the step `packages` finds a missing feature of a third-party crate in a user's program. For the other sets,
/// `features --all` finds it, which GitHub runs for each change.
///
/// # Errors
/// A feature does not compile without another feature, or causes a warning, typically about an unused import.
pub(crate) fn check(of: Extent) -> Result {
    if of == Extent::All {
        return CRATES.iter().try_for_each(|krate| {
            let manifest = manifest(krate)?;
            sets(&names(&manifest), of).iter().try_for_each(|set| clippy(krate, set))
        });
    }
    let dependencies = third_party::Dependencies::read()?;
    for krate in CRATES {
        let manifest = manifest(krate)?;
        for set in sets(&names(&manifest), of) {
            compile(krate, &set, &dependencies.write(version_in(&set))?)?;
        }
    }
    Ok(())
}

/// Runs clippy on a crate with a set of features.
fn clippy(krate: &str, set: &str) -> Result {
    let clippy = cargo("clippy").args(["-p", krate, "--no-default-features", "--features", set]);
    clippy.args(["--", "-D", "warnings"]).run()
}

/// Returns the manifest of a project that depends on a crate with a set of features, and on the table of
/// [`third_party::Dependencies::write`]. With the profiles of a new project, the step `new-project` reuses what is checked here.
fn project(krate: &Path, name: &str, set: &str, third_party: &str) -> String {
    let features = set.split(',').filter(|feature| !feature.is_empty());
    let features = features.map(|feature| format!("\"{feature}\"")).collect::<Vec<_>>().join(", ");
    format!(
        "[package]\nname = \"features\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n\
         [dependencies]\n{name} = {{ path = '{}', default-features = false, features = [{features}] }}\n{third_party}{}",
        krate.display(),
        assertions()
    )
}

/// Returns `true` if a line of Cargo's output is a warning. It ignores tables of [`assertions`] for crates that the project
/// does not depend on.
fn is_warning(line: &str) -> bool {
    line.starts_with("warning") && !line.starts_with("warning: profile package spec ")
}

/// Compiles a crate with a set of features in a project outside the workspace, whose third-party crates have the features
/// that the workspace enables. A warning is an error.
fn compile(krate: &str, set: &str, third_party: &str) -> Result {
    let folder = scratch("features")?;
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for sub in ["src", ".cargo"] {
        std::fs::create_dir_all(folder.join(sub)).map_err(failed)?;
    }
    std::fs::write(folder.join("src/lib.rs"), "").map_err(failed)?;
    for file in ["Cargo.lock", ".cargo/config.toml"] {
        std::fs::copy(root().join(file), folder.join(file)).map_err(failed)?;
    }
    let manifest = project(&root().join(krate), krate, set, third_party);
    std::fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)?;
    let check = cargo("check").env("CARGO_TARGET_DIR", target()).env("CARGO_TERM_COLOR", "never").folder(&folder);
    let (succeeded, output) = check.output()?;
    let has_warning = output.lines().any(is_warning);
    if succeeded && !has_warning { Ok(()) } else { Err(format!("{krate} with the features {set}: see above")) }
}

/// Returns the feature of a Kubernetes version by its name or by `oldest`.
fn version_named<'a>(names: &[&'a str], wanted: &str) -> Result<&'a str> {
    let versions = versions(names);
    let is_wanted = |version: &&&str| wanted == "oldest" || **version == wanted;
    let found = versions.iter().find(is_wanted).copied();
    found.ok_or_else(|| format!("no feature `{wanted}`; there are {} and `oldest`", versions.join(", ")))
}

/// Returns all features of a crate with one Kubernetes version, as arguments of `--features` for several packages:
/// `kctl/v1_33,kctl/dev`.
fn qualified_names(krate: &str, names: &[&str], version: &str) -> String {
    let features: Vec<String> =
        join_features(names, version).split(',').map(|name| format!("{krate}/{name}")).collect();
    features.join(",")
}

/// Runs the unit tests of the crates in [`WITH_TYPES`] with the types of one Kubernetes version, or the oldest one.
///
/// One command selects the version for each of them. Their default features would select the newest version, and
/// `k8s-openapi` compiles with exactly one.
///
/// # Errors
/// There is no such feature, or a test fails.
pub(crate) fn test(wanted: &str) -> Result {
    let mut test = cargo("test").args(["--lib", "--no-default-features"]);
    for krate in WITH_TYPES {
        let manifest = manifest(krate)?;
        let names = names(&manifest);
        let features = qualified_names(krate, &names, version_named(&names, wanted)?);
        test = test.args(["-p", krate, "--features", &features]);
    }
    test.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"a\"\n[features]\ndefault = [\"dev\"]\n## Docs.\ndev = []\nsim = []\n\
        v1_32 = []\nv1_37 = []\nv1_36 = []\n[dependencies]\nb = \"1\"\n";

    #[test]
    fn each_feature_is_checked_with_the_newest_version() {
        let ends = ["v1_32", "v1_37", "v1_37,dev", "v1_37,sim", "v1_37,dev,sim"];
        assert_eq!(sets(&names(MANIFEST), Extent::Gate), ends);
        let all = ["v1_32", "v1_36", "v1_37", "v1_37,dev", "v1_37,sim", "v1_37,dev,sim"];
        assert_eq!(sets(&names(MANIFEST), Extent::All), all);
    }

    #[test]
    fn every_pair_is_checked_outside_the_gate() {
        let kctl = manifest("kctl").unwrap();
        let names = names(&kctl);
        let (gate, all) = (sets(&names, Extent::Gate), sets(&names, Extent::All));
        for pair in PAIRS {
            let set = format!("{},{}", newest().unwrap(), pair.join(","));
            assert!(all.contains(&set), "{set}: {all:?}");
            assert!(!gate.contains(&set), "{set}: {gate:?}");
        }
    }

    #[test]
    fn set_has_at_most_one_version() {
        assert_eq!(version_in("v1_33"), Some("v1_33"));
        assert_eq!(version_in("v1_37,dev,sim"), Some("v1_37"));
        assert_eq!(version_in("check"), None);
        assert_eq!(version_in(""), None);
    }

    #[test]
    fn version_is_found_by_name_or_age() {
        let names = names(MANIFEST);
        assert_eq!(version_named(&names, "oldest"), Ok("v1_32"));
        assert_eq!(version_named(&names, "v1_36"), Ok("v1_36"));
        assert!(version_named(&names, "v1_35").unwrap_err().contains("v1_32, v1_36, v1_37"));
    }

    #[test]
    fn crate_without_versions_is_checked_for_each_feature() {
        assert_eq!(sets(&names("[features]\ncheck = []\n"), Extent::Gate), ["", "check"]);
    }

    #[test]
    fn documented_features_include_default_and_docs_rs() {
        let docs = "[package.metadata.docs.rs]\nfeatures = [\"dev\", \"sim\"]\nrustdoc-args = []\n";
        assert_eq!(documented_features(&format!("{MANIFEST}{docs}")), ["default", "dev", "sim"]);
        assert_eq!(
            documented_features("[features]\ncheck = []\n[package.metadata.docs.rs]\n[lints]\n"),
            [] as [&str; 0]
        );
        for krate in CRATES {
            let manifest = manifest(krate).unwrap();
            let documented = documented_features(&manifest);
            assert!(documented.iter().all(|name| names(&manifest).contains(name)), "{krate}: {documented:?}");
            assert!(!documented.is_empty(), "{krate}");
        }
    }

    #[test]
    fn project_enables_only_its_features() {
        let manifest = project(Path::new("/kctl"), "kctl", "v1_37,dev", "\n[others]\n");
        let expected = "[dependencies]\nkctl = { path = '/kctl', default-features = false, features = [\"v1_37\", \"dev\"] }\n\n[others]\n";
        assert!(manifest.ends_with(&format!("{expected}{}", assertions())), "{manifest}");
        let without = project(Path::new("/cel"), "kctl-cel", "", "");
        assert!(
            without.contains("kctl-cel = { path = '/cel', default-features = false, features = [] }\n"),
            "{without}"
        );
    }

    #[test]
    fn profile_of_absent_crate_causes_no_warning() {
        assert!(!is_warning("warning: profile package spec `kctl-cel` in profile `dev` did not match any packages"));
        assert!(is_warning("warning: unused import: `std::path::Path`"));
        assert!(is_warning("warning: `kctl` (lib) generated 1 warning"));
        assert!(!is_warning("    Checking kctl v0.1.0"));
    }

    #[test]
    fn features_of_several_packages_name_their_crate() {
        let features = qualified_names("a", &names(MANIFEST), "v1_36");
        assert_eq!(features, "a/v1_36,a/dev,a/sim");
    }

    #[test]
    fn every_crate_with_versions_has_the_same_ones() {
        let kctl = manifest("kctl").unwrap();
        let expected = versions(&names(&kctl));
        assert!(expected.len() > 1, "{expected:?}");
        for krate in CRATES {
            let manifest = manifest(krate).unwrap();
            let found = versions(&names(&manifest));
            assert!(
                found.is_empty() || found == expected,
                "UPDATING.md lists the manifests to change: {krate} has {found:?}"
            );
            assert_eq!(WITH_TYPES.contains(&krate), !found.is_empty(), "{krate}");
        }
    }

    /// `guide/versions.md` promises a real server of each version every night, and answers are recorded from the newest one.
    #[test]
    fn nightly_workflow_has_every_version() {
        let workflow = std::fs::read_to_string(root().join(".github/workflows/nightly.yml")).unwrap();
        let list = workflow.lines().find_map(|line| line.trim().strip_prefix("kubernetes: [")?.strip_suffix(']'));
        let tested = list.unwrap().split(", ").map(|version| version.trim_matches('"').replace("1.", "v1_"));
        let kctl = manifest("kctl").unwrap();
        assert_eq!(tested.collect::<Vec<_>>(), versions(&names(&kctl)));
        let newest = newest().unwrap().replace("v1_", "1.");
        let condition = format!("if: ${{{{ matrix.kubernetes == '{newest}' }}}}\n");
        assert!(workflow.contains(&condition), "nightly.yml lacks `{condition}`");
    }

    #[test]
    fn features_of_all_crates_are_found() {
        for krate in CRATES {
            let manifest = manifest(krate).unwrap();
            assert!(sets(&names(&manifest), Extent::Gate).len() > 1, "{krate}");
        }
        let manifest = manifest("kctl").unwrap();
        let sets = sets(&names(&manifest), Extent::Gate);
        assert!(sets.len() > 4 && sets.iter().any(|set| set.ends_with(",webhook")), "{sets:?}");
    }

    /// Their code leaves out the write permit, so no program may contain it.
    #[test]
    fn only_the_simulator_has_planted_bugs() {
        let runtime = manifest("kctl-runtime").unwrap();
        assert!(names(&runtime).contains(&"planted"));
        assert!(!runtime.lines().any(|line| line.starts_with("default = ") && line.contains("planted")));
        let enabling: Vec<String> = CRATES
            .iter()
            .flat_map(|krate| manifest(krate).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| line.contains("kctl-runtime/planted") || line.contains("\"planted\""))
            .collect();
        assert!(matches!(&enabling[..], [sim] if sim.starts_with("sim = ")), "{enabling:?}");
        let kctl = manifest("kctl").unwrap();
        assert!(!kctl.lines().any(|line| line.starts_with("default = ") && line.contains("sim")));
    }

    #[test]
    fn each_crate_with_features_is_checked() {
        for folder in std::fs::read_dir(root()).unwrap().flatten() {
            let name = folder.file_name().into_string().unwrap();
            let Ok(manifest) = manifest(&name) else { continue };
            let is_published = manifest.starts_with("[package]") && !manifest.contains("publish = false");
            assert!(!is_published || names(&manifest).is_empty() || CRATES.contains(&name.as_str()), "{name}");
        }
    }
}
