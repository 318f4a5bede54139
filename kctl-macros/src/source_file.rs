//! The source file around an attribute: some mistakes show only in the context of another item.
//!
//! A macro receives one item. `Site` as the primary of a controller is an error if the file has `struct Site` without
//! `#[resource]`. Otherwise rustc would report every trait that is missing instead of the attribute. So the checks read
//! the file from disk.
//!
//! They report a mistake only if the file is unambiguous: no macro, no `use` and no second definition could give the
//! name another meaning. Otherwise they report nothing, and rustc reports what it finds.
//!
//! | search | the mistake |
//! |---|---|
//! | `kind_of_spec` | a spec in the place of its kind (K0030) |
//! | `status_of_kind` | a status, or a result, of another type (K0056, K0058): the help names the status of the kind |
//! | `unique_signature` | a callback with a wrong signature (K0119) |
//! | `unique_alias` | an alias of `Arc<Kind>` in the place of the `Arc` (K0008); an alias of `Context` is valid (K0007) |
//! | `is_associated` | an attribute on a function of an `impl` (K0001, K0050, K0100, K0111) |
//! | `is_controller` | an attribute on the `impl` of a struct (K0001) |
//! | `definitions_of`, `items_of` | a struct without `#[resource]` or `#[schema]` (K0030, K0090) |
//!
//! Most files need no parser. A search in the characters comes first, because parsing a file of a thousand lines takes
//! longer than the rest of the macro.

use syn::{
    Attribute, File, Ident, ImplItem, Item, ItemStruct, LitStr, Signature, TraitItem, Type, UseTree, parse::ParseStream,
};

/// The attributes of functions that declare a type of the function's name.
const FUNCTION_ATTRIBUTES: [&str; 4] = ["admission", "controller", "conversion", "interpreter"];

/// Returns the contents of the file with the attribute. `None` outside of rustc, as in unit tests, and where the span has
/// no file on disk, as in some editors.
pub(crate) fn read() -> Option<String> {
    let file = proc_macro::is_available().then(|| proc_macro::Span::call_site().local_file())?;
    std::fs::read_to_string(file?).ok()
}

/// Returns the offsets at which a struct or an enum of this name may be defined. It searches characters, so comments
/// and strings count, too: the parser decides afterwards.
pub(crate) fn definitions_of<'a>(text: &'a str, name: &Ident) -> impl Iterator<Item = usize> + 'a {
    ["struct", "enum"].map(|keyword| places_of(text, &format!("{keyword} {name}"))).into_iter().flatten()
}

/// Returns the offsets of a phrase whose last word is whole: `fn site` is not found in `fn sites`.
fn places_of(text: &str, phrase: &str) -> Vec<usize> {
    let is_whole_word = |start: &usize| {
        let next = text[start + phrase.len()..].chars().next();
        !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
    };
    text.match_indices(phrase).map(|(start, _)| start).filter(is_whole_word).collect()
}

/// Returns all items, including items of inline modules, in the order of the file. Items in function bodies are not
/// included.
pub(crate) fn items_of(file: &File) -> Vec<&Item> {
    let mut all = Vec::new();
    flatten(&file.items, &mut all);
    all
}

/// Appends items and, after each inline module, the items of the module.
fn flatten<'a>(items: &'a [Item], all: &mut Vec<&'a Item>) {
    for item in items {
        all.push(item);
        if let Item::Mod(module) = item
            && let Some((_, items)) = &module.content
        {
            flatten(items, all);
        }
    }
}

/// Returns `true` if the last segment of the attribute's path is one of these names: `resource` and `kctl::resource`
/// are the same attribute.
pub(crate) fn has_name(attribute: &Attribute, names: &[&str]) -> bool {
    attribute.path().segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// Returns the kind whose spec is this struct: `Web` for `WebSpec` in `#[resource(…, kind = "Web")] struct WebSpec`.
/// With `root`, it is the name of that type.
///
/// `None` if the file does not define the struct, if spec and kind have one name (K0117), or if the kind is not a name
/// of a type (K0043).
pub(crate) fn kind_of_spec(text: &str, spec: &Ident) -> Option<String> {
    definitions_of(text, spec).next()?;
    let file = syn::parse_file(text).ok()?;
    let mut described = items_of(&file).into_iter().filter_map(|item| match item {
        Item::Struct(item) if item.ident == *spec => resource_of(item),
        _ => None,
    });
    let kind = generated_type(described.next()?);
    kind.filter(|kind| spec != kind && is_type_name(kind))
}

/// Returns `true` for a string from which `Ident::new` makes a name. It panics on `r#Web` and ` Web`, which syn parses.
pub(crate) fn is_type_name(text: &str) -> bool {
    !text.starts_with("r#") && syn::parse_str::<Ident>(text).is_ok_and(|name| name == text)
}

/// Returns the status type of a kind: `SiteStatus` for `#[resource(…, kind = "Site", status = "SiteStatus")]`. `None`
/// if the file does not define the kind, or if its versions have different types.
pub(crate) fn status_of_kind(text: &str, kind: &Ident) -> Option<String> {
    if !text.contains(&format!("\"{kind}\"")) {
        return None;
    }
    let file = syn::parse_file(text).ok()?;
    let resources = items_of(&file).into_iter().filter_map(|item| match item {
        Item::Struct(item) => resource_of(item),
        _ => None,
    });
    let resources = resources.filter(|resource| generated_type(resource).is_some_and(|found| *kind == found));
    let mut found: Vec<_> = resources.filter_map(|resource| string_option(resource, "status")).collect();
    found.dedup();
    found.pop().filter(|_| found.is_empty())
}

/// Returns the attribute that makes a kind of a struct.
fn resource_of(item: &ItemStruct) -> Option<&Attribute> {
    item.attrs.iter().find(|attribute| has_name(attribute, &["resource"]))
}

/// Returns the name of the type that `#[resource]` makes: `root`, or the kind.
fn generated_type(resource: &Attribute) -> Option<String> {
    string_option(resource, "root").or_else(|| string_option(resource, "kind"))
}

/// Returns the value of `option = "…"` in an attribute.
fn string_option(attribute: &Attribute, option: &str) -> Option<String> {
    let mut value = None;
    let _other_options = attribute.parse_args_with(|input: ParseStream| {
        while !input.is_empty() {
            let token: proc_macro2::TokenTree = input.parse()?;
            if matches!(&token, proc_macro2::TokenTree::Ident(name) if name == option) && input.peek(syn::Token![=]) {
                input.parse::<syn::Token![=]>()?;
                value = input.parse::<LitStr>().ok().map(|text| text.value());
            }
        }
        Ok(())
    });
    value
}

/// Returns the signature of the only function of this name in the file. `None` if there are several, for example in
/// two modules, or if the function is imported.
pub(crate) fn unique_signature(text: &str, name: &Ident) -> Option<syn::Signature> {
    if !text.contains(&format!("fn {name}")) {
        return None;
    }
    let file = syn::parse_file(text).ok().filter(|file| !is_imported(file, name))?;
    let mut found = items_of(&file).into_iter().filter_map(|item| match item {
        Item::Fn(item) if item.sig.ident == *name => Some(&item.sig),
        _ => None,
    });
    let signature = found.next()?.clone();
    found.next().is_none().then_some(signature)
}

/// Returns `true` if the only function of this name is in an `impl` or a `trait`, with one of the attributes.
pub(crate) fn is_associated(text: &str, name: &Ident) -> bool {
    let places = places_of(text, &format!("fn {name}"));
    let [start] = places[..] else { return false };
    if !may_be_associated(text, start) {
        return false;
    }
    let Ok(file) = syn::parse_file(text) else { return false };
    let is_declaration = |sig: &Signature, attributes: &[Attribute]| {
        sig.ident == *name && attributes.iter().any(|attribute| has_name(attribute, &FUNCTION_ATTRIBUTES))
    };
    items_of(&file).into_iter().any(|item| match item {
        Item::Impl(block) => {
            block.items.iter().any(|item| matches!(item, ImplItem::Fn(item) if is_declaration(&item.sig, &item.attrs)))
        }
        Item::Trait(block) => {
            block.items.iter().any(|item| matches!(item, TraitItem::Fn(item) if is_declaration(&item.sig, &item.attrs)))
        }
        _ => false,
    })
}

/// Returns `true` unless the indentation shows that the function at this offset is in a module or at the top level.
/// Then the file is not parsed.
fn may_be_associated(text: &str, function: usize) -> bool {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let line = text[..function].rfind('\n').map_or(0, |end| end + 1);
    let own = indentation(&text[line..]);
    let block = text[..line].lines().rev().find(|line| !line.trim().is_empty() && indentation(line) < own);
    block.is_some_and(|line| line.contains("impl") || line.contains("trait") || line.trim() == "{")
}

/// Returns `true` if the file has a struct of this name with `#[controller]`, or can't be parsed.
pub(crate) fn is_controller(text: &str, name: &Ident) -> bool {
    let Ok(file) = syn::parse_file(text) else { return true };
    items_of(&file).into_iter().any(|item| match item {
        Item::Struct(item) => item.ident == *name && item.attrs.iter().any(|a| has_name(a, &["controller"])),
        _ => false,
    })
}

/// Returns the type of the only alias of this name in the file: `Arc<Web>` for `type Shared = Arc<Web>;`. `None` for a
/// generic alias, and if the name has another definition or is imported.
pub(crate) fn unique_alias(text: &str, name: &Ident) -> Option<Type> {
    if !text.contains(&format!("type {name}")) || definitions_of(text, name).next().is_some() {
        return None;
    }
    let file = syn::parse_file(text).ok().filter(|file| !is_imported(file, name))?;
    let mut found = items_of(&file).into_iter().filter_map(|item| match item {
        Item::Type(item) if item.ident == *name && item.generics.params.is_empty() => Some(&*item.ty),
        _ => None,
    });
    let ty = found.next()?.clone();
    found.next().is_none().then_some(ty)
}

/// Returns `true` if a `use` item binds the name to an item of another file: an item of this name in a module, such as a
/// test's, is then a different one. `use super::name` in an inline module binds the item of this file.
fn is_imported(file: &File, name: &Ident) -> bool {
    let imports = |item: &Item| matches!(item, Item::Use(item) if binds(&item.tree, name));
    let is_from_parent = |item: &Item| match item {
        Item::Use(item) => matches!(&item.tree, UseTree::Path(path) if path.ident == "super"),
        _ => false,
    };
    file.items.iter().any(imports) || items_of(file).into_iter().any(|item| imports(item) && !is_from_parent(item))
}

/// Returns `true` if the tree of a `use` item binds the name. A glob binds names that can't be known here.
fn binds(tree: &UseTree, name: &Ident) -> bool {
    match tree {
        UseTree::Path(path) => binds(&path.tree, name),
        UseTree::Name(bound) => bound.ident == *name,
        UseTree::Rename(bound) => bound.rename == *name,
        UseTree::Group(group) => group.items.iter().any(|tree| binds(tree, name)),
        UseTree::Glob(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_with_unique_name_is_found() {
        let name = syn::parse_str::<Ident>("users_of").unwrap();
        let found = |text: &str| unique_signature(text, &name).map(|found| found.inputs.len());
        assert_eq!(found("mod m { fn users_of(a: &A) -> Vec<B> { Vec::new() } }"), Some(1));
        assert_eq!(found("fn users_of(a: &A, b: &B) {}"), Some(2));
        assert_eq!(found("fn users_of() {} mod m { fn users_of(a: &A) {} }"), None);
        assert_eq!(found("fn users_of_all() {}"), None);
        assert_eq!(found("use elsewhere::users_of;"), None);
        assert_eq!(found("use elsewhere::users_of; mod tests { fn users_of() {} }"), None);
        assert_eq!(found("use elsewhere::{Users, f as users_of}; mod tests { fn users_of() {} }"), None);
        assert_eq!(found("mod m { use elsewhere::users_of; } fn users_of() {}"), None);
        assert_eq!(found("fn users_of(a: &A) {} mod tests { use super::users_of; }"), Some(1));
    }

    #[test]
    fn function_of_an_impl_is_found() {
        let name = syn::parse_str::<Ident>("sites").unwrap();
        for (file, expected) in [
            ("impl S {\n    #[kctl::controller]\n    async fn sites(a: A) {}\n}", true),
            ("mod m {\n    trait T {\n        #[admission(validate)]\n        fn sites(a: A) {}\n    }\n}", true),
            ("impl S\nwhere\n    A: B,\n{\n    #[controller]\n\n    pub async fn sites(a: A) {}\n}", true),
            ("impl S {\n    fn sites(a: A) {}\n}", false),
            ("mod m {\n    #[controller]\n    fn sites(a: A) {}\n}", false),
            ("#[controller]\nfn sites(a: A) {}\nimpl S {\n    #[controller]\n    fn sites(a: A) {}\n}", false),
            ("impl S {\n    #[controller]\n    fn sites_of(a: A) {}\n}", false),
        ] {
            assert_eq!(is_associated(file, &name), expected, "{file}");
        }
    }

    #[test]
    fn alias_with_unique_name_is_found() {
        let name = syn::parse_str::<Ident>("Shared").unwrap();
        let found = |text: &str| unique_alias(text, &name).map(|ty| quote::quote!(#ty).to_string().replace(' ', ""));
        assert_eq!(found("type Shared = Arc<Web>;").as_deref(), Some("Arc<Web>"));
        assert_eq!(found("mod m { pub type Shared = Arc<Web>; }").as_deref(), Some("Arc<Web>"));
        assert_eq!(found("type Shared = A; mod m { type Shared = B; }"), None);
        assert_eq!(found("type Shared<K> = Arc<K>;"), None);
        assert_eq!(found("type Shared = A; mod m { struct Shared; }"), None);
        assert_eq!(found("type SharedWeb = Arc<Web>;"), None);
        assert_eq!(found("use elsewhere::Shared; mod m { type Shared = Arc<Web>; }"), None);
    }

    #[test]
    fn kind_of_spec_is_found_in_file() {
        let spec = syn::parse_str::<Ident>("WebSpec").unwrap();
        let cases = [
            ("#[resource(group = \"a.b\", version = \"v1\", kind = \"Web\")]\nstruct WebSpec { a: i32 }", Some("Web")),
            ("mod m { #[kctl::resource(kind = \"Site\", status = \"S\")] pub struct WebSpec; }", Some("Site")),
            ("#[resource(kind = \"Web\", root = \"WebObject\")] struct WebSpec;", Some("WebObject")),
            ("#[resource(kind = \"Web-Site\")] struct WebSpec;", None),
            ("#[resource(kind = \"\")] struct WebSpec;", None),
            ("#[resource(kind = \"r#Web\")] struct WebSpec;", None),
            ("#[resource(kind = \"Web\", root = \" Web\")] struct WebSpec;", None),
            ("struct WebSpec;", None),
            ("#[resource(kind = \"Web\")] struct WebSpecs;", None),
            ("use elsewhere::WebSpec;", None),
        ];
        for (file, expected) in cases {
            assert_eq!(kind_of_spec(file, &spec).as_deref(), expected, "{file}");
        }
    }

    #[test]
    fn status_of_kind_is_found_in_file() {
        let kind = syn::parse_str::<Ident>("Site").unwrap();
        let cases = [
            ("#[resource(kind = \"Site\", status = \"SiteStatus\")] struct SiteSpec;", Some("SiteStatus")),
            ("mod v1 { #[kctl::resource(status = \"S\", kind = \"Site\")] struct SiteSpec; }", Some("S")),
            ("#[resource(kind = \"Place\", root = \"Site\", status = \"S\")] struct SiteSpec;", Some("S")),
            ("#[resource(kind = \"Site\", root = \"Place\", status = \"S\")] struct SiteSpec;", None),
            ("#[resource(kind = \"Site\")] struct SiteSpec;", None),
            ("#[resource(kind = \"Sites\", status = \"S\")] struct SiteSpec;", None),
            (
                "mod a { #[resource(kind = \"Site\", status = \"A\")] struct SiteSpec; }
                 mod b { #[resource(kind = \"Site\", status = \"B\")] struct SiteSpec; }",
                None,
            ),
        ];
        for (file, expected) in cases {
            assert_eq!(status_of_kind(file, &kind).as_deref(), expected, "{file}");
        }
    }
}
