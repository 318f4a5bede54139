//! A field of a type that has no `#[schema]`: the derives would say so eight times, once for each trait, and never name the
//! attribute. What an attribute is given shows one item, so the other one is looked up in the file where both stand; where that
//! is not certain, rustc speaks.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, Data, DeriveInput, Fields, GenericArgument, Generics, Ident, Item, ItemImpl, PathArguments, Type,
};

use super::{check::derived, model::Stub};
use crate::{
    codes,
    diagnostics::Errors,
    source::{defines, is_one_of, items_of},
};

/// Attributes that give a type none of the traits of a part. With any other one it may have them all.
const SILENT: [&str; 9] =
    ["doc", "derive", "allow", "expect", "warn", "deny", "deprecated", "must_use", "non_exhaustive"];
/// Derives of the standard library.
const STANDARD: [&str; 9] = ["Clone", "Copy", "Debug", "Default", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash"];
/// The attributes that make a part.
const MARKS: [&str; 2] = ["schema", "resource"];

/// Tells each part of a type that nobody marked, and gives it what the derives ask for, so that they say nothing. `status` is
/// the type that the options name.
pub(super) fn check(input: &DeriveInput, status: Option<Type>, file: Option<&str>, errors: &mut Errors) -> Vec<Stub> {
    let Some(text) = file else { return Vec::new() };
    let parts = types(input).into_iter().chain(status);
    let suspects: Vec<_> =
        parts.filter_map(|ty| innermost(&ty)).filter(|part| *part != input.ident && is_suspect(text, part)).collect();
    if suspects.is_empty() {
        return Vec::new();
    }
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let items = items_of(&file);
    let mut stubs: Vec<Stub> = Vec::new();
    for part in suspects {
        let Some((word, attributes)) = unmarked(&items, &part).filter(|_| stubs.iter().all(|stub| stub.name != part))
        else {
            continue;
        };
        if first_to_mention(&items, &part) != Some(&input.ident) {
            continue;
        }
        let what = format!("`{part}` is a part of `{}` and has no `#[schema]`", input.ident);
        errors.push(&part, codes::PART_WITHOUT_SCHEMA, &what, &format!("write `#[schema]` above `{word} {part}`"));
        let name = Ident::new(&part.to_string(), part.span().resolved_at(proc_macro2::Span::call_site()));
        stubs.push(Stub { name, derives: derived(attributes) });
    }
    stubs
}

/// The types of all fields that serde and schemars are told nothing about.
fn types(input: &DeriveInput) -> Vec<Type> {
    let all: Vec<&Fields> = match &input.data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data.variants.iter().map(|variant| &variant.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    let fields = all.into_iter().flatten();
    let plain = fields.filter(|field| !field.attrs.iter().any(|attribute| !is_one_of(attribute, &SILENT)));
    plain.map(|field| field.ty.clone()).collect()
}

/// `Part` of `Option<Vec<Part>>`, where it is one word.
fn innermost(ty: &Type) -> Option<Ident> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    match &last.arguments {
        PathArguments::None => path.path.get_ident().cloned(),
        PathArguments::AngleBracketed(arguments) => match arguments.args.last()? {
            GenericArgument::Type(inner) => innermost(inner),
            _ => None,
        },
        PathArguments::Parenthesized(_) => None,
    }
}

/// Whether a type of this name stands in the file with nothing above it that looks like a mark: a look at the text, because most
/// types have theirs and need no parser.
fn is_suspect(text: &str, part: &Ident) -> bool {
    defines(text, part).any(|start| {
        let head = &text[..start];
        let above = head.rfind("}\n").max(head.rfind(";\n")).map_or(head, |end| &head[end..]);
        !["schema", "resource", "Serialize"].iter().any(|mark| above.contains(mark))
    })
}

/// The one definition of a type that certainly lacks the traits: it has no attribute that could give them, and no `impl` nor
/// macro of the file names it.
fn unmarked<'a>(items: &[&'a Item], part: &Ident) -> Option<(&'static str, &'a [Attribute])> {
    let mut found = None;
    for item in items {
        let (word, ident, attributes, generics): (_, _, _, &Generics) = match item {
            Item::Struct(item) => ("struct", &item.ident, &item.attrs, &item.generics),
            Item::Enum(item) => ("enum", &item.ident, &item.attrs, &item.generics),
            Item::Impl(item) if implements(item, part) => return None,
            Item::Macro(item) if mentions(&item.mac.tokens, part) => return None,
            Item::Type(item) if item.ident == *part => return None,
            _ => continue,
        };
        if ident != part {
            continue;
        }
        let silent = attributes.iter().all(|attribute| is_one_of(attribute, &SILENT));
        let standard = derived(attributes).iter().all(|name| STANDARD.contains(&name.as_str()));
        if found.is_some() || !silent || !standard || !generics.params.is_empty() {
            return None;
        }
        found = Some((word, attributes.as_slice()));
    }
    found
}

/// Whether it gives the type a trait.
fn implements(item: &ItemImpl, part: &Ident) -> bool {
    item.trait_.is_some() && innermost(&item.self_ty).is_some_and(|ty| ty == *part)
}

/// Whether the word is among the tokens, or a text of them.
pub(crate) fn mentions(tokens: &TokenStream, word: &Ident) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *word,
        TokenTree::Group(group) => mentions(&group.stream(), word),
        TokenTree::Literal(literal) => *word == literal.to_string().trim_matches('"'),
        TokenTree::Punct(_) => false,
    })
}

/// The first marked type that names the part: it alone tells, and gives the stand-ins.
fn first_to_mention<'a>(items: &[&'a Item], part: &Ident) -> Option<&'a Ident> {
    items.iter().find_map(|item| {
        let (ident, attributes) = match item {
            Item::Struct(item) => (&item.ident, &item.attrs),
            Item::Enum(item) => (&item.ident, &item.attrs),
            _ => return None,
        };
        let is_marked = attributes.iter().any(|attribute| is_one_of(attribute, &MARKS));
        (is_marked && ident != part && mentions(&item.to_token_stream(), part)).then_some(ident)
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
    fn a_part_is_reported_if_nothing_can_implement_its_traits() {
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
    fn a_part_is_reported_once_in_a_file() {
        let file = "#[schema]\nstruct Web { port: Port, other: Vec<Port> }\nstruct Port;";
        assert_eq!(n_errors(file), 1);
        assert_eq!(n_errors(&format!("#[schema]\nstruct Before {{ port: Port }}\n{file}")), 0);
    }

    #[test]
    fn a_field_with_options_of_serde_is_not_checked() {
        assert_eq!(n_errors("#[schema]\nstruct Web { #[serde(skip)] port: Port }\nstruct Port;"), 0);
    }
}
