//! The table of behaviours is whole: each number and letter has one row, and each test that a row names exists.

use std::{collections::BTreeMap, path::Path};

use crate::tidy::sources;

const TABLE: &str = include_str!("BEHAVIOURS.md");
const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");

/// The words between backticks.
fn quoted(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2)
}

/// `file::name`, when it is the name of a test.
fn test_of(word: &str) -> Option<(&str, &str)> {
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c));
    word.split_once("::").filter(|(file, name)| is_name(file) && is_name(name))
}

fn is_ui(word: &str) -> bool {
    word.starts_with("ui/")
}

/// Rows by their first column, where that is a number or a letter.
fn rows() -> BTreeMap<String, Vec<&'static str>> {
    let mut rows: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for line in TABLE.lines().filter(|line| line.starts_with("| ")) {
        let first = line.split('|').nth(1).unwrap_or_default().trim();
        if first.parse::<u32>().is_ok() || first.len() == 1 {
            rows.entry(first.into()).or_default().push(line);
        }
    }
    rows
}

#[test]
fn every_behaviour_has_one_row_and_every_row_a_test_or_a_reason() {
    let rows = rows();
    let expected: Vec<String> =
        (1..=126).map(|number| number.to_string()).chain(('a'..='m').map(|letter| letter.to_string())).collect();
    for name in &expected {
        let of_name = rows.get(name).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(of_name.len(), 1, "{name} has one row: {of_name:?}");
        let row = of_name[0];
        let excused = row.contains("no such stage: ") || row.contains("leader election: ");
        let shown = quoted(row).any(|word| test_of(word).is_some() || is_ui(word));
        assert!(shown != excused, "{name} names a test, or says why there is none: {row}");
    }
    assert_eq!(rows.len(), expected.len(), "no other rows");
}

/// How many tests a text names; each of them exists.
fn check_tests_of(text: &str) -> usize {
    let places = ["kctl-runtime/src", "kctl-runtime/tests", "tests/loop", "tests/manager"];
    let files: Vec<(String, String)> = places.into_iter().flat_map(sources).collect();
    let named: Vec<_> = text.lines().flat_map(quoted).filter_map(test_of).collect();
    for (file, name) in &named {
        let ends = [format!("/{file}.rs"), format!("/{file}/tests.rs")];
        let mut texts = files.iter().filter(|(path, _)| ends.iter().any(|end| path.ends_with(end)));
        assert!(texts.any(|(_, text)| text.contains(&format!("fn {name}("))), "there is no test `{file}::{name}`");
    }
    named.len()
}

#[test]
fn every_test_of_the_table_exists() {
    for word in TABLE.lines().flat_map(quoted).filter(|word| is_ui(word)) {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(word).exists(), "there is no {word}");
    }
    let n_tests = check_tests_of(TABLE);
    assert!(n_tests > 150, "{n_tests} tests");
}

#[test]
fn every_invariant_but_the_one_of_a_signature_names_tests_that_exist() {
    let (_, after) = ARCHITECTURE.split_once("## Invariants").unwrap();
    let rows: Vec<_> = after.lines().skip(4).map_while(|line| line.strip_prefix("| ")).collect();
    assert_eq!(rows.len(), 11, "{rows:?}");
    for row in rows {
        assert!(check_tests_of(row) > 0 || row.contains("| the signature |"), "{row}");
    }
}
