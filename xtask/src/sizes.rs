//! `cargo xtask sizes`: measures what the feature `dev` adds to a program, for `guide/versions.md`.

use std::{collections::BTreeSet, io::Write};

use crate::{
    Result,
    process::{cargo, target},
};

/// The measured program.
const PROGRAM: &str = "quickstart";

/// Returns the number of dependencies of a program. Two versions of a crate count as two.
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
    for (title, features) in [("with `dev`", &[][..]), ("without `dev`", &["--no-default-features"][..])] {
        cargo("build").args(["--release", "--locked", "--package", PROGRAM]).args(features).quietly()?;
        let program = target().join("release").join(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX));
        let size = std::fs::metadata(&program).map_err(|error| format!("{}: {error}", program.display()))?.len();
        let tree = cargo("tree").args(["--package", PROGRAM, "--edges", "normal", "--prefix", "none"]);
        let n = dependencies(&tree.args(features).read()?);
        // Rounded to tenths of a megabyte.
        let tenths = (size + 50_000) / 100_000;
        table += &format!("| {title} | {n} | {}.{} MB |\n", tenths / 10, tenths % 10);
    }
    std::io::stdout().write_all(table.as_bytes()).map_err(|error| format!("failed to print the table: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_counted_once_for_each_version() {
        let tree = "quickstart v0.1.0 (/a)\nkctl v0.1.0 (/b)\nsyn v2.0.0\nsyn v3.0.0\nkctl v0.1.0 (/b) (*)\n\n";
        assert_eq!(dependencies(tree), 3);
    }
}
