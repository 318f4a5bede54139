//! `BEHAVIOURS.md` is complete: each number and letter has one row, and each test that a row names exists.

use std::{collections::BTreeMap, path::Path};

use crate::tidy::sources;

const TABLE: &str = include_str!("BEHAVIOURS.md");
const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");

/// Returns the words in backticks.
fn quoted_words(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2)
}

/// File of the tests that the last column of a lettered row names without a file.
const LETTERS_FILE: &str = "benches/kube-controller/tests/letters.rs";

/// Splits `file::name` if it is the name of a test.
fn test_of(word: &str) -> Option<(&str, &str)> {
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c));
    word.rsplit_once("::").filter(|(files, name)| files.split("::").all(is_name) && is_name(name))
}

/// Returns the names without a file in the last column of a lettered row.
fn last_column_names(row: &str) -> Vec<&str> {
    let columns: Vec<&str> = row.split('|').map(str::trim).collect();
    match columns[..] {
        ["", letter, _, _, of_kube, ""] if letter.len() == 1 => quoted_words(of_kube).collect(),
        _ => Vec::new(),
    }
}

fn is_ui(word: &str) -> bool {
    word.starts_with("ui/")
}

/// Returns the rows whose first column is a number or a letter, by that column.
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
fn each_behaviour_row_names_test_or_reason() {
    let rows = rows();
    let expected: Vec<String> =
        (1..=140).map(|number| number.to_string()).chain(('a'..='m').map(|letter| letter.to_string())).collect();
    for name in &expected {
        let named_rows = rows.get(name).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(named_rows.len(), 1, "{name} has one row: {named_rows:?}");
        let row = named_rows[0];
        let excused = row.contains("no such stage: ");
        let shown = quoted_words(row).any(|word| test_of(word).is_some() || is_ui(word));
        assert!(shown != excused, "{name} names a test, or says why it has no test: {row}");
    }
    assert_eq!(rows.len(), expected.len(), "no other rows");
}

/// Returns `true` if a function of this name has a test attribute.
fn has_test(text: &str, name: &str) -> bool {
    let head = [format!("fn {name}("), format!("fn {name}<")];
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declares_function =
        |line: &&str| head.iter().any(|head| line.trim_start_matches("async ").starts_with(head.as_str()));
    lines.iter().enumerate().filter(|(_, line)| declares_function(line)).any(|(index, _)| {
        let attributes = lines[..index].iter().rev().take_while(|line| line.starts_with(['#', '/']));
        attributes.into_iter().any(|line| {
            line.starts_with("#[test]") || line.starts_with("#[tokio::test") || line.starts_with("#[kctl::test")
        })
    })
}

/// Returns the number of tests that a Markdown table names, after it checked that each exists.
fn check_tests_of(text: &str) -> usize {
    let places = [
        "kctl-runtime/src",
        "kctl-runtime/tests",
        "kctl-webhook/src",
        "kctl/tests",
        "tests/definitions",
        "tests/loop",
        "tests/manager",
        "tests/webhooks",
    ];
    let files: Vec<(String, String)> = places.into_iter().flat_map(sources).collect();
    let named: Vec<_> = text.lines().flat_map(quoted_words).filter_map(test_of).collect();
    for (file, name) in &named {
        let path = file.replace("::", "/");
        let ends = [format!("/{path}.rs"), format!("/{path}/tests.rs")];
        let mut texts = files.iter().filter(|(path, _)| ends.iter().any(|end| path.ends_with(end)));
        assert!(texts.any(|(_, text)| has_test(text, name)), "there is no test `{file}::{name}`");
    }
    named.len()
}

#[test]
fn only_functions_with_a_test_attribute_count() {
    let text = "#[test]\n/// Says.\nfn a() {}\n\nfn b() {}\n#[tokio::test(start_paused = true)]\nasync fn c() {}";
    let cases = [("a", true), ("b", false), ("c", true), ("d", false)];
    for (name, is_test) in cases {
        assert_eq!(has_test(text, name), is_test, "{name}");
    }
}

#[test]
fn every_test_of_the_table_exists() {
    for word in TABLE.lines().flat_map(quoted_words).filter(|word| is_ui(word)) {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(word).exists(), "there is no {word}");
    }
    let n_tests = check_tests_of(TABLE);
    assert!(n_tests > 150, "{n_tests} tests");
    let letters = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(LETTERS_FILE)).unwrap();
    let names: Vec<_> = TABLE.lines().flat_map(last_column_names).collect();
    assert_eq!(names.len(), 13, "a test of kube's for each letter: {names:?}");
    for name in names {
        assert!(has_test(&letters, name), "there is no test `{name}` in {LETTERS_FILE}");
    }
}

#[test]
fn every_invariant_names_existing_tests() {
    let (_, after) = ARCHITECTURE.split_once("## Invariants").unwrap();
    let rows: Vec<_> = after.lines().skip(4).map_while(|line| line.strip_prefix("| ")).collect();
    assert_eq!(rows.len(), 12, "{rows:?}");
    for row in rows {
        assert!(check_tests_of(row) > 0 || row.contains("| the signature |"), "{row}");
    }
}
