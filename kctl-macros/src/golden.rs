//! Compares expansions with golden files: `tests/expand/NAME.rs` is expanded and compared with `NAME.expanded.rs`.
//!
//! People read these files to learn what an attribute does, so each one has to fit on a page. `TRYBUILD=overwrite` writes them,
//! like the messages of `tests/ui`.

use std::{fs, path::Path};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Item, Meta};

/// Lines of an expansion, including the user's item. Code that makes it longer belongs in the runtime.
const LINES_MAX: usize = 59;
/// Columns of an expansion: few long lines would be no shorter.
const WIDTH_MAX: usize = 120;

/// An attribute with its entry point.
pub(crate) struct Expander {
    /// The name of the attribute in the input file.
    pub(crate) attribute: &'static str,
    /// Receives the options and the item.
    pub(crate) expand: fn(TokenStream, &TokenStream) -> TokenStream,
}

impl Expander {
    /// Expands the first item of the file that has the attribute and compares the result with the golden file. Returns the
    /// expansion.
    pub(crate) fn check(&self, name: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/expand");
        let golden = folder.join(format!("{name}.expanded.rs"));
        let file = syn::parse_file(&fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap()).unwrap();
        let (options, item) =
            file.items.into_iter().find_map(|item| self.split(item)).expect("an item with the attribute");
        let expanded = prettyplease::unparse(&syn::parse2((self.expand)(options, &item)).unwrap());
        let text = format!("//! Expansion of `{name}.rs`.\n{expanded}");
        if std::env::var("TRYBUILD").is_ok_and(|mode| mode == "overwrite") {
            fs::write(&golden, &text).unwrap();
        }
        let recorded = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(text, recorded, "{name}.expanded.rs is not up to date: run this test with TRYBUILD=overwrite");
        text
    }

    /// Returns the options of the attribute, and the item without it.
    fn split(&self, mut item: Item) -> Option<(TokenStream, TokenStream)> {
        let attrs = match &mut item {
            Item::Fn(item) => &mut item.attrs,
            Item::Struct(item) => &mut item.attrs,
            _ => return None,
        };
        let index = attrs.iter().position(|attribute: &Attribute| attribute.path().is_ident(self.attribute))?;
        let options = match attrs.remove(index).meta {
            Meta::List(list) => list.tokens,
            _ => TokenStream::new(),
        };
        Some((options, item.into_token_stream()))
    }
}

#[test]
fn every_expansion_fits_on_a_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/expand");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let golden: Vec<_> = files.filter(|file| file.to_string_lossy().ends_with(".expanded.rs")).collect();
    assert!(golden.len() >= 10, "{golden:?}");
    for file in golden {
        let text = fs::read_to_string(&file).unwrap();
        let expansion = text.lines().skip_while(|line| line.starts_with("//!"));
        let n_lines = expansion.clone().count();
        assert!(
            n_lines <= LINES_MAX,
            "{file:?} has {n_lines} lines: move the common part into the runtime, or split the options"
        );
        assert!(
            expansion.map(|line| line.chars().count()).max() <= Some(WIDTH_MAX),
            "{file:?} has lines that are too long"
        );
    }
}
