//! Versions that pages repeat are the workspace's and the data's.

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

/// Returns the pages of [`crate::links::pages`] and the README of each crate, with their content.
fn pages_and_readmes() -> Vec<(String, String)> {
    let folders = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path().join("README.md"));
    let files = crate::links::pages().into_iter().chain(folders.filter(|file| file.exists()));
    files.map(|file| (file.display().to_string(), fs::read_to_string(&file).unwrap())).collect()
}

/// A measurement names a patch version, such as 1.36.3, and keeps it. Everything else is about the current version.
#[test]
fn pages_name_the_current_kube_apiserver() {
    let version = fs::read_to_string(root().join("kctl-apiserver/data/version.txt")).unwrap();
    let minor = version.split('.').nth(1).unwrap();
    let named = regex::Regex::new(r"kube-apiserver 1\.(\d+)(\.\d)?").unwrap();
    let mut n_current = 0;
    for (page, text) in pages_and_readmes() {
        for found in named.captures_iter(&text).filter(|found| found.get(2).is_none()) {
            assert_eq!(&found[1], minor, "{page}: {}", &found[0]);
            n_current += 1;
        }
    }
    assert!(n_current >= 5, "only {n_current} were found");
}

/// The lints of a new project are those that this repository's generated code was tested with. rustup treats `1.95` and
/// `1.95.0` as two toolchains, and would download the compiler twice.
#[test]
fn new_projects_pin_the_rust_of_this_repository() {
    let channel = |file: &str| {
        let text = fs::read_to_string(root().join(file)).unwrap();
        text.lines().find_map(|line| line.strip_prefix("channel = \"")?.strip_suffix('"')).unwrap().to_owned()
    };
    let ours = channel("rust-toolchain.toml");
    let theirs = channel("kctl-cli/templates/rust-toolchain.toml.tpl");
    assert_eq!(theirs, ours, "set the version in kctl-cli/templates");
    let docker = fs::read_to_string(root().join("kctl-cli/templates/dockerfile.tpl")).unwrap();
    assert!(docker.contains(&format!("FROM rust:{ours}-")), "set the version in kctl-cli/templates/dockerfile.tpl");
}

/// The version in examples for users of an older cluster.
const OLDER: &str = "v1_34";

#[test]
fn features_in_pages_have_the_newest_version() {
    let manifest = fs::read_to_string(root().join("kctl/Cargo.toml")).unwrap();
    let default = manifest.lines().find_map(|line| line.strip_prefix("default = [")).unwrap();
    let named = regex::Regex::new(r#""(v1_\d+)""#).unwrap();
    let newest = &named.captures(default).unwrap()[1];
    assert!(manifest.contains(&format!("\n{OLDER} = ")), "kctl no longer has {OLDER}: choose another version");
    let (mut n_newest, mut n_older) = (0, 0);
    for (page, text) in pages_and_readmes() {
        for line in text.lines().filter(|line| line.contains("features = [")) {
            for found in named.captures_iter(line) {
                match &found[1] {
                    version if version == newest => n_newest += 1,
                    OLDER => n_older += 1,
                    other => panic!("{page}: {other} is not {newest}: {line}"),
                }
            }
        }
    }
    assert!(n_newest >= 3 && n_older == 2, "{n_newest}, {n_older}");
}

/// crates.io shows the READMEs of a published version permanently, so the sentences are removed before the release dates the
/// changelog. A page that was forgotten then fails this test.
#[test]
fn pages_say_unreleased_only_before_the_first_release() {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let is_released = regex::Regex::new(r"(?m)^## \d+\.\d+\.\d+ – \d{4}").unwrap().is_match(&changelog);
    let says = regex::Regex::new(r"(?i)until \d+\.\d+\.\d+ is published|is not published yet|\d, unreleased").unwrap();
    for sentence in
        ["Until 0.1.0 is published, build it.", "0.1.0 is not published yet.", "**Status:** 0.1.0, unreleased."]
    {
        assert!(says.is_match(sentence), "{sentence}");
    }
    let pages = pages_and_readmes().into_iter().filter(|(_, text)| says.is_match(text)).map(|(page, _)| page);
    let pages: Vec<String> = pages.collect();
    let are_complete = !is_released && pages.len() > 3;
    assert!(
        pages.is_empty() || are_complete,
        "these pages are left with a sentence about an unpublished version: {pages:?}"
    );
}
