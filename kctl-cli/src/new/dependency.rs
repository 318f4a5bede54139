//! The dependency on kctl in `Cargo.toml` of a new project.

use std::path::Path;

use super::error::NewFailure;

/// Returns the kctl dependency for `Cargo.toml`: the given folder, or the source that this tool was built from.
///
/// # Errors
/// The given folder is neither the crate `kctl` nor its repository.
pub(super) fn dependency(folder: Option<&Path>) -> Result<String, NewFailure> {
    let Some(folder) = folder else { return Ok(source_of_build(Path::new(env!("CARGO_MANIFEST_DIR")))) };
    // The folder may be the repository or the crate in it.
    let found = folder.canonicalize().ok().and_then(|folder| {
        let inner = folder.join("kctl");
        [folder, inner].into_iter().find(|folder| is_kctl(folder))
    });
    found.map(|path| path_dependency(&path)).ok_or_else(|| NewFailure::NoKctl(folder.into()))
}

/// Returns the `path = …` of the dependency, for a project that only this machine can build.
fn path_dependency(path: &Path) -> String {
    format!("path = {}", toml_string(&path.display().to_string()))
}

/// Returns a basic string of TOML, whose escapes differ from Rust's.
fn toml_string(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Returns the dependency on the kctl of the same source as this tool. `manifest` is the folder of its manifest when it
/// was built. The source is the commit of `cargo install --git`, a checkout if it still exists, or the published
/// version with the same number.
fn source_of_build(manifest: &Path) -> String {
    if let Some(commit) = commit_of_cargo(manifest) {
        return format!("git = {:?}, rev = {commit:?}", env!("CARGO_PKG_REPOSITORY"));
    }
    let checkout = manifest.with_file_name("kctl");
    if is_kctl(&checkout) { path_dependency(&checkout) } else { format!("version = {:?}", env!("CARGO_PKG_VERSION")) }
}

/// Returns the commit of a checkout that `cargo install --git` made: `CARGO_HOME/git/checkouts/NAME-HASH/COMMIT`. For any
/// other folder it returns `None`.
///
/// No project may depend on the path of such a checkout: Cargo deletes it after some months, and no other machine has it.
fn commit_of_cargo(manifest: &Path) -> Option<String> {
    let checkout = manifest.parent()?;
    let named = |nth: usize, name: &str| checkout.ancestors().nth(nth)?.file_name().filter(|found| *found == name);
    named(2, "checkouts").and(named(3, "git"))?;
    // The folder has the abbreviated commit.
    let short = checkout.file_name()?.to_str()?;
    let head = std::fs::read_to_string(checkout.join(".git/HEAD")).unwrap_or_default();
    Some(if head.starts_with(short) { head.trim().to_owned() } else { short.to_owned() })
}

/// Returns `true` if the first `name` in the folder's `Cargo.toml` is `kctl`.
fn is_kctl(folder: &Path) -> bool {
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    // The name of the package comes before the names of its binaries.
    text.lines().find(|line| line.starts_with("name =")) == Some(r#"name = "kctl""#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kctl_folder_accepts_only_crate_or_repository() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let path = format!("path = {:?}", crates.join("kctl").display().to_string());
        for folder in [crates.join("kctl"), crates.to_owned()] {
            assert_eq!(dependency(Some(&folder)).unwrap(), path, "{}", folder.display());
        }
        for folder in [crates.join("kctl-cli"), crates.join("nowhere")] {
            assert!(dependency(Some(&folder)).unwrap_err().to_string().contains("does not contain the kctl crate"));
        }
    }

    #[test]
    fn project_of_git_install_depends_on_commit() {
        let cargo = std::env::temp_dir().join(format!("kctl-cargo-home-{}", std::process::id()));
        let checkout = cargo.join("git/checkouts/kctl-0123456789abcdef/abc1234");
        let repository = "git = \"https://github.com/kctl-rs/kctl\", rev = ";
        assert_eq!(source_of_build(&checkout.join("kctl-cli")), format!("{repository}\"abc1234\""));
        let head = format!("abc1234{}", "0".repeat(33));
        std::fs::create_dir_all(checkout.join(".git")).unwrap();
        std::fs::write(checkout.join(".git/HEAD"), format!("{head}\n")).unwrap();
        assert_eq!(source_of_build(&checkout.join("kctl-cli")), format!("{repository}{head:?}"));
        std::fs::remove_dir_all(&cargo).unwrap();

        // A checkout of a user, and the sources of a published crate.
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(source_of_build(here), path_dependency(&here.with_file_name("kctl")));
        let registry = Path::new("/nowhere/registry/src/index.crates.io-0123456789abcdef/kctl-cli-0.1.0");
        assert_eq!(source_of_build(registry), format!("version = {:?}", env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn path_is_written_as_toml_string() {
        // A decomposed `ü`, as macOS stores it, and the separator of Windows.
        assert_eq!(path_dependency(Path::new("/u\u{308}x/kctl")), "path = \"/u\u{308}x/kctl\"");
        assert_eq!(path_dependency(Path::new("C:\\a\"\u{1}")), r#"path = "C:\\a\"\u0001""#);
    }
}
