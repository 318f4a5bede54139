//! Checks the packages of a release: they are complete, each one builds its crate, and a crate outside the workspace
//! builds with them.

use std::path::{Path, PathBuf};

use crate::{
    Result, dist, features,
    process::{Run, cargo, root, scratch, target},
    shared_build,
    steps::of_workspace,
};

/// The published crates, in the order of their dependencies.
const CRATES: [&str; 10] = [
    "kctl-apimachinery",
    "kctl-macros",
    "kctl-cel",
    "kctl-webhook",
    "kctl-interpreter",
    "kctl-runtime",
    "kctl-apiserver",
    "kctl-workloads",
    "kctl",
    "kctl-cli",
];
/// Files that each package must contain: crates.io shows the README, and both licences require their text.
const FILES: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// Fields of the manifest that crates.io shows or requires.
const FIELDS: [&str; 7] = ["description", "license", "repository", "readme", "keywords", "categories", "rust-version"];
/// The crates that a program without the feature `dev` doesn't need.
const DEV_ONLY: [&str; 3] = ["kctl-apiserver", "kctl-workloads", "kctl-interpreter"];
/// A test of the quickstart that runs it as a program.
const PRINTS_ITS_ROLE: &str = r#"
#[test]
fn program_prints_its_role() {
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_quickstart-outside"));
    let output = { program }.arg("generate-rbac").output().unwrap();
    let role = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && role.contains("kind: ClusterRole"), "{role}");
}
"#;

/// Reads a file. The error contains the path.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file. The error contains the path.
pub(crate) fn write(path: &Path, text: &str) -> Result {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file to a path. The error contains both.
pub(crate) fn copy(from: &Path, to: &Path) -> Result {
    std::fs::copy(from, to).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))?;
    Ok(())
}

/// The way in which the packages are built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builds {
    /// Together, in a project outside the workspace that uses all of them.
    Together,
    /// Together, and also each package alone, as `cargo publish` does. The tool `kctl` is built by `cargo install`.
    EachToo,
}

/// Packages every crate, and builds and tests the quickstart and the `kctl` tool against the packages.
pub(crate) fn check(builds: Builds) -> Result {
    // The project outside the workspace builds offline, so that it can't take a crate from crates.io.
    cargo("fetch").arg("--locked").run()?;
    let version = of_workspace("version")?;
    let outside = scratch("outside")?;
    std::fs::remove_dir_all(&outside).map_err(|error| format!("{}: {error}", outside.display()))?;
    unpack_all(builds, &version, &outside)?;
    quickstart(builds, &version, &outside)
}

/// Packages every crate, and unpacks the packages into a new folder, where each has a folder `NAME-VERSION`.
pub(crate) fn unpack_all(builds: Builds, version: &str, folder: &Path) -> Result {
    let packages = cargo("package").args(["--locked", "--allow-dirty"]);
    let packages = packages.args((builds == Builds::Together).then_some("--no-verify"));
    packages.args(CRATES.iter().flat_map(|name| ["--package", name])).run()?;
    std::fs::create_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in CRATES {
        unpack(name, version, folder)?;
    }
    Ok(())
}

/// Returns the lines of a section `[patch.crates-io]` that replaces the crates of crates.io by the unpacked packages. The folder
/// is relative to the manifest.
pub(crate) fn patches(version: &str, folder: &str) -> String {
    CRATES.map(|name| format!("{name} = {{ path = \"{folder}/{name}-{version}\" }}\n")).concat()
}

/// Returns the files that the package of a crate must contain, by its manifest. Data under the Apache License alone, which an
/// `AND` in `license` says, needs the file that attributes it.
fn files_of(manifest: &str) -> Vec<&'static str> {
    let is_mixed = manifest.lines().any(|line| line.starts_with("license = ") && line.contains(" AND "));
    FILES.into_iter().chain(is_mixed.then_some("NOTICE")).collect()
}

/// Unpacks a crate, and checks that it contains the files and fields that crates.io and docs.rs show.
fn unpack(name: &str, version: &str, outside: &Path) -> Result {
    let package = target().join("package").join(format!("{name}-{version}.crate"));
    // `-m` sets new modification times. Those in packages are old, so Cargo would reuse the result of an earlier build.
    Run::new("tar").arg("-xzmf").arg(package).arg("-C").arg(outside).run_quietly()?;
    let folder = outside.join(format!("{name}-{version}"));
    let manifest = read(&folder.join("Cargo.toml"))?;
    for file in files_of(&manifest) {
        if read(&folder.join(file))?.is_empty() {
            return Err(format!("{file} in the package of {name} is empty"));
        }
    }
    match FIELDS.iter().find(|field| !manifest.lines().any(|line| line.starts_with(&format!("{field} = ")))) {
        Some(field) => Err(format!("{name}/Cargo.toml has no {field}: add `{field}.workspace = true` or a value")),
        None => Ok(()),
    }
}

/// Returns the manifest of a workspace outside this one. Its `[patch]` section replaces the crates of crates.io.
fn workspace(version: &str) -> String {
    let patches = patches(version, ".");
    let others = CRATES.iter().filter(|name| **name != "kctl-cli").map(|name| format!("\"{name}-{version}\""));
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"quickstart\", \"kctl-cli-{version}\"]\nexclude = [{}]\n\n\
         [patch.crates-io]\n{patches}{}",
        others.collect::<Vec<_>>().join(", "),
        features::assertions()
    )
}

/// Returns the manifest of the quickstart as a user writes it, with versions instead of paths.
fn manifest(dependency: &str) -> String {
    format!(
        "[package]\nname = \"quickstart-outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n{dependency}\ntokio = {{ version = \"1\", features = [\"rt-multi-thread\", \"macros\"] }}\n\n\
         [dev-dependencies]\ntokio = {{ version = \"1\", features = [\"test-util\"] }}\n"
    )
}

/// Builds and tests the quickstart against the packages, and checks its dependencies with and without `dev`.
fn quickstart(builds: Builds, version: &str, outside: &Path) -> Result {
    let folder = outside.join("quickstart");
    let source = folder.join("src");
    std::fs::create_dir_all(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    copy(&root().join("examples/quickstart/src/main.rs"), &source.join("main.rs"))?;
    copy(&root().join("Cargo.lock"), &outside.join("Cargo.lock"))?;
    write(&outside.join("Cargo.toml"), &workspace(version))?;
    let tests = folder.join("tests");
    std::fs::create_dir_all(&tests).map_err(|error| format!("{}: {error}", tests.display()))?;
    write(&tests.join("rbac.rs"), PRINTS_ITS_ROLE)?;
    write(&folder.join("Cargo.toml"), &manifest(&format!("kctl = \"{version}\"")))?;
    // Apart from the workspace's, because both have a program `kctl`.
    let built = target().join("outside");
    shared_build::seed(&target(), &built)?;
    let run = |command: &str| cargo(command).arg("--offline").env("CARGO_TARGET_DIR", &built).folder(&folder);

    // The first two commands select all packages and a test. So they use the same features, and dependencies are built once.
    // The gate runs the test for a real API server in the workspace. Here, it would count as one that no step ran.
    let tests = ["--workspace", "--bin", "quickstart-outside", "--test", "rbac", "--", "--skip", "on_a_real_server"];
    run("test").args(tests).run()?;
    match builds {
        Builds::Together => run("build").args(["--workspace", "--bin", "kctl", "--test", "rbac"]).run()?,
        Builds::EachToo => install(version, outside, &built)?,
    }
    let paths = tree(run("tree"))?;
    let in_workspace = format!("({}", root().display());
    if let Some(line) = paths.lines().find(|line| line.contains(&in_workspace) && !is_below(line, outside)) {
        return Err(format!("the crate outside the workspace uses a crate of it: {line}"));
    }
    let packages = |features: &str| {
        let kctl = format!("kctl = {{ version = \"{version}\", default-features = false, features = [{features}] }}");
        write(&folder.join("Cargo.toml"), &manifest(&kctl))?;
        tree(run("tree"))
    };
    let newest = features::newest()?;
    let lean = packages(&format!("\"{newest}\""))?;
    let testing = packages(&format!("\"testing\", \"{newest}\""))?;
    if !has(&lean, "kctl-runtime") {
        return Err("a build without `dev` has no kctl-runtime: did `cargo tree` change?".into());
    }
    if let Some(name) = DEV_ONLY.into_iter().find(|name| has(&lean, name)) {
        return Err(format!("a build without `dev` has {name}"));
    }
    if !has(&testing, "kctl-apiserver") || has(&testing, "kctl-workloads") {
        return Err("a build with `testing` has the embedded API server and no simulated nodes".into());
    }
    Ok(())
}

/// Installs the tool `kctl` from its package as a user does, and checks the version that it prints.
///
/// `cargo install` selects the features of this package alone. So it compiles again what the quickstart needs with other
/// features, which is too slow for the gate.
fn install(version: &str, outside: &Path, built: &Path) -> Result {
    let to = scratch("install")?;
    let install = cargo("install").args(["--locked", "--offline", "--debug", "--path"]);
    let install = install.arg(outside.join(format!("kctl-cli-{version}"))).arg("--root").arg(&to);
    install.env("CARGO_TARGET_DIR", built).folder(outside).run()?;
    dist::check_version(&to.join("bin").join(format!("kctl{}", std::env::consts::EXE_SUFFIX)), version)
}

/// Returns `true` if the output of [`tree`] lists a package.
fn has(tree: &str, package: &str) -> bool {
    tree.lines().any(|line| line.starts_with(&format!("{package} ")))
}

/// Returns the packages that a program is built from, one per line.
fn tree(tree: Run) -> Result<String> {
    tree.args(["--prefix", "none", "--edges", "normal"]).read()
}

/// Returns `true` if the path that `cargo tree` prints after a package is in the folder.
///
/// Not everything in parentheses is a path: `(proc-macro)` precedes the path, and `(*)` follows a repeated package.
fn is_below(line: &str, folder: &Path) -> bool {
    let in_parentheses = line.split('(').skip(1).filter_map(|rest| rest.split(')').next());
    in_parentheses.map(PathBuf::from).any(|path| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_behind_a_package_is_read() {
        let line = "kctl-runtime v0.1.0 (/a/target/xtask/outside/kctl-runtime-0.1.0)";
        assert!(is_below(line, Path::new("/a/target/xtask/outside")));
        let macros = "kctl-macros v0.1.0 (proc-macro) (/a/target/xtask/outside/kctl-macros-0.1.0) (*)";
        assert!(is_below(macros, Path::new("/a/target/xtask/outside")));
        assert!(!is_below("kctl v0.1.0 (/a/kctl)", Path::new("/a/target/xtask/outside")));
        assert!(!is_below("serde v1.0.0", Path::new("/a")));
    }

    #[test]
    fn every_published_crate_is_packaged() {
        let workspace = read(&root().join("Cargo.toml")).unwrap();
        let members = workspace.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
        let folders = members.trim_end_matches(']').split(", ").map(|member| member.trim_matches('"'));
        let is_published = |folder: &&str| {
            !read(&root().join(folder).join("Cargo.toml")).unwrap().lines().any(|line| line == "publish = false")
        };
        let mut published: Vec<&str> = folders.filter(is_published).collect();
        published.sort_unstable();
        let mut packaged = CRATES.to_vec();
        packaged.sort_unstable();
        assert_eq!(published, packaged);
    }

    #[test]
    fn mixed_licence_requires_notice() {
        assert!(files_of("license = \"(MIT OR Apache-2.0) AND Apache-2.0\"\n").contains(&"NOTICE"));
        assert_eq!(files_of("license = \"MIT OR Apache-2.0\"\n"), FILES);
        for name in CRATES {
            let folder = root().join(name);
            let manifest = read(&folder.join("Cargo.toml")).unwrap();
            // The package of `kctl` gets the README of the workspace.
            for file in files_of(&manifest).into_iter().filter(|file| *file != "README.md") {
                assert!(folder.join(file).exists(), "{name} has no {file}");
            }
        }
    }

    /// Returns the names of crates in backticks in a string.
    fn crates_in(text: &str) -> Vec<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn release_publishes_crates_after_their_dependencies() {
        let guide = read(&root().join("RELEASING.md")).unwrap();
        let order = guide.split_once("The order is ").unwrap().1.split_once('.').unwrap().0;
        assert_eq!(crates_in(order), CRATES);
        let first = guide.lines().find_map(|line| line.trim().strip_prefix("cargo release publish -p ")).unwrap();
        assert_eq!(first.trim_end_matches(" --execute").split(" -p ").collect::<Vec<_>>(), CRATES[..5]);
        for (position, name) in CRATES.iter().enumerate() {
            let manifest = read(&root().join(name).join("Cargo.toml")).unwrap();
            let names = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
            let later: Vec<&str> = names.filter(|name| CRATES[position..].contains(name)).collect();
            assert!(later.is_empty(), "{name} depends on {later:?}");
        }
    }

    /// Between a release and the next section, the first section has the date of the release.
    #[test]
    fn release_dates_first_section_of_changelog() {
        let manifest = read(&root().join("kctl/Cargo.toml")).unwrap();
        let recipe = manifest.lines().find(|line| line.contains("file = \"../CHANGELOG.md\"")).unwrap();
        let field = |name: &str| recipe.split_once(&format!("{name} = \"")).unwrap().1.split('"').next().unwrap();
        assert!(recipe.contains("exactly = 1") && field("replace") == "## {{version}} – {{date}}", "{recipe}");
        let search = regex::Regex::new(field("search")).unwrap();

        let (changelog, version) = (read(&root().join("CHANGELOG.md")).unwrap(), of_workspace("version").unwrap());
        let (_head, sections) = changelog.split_once("\n## ").unwrap();
        let (title, text) = sections.split_once('\n').unwrap();
        let heading = format!("## {title}");
        let is_dated = regex::Regex::new(r"^## [0-9.]+ – \d{4}-\d{2}-\d{2}$").unwrap().is_match(&heading);
        let matches: Vec<&str> = search.find_iter(&changelog).map(|found| found.as_str()).collect();
        assert_eq!(matches, if is_dated { vec![] } else { vec![&*heading] }, "the first section is the next release");
        // The workflow `binaries` takes the notes of the release from the section of its version.
        assert!(!is_dated || heading.starts_with(&format!("## {version} ")), "{heading}");
        let notes = text.split("\n## ").next().unwrap();
        assert!(notes.lines().any(|line| line.starts_with("- ")), "the section of the release is empty");
    }
}
