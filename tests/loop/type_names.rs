//! Checks that a type name has one meaning: no crate defines it more than twice.

use std::collections::BTreeMap;

use crate::{
    modules::{CRATES, code},
    tidy::sources,
};

/// How often a crate may define a name: twice for the two sides of a conversion or of a protocol.
const DEFINITIONS_MAX: usize = 2;
/// Names whose meaning is a convention of Rust.
const CONVENTIONS: [&str; 3] = ["Builder", "Error", "ResponseFuture"];
/// Returns the names of the types and traits that a file defines outside of its unit tests. Associated types are
/// indented, and their names belong to the trait.
fn defined_types(text: &str) -> Vec<String> {
    code(text).lines().filter_map(defined_in_line).collect()
}

fn defined_in_line(line: &str) -> Option<String> {
    let item = line.trim_start();
    let item = match item.strip_prefix("pub(") {
        Some(scoped) => scoped.split_once(") ")?.1,
        None => item.strip_prefix("pub ").unwrap_or(item),
    };
    let (keyword, rest) = item.split_once(' ')?;
    let is_definition = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (is_definition && !name.is_empty()).then_some(name)
}

/// Returns the names that a crate defines more than twice, with their files.
fn frequent_names(files: &[(String, String)]) -> BTreeMap<String, Vec<&str>> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| !path.contains("tests")) {
        for name in defined_types(text) {
            found.entry(name).or_default().push(path);
        }
    }
    found.retain(|name, paths| paths.len() > DEFINITIONS_MAX && !CONVENTIONS.contains(&name.as_str()));
    found
}

#[test]
fn definitions_in_tests_are_not_counted() {
    let text = "pub(crate) struct A<T>(T);\nimpl A {\n    type B = C;\n}\nfn f() {\n    enum D {}\n}\ntype E = F;\n\
                pub trait G: H {}\n/// struct I\nuse x::type_name;\n#[cfg(test)]\nmod tests {\n    struct J;\n}\n";
    assert_eq!(defined_types(text), ["A", "D", "E", "G"]);
    let file = |name: &str| (name.to_owned(), "struct A;".to_owned());
    let files = ["a.rs", "b.rs", "tests/c.rs", "d.rs"].map(file);
    assert_eq!(frequent_names(&files[..3]).len(), 0);
    assert_eq!(frequent_names(&files)["A"], ["a.rs", "b.rs", "d.rs"]);
}

#[test]
fn type_names_are_defined_at_most_twice() {
    for folder in CRATES {
        let files = sources(&format!("{folder}/src"));
        assert!(files.len() > 5, "{folder} has {} files", files.len());
        let found = frequent_names(&files);
        assert!(found.is_empty(), "{folder}: rename one of the types: {found:?}");
    }
}
