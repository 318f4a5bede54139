//! What `#[controller]` expands to: `tests/expand/NAME.rs` becomes `NAME.expanded.rs`, and stays short enough to be read.

use std::{fs, path::Path};

use quote::ToTokens;
use syn::{Item, Meta};

use super::expand;

/// Of any expansion, with the item of the user. A longer one would hold what belongs into the runtime.
const LINES_MAX: usize = 59;
/// Few lines that are long would not be short.
const WIDTH_MAX: usize = 120;

/// Expands the one controller of a file.
fn expanded(text: &str) -> String {
    let file = syn::parse_file(text).unwrap();
    let (options, item) = file.items.into_iter().find_map(controller).expect("a controller");
    let tokens = expand(options, &item);
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

/// The options of the attribute, and the item without it.
fn controller(mut item: Item) -> Option<(proc_macro2::TokenStream, proc_macro2::TokenStream)> {
    let attrs = match &mut item {
        Item::Fn(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        _ => return None,
    };
    let index = attrs.iter().position(|attribute| attribute.path().is_ident("controller"))?;
    let options = match attrs.remove(index).meta {
        Meta::List(list) => list.tokens,
        _ => proc_macro2::TokenStream::new(),
    };
    Some((options, item.into_token_stream()))
}

/// Compares an expansion with its golden file; `TRYBUILD=overwrite` writes it anew, as it does for messages.
fn check(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/expand");
    let golden = folder.join(format!("{name}.expanded.rs"));
    let text = expanded(&fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap());
    let text = format!("//! What `{name}.rs` expands to.\n{text}");
    if std::env::var("TRYBUILD").is_ok_and(|mode| mode == "overwrite") {
        fs::write(&golden, &text).unwrap();
    }
    let known = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(text, known, "{name}.expanded.rs is not what it was: read the difference");
    text
}

/// Those of the other attributes, too: each golden file is compared by a test of its attribute.
#[test]
fn every_expansion_is_a_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/expand");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let golden: Vec<_> = files.filter(|file| file.to_string_lossy().ends_with(".expanded.rs")).collect();
    assert!(golden.len() >= 6, "{golden:?}");
    for file in golden {
        let text = fs::read_to_string(&file).unwrap();
        let expansion = text.lines().skip_while(|line| line.starts_with("//!"));
        let n_lines = expansion.clone().count();
        assert!(n_lines <= LINES_MAX, "{file:?} has {n_lines} lines: move what all have in common into the runtime");
        assert!(
            expansion.map(|line| line.chars().count()).max() <= Some(WIDTH_MAX),
            "{file:?} has lines that are too long"
        );
    }
}

#[test]
fn function_is_what_it_was() {
    check("function");
}

#[test]
fn struct_keeps_its_own_reconcile() {
    let text = check("structure");
    assert!(!text.contains("impl __p::Reconcile for"), "{text}");
}

#[test]
fn every_option_is_a_call() {
    check("options");
}

#[test]
fn what_is_read_in_part_is_a_type_of_the_declaration() {
    let text = check("parts");
    assert!(text.contains("__p::PartialObjectMeta<__K0>") && text.contains(".view::<__V1>()"), "{text}");
}

#[test]
fn clusters_are_types_of_the_declaration() {
    check("clusters");
}
