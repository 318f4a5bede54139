//! A `cargo test … NAME` in the docs selects at least one test, because cargo accepts a filter without a match
//! silently.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::links::{pages, root};

/// Options of `cargo test` that take a value.
const WITH_VALUE: [&str; 5] = ["-p", "--package", "--test", "--bin", "--features"];

/// Collects the names of functions, modules and Rust files in a folder, which can be parts of a test's path.
fn names_in(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() && name != "target" && !name.starts_with('.') {
            names_in(&entry, names);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry).unwrap();
            let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
            let named = words.windows(2).filter(|pair| ["fn", "mod"].contains(&pair[0]));
            names.extend(named.map(|pair| pair[1].to_owned()));
            names.insert(name);
        }
    }
}

/// Returns the filters of the `cargo test` commands on a page, without placeholders such as `NAME`.
fn filters(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for command in text.split("cargo test ").skip(1) {
        let line = command.split(['\n', '`', '|', '#', '&', ';']).next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "--").collect();
        for (at, word) in words.iter().enumerate() {
            let is_value = at > 0 && WITH_VALUE.contains(&words[at - 1]);
            if !is_value && word.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                found.push(*word);
            }
        }
    }
    found
}

#[test]
fn filters_of_commands_select_tests() {
    let mut names = BTreeSet::new();
    names_in(&root(), &mut names);
    let is_known = |filter: &str| filter.split("::").all(|part| names.iter().any(|name| name.contains(part)));
    let mut wrong: Vec<(PathBuf, String)> = Vec::new();
    let mut n_filters = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for filter in filters(&text) {
            n_filters += 1;
            if !is_known(filter) {
                wrong.push((page.clone(), filter.to_owned()));
            }
        }
    }
    assert!(n_filters >= 3, "pages name only {n_filters} filters");
    assert!(wrong.is_empty(), "no test has these in its name: {wrong:#?}");
}

#[test]
fn values_of_options_are_no_filters() {
    let page = "`cargo test -p kctl-tests --test loop reads` and\ncargo test --workspace a::b -- --ignored\ncargo test -p NAME TEST";
    assert_eq!(filters(page), ["reads", "a::b"]);
}
