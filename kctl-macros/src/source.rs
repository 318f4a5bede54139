//! The file around an attribute: what an attribute is given shows one item, and some mistakes are only seen beside another one.
//! Where the file cannot be read, or says nothing for certain, rustc speaks.

use syn::{Attribute, File, Ident, Item, LitStr, parse::ParseStream};

/// The text of the file where the attribute stands; nothing where rustc is not at work.
pub(crate) fn text() -> Option<String> {
    let file = proc_macro::is_available().then(|| proc_macro::Span::call_site().local_file())?;
    std::fs::read_to_string(file?).ok()
}

/// Where a struct or an enum of that name begins: a look at the text, because most files need no parser.
pub(crate) fn defines<'a>(text: &'a str, name: &Ident) -> impl Iterator<Item = usize> + 'a {
    ["struct", "enum"].map(|word| format!("{word} {name}")).into_iter().flat_map(move |definition| {
        let starts: Vec<_> = text.match_indices(&definition).map(|(start, _)| start).collect();
        let is_whole = move |start: &usize| {
            let next = text[start + definition.len()..].chars().next();
            !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
        };
        starts.into_iter().filter(is_whole)
    })
}

/// All items, with those of inline modules, in the order of the file.
pub(crate) fn items_of(file: &File) -> Vec<&Item> {
    let mut all = Vec::new();
    flatten(&file.items, &mut all);
    all
}

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

pub(crate) fn is_one_of(attribute: &Attribute, names: &[&str]) -> bool {
    attribute.path().segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// The kind whose spec has this name: `Web` of `#[resource(…, kind = "Web")] struct WebSpec`.
pub(crate) fn kind_of_spec(text: &str, spec: &Ident) -> Option<String> {
    defines(text, spec).next()?;
    let file = syn::parse_file(text).ok()?;
    let mut described = items_of(&file).into_iter().filter_map(|item| match item {
        Item::Struct(item) if item.ident == *spec => item.attrs.iter().find(|a| is_one_of(a, &["resource"])),
        _ => None,
    });
    let resource = described.next()?;
    let mut kind = None;
    let _other_options = resource.parse_args_with(|input: ParseStream| {
        while !input.is_empty() {
            let token: proc_macro2::TokenTree = input.parse()?;
            if matches!(&token, proc_macro2::TokenTree::Ident(name) if name == "kind") && input.peek(syn::Token![=]) {
                input.parse::<syn::Token![=]>()?;
                kind = input.parse::<LitStr>().ok().map(|text| text.value());
            }
        }
        Ok(())
    });
    kind.filter(|kind| spec != kind)
}

/// The head of the one function of this name in the file; nothing where there are several, or where it is imported.
pub(crate) fn function(text: &str, name: &Ident) -> Option<syn::Signature> {
    if !text.contains(&format!("fn {name}")) {
        return None;
    }
    let file = syn::parse_file(text).ok()?;
    let mut found = items_of(&file).into_iter().filter_map(|item| match item {
        Item::Fn(item) if item.sig.ident == *name => Some(&item.sig),
        _ => None,
    });
    let signature = found.next()?.clone();
    found.next().is_none().then_some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_where_it_is_the_only_one_of_its_name() {
        let name = syn::parse_str::<Ident>("users_of").unwrap();
        let found = |text: &str| function(text, &name).map(|found| found.inputs.len());
        assert_eq!(found("mod m { fn users_of(a: &A) -> Vec<B> { Vec::new() } }"), Some(1));
        assert_eq!(found("fn users_of(a: &A, b: &B) {}"), Some(2));
        assert_eq!(found("fn users_of() {} mod m { fn users_of(a: &A) {} }"), None);
        assert_eq!(found("fn users_of_all() {}"), None);
        assert_eq!(found("use elsewhere::users_of;"), None);
    }

    #[test]
    fn the_kind_of_a_spec_is_found_in_its_file() {
        let spec = syn::parse_str::<Ident>("WebSpec").unwrap();
        let cases = [
            ("#[resource(group = \"a.b\", version = \"v1\", kind = \"Web\")]\nstruct WebSpec { a: i32 }", Some("Web")),
            ("mod m { #[kctl::resource(kind = \"Site\", status = \"S\")] pub struct WebSpec; }", Some("Site")),
            ("struct WebSpec;", None),
            ("#[resource(kind = \"Web\")] struct WebSpecs;", None),
            ("use elsewhere::WebSpec;", None),
        ];
        for (file, expected) in cases {
            assert_eq!(kind_of_spec(file, &spec).as_deref(), expected, "{file}");
        }
    }
}
