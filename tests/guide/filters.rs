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

/// Collects the paths of tests in a folder: the folders and the file below `root`, and the name of the function.
///
/// Macros such as `permissions_test!` and the topics of conformance cases make tests whose names are in their arguments, so all
/// words of a file with such a macro count as well.
fn tests_in(folder: &Path, above: &str, tests: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let path = format!("{above}::{name}");
        if entry.is_dir() && name != "target" && !name.starts_with('.') {
            tests_in(&entry, &path, tests);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry).unwrap();
            tests.extend(functions_with_test_attribute(&text).map(|function| format!("{path}::{function}")));
            if MAKE_TESTS.iter().any(|name| text.contains(name)) {
                let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                tests.extend(words.map(|word| format!("{path}::{word}")));
            }
        }
    }
}

/// Macros that make tests.
const MAKE_TESTS: [&str; 5] = ["role_tests!", "permissions_test!", "sharded_role_tests!", "topics!", "macro_rules!"];

/// Returns the names of the functions below an attribute that makes a test.
fn functions_with_test_attribute(text: &str) -> impl Iterator<Item = &str> {
    let is_test = |line: &str| line.starts_with("#[") && (line.contains("test]") || line.contains("test("));
    let mut is_next = false;
    text.lines().map(str::trim).filter_map(move |line| {
        is_next |= is_test(line);
        let name = line.split_once("fn ").filter(|_| is_next && !line.starts_with("//"))?.1.split(['(', '<']).next()?;
        is_next = false;
        Some(name)
    })
}

/// Returns the filters of the `cargo test` commands on a page, each with the test file that its command selects. There is
/// no filter for a placeholder such as `NAME`.
fn filters(text: &str) -> Vec<(Option<&str>, &str)> {
    let mut found = Vec::new();
    for command in text.split("cargo test ").skip(1) {
        let line = command.split(['\n', '`', '|', '#', '&', ';']).next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "--").collect();
        let target = words.iter().skip_while(|word| **word != "--test").nth(1).copied();
        for (at, word) in words.iter().enumerate() {
            let is_value = at > 0 && WITH_VALUE.contains(&words[at - 1]);
            if !is_value && word.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                found.push((target, *word));
            }
        }
    }
    found
}

#[test]
fn filters_of_commands_select_tests() {
    let mut tests = BTreeSet::new();
    tests_in(&root(), "", &mut tests);
    // A file with tests in other folders is a module, so the path has every part of the filter.
    let selects = |test: &String, target: Option<&str>, filter: &str| {
        target.is_none_or(|target| test.contains(target)) && filter.split("::").all(|part| test.contains(part))
    };
    let mut wrong: Vec<(PathBuf, String)> = Vec::new();
    let mut n_filters = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (target, filter) in filters(&text) {
            n_filters += 1;
            if !tests.iter().any(|test| selects(test, target, filter)) {
                wrong.push((page.clone(), filter.to_owned()));
            }
        }
    }
    assert!(n_filters >= 3, "pages name only {n_filters} filters");
    assert!(wrong.is_empty(), "no test has these in its name: {wrong:#?}");
}

#[test]
fn values_of_options_are_not_filters() {
    let page = "`cargo test -p kctl-tests --test loop reads` and\ncargo test --workspace a::b -- --ignored\ncargo test -p NAME TEST";
    assert_eq!(filters(page), [(Some("loop"), "reads"), (None, "a::b")]);
}
