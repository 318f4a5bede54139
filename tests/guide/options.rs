//! Tests that the tables of options and operations in the book, and the lists of K0016 and K0052 in `guide/errors.md`, have
//! exactly the names that the macros accept.

use std::{collections::BTreeSet, fs};

use kctl::karmada::operation::Operation;

use crate::links::root;

/// Returns the strings of a constant, such as `OPTIONS`, in a file of `kctl-macros/src`.
fn accepted_options(file: &str, constant: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("kctl-macros/src").join(file)).unwrap();
    let begin = format!("const {constant}: ");
    let list = text.split_once(&begin).and_then(|(_, rest)| rest.split_once("];")).unwrap().0;
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the words of `RelationOption`.
fn relation_options() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("kctl-macros/src/controller/model.rs")).unwrap();
    let words = text.split_once("    RelationOption:\n").and_then(|(_, rest)| rest.split_once("\n}")).unwrap().0;
    words.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the names in the first table of options after a line of a page of the book.
fn documented_options(page: &str, after: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("guide").join(page)).unwrap();
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
    let controllers = accepted_options("controller/check/unknown_option.rs", "OPTIONS");
    assert_eq!(controllers, documented_options("attributes.md", "# "));
    let admission = accepted_options("admission/options.rs", "OPTIONS");
    // These are the attribute's two forms, above the table.
    let forms = BTreeSet::from(["mutate".to_owned(), "validate".to_owned()]);
    assert_eq!(admission, &documented_options("attributes.md", "## Admission\n") | &forms);
    let resource = accepted_options("resource/kube_options.rs", "KNOWN");
    assert_eq!(resource, documented_options("crds.md", "## Options of `#[resource]`\n"));
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

#[test]
fn operations_of_interpreters_are_in_the_guide() {
    let operations: BTreeSet<String> = Operation::ALL.map(|operation| operation.name().to_owned()).into();
    let page = fs::read_to_string(root().join("guide/interpreters.md")).unwrap();
    let rows = page.split_once("\n| operation |").unwrap().1.lines().skip(2);
    assert_eq!(names_of(rows), operations);
    let docs = fs::read_to_string(root().join("kctl/src/karmada.rs")).unwrap();
    let rows = docs.split_once("\n/// | `op` |").unwrap().1.lines().skip(2);
    assert_eq!(names_of(rows.map(|row| row.trim_start_matches("/// "))), operations);
    let errors = fs::read_to_string(root().join("guide/errors.md")).unwrap();
    let list = errors.split_once("spelled as in Karmada: ").and_then(|(_, rest)| rest.split_once('.')).unwrap().0;
    assert_eq!(list.split(',').map(|name| name.trim().to_owned()).collect::<BTreeSet<_>>(), operations);
}
