//! Each term of the glossary leads to its code: a path that exists, or the name of an item that a crate defines.

use std::fs;

use regex::Regex;

use crate::links::{root, rust_files};

/// An entry of the glossary, and the paths and items that its last line names.
#[derive(Debug, PartialEq)]
struct Entry<'a> {
    term: &'a str,
    code: Vec<&'a str>,
}

/// Returns the entries of a page: paragraphs that begin with a bold term.
fn entries(page: &str) -> Vec<Entry<'_>> {
    let paragraphs = page.split("\n\n").filter_map(|paragraph| paragraph.trim().strip_prefix("**"));
    let entries = paragraphs.map(|paragraph| {
        let (term, definition) = paragraph.split_once("** · ").unwrap_or((paragraph, ""));
        let code = definition.lines().next_back().and_then(|line| line.strip_prefix("Code: ")).unwrap_or_default();
        Entry { term, code: code.split('`').skip(1).step_by(2).collect() }
    });
    entries.collect()
}

/// Returns `true` if one of these sources defines an item of this name, such as `Store` or `store::Handler`.
fn is_defined(name: &str, sources: &[String]) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    // A comment has a slash before the words.
    let item =
        format!(r"(?m)^[^/\n]*\b(struct|enum|trait|fn|type|const|static|macro_rules!) {}\b", regex::escape(name));
    let item = Regex::new(&item).unwrap();
    sources.iter().any(|source| item.is_match(source))
}

#[test]
fn every_term_of_the_glossary_has_code() {
    let mut files = Vec::new();
    rust_files(&root(), &mut files);
    files.retain(|file| file.starts_with("/kctl") && file.contains("/src/"));
    let sources: Vec<String> = files.iter().map(|file| fs::read_to_string(root().join(&file[1..])).unwrap()).collect();
    assert!(sources.len() > 500, "{} sources", sources.len());
    let page = fs::read_to_string(root().join("guide/glossary.md")).unwrap();
    let entries = entries(&page);
    assert!(entries.len() > 70, "{} terms", entries.len());
    let bare: Vec<_> = entries.iter().filter(|entry| entry.code.is_empty()).map(|entry| entry.term).collect();
    assert!(bare.is_empty(), "end the entry with a line such as Code: `kctl-apiserver/src/selector.rs`. {bare:?}");
    let leads_to_code = |name: &str| root().join(name).exists() || is_defined(name, &sources);
    let is_broken = |entry: &&Entry<'_>| !entry.code.iter().all(|name| leads_to_code(name));
    let broken: Vec<_> = entries.iter().filter(is_broken).collect();
    assert!(broken.is_empty(), "not a path, and not an item of a crate: {broken:?}");
}

#[test]
fn terms_without_code_are_found() {
    let page = "# Words\n\n**Key** · A `name`.\nCode: `key.rs`, `Key`.\n\nMore.\n\n**Cache** · Of `key.rs`.\n";
    let key = Entry { term: "Key", code: vec!["key.rs", "Key"] };
    assert_eq!(entries(page), [key, Entry { term: "Cache", code: Vec::new() }]);
}

#[test]
fn definitions_differ_from_uses_and_comments() {
    let sources =
        ["pub struct Store<K> {}\n/// The fn evict of all.\nuse a::Cache;\nmacro_rules! role_tests {}\n".to_owned()];
    assert!(["Store", "store::Store", "role_tests"].iter().all(|name| is_defined(name, &sources)));
    assert!(["evict", "Cache", "Sto"].iter().all(|name| !is_defined(name, &sources)));
}
