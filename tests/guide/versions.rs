//! Versions that pages repeat are those of the workspace and of the data.

use std::fs;

use crate::links::root;

/// Returns the version of all crates, such as `0.1.0`.
fn version() -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"')).unwrap().to_owned()
}

#[test]
fn dependencies_in_pages_have_the_current_version() {
    let version = version();
    let (minor, _patch) = version.rsplit_once('.').unwrap();
    let mut pages = crate::links::pages();
    let folders = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(folders.map(|folder| folder.join("README.md")).filter(|file| file.exists()));
    let (mut n_lines, mut wrong) = (0, Vec::new());
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for line in text.lines().filter(|line| line.starts_with("kctl")) {
            // `kctl = "0.1"` and `kctl = { version = "0.1", … }`.
            let Some((_name, value)) = line.split_once(" = ") else { continue };
            let found = value.split_once("version = ").map_or(value, |(_, rest)| rest);
            let Some(found) = found.strip_prefix('"').and_then(|rest| rest.split('"').next()) else { continue };
            n_lines += 1;
            if found != minor {
                wrong.push(format!("{}: {line}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "write `version = \"{minor}\"`:\n{}", wrong.join("\n"));
    assert!(n_lines >= 5, "only {n_lines} lines were found");
}

#[test]
fn notice_names_the_version_of_the_data() {
    let notice = fs::read_to_string(root().join("NOTICE")).unwrap();
    let version = fs::read_to_string(root().join("kctl-apiserver/data/version.txt")).unwrap();
    let expected = format!("version {}: kctl-apiserver/data/", version.trim());
    assert!(notice.contains(&expected), "NOTICE does not say `{expected}`");
}
