//! The program of README.md is the first part of the example that it names.

use std::fs;

use quote::ToTokens;

use crate::links::root;

/// Returns the items of a Rust file without comments, one text each.
fn items(code: &str) -> Vec<String> {
    let file = syn::parse_file(code).unwrap();
    file.items.iter().map(|item| item.to_token_stream().to_string()).collect()
}

#[test]
fn program_of_readme_is_the_quickstart() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let program = readme.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    let example = items(&fs::read_to_string(root().join("examples/quickstart/src/main.rs")).unwrap());
    let shown = items(program);
    assert!(shown.len() >= 4, "README.md shows a program of {} items", shown.len());
    for (item, same) in shown.iter().zip(&example) {
        assert_eq!(item, same);
    }
}
