//! The options that `#[resource(…)]` hands on to kube's derive: what is missing, misspelt or not a text is told here, once, and
//! put right in what is handed on, so that the kind exists and nothing else fails.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Data, DeriveInput, LitStr, Token, Type,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use super::{json::comma, marks::snake_case};
use crate::{
    codes,
    diagnostics::{Errors, nearest},
};

/// What is a text.
const TEXTS: [&str; 11] =
    ["group", "version", "kind", "doc", "root", "plural", "singular", "derive", "category", "shortname", "selectable"];
/// All options, those of kctl with them.
const KNOWN: [&str; 31] = [
    "group",
    "version",
    "kind",
    "namespaced",
    "status",
    "scale",
    "printcolumn",
    "shortname",
    "category",
    "plural",
    "singular",
    "selectable",
    "rule",
    "validation",
    "conversion",
    "storage",
    "served",
    "deprecated",
    "status_subresource",
    "exactly_one_of",
    "at_most_one_of",
    "at_least_one_of",
    "annotation",
    "label",
    "doc",
    "derive",
    "attr",
    "root",
    "schema",
    "no_spec",
    "cel",
];
/// What a kind can't be without, and an example of it.
const REQUIRED: [(&str, &str); 3] = [("group", "example.com"), ("version", "v1"), ("kind", "Web")];

/// The options without their mistakes, for the kind that a type describes.
pub(super) fn check(options: &TokenStream, described: &Ident, errors: &mut Errors) -> TokenStream {
    let mut given = Vec::new();
    let parser = |input: ParseStream| -> syn::Result<Vec<TokenStream>> {
        let mut kept = Vec::new();
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            let value = value(&name, input)?;
            comma(input)?;
            // A misspelt name is one mistake: it is not missing as well.
            let text = snake_case(&name.to_string());
            given.extend(nearest(&text, &KNOWN).filter(|_| !KNOWN.contains(&text.as_str())).map(str::to_owned));
            if text == "api_version" {
                given.extend(["group".to_owned(), "version".to_owned()]);
            } else if text == "name" || text == "names" {
                given.push("kind".to_owned());
            }
            given.push(text);
            kept.extend(option(&name, &value, errors));
        }
        Ok(kept)
    };
    let Ok(mut kept) = parser.parse2(options.clone()) else {
        // kube says what it does not understand.
        return options.clone();
    };
    let missing: Vec<_> = REQUIRED.iter().filter(|(name, _)| !given.iter().any(|known| known == name)).collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|(name, _)| format!("`{name}`")).collect();
        let example = |(name, value): &&(&str, &str)| format!("{name} = \"{value}\"");
        let help = format!("write `#[resource({}, …)]`", missing.iter().map(example).collect::<Vec<_>>().join(", "));
        let what = format!("`#[resource]` needs {}", names.join(" and "));
        errors.push(TokenStream::new(), codes::INCOMPLETE_KIND, &what, &help);
    }
    let has = |tokens: &[TokenStream], name: &str| {
        tokens.iter().any(|one| one.clone().into_iter().next().is_some_and(|first| first.to_string() == name))
    };
    let stood_for: Vec<_> = REQUIRED.iter().filter(|(name, _)| !has(&kept, name)).collect();
    for (name, example) in stood_for {
        let stand_in = if *name == "kind" { kind_of(described) } else { (*example).to_owned() };
        let name = format_ident!("{name}");
        kept.push(quote!(#name = #stand_in));
    }
    quote!(#(#kept),*)
}

/// The struct is the spec, and the kind is made beside it: they cannot have one name. Returns the name that the struct gets
/// then, so that the kind exists and is the only one of its name.
pub(super) fn struct_named_as_the_kind(
    options: &TokenStream,
    input: &DeriveInput,
    errors: &mut Errors,
) -> Option<Ident> {
    let tokens: Vec<TokenTree> = options.clone().into_iter().collect();
    let kind = tokens.windows(3).find_map(|three| match three {
        [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Literal(value)] if name == "kind" => {
            syn::parse2::<LitStr>(value.to_token_stream()).ok()
        }
        _ => None,
    })?;
    if input.ident != kind.value() {
        return None;
    }
    let (kind, word) = (&input.ident, if matches!(input.data, Data::Enum(_)) { "enum" } else { "struct" });
    let vis = input.vis.to_token_stream();
    let vis = if vis.is_empty() { String::new() } else { format!("{vis} ") };
    let what = format!(
        "`{kind}` is the name of the {word} and of its kind: the {word} is the spec, `#[resource]` makes the kind"
    );
    errors.push(kind, codes::STRUCT_NAMED_AS_ITS_KIND, &what, &format!("write `{vis}{word} {kind}Spec`"));
    Some(format_ident!("{kind}Spec"))
}

/// The type that `status = …` names.
pub(super) fn status(options: &TokenStream) -> Option<Type> {
    let tokens: Vec<TokenTree> = options.clone().into_iter().collect();
    let named = tokens.windows(3).find_map(|three| match three {
        [TokenTree::Ident(name), TokenTree::Punct(_), value] if name == "status" => Some(value.to_token_stream()),
        _ => None,
    })?;
    let Ok(text) = syn::parse2::<LitStr>(named.clone()) else { return syn::parse2(named).ok() };
    text.parse().ok()
}

/// What stands between the name of an option and the next comma.
fn value(name: &Ident, input: ParseStream) -> syn::Result<Vec<TokenTree>> {
    let mut tokens = Vec::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.push(input.parse()?);
    }
    let is_written_as_one = matches!(tokens.first(), None | Some(TokenTree::Group(_)))
        || matches!(tokens.first(), Some(TokenTree::Punct(punct)) if punct.as_char() == '=');
    if is_written_as_one { Ok(tokens) } else { Err(syn::Error::new(name.span(), "not an option")) }
}

/// Options that other tools have, with what to write in their place.
const OTHER_OPTIONS: [(&str, &str); 14] = [
    ("additional_printer_columns", PRINTCOLUMN),
    ("api_version", "write `group = \"example.com\", version = \"v1\"`"),
    ("categories", "write `category = \"…\"`"),
    ("cluster", CLUSTER_SCOPED),
    ("cluster_scoped", CLUSTER_SCOPED),
    ("columns", PRINTCOLUMN),
    ("crates", "remove it: `#[resource]` knows its crates"),
    ("description", "write it as a doc comment above the struct, or `doc = \"…\"`"),
    ("name", "write `kind = \"…\"`; `plural` and `singular` are its other names"),
    ("names", "write `kind = \"…\"`; `plural`, `singular`, `shortname` and `category` are options, too"),
    ("printer_columns", PRINTCOLUMN),
    ("short_names", "write `shortname = \"…\"`, once for each"),
    ("subresource", "write `status = \"…\"` or `scale(…)`"),
    ("subresources", "write `status = \"…\"` or `scale(…)`"),
];
const CLUSTER_SCOPED: &str = "remove it: a kind without `namespaced` is cluster-scoped";
const PRINTCOLUMN: &str =
    "write `printcolumn(name = \"Ready\", type_ = \"integer\", json_path = \".status.ready\")`, once for each";

/// `scope = "Namespaced"`, as a `CustomResourceDefinition` has it. Returns the option that says the same.
fn scope(name: &Ident, value: &[TokenTree], errors: &mut Errors) -> Option<TokenStream> {
    let written: String = value.iter().map(ToString::to_string).collect();
    let is_cluster = written.to_ascii_lowercase().contains("cluster");
    let help = if is_cluster { CLUSTER_SCOPED } else { "write `namespaced`" };
    errors.push(name, codes::UNKNOWN_RESOURCE_OPTION, "`#[resource]` has no option `scope`", help);
    (!is_cluster).then(|| quote!(namespaced))
}

/// One option as kube takes it; nothing for one that it does not have.
fn option(name: &Ident, value: &[TokenTree], errors: &mut Errors) -> Option<TokenStream> {
    let text = name.to_string();
    if text == "scope" {
        return scope(name, value, errors);
    }
    if let Some((_, help)) = OTHER_OPTIONS.iter().find(|(other, _)| *other == snake_case(&text)) {
        errors.push(name, codes::UNKNOWN_RESOURCE_OPTION, &format!("`#[resource]` has no option `{text}`"), help);
        return None;
    }
    if !KNOWN.contains(&text.as_str()) {
        let help = nearest(&text, &KNOWN).map_or_else(
            || format!("its options are {}", KNOWN.join(", ")),
            |known| format!("did you mean `{known}`?"),
        );
        errors.push(name, codes::UNKNOWN_RESOURCE_OPTION, &format!("`#[resource]` has no option `{text}`"), &help);
        return None;
    }
    let is_a_text = match value {
        [_, TokenTree::Literal(literal)] => syn::parse2::<LitStr>(literal.to_token_stream()).is_ok(),
        [_, TokenTree::Ident(_)] => false,
        // A macro may be a text: kube knows.
        _ => true,
    };
    if TEXTS.contains(&text.as_str()) && !is_a_text {
        let written = &value[1];
        let quoted = match written {
            TokenTree::Ident(ident) => ident.to_string(),
            _ => "…".to_owned(),
        };
        errors.push(
            written,
            codes::NOT_A_STRING,
            &format!("`{text}` takes a string"),
            &format!("write `{text} = \"{quoted}\"`"),
        );
        return Some(quote!(#name = #quoted));
    }
    if let Some(written) = value.get(1).filter(|_| ["group", "version"].contains(&text.as_str()))
        && let Ok(literal) = syn::parse2::<LitStr>(written.to_token_stream())
        && !is_a_name(&literal.value(), &text)
    {
        let (example, allowed) = match text.as_str() {
            "group" => ("apps.example.com", "lower-case letters, digits, `-` and `.`"),
            _ => ("v1", "a lower-case letter, then letters, digits and `-`"),
        };
        let what = format!("`{}` can't be a {text}, which is {allowed}", literal.value());
        errors.push(written, codes::INCOMPLETE_KIND, &what, &format!("write for example `{text} = \"{example}\"`"));
        return Some(quote!(#name = #example));
    }
    Some(quote!(#name #(#value)*))
}

/// Whether the API server could take it. What else it asks of a group is told with the CRD.
fn is_a_name(text: &str, option: &str) -> bool {
    let is_group = option == "group";
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || (is_group && c == '.');
    text.chars().all(allowed) && (is_group || text.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// `Web` of `WebSpec`.
fn kind_of(described: &Ident) -> String {
    let name = described.to_string();
    match name.strip_suffix("Spec") {
        Some(kind) if !kind.is_empty() => kind.to_owned(),
        _ => name + "Kind",
    }
}
