//! `cargo xtask sizes`: measures what the feature `dev` adds to a program, for `guide/versions.md`.

use std::{collections::BTreeSet, io::Write};

use crate::{
    Result,
    process::{cargo, target},
};

/// The measured program.
const PROGRAM: &str = "quickstart";
/// The target whose dependencies are counted, so that every machine counts the same ones.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Arguments of Cargo for a build with the default features, which include `dev`, and for one without.
const WITH_DEV: [&str; 0] = [];
const WITHOUT_DEV: [&str; 1] = ["--no-default-features"];

/// Returns the number of dependencies of the program.
fn count(features: &[&str]) -> Result<usize> {
    let tree = cargo("tree").args(["--locked", "--package", PROGRAM, "--target", TARGET]);
    Ok(dependencies(&tree.args(["--edges", "normal", "--prefix", "none"]).args(features).read()?))
}

/// Returns the number of packages in the output of `cargo tree` without the program. Two versions of a crate count as two.
fn dependencies(tree: &str) -> usize {
    let crates: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    crates.into_iter().filter(|name| !name.is_empty()).count().saturating_sub(1)
}

/// Prints the size of the quickstart's release build and the number of its dependencies, with `dev` and without.
///
/// # Errors
/// A build fails.
pub(crate) fn run() -> Result {
    let mut table = format!("| {PROGRAM} | dependencies | release binary |\n|---|---|---|\n");
    for (title, features) in [("with `dev`", &WITH_DEV[..]), ("without `dev`", &WITHOUT_DEV[..])] {
        cargo("build").args(["--release", "--locked", "--package", PROGRAM]).args(features).run_quietly()?;
        let program = target().join("release").join(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX));
        let size = std::fs::metadata(&program).map_err(|error| format!("{}: {error}", program.display()))?.len();
        let n = count(features)?;
        // Rounded to tenths of a megabyte.
        let tenths = (size + 50_000) / 100_000;
        table += &format!("| {title} | {n} | {}.{} MB |\n", tenths / 10, tenths % 10);
    }
    std::io::stdout().write_all(table.as_bytes()).map_err(|error| format!("failed to print the table: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

    #[test]
    fn crates_are_counted_once_for_each_version() {
        let tree = "quickstart v0.1.0 (/a)\nkctl v0.1.0 (/b)\nsyn v2.0.0\nsyn v3.0.0\nkctl v0.1.0 (/b) (*)\n\n";
        assert_eq!(dependencies(tree), 3);
    }

    #[test]
    fn guide_states_the_numbers_of_dependencies() {
        let guide = std::fs::read_to_string(root().join("guide/versions.md")).unwrap();
        let (with, without) = (count(&WITH_DEV).unwrap(), count(&WITHOUT_DEV).unwrap());
        let sentence = format!("Without `dev` the quickstart has {without} dependencies instead of {with}.");
        assert!(guide.contains(&sentence), "guide/versions.md does not say: {sentence}");
    }
}
