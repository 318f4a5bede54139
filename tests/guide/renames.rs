//! The new names in docs/renames.md exist, so that each row leads to the present code.

use std::{collections::HashSet, fs, path::Path};

use crate::links::root;

/// Returns the identifiers in a string.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// Collects the names of all files and folders of the repository, and the contents of its Rust files.
fn collect(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Editors leave hidden files, which may be dangling links.
        if name.starts_with('.') || (path.is_dir() && name.starts_with("target")) {
            continue;
        }
        found.push(name);
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the unknown identifiers between backticks in the last column of a page's tables, each with its row.
fn unknown_names<'a>(page: &'a str, known: &HashSet<&str>) -> Vec<(&'a str, &'a str)> {
    let mut unknown = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let (_, new) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap_or_default();
        let names = new.split('`').skip(1).step_by(2).flat_map(words);
        unknown.extend(names.filter(|name| !known.contains(name)).map(|name| (name, row)));
    }
    unknown
}

#[test]
fn new_names_of_renames_exist() {
    let mut texts = Vec::new();
    collect(&root(), &mut texts);
    let known: HashSet<&str> = texts.iter().flat_map(|text| words(text)).collect();
    assert!(known.len() > 10_000, "{} identifiers", known.len());
    let page = fs::read_to_string(root().join("docs/renames.md")).unwrap();
    assert!(unknown_names(&page, &HashSet::new()).len() > 300, "the rows have another form: the search has to follow");
    let unknown = unknown_names(&page, &known);
    assert!(unknown.is_empty(), "renamed again or removed: write the present name into the row: {unknown:#?}");
}

#[test]
fn renamed_name_without_code_is_found() {
    let page = "| Old | New |\n|---|---|\n| `a` | `b::c`, d |\n| `e` | `b`, `f/g.rs` |\n";
    let found = unknown_names(page, &HashSet::from(["b", "c", "f", "rs"]));
    assert_eq!(found, [("g", "| `e` | `b`, `f/g.rs` |")]);
    assert!(unknown_names(page, &HashSet::from(["b", "c", "f", "g", "rs"])).is_empty());
}
