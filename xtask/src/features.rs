//! The features of the facade, read from its manifest, so that a new one is checked without being listed here.

use crate::{
    Result,
    process::{cargo, root},
};

/// Returns the names in `[features]` of a manifest, by its lines: xtask has no TOML parser.
fn names(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[features]").skip(1);
    let section = lines.take_while(|line| !line.starts_with('['));
    section.filter_map(|line| Some(line.split_once(" = ")?.0.trim())).filter(|name| !name.starts_with('#')).collect()
}

/// Returns the sets of features to check, as arguments of `--features`.
///
/// These are the oldest and the newest version of Kubernetes alone, and each other feature with the newest version. All
/// combinations would take hours, and features rarely interact.
fn sets(names: &[&str]) -> Vec<String> {
    let number = |name: &str| name.strip_prefix("v1_")?.parse::<u32>().ok();
    let mut versions: Vec<u32> = names.iter().filter_map(|name| number(name)).collect();
    versions.sort_unstable();
    let (Some(oldest), Some(newest)) = (versions.first(), versions.last()) else { return Vec::new() };
    let mut sets = vec![format!("v1_{newest}")];
    if oldest != newest {
        sets.insert(0, format!("v1_{oldest}"));
    }
    let others = names.iter().filter(|name| number(name).is_none() && **name != "default");
    sets.extend(others.map(|name| format!("v1_{newest},{name}")));
    sets
}

/// Runs clippy over the facade with each feature alone, and over the runtime without the facade.
///
/// # Errors
/// Code does not compile or has a warning without some other feature, typically an unused import.
pub(crate) fn check() -> Result {
    let manifest = root().join("kctl/Cargo.toml");
    let manifest = std::fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let sets = sets(&names(&manifest));
    let newest = sets.iter().rfind(|set| !set.contains(',')).ok_or("kctl/Cargo.toml has no feature of a version")?;
    let clippy = |package: &str| cargo("clippy").args(["-p", package]);
    for set in &sets {
        clippy("kctl").args(["--no-default-features", "--features", set, "--", "-D", "warnings"]).run()?;
    }
    let of_runtime = format!("k8s-openapi/{newest}");
    clippy("kctl-runtime").args(["--features", &of_runtime, "--", "-D", "warnings"]).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_checked_with_the_newest_version() {
        let manifest = "[package]\nname = \"a\"\n[features]\ndefault = [\"dev\"]\n## Docs.\ndev = []\n\
            v1_32 = []\nv1_37 = []\nv1_36 = []\n[dependencies]\nb = \"1\"\n";
        assert_eq!(sets(&names(manifest)), ["v1_32", "v1_37", "v1_37,dev"]);
    }

    #[test]
    fn features_of_kctl_are_found() {
        let manifest = std::fs::read_to_string(root().join("kctl/Cargo.toml")).unwrap();
        let sets = sets(&names(&manifest));
        assert!(sets.len() > 4 && sets.iter().any(|set| set.ends_with(",webhook")), "{sets:?}");
    }
}
