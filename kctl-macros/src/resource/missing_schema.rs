//! A field whose type lacks `#[schema]`: one error that names the attribute, instead of one for each of six derives.
//!
//! A macro receives one item, so the type is looked up in the file that has both. K0090 is reported only if nothing in
//! the file could implement the traits. Another attribute, an unknown derive, an `impl` or a macro may do so, and then
//! rustc reports what is missing.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, Data, DeriveInput, Fields, GenericArgument, Generics, Ident, Item, ItemImpl, PathArguments, Type,
};

use super::{derive_order::derived_traits, model::Stub};
use crate::{
    codes,
    diagnostics::Errors,
    function::with_span,
    source_file::{definitions_of, has_name, items_of},
};

/// Attributes that implement no trait. Any other attribute may implement all traits that a part needs.
const NEUTRAL_ATTRIBUTES: [&str; 9] =
    ["doc", "derive", "allow", "expect", "warn", "deny", "deprecated", "must_use", "non_exhaustive"];
/// Derives of the standard library, which implement none of serde's and schemars' traits.
const STANDARD_DERIVES: [&str; 9] =
    ["Clone", "Copy", "Debug", "Default", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash"];
/// The attributes that make a part of a type.
const SCHEMA_ATTRIBUTES: [&str; 2] = ["schema", "resource"];

/// Reports K0090 for each type that lacks `#[schema]`. Returns these types: with stubs of the traits, the derives
/// report nothing more. `status` is the type that the options of a kind name.
pub(super) fn check(input: &DeriveInput, status: Option<Type>, file: Option<&str>, errors: &mut Errors) -> Vec<Stub> {
    let Some(text) = file else { return Vec::new() };
    let parts = field_types(input).into_iter().chain(status);
    let suspects: Vec<_> = parts
        .filter_map(|ty| innermost_type(&ty))
        .filter(|part| *part != input.ident && may_lack_schema(text, part))
        .collect();
    if suspects.is_empty() {
        return Vec::new();
    }
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let items = items_of(&file);
    let mut stubs: Vec<Stub> = Vec::new();
    for part in suspects {
        let Some((word, attributes)) =
            type_without_schema(&items, &part).filter(|_| stubs.iter().all(|stub| stub.name != part))
        else {
            continue;
        };
        if first_to_mention(&items, &part) != Some(&input.ident) {
            continue;
        }
        let what = format!("`{part}` is a part of `{}` and has no `#[schema]`", input.ident);
        errors.push(&part, codes::PART_WITHOUT_SCHEMA, &what, &format!("write `#[schema]` above `{word} {part}`"));
        let name = with_span(&part, part.span().resolved_at(proc_macro2::Span::call_site()));
        stubs.push(Stub { name, derives: derived_traits(attributes) });
    }
    stubs
}

/// Returns the types of all fields that have no attribute of serde or schemars. Such an attribute may replace the
/// traits by functions.
fn field_types(input: &DeriveInput) -> Vec<Type> {
    let all: Vec<&Fields> = match &input.data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data.variants.iter().map(|variant| &variant.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    let fields = all.into_iter().flatten();
    let plain = fields.filter(|field| !field.attrs.iter().any(|attribute| !has_name(attribute, &NEUTRAL_ATTRIBUTES)));
    plain.map(|field| field.ty.clone()).collect()
}

/// Returns `Part` of `Option<Vec<Part>>`. `None` for a path of several segments, which is a type of another module.
fn innermost_type(ty: &Type) -> Option<Ident> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    match &last.arguments {
        PathArguments::None => path.path.get_ident().cloned(),
        PathArguments::AngleBracketed(arguments) => match arguments.args.last()? {
            GenericArgument::Type(inner) => innermost_type(inner),
            _ => None,
        },
        PathArguments::Parenthesized(_) => None,
    }
}

/// Returns `true` if the file defines a type of this name with no attribute above it that looks like `#[schema]`.
/// Most types have theirs, and then the file need not be parsed.
fn may_lack_schema(text: &str, part: &Ident) -> bool {
    definitions_of(text, part).any(|start| {
        let head = &text[..start];
        let above = head.rfind("}\n").max(head.rfind(";\n")).map_or(head, |end| &head[end..]);
        !["schema", "resource", "Serialize"].iter().any(|marker| above.contains(marker))
    })
}

/// Returns the keyword and the attributes of a type that certainly lacks the traits. `None` if the file has two types
/// of the name, or anything that could implement the traits.
fn type_without_schema<'a>(items: &[&'a Item], part: &Ident) -> Option<(&'static str, &'a [Attribute])> {
    let mut found = None;
    for item in items {
        let (word, ident, attributes, generics): (_, _, _, &Generics) = match item {
            Item::Struct(item) => ("struct", &item.ident, &item.attrs, &item.generics),
            Item::Enum(item) => ("enum", &item.ident, &item.attrs, &item.generics),
            Item::Impl(item) if implements(item, part) => return None,
            Item::Macro(item) if contains_word(&item.mac.tokens, part) => return None,
            Item::Type(item) if item.ident == *part => return None,
            _ => continue,
        };
        if ident != part {
            continue;
        }
        let silent = attributes.iter().all(|attribute| has_name(attribute, &NEUTRAL_ATTRIBUTES));
        let standard = derived_traits(attributes).iter().all(|name| STANDARD_DERIVES.contains(&name.as_str()));
        if found.is_some() || !silent || !standard || !generics.params.is_empty() {
            return None;
        }
        found = Some((word, attributes.as_slice()));
    }
    found
}

/// Returns `true` if an `impl` gives the type a trait. An inherent `impl` gives it none.
fn implements(item: &ItemImpl, part: &Ident) -> bool {
    item.trait_.is_some() && innermost_type(&item.self_ty).is_some_and(|ty| ty == *part)
}

/// Returns `true` if the word is among the tokens, or is the contents of a string there.
pub(crate) fn contains_word(tokens: &TokenStream, word: &Ident) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *word,
        TokenTree::Group(group) => contains_word(&group.stream(), word),
        TokenTree::Literal(literal) => *word == literal.to_string().trim_matches('"'),
        TokenTree::Punct(_) => false,
    })
}

/// Returns the first described type that mentions the part. It alone reports the error and emits the stubs, so that a
/// part of two types is one error.
fn first_to_mention<'a>(items: &[&'a Item], part: &Ident) -> Option<&'a Ident> {
    items.iter().find_map(|item| {
        let (ident, attributes) = match item {
            Item::Struct(item) => (&item.ident, &item.attrs),
            Item::Enum(item) => (&item.ident, &item.attrs),
            _ => return None,
        };
        let is_marked = attributes.iter().any(|attribute| has_name(attribute, &SCHEMA_ATTRIBUTES));
        (is_marked && ident != part && contains_word(&item.to_token_stream(), part)).then_some(ident)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of errors about the struct `Web` of this file.
    fn n_errors(file: &str) -> usize {
        let parsed = syn::parse_file(file).unwrap();
        let web = parsed.items.iter().find_map(|item| match item {
            Item::Struct(item) if item.ident == "Web" => Some(item.to_token_stream()),
            _ => None,
        });
        let input: DeriveInput = syn::parse2(web.unwrap()).unwrap();
        let mut errors = Errors::default();
        let stubs = check(&input, None, Some(file), &mut errors);
        let n_errors = errors.into_result(()).err().map_or(0, |errors| errors.into_iter().count());
        assert_eq!(stubs.len(), n_errors, "each mistake has its stub");
        n_errors
    }

    #[test]
    fn part_without_possible_traits_is_reported() {
        let web = "#[schema]\nstruct Web { port: Option<Vec<Port>> }\n";
        let cases = [
            ("struct Port;", 1),
            ("/// Docs.\n#[derive(Debug, Default)]\nenum Port { A }", 1),
            ("mod inner {\n#[allow(dead_code)]\npub struct Port(i32);\n}", 1),
            ("#[schema]\nstruct Port;", 0),
            ("#[schema]\n/// It ends;\n/// here.\nstruct Port;", 0),
            ("#[kctl::schema]\nstruct Port;", 0),
            ("#[derive(Serialize)]\nstruct Port;", 0),
            ("#[derive(serde_with::Everything)]\nstruct Port;", 0),
            ("#[other]\nstruct Port;", 0),
            ("#[cfg(unix)]\nstruct Port;", 0),
            ("struct Port;\nimpl serde::Serialize for Port {}", 0),
            ("struct Port;\nimpl Port {}", 1),
            ("struct Port;\nall_traits!(Port);", 0),
            ("struct Port<T>(T);", 0),
            ("struct Port;\nmod other { struct Port; }", 0),
            ("struct Portal;", 0),
            ("use elsewhere::Port;", 0),
            ("type Port = i32;", 0),
        ];
        for (part, expected) in cases {
            assert_eq!(n_errors(&format!("{web}{part}")), expected, "{part}");
            assert_eq!(n_errors(&format!("{part}\n{web}")), expected, "{part}");
        }
    }

    #[test]
    fn part_is_reported_once_in_a_file() {
        let file = "#[schema]\nstruct Web { port: Port, other: Vec<Port> }\nstruct Port;";
        assert_eq!(n_errors(file), 1);
        assert_eq!(n_errors(&format!("#[schema]\nstruct Before {{ port: Port }}\n{file}")), 0);
    }

    #[test]
    fn field_with_serde_options_is_not_checked() {
        assert_eq!(n_errors("#[schema]\nstruct Web { #[serde(skip)] port: Port }\nstruct Port;"), 0);
    }
}
