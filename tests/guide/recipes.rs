//! Programs of the recipes pass the lints of a project from `kctl new`.

use std::fs;

use regex::Regex;

use crate::links::root;

/// Returns the disallowed names in the Rust blocks of a page.
///
/// A new project's `clippy.toml` disallows kube's client and what creates one. Its name is searched for instead of
/// running clippy, since some recipes need other features than a new project has.
fn disallowed(page: &str) -> Vec<String> {
    let name = Regex::new(r"\bClient\b|\bConfig::infer\b|\bKubeconfig\b|\bkctl::client\b").unwrap();
    let blocks = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.flat_map(|block| name.find_iter(block).map(|found| found.as_str().to_owned())).collect()
}

#[test]
fn recipes_name_no_client_of_kube() {
    let pages = fs::read_dir(root().join("guide/recipes")).unwrap().map(|entry| entry.unwrap().path());
    let (mut n_pages, mut wrong) = (0, Vec::new());
    for page in pages {
        n_pages += 1;
        let found = disallowed(&fs::read_to_string(&page).unwrap());
        wrong.extend(found.into_iter().map(|name| format!("{}: {name}", page.display())));
    }
    assert!(n_pages > 10, "{n_pages} pages");
    assert!(wrong.is_empty(), "clippy rejects these in a new project; take an `Api<K>`:\n{}", wrong.join("\n"));
}

#[test]
fn client_is_found_in_blocks_alone() {
    let page = "A `Client`.\n\n```rust\nfn f(_: kctl::kube::Client, clients: Clients) {}\n```\n\n`Client`\n";
    assert_eq!(disallowed(page), ["Client"]);
}
