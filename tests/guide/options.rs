//! Tests that the tables of options in `guide/attributes.md`, and the list of K0016 in `guide/errors.md`, have exactly the
//! options that the macros accept.

use std::{collections::BTreeSet, fs};

use crate::links::root;

/// Returns the strings of `const OPTIONS` in a file of `kctl-macros/src`.
fn accepted_options(file: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("kctl-macros/src").join(file)).unwrap();
    let list = text.split_once("const OPTIONS: ").and_then(|(_, rest)| rest.split_once("];")).unwrap().0;
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the words of `RelationOption`.
fn relation_options() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("kctl-macros/src/controller/model.rs")).unwrap();
    let words = text.split_once("    RelationOption:\n").and_then(|(_, rest)| rest.split_once("\n}")).unwrap().0;
    words.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the names in the first table of options after a line of the page.
fn documented_options(after: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("guide/attributes.md")).unwrap();
    let table = page.split_once(after).and_then(|(_, rest)| rest.split_once("| option |")).unwrap().1;
    names_of(table.lines().skip(2))
}

/// Returns the names in the first column of the first rows. A cell may have several examples: `` `reads = K(live)` ``,
/// `` `a = "…"`, `b = "…"` ``.
fn names_of<'a>(rows: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let rows = rows.take_while(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.trim_start_matches("| ").split(" | ").next().unwrap());
    let examples = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    examples.map(|example| example.split([' ', '(']).next().unwrap().to_owned()).collect()
}

#[test]
fn options_of_attributes_are_in_the_guide() {
    let controllers = accepted_options("controller/check/unknown_option.rs");
    assert_eq!(controllers, documented_options("# "));
    let admission = accepted_options("admission/options.rs");
    // These are the attribute's two forms, above the table.
    let forms = BTreeSet::from(["mutate".to_owned(), "validate".to_owned()]);
    assert_eq!(admission, &documented_options("## Admission\n") | &forms);
}

#[test]
fn options_of_a_relation_are_in_the_guide() {
    let options = relation_options();
    let page = fs::read_to_string(root().join("guide/attributes.md")).unwrap();
    let rows = page.split_once("\n| verbs |").unwrap().1.lines().skip(1);
    // They have no value, or name a view.
    let flags = ["block_owner_deletion", "optional", "metadata", "as"].map(str::to_owned);
    assert_eq!(names_of(rows), &options | &BTreeSet::from(flags));
    let errors = fs::read_to_string(root().join("guide/errors.md")).unwrap();
    let list =
        errors.split_once("The options of a relation are ").and_then(|(_, rest)| rest.split_once(';')).unwrap().0;
    assert_eq!(options, list.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>());
}
