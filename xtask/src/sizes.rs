//! `cargo xtask sizes`: measures what the feature `dev` adds to a program, and compares it with `guide/versions.md`.

use std::{collections::BTreeSet, fmt, io::Write};

use crate::{
    Result,
    packages::read,
    process::{cargo, root, target},
};

/// The measured program.
const PROGRAM: &str = "quickstart";
/// The target whose dependencies are counted, so that every machine counts the same ones.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Arguments of Cargo for a build with the default features, which include `dev`, and for one without.
const WITH_DEV: [&str; 0] = [];
const WITHOUT_DEV: [&str; 1] = ["--no-default-features"];

/// The page with the measured numbers.
const GUIDE: &str = "guide/versions.md";
/// The largest difference, in percent, between a measured size and the one in the page. Dependencies and compilers change sizes a
/// little with every update.
const DIFFERENCE_MAX_PERCENT: u64 = 10;

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

/// The size of a program in tenths of a megabyte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size(u64);

impl Size {
    /// Rounds a number of bytes.
    const fn of_bytes(bytes: u64) -> Self {
        Self((bytes + 50_000) / 100_000)
    }

    /// Reads a number of megabytes with one decimal, such as `21.8`.
    fn parse(megabytes: &str) -> Option<Self> {
        let (whole, tenth) = megabytes.split_once('.').filter(|(_whole, tenth)| tenth.len() == 1)?;
        Some(Self(whole.parse::<u64>().ok()? * 10 + tenth.parse::<u64>().ok()?))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} MB", self.0 / 10, self.0 % 10)
    }
}

/// The sizes of the release build with `dev` and without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    with_dev: Size,
    without_dev: Size,
}

impl Sizes {
    /// Reads the sizes that a page states for x86-64 Linux.
    fn of_page(page: &str) -> Option<Self> {
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_before, sizes) = page.split_once("release binary for x86-64 Linux has ")?;
        let (without_dev, rest) = sizes.split_once(" MB instead of ")?;
        let (with_dev, _after) = rest.split_once(" MB")?;
        Some(Self { with_dev: Size::parse(with_dev)?, without_dev: Size::parse(without_dev)? })
    }

    /// Compares measured sizes with those in the page.
    ///
    /// # Errors
    /// A size differs by more than [`DIFFERENCE_MAX_PERCENT`].
    fn compare(self, stated: Self) -> Result {
        for (name, Size(measured), Size(stated)) in
            [("with", self.with_dev, stated.with_dev), ("without", self.without_dev, stated.without_dev)]
        {
            if measured.abs_diff(stated) * 100 > stated * DIFFERENCE_MAX_PERCENT {
                let (measured, stated) = (Size(measured), Size(stated));
                return Err(format!(
                    "{GUIDE} states {stated} {name} `dev`, and {PROGRAM} has {measured}: update the page"
                ));
            }
        }
        Ok(())
    }
}

/// Builds the program for a release, and returns its size.
fn measure(features: &[&str]) -> Result<Size> {
    cargo("build").args(["--release", "--locked", "--package", PROGRAM]).args(features).run_quietly()?;
    let program = target().join("release").join(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX));
    let metadata = std::fs::metadata(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(Size::of_bytes(metadata.len()))
}

/// Prints the size of the quickstart's release build and the number of its dependencies, with `dev` and without. On x86-64 Linux,
/// compares the sizes with the guide.
///
/// # Errors
/// A build fails, or the guide states another size.
pub(crate) fn run() -> Result {
    let sizes = Sizes { with_dev: measure(&WITH_DEV)?, without_dev: measure(&WITHOUT_DEV)? };
    let Sizes { with_dev, without_dev } = sizes;
    let table = format!(
        "| {PROGRAM} | dependencies | release binary |\n|---|---|---|\n| with `dev` | {} | {with_dev} |\n| without `dev` | {} | \
         {without_dev} |\n",
        count(&WITH_DEV)?,
        count(&WITHOUT_DEV)?
    );
    std::io::stdout().write_all(table.as_bytes()).map_err(|error| format!("failed to print the table: {error}"))?;
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(());
    }
    let stated = Sizes::of_page(&read(&root().join(GUIDE))?);
    sizes.compare(stated.ok_or_else(|| format!("{GUIDE} does not state the sizes of {PROGRAM}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_counted_once_for_each_version() {
        let tree = "quickstart v0.1.0 (/a)\nkctl v0.1.0 (/b)\nsyn v2.0.0\nsyn v3.0.0\nkctl v0.1.0 (/b) (*)\n\n";
        assert_eq!(dependencies(tree), 3);
    }

    #[test]
    fn size_is_rounded_to_tenths_of_megabytes() {
        for (bytes, text) in [(21_849_999, "21.8 MB"), (21_850_000, "21.9 MB"), (949_999, "0.9 MB")] {
            assert_eq!(Size::of_bytes(bytes).to_string(), text);
        }
        assert_eq!(Size::parse("21.8"), Some(Size(218)));
        for other in ["21", "21.85", "21.", "x.8"] {
            assert_eq!(Size::parse(other), None, "{other}");
        }
    }

    #[test]
    fn sizes_differ_from_page_by_ten_percent() {
        let page = "Its release binary for x86-64 Linux has 20.0 MB instead of\n40.0 MB (2026-11-28).";
        let stated = Sizes::of_page(page).unwrap();
        for (with_dev, without_dev, agrees) in
            [(400, 200, true), (440, 180, true), (441, 200, false), (359, 200, false), (400, 221, false)]
        {
            let measured = Sizes { with_dev: Size(with_dev), without_dev: Size(without_dev) };
            assert_eq!(measured.compare(stated).is_ok(), agrees, "{measured:?}");
        }
        assert_eq!(Sizes::of_page("Its release binary is small."), None);
    }

    #[test]
    fn guide_states_sizes_and_their_difference() {
        let guide = read(&root().join(GUIDE)).unwrap();
        assert!(Sizes::of_page(&guide).is_some());
        let difference = format!("fails if a size differs by more than {DIFFERENCE_MAX_PERCENT} %");
        assert!(guide.contains(&difference), "{GUIDE} does not say: {difference}");
    }

    #[test]
    fn guide_states_the_numbers_of_dependencies() {
        let guide = read(&root().join(GUIDE)).unwrap();
        let (with, without) = (count(&WITH_DEV).unwrap(), count(&WITHOUT_DEV).unwrap());
        let sentence = format!("Without `dev` the quickstart has {without} dependencies instead of {with}.");
        assert!(guide.contains(&sentence), "{GUIDE} does not say: {sentence}");
    }
}
