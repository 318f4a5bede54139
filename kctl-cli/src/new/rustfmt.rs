//! Formats generated code with rustfmt, as `cargo fmt` formats the project.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::repository::real_path;

/// File names of rustfmt's settings. In a folder with both, rustfmt reads the first one.
const SETTINGS: [&str; 2] = [".rustfmt.toml", "rustfmt.toml"];

/// The edition of code whose manifest names none. Cargo uses 2015 then, but no project of kctl does: that edition has no
/// `async fn`.
const EDITION: &str = "2024";

/// Formats a file, since line lengths depend on the names. Without rustfmt it prints a note: `cargo fmt --check` of the
/// project's workflow would fail.
pub(crate) fn format_file(file: &Path) {
    let formatted = std::fs::read_to_string(file).ok().and_then(|source| format_source(&source, file));
    if formatted.is_none_or(|formatted| std::fs::write(file, formatted).is_err()) {
        say!("note: rustfmt could not format {}; run `cargo fmt` before you commit", file.display());
    }
}

/// Returns source as `cargo fmt` formats it in a file of a project; `None` without rustfmt, or if it cannot be parsed.
///
/// rustfmt gets it on standard input, because it would format the modules of a named file as well. It runs outside of the
/// project, whose `rust-toolchain.toml` may name a version of Rust that is not installed. There it finds neither the settings
/// nor the edition of the project, so both are arguments.
pub(crate) fn format_source(source: &str, file: &Path) -> Option<String> {
    let folder = real_path(file.parent()?);
    let edition = edition(&folder).unwrap_or_else(|| EDITION.to_owned());
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.current_dir(std::env::temp_dir()).args(["--edition", &edition]);
    if let Some(settings) = settings(&folder) {
        rustfmt.arg("--config-path").arg(settings);
    }
    rustfmt.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = rustfmt.spawn().ok()?;
    // rustfmt reads all of its input before it writes, so neither side waits for the other.
    child.stdin.take()?.write_all(source.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8(output.stdout).ok().filter(|_| output.status.success())
}

/// Returns the file with rustfmt's settings for a folder: in the folder, or in the nearest one above.
///
/// `--config-path` with a folder would fail unless the file is directly in it.
fn settings(folder: &Path) -> Option<PathBuf> {
    let mut files = folder.ancestors().flat_map(|above| SETTINGS.map(|name| above.join(name)));
    files.find(|file| file.is_file())
}

/// Returns the edition of the package with a folder; `None` without a manifest that names it.
///
/// A package may inherit its edition (`edition.workspace = true`) from the same manifest, or from one above.
fn edition(folder: &Path) -> Option<String> {
    let mut manifests = folder.ancestors().filter_map(|above| std::fs::read_to_string(above.join("Cargo.toml")).ok());
    let package = manifests.next()?;
    let of_workspace = |manifest: &str| edition_in(manifest, "[workspace.package]");
    let inherited = || of_workspace(&package).or_else(|| manifests.find_map(|manifest| of_workspace(&manifest)));
    edition_in(&package, "[package]").or_else(inherited)
}

/// Returns the edition in a table of a manifest; `None` if the table has none, or inherits it.
fn edition_in(manifest: &str, table: &str) -> Option<String> {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != table).skip(1);
    let mut values = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.strip_prefix("edition"));
    let value = values.find_map(|rest| rest.trim_start().strip_prefix('='))?;
    value.split(['"', '\'']).nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edition_comes_from_package_or_workspace() {
        let folder = std::env::temp_dir().join(format!("kctl-edition-{}", std::process::id()));
        let source = folder.join("web/src");
        std::fs::create_dir_all(&source).unwrap();
        let workspace = "[workspace]\nmembers = [\"web\"]\n\n[workspace.package]\nedition = \"2018\"\n";
        std::fs::write(folder.join("Cargo.toml"), workspace).unwrap();
        for (manifest, expected) in [
            ("[package]\nname = \"web\"\nedition = \"2021\"\n\n[workspace.package]\nedition = \"2024\"\n", "2021"),
            ("[package]\nedition='2021' # as others\n", "2021"),
            ("[package]\nedition.workspace = true\n", "2018"),
            ("[package]\nedition = { workspace = true }\n", "2018"),
            ("[package]\nedition.workspace = true\n\n[workspace.package]\nedition = \"2024\"\n", "2024"),
            ("[dependencies]\nedition = \"1\"\n", "2018"),
        ] {
            std::fs::write(folder.join("web/Cargo.toml"), manifest).unwrap();
            assert_eq!(edition(&source).as_deref(), Some(expected), "{manifest}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn nearest_settings_are_used() {
        let folder = std::env::temp_dir().join(format!("kctl-settings-{}", std::process::id()));
        let source = folder.join("web/src");
        std::fs::create_dir_all(&source).unwrap();
        for file in ["rustfmt.toml", "web/rustfmt.toml", "web/.rustfmt.toml"] {
            std::fs::write(folder.join(file), "").unwrap();
            assert_eq!(settings(&source), Some(folder.join(file)));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
