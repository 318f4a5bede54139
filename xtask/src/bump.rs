//! `cargo xtask bump`: sets the next version of all crates, and changes everything that has to follow it.
//!
//! A major or minor version renames the module that expansions of macros use, so that crates of two versions can't be mixed by
//! accident.

use std::{fmt, fs, path::Path};

use clap::ValueEnum;

use crate::{
    Result,
    process::{Run, cargo, root},
};

/// Prefix of the module that expansions use. The version follows, for example `0_1`.
const PRIVATE: &str = "__private_";

/// The part of the version that goes up.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Level {
    /// For 1.0.0 itself, and for breaking changes after it.
    Major,
    /// For breaking changes before 1.0, and for additions after it.
    Minor,
    /// For everything else.
    Patch,
}

/// A version of all crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// Reads the version from the manifest of the workspace.
    fn of_manifest(manifest: &str) -> Option<Self> {
        let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))?;
        let mut numbers = version.split('.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { major: next()?, minor: next()?, patch: next()? })
    }

    fn next(self, level: Level) -> Self {
        match level {
            Level::Major => Self { major: self.major + 1, minor: 0, patch: 0 },
            Level::Minor => Self { minor: self.minor + 1, patch: 0, ..self },
            Level::Patch => Self { patch: self.patch + 1, ..self },
        }
    }

    /// Returns the version as users of Cargo write it: `0.1`.
    fn requirement(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    fn private_module(self) -> String {
        format!("{PRIVATE}{}_{}", self.major, self.minor)
    }
}

/// Changes the version of the workspace and the requirements of its crates.
fn bump_manifest(manifest: &str, from: Version, to: Version) -> String {
    replace_in_lines(manifest, &from.to_string(), &to.to_string(), |line| {
        line.starts_with("version = ") || line.contains("{ path = ")
    })
}

/// Changes the requirement in the `Cargo.toml` lines of a page.
fn bump_page(page: &str, from: Version, to: Version) -> String {
    let quoted = |version: Version| format!("\"{}\"", version.requirement());
    replace_in_lines(page, &quoted(from), &quoted(to), |line| {
        line.starts_with("kctl") || line.contains("`version = \"")
    })
}

/// Begins the section of the version in the changelog, or renames the section of one that was not released.
fn bump_changelog(changelog: &str, from: Version, to: Version) -> Result<String> {
    let heading = format!("## {to} – unreleased\n");
    let unreleased = format!("## {from} – unreleased\n");
    if changelog.contains(&unreleased) {
        return Ok(changelog.replacen(&unreleased, &heading, 1));
    }
    let first = changelog.find("\n## ").ok_or("CHANGELOG.md has no section `## VERSION – DATE`")? + 1;
    Ok(format!("{}{heading}\n{}", &changelog[..first], &changelog[first..]))
}

/// Replaces `from` in the lines that a predicate accepts.
fn replace_in_lines(text: &str, from: &str, to: &str, is_meant: impl Fn(&str) -> bool) -> String {
    let lines = text.split_inclusive('\n');
    lines.map(|line| if is_meant(line) { line.replace(from, to) } else { line.to_owned() }).collect()
}

/// Changes a file of the repository, if the change does anything.
fn change(file: &str, edit: impl FnOnce(&str) -> Result<String>) -> Result {
    let path = root().join(file);
    let failed = |error: std::io::Error| format!("{file}: {error}");
    let before = fs::read_to_string(&path).map_err(failed)?;
    let after = edit(&before)?;
    if after == before { Ok(()) } else { fs::write(&path, after).map_err(failed) }
}

/// Returns the files of the repository that Git lists for these arguments.
fn files(arguments: &[&str]) -> Result<Vec<String>> {
    Ok(Run::new("git").args(arguments).read()?.lines().map(str::to_owned).collect())
}

/// Renames the module that expansions use, and its file.
fn rename_private_module(from: Version, to: Version) -> Result {
    let (old, new) = (from.private_module(), to.private_module());
    // RELEASING.md explains the name by an example.
    for file in files(&["grep", "-l", &old, "--", ".", ":!RELEASING.md"])? {
        change(&file, |text| Ok(text.replace(&old, &new)))?;
    }
    for file in files(&["ls-files", &format!("*{old}*")])? {
        let renamed = Path::new(&file)
            .with_file_name(Path::new(&file).file_name().unwrap_or_default().to_string_lossy().replace(&old, &new));
        Run::new("git").args(["mv", &file]).arg(renamed).run()?;
    }
    Ok(())
}

/// Sets the next version. The changes are not committed.
///
/// # Errors
/// The repository has uncommitted changes, or a file does not have the expected form.
pub(crate) fn run(level: Level) -> Result {
    if !Run::new("git").args(["status", "--porcelain", "--untracked-files=no"]).read()?.trim().is_empty() {
        return Err("the repository has uncommitted changes: commit them, so that the diff shows this one alone".into());
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let from = Version::of_manifest(&manifest).ok_or("Cargo.toml has no line `version = \"X.Y.Z\"`")?;
    let to = from.next(level);
    change("Cargo.toml", |text| Ok(bump_manifest(text, from, to)))?;
    change("CHANGELOG.md", |text| bump_changelog(text, from, to))?;
    if from.requirement() != to.requirement() {
        rename_private_module(from, to)?;
        for page in files(&["ls-files", "*.md", ":!RELEASING.md", ":!CHANGELOG.md"])? {
            change(&page, |text| Ok(bump_page(text, from, to)))?;
        }
    }
    // Writes the versions of the workspace's crates to Cargo.lock, and keeps the versions of dependencies.
    cargo("update").args(["--workspace", "--offline"]).run()?;
    Run::new("git").args(["diff", "--stat", "HEAD"]).run()?;
    eprintln!("{from} is now {to}. RELEASING.md lists the next steps.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Version = Version { major: 0, minor: 1, patch: 3 };

    #[test]
    fn levels_raise_their_number() {
        assert_eq!(OLD.next(Level::Major).to_string(), "1.0.0");
        assert_eq!(OLD.next(Level::Minor).to_string(), "0.2.0");
        assert_eq!(OLD.next(Level::Patch).to_string(), "0.1.4");
        let stable = Version { major: 1, ..OLD };
        assert_eq!(stable.next(Level::Major).to_string(), "2.0.0");
        assert_eq!(stable.next(Level::Minor).to_string(), "1.2.0");
        assert_eq!(OLD.private_module(), format!("{PRIVATE}0_1"));
    }

    #[test]
    fn manifest_changes_own_crates_alone() {
        let manifest = "[workspace.package]\nversion = \"0.1.3\"\n\n[workspace.dependencies]\nkctl = { path = \"kctl\", \
                        version = \"0.1.3\" }\nkctl-cel = { path = \"kctl-cel\", version = \"=0.1.3\" }\nother = { version \
                        = \"0.1.3\" }\n";
        assert_eq!(Version::of_manifest(manifest), Some(OLD));
        let bumped = bump_manifest(manifest, OLD, OLD.next(Level::Minor));
        assert_eq!(bumped.matches("0.2.0").count(), 3, "{bumped}");
        assert!(bumped.ends_with("other = { version = \"0.1.3\" }\n"), "{bumped}");
    }

    #[test]
    fn pages_change_lines_of_kctl_alone() {
        let page =
            "kctl = { version = \"0.1\", features = [\"dev\"] }\nmimalloc = \"0.1\"\nwrite `version = \"0.1\"`\n";
        let bumped = bump_page(page, OLD, OLD.next(Level::Minor));
        assert_eq!(
            bumped,
            "kctl = { version = \"0.2\", features = [\"dev\"] }\nmimalloc = \"0.1\"\nwrite `version = \"0.2\"`\n"
        );
    }

    #[test]
    fn major_version_changes_pages_and_module() {
        let next = OLD.next(Level::Major);
        assert_eq!(bump_page("kctl = \"0.1\"\n", OLD, next), "kctl = \"1.0\"\n");
        assert_eq!(next.private_module(), format!("{PRIVATE}1_0"));
    }

    #[test]
    fn changelog_begins_or_renames_a_section() {
        let next = OLD.next(Level::Minor);
        let released = "# Changelog\n\n## 0.1.3 – 2027-01-01\n\nThe first.\n";
        assert_eq!(
            bump_changelog(released, OLD, next).unwrap(),
            "# Changelog\n\n## 0.2.0 – unreleased\n\n## 0.1.3 – 2027-01-01\n\nThe first.\n"
        );
        let unreleased = "# Changelog\n\n## 0.1.3 – unreleased\n\nThe first.\n";
        assert_eq!(
            bump_changelog(unreleased, OLD, next).unwrap(),
            "# Changelog\n\n## 0.2.0 – unreleased\n\nThe first.\n"
        );
        assert!(bump_changelog("# Changelog\n", OLD, next).is_err());
    }

    /// The command finds the version, and the module of that version exists.
    #[test]
    fn repository_has_the_expected_form() {
        let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
        let version = Version::of_manifest(&read("Cargo.toml")).unwrap();
        assert!(root().join(format!("kctl-runtime/src/{}.rs", version.private_module())).exists());
        let bumped = bump_manifest(&read("Cargo.toml"), version, version.next(Level::Minor));
        assert!(!bumped.contains(&format!("{version}\"")), "{bumped}");
        bump_changelog(&read("CHANGELOG.md"), version, version.next(Level::Patch)).unwrap();
    }
}
