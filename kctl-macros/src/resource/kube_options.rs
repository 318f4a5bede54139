//! The options that `#[resource(…)]` passes on to kube's derive.
//!
//! kube's derive reports mistakes in these options in terms of its parser, and not what to write. So each option is checked here
//! first:
//!
//! | code | mistake |
//! |---|---|
//! | K0024 | tokens that are not an option |
//! | K0028 | `scale` or `status_subresource` without `status` |
//! | K0043 | a kind without group, version or name, or with one that API servers reject; `root` is not a valid name of a type |
//! | K0044 | a value without quotes |
//! | K0045 | an unknown option |
//! | K0083 | a value other than the allowed ones: `option_values` |
//! | K0117 | a struct with the name of its kind |
//!
//! A wrong option is replaced by a valid one or left out, so that the kind exists and nothing else fails.

use kctl_apimachinery::validation::LABEL_LEN_MAX;
use proc_macro2::{Ident, Literal, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::{
    Data, DeriveInput, LitStr, Token, Type,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use super::{
    json::{parse_comma, up_to_comma},
    marker::Markers,
    markers::snake_case,
    model::{KubeOption, SchemaSource},
    nested_options, nested_values, option_values,
};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
    source_file::is_type_name,
};

/// Options whose value is a string.
const STRINGS: [&str; 11] =
    ["group", "version", "kind", "doc", "root", "plural", "singular", "derive", "category", "shortname", "selectable"];
/// All options, including kctl's, in the order in which messages list them.
const KNOWN: [&str; 32] = [
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
    "crate",
];
/// Options that a kind needs, each with an example.
const REQUIRED: [(&str, &str); 3] = [("group", "example.com"), ("version", "v1"), ("kind", "Web")];

/// Reads the options of a kind whose spec is `spec`. Mistakes are reported and replaced.
pub(super) fn check(options: &TokenStream, spec: &Ident, errors: &mut Errors) -> Vec<KubeOption> {
    // Names that count as given. A misspelt `group` has an error, and is not reported as a missing `group` too.
    let mut names = Vec::new();
    let mut is_read = true;
    let parser = |input: ParseStream| -> syn::Result<Vec<KubeOption>> {
        let mut options_kept = Vec::new();
        while !input.is_empty() {
            let option_read = name_and_value(input);
            let _rest = up_to_comma(input)?;
            parse_comma(input)?;
            let (name, value) = match option_read {
                Ok(option_read) => option_read,
                Err(error) => {
                    errors.syntax(&error, "write options like `group = \"example.com\", namespaced`");
                    is_read = false;
                    continue;
                }
            };
            let text = snake_case(&name.to_string());
            names.extend(closest_match(&text, &KNOWN).filter(|_| !KNOWN.contains(&text.as_str())).map(str::to_owned));
            if text == "api_version" {
                names.extend(["group".to_owned(), "version".to_owned()]);
            } else if text == "name" || text == "names" {
                names.push("kind".to_owned());
            }
            names.push(text);
            options_kept.extend(option(name, value, errors));
        }
        Ok(options_kept)
    };
    let mut options_kept = parser.parse2(options.clone()).unwrap_or_default();
    // An option that can't be read may be one that seems to be missing.
    if is_read {
        report_missing(&names, errors);
        report_scale_without_status(&options_kept, &names, errors);
    }
    for (name, example) in REQUIRED {
        if !options_kept.iter().any(|option| option.is_named(name)) {
            let value = if name == "kind" { kind_of(spec) } else { example.to_owned() };
            options_kept.push(KubeOption::Text { name: format_ident!("{name}"), value });
        }
    }
    options_kept
}

/// Reports K0043 for a kind without a group, a version or a name.
fn report_missing(options: &[String], errors: &mut Errors) {
    let missing: Vec<_> = REQUIRED.iter().filter(|(name, _)| !options.iter().any(|option| option == name)).collect();
    if missing.is_empty() {
        return;
    }
    let names: Vec<_> = missing.iter().map(|(name, _)| format!("`{name}`")).collect();
    let example = |(name, value): &&(&str, &str)| format!("{name} = \"{value}\"");
    let help = format!("write `#[resource({}, …)]`", missing.iter().map(example).collect::<Vec<_>>().join(", "));
    let what = format!("`#[resource]` needs {}", names.join(" and "));
    errors.push(TokenStream::new(), codes::INCOMPLETE_KIND, &what, &help);
}

/// Reports K0028 for `scale(…)` without `status`: kube's derive then writes no subresources into the CRD at all.
fn report_scale_without_status(options: &[KubeOption], names: &[String], errors: &mut Errors) {
    let scale = options.iter().find_map(|option| match option {
        KubeOption::Written { name, .. } if name == "scale" => Some(name),
        _ => None,
    });
    if let Some(scale) = scale.filter(|_| !names.iter().any(|name| name == "status")) {
        let help = "add `status = \"…\"`, the name of the status struct: `scale` reads the replicas from it";
        errors.push(scale, codes::WITHOUT_EFFECT, "`scale` needs `status`", help);
    }
}

/// Reports K0028 for `status_subresource` without `status`: there is nothing that it could serve or leave out. After
/// another mistake, `status` may be misspelt.
pub(super) fn report_subresource_without_status(options: &[KubeOption], root: &Markers, errors: &mut Errors) {
    let Some(word) = root.get_ident("status_subresource").filter(|_| errors.len() == 0) else { return };
    if !options.iter().any(|option| option.is_named("status")) {
        let help = "remove it, or add `status = \"…\"`, the name of the status struct";
        errors.push(word, codes::WITHOUT_EFFECT, "`status_subresource` needs `status`", help);
    }
}

impl KubeOption {
    /// Returns `true` for an option of this name.
    fn is_named(&self, option: &str) -> bool {
        match self {
            Self::Written { name, .. } | Self::Text { name, .. } => name == option,
            Self::Namespaced => option == "namespaced",
        }
    }
}

/// Returns the value of the first option of this name that is written `name = value`.
fn value_of(options: &[KubeOption], option: &str) -> Option<TokenTree> {
    options.iter().find_map(|candidate| match candidate {
        KubeOption::Written { name, value } if name == option => value.get(1).cloned(),
        KubeOption::Text { name, value } if name == option => Some(Literal::string(value).into()),
        _ => None,
    })
}

/// Returns the name of the type that kube's derive makes: `root`, or without it the kind.
fn type_name(options: &[KubeOption]) -> Option<LitStr> {
    let name = value_of(options, "root").or_else(|| value_of(options, "kind"))?;
    syn::parse2(name.into()).ok()
}

/// Returns the type of the kind, which kube's derive makes.
pub(super) fn kind(options: &[KubeOption]) -> Option<Ident> {
    type_name(options)?.parse().ok()
}

/// Reports K0117 for a struct with the name of its kind. kube's derive makes the kind in the same module, so both can't
/// have one name. Returns the name that the struct gets instead. The kind then exists, and is the only type of its
/// name.
pub(super) fn spec_name(options: &[KubeOption], input: &DeriveInput, errors: &mut Errors) -> Option<Ident> {
    let kind = type_name(options)?;
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

/// Returns the type that `status = "SiteStatus"` or `status = SiteStatus` names.
pub(super) fn status(options: &[KubeOption]) -> Option<Type> {
    let value = TokenStream::from(value_of(options, "status")?);
    let Ok(text) = syn::parse2::<LitStr>(value.clone()) else { return syn::parse2(value).ok() };
    text.parse().ok()
}

/// Returns the source of the schema. With `schema = "manual"` and `schema = "disabled"` it is the user.
pub(super) fn schema_source(options: &[KubeOption]) -> SchemaSource {
    if options.iter().any(|option| option.is_named("schema")) { SchemaSource::User } else { SchemaSource::Derived }
}

/// Reads one option up to its comma.
///
/// # Errors
///
/// Tokens that are not an option.
fn name_and_value(input: ParseStream) -> syn::Result<(Ident, Vec<TokenTree>)> {
    let name = input.call(Ident::parse_any)?;
    let value = value(&name, input)?;
    Ok((name, value))
}

/// Reads the tokens between the name of an option and the next comma: nothing, `= …` or `(…)`.
fn value(name: &Ident, input: ParseStream) -> syn::Result<Vec<TokenTree>> {
    let mut tokens: Vec<TokenTree> = Vec::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.push(input.parse()?);
    }
    match tokens.first() {
        None | Some(TokenTree::Group(_)) => Ok(tokens),
        Some(TokenTree::Punct(punct)) if punct.as_char() == '=' => Ok(tokens),
        Some(_) => Err(syn::Error::new(name.span(), "expected `=`, `(` or `,` after the name of an option")),
    }
}

/// Names that CRDs and other tools have for an option, with the help.
const OTHER_OPTIONS: [(&str, &str); 14] = [
    ("additional_printer_columns", PRINTCOLUMN),
    ("api_version", "write `group = \"example.com\", version = \"v1\"`"),
    ("categories", "write `category = \"…\"`"),
    ("cluster", CLUSTER_SCOPED),
    ("cluster_scoped", CLUSTER_SCOPED),
    ("columns", PRINTCOLUMN),
    ("crates", "remove it; `crate = path` is the path of kctl, which leads to all crates"),
    ("description", "write it as a doc comment above the struct, or `doc = \"…\"`"),
    ("name", "write `kind = \"…\"`; `plural` and `singular` are its other names"),
    ("names", "write `kind = \"…\"`; `plural`, `singular`, `shortname` and `category` are options, too"),
    ("printer_columns", PRINTCOLUMN),
    ("short_names", "write `shortname = \"…\"`, once for each"),
    ("subresource", "write `status = \"…\"` or `scale(…)`"),
    ("subresources", "write `status = \"…\"` or `scale(…)`"),
];
/// The help for kinds without a namespace.
const CLUSTER_SCOPED: &str = "remove it: a kind without `namespaced` is cluster-scoped";
/// The help for printer columns, with the fields of `CustomResourceColumnDefinition`.
const PRINTCOLUMN: &str =
    "write `printcolumn(name = \"Ready\", type_ = \"integer\", json_path = \".status.ready\")`, once for each";

/// Reports `scope = "Namespaced"`, which is how a `CustomResourceDefinition` spells it. Returns the flag that does the same;
/// a cluster-scoped kind needs none.
fn scope(name: &Ident, value: &[TokenTree], errors: &mut Errors) -> Option<KubeOption> {
    let written: String = value.iter().map(ToString::to_string).collect();
    let is_cluster = written.to_ascii_lowercase().contains("cluster");
    let help = if is_cluster { CLUSTER_SCOPED } else { "write `namespaced`" };
    errors.push(name, codes::UNKNOWN_RESOURCE_OPTION, "`#[resource]` has no option `scope`", help);
    (!is_cluster).then_some(KubeOption::Namespaced)
}

/// Checks one option. Returns it, or a valid one in its place; `None` for a wrong option that is left out.
fn option(name: Ident, value: Vec<TokenTree>, errors: &mut Errors) -> Option<KubeOption> {
    let text = name.to_string();
    if text == "scope" {
        return scope(&name, &value, errors);
    }
    if let Some((_, help)) = OTHER_OPTIONS.iter().find(|(other, _)| *other == snake_case(&text)) {
        errors.push(&name, codes::UNKNOWN_RESOURCE_OPTION, &format!("`#[resource]` has no option `{text}`"), help);
        return None;
    }
    if !KNOWN.contains(&text.as_str()) {
        let help = closest_match(&text, &KNOWN).map_or_else(
            || format!("its options are {}", KNOWN.join(", ")),
            |candidate| format!("did you mean `{candidate}`?"),
        );
        errors.push(&name, codes::UNKNOWN_RESOURCE_OPTION, &format!("`#[resource]` has no option `{text}`"), &help);
        return None;
    }
    let is_string = match value.as_slice() {
        [_, TokenTree::Literal(literal)] => syn::parse2::<LitStr>(literal.to_token_stream()).is_ok(),
        [_, TokenTree::Ident(_)] => false,
        // A macro call may expand to a string, which kube's derive checks.
        _ => true,
    };
    if STRINGS.contains(&text.as_str()) && !is_string {
        let written = &value[1];
        let quoted = match written {
            TokenTree::Ident(ident) => ident.to_string(),
            _ => "…".to_owned(),
        };
        let (what, help) = (format!("`{text}` takes a string"), format!("write `{text} = \"{quoted}\"`"));
        errors.push(written, codes::NOT_A_STRING, &what, &help);
        return Some(KubeOption::Text { name, value: quoted });
    }
    if nested_options::report_unknown(&text, &value, errors) || nested_values::report_invalid(&text, &value, errors) {
        return None;
    }
    if option_values::report_invalid(&name, &value, errors) {
        // A kind that is cluster-scoped by mistake would have errors in its controllers, too.
        return (text == "namespaced").then_some(KubeOption::Namespaced);
    }
    if text == "kind" && report_invalid_kind(&value, errors) {
        return None;
    }
    if text == "root"
        && let Some(example) = root_in_place_of_invalid(&value, errors)
    {
        return Some(KubeOption::Text { name, value: example });
    }
    if let Some(example) = name_in_place_of_invalid(&text, &value, errors) {
        return Some(KubeOption::Text { name, value: example.to_owned() });
    }
    Some(KubeOption::Written { name, value })
}

/// Reports K0043 for a kind that is not the name of a type, or that API servers reject. In lower case it is a DNS
/// label. Returns `true` for an error; `check` then derives the kind from the spec.
fn report_invalid_kind(value: &[TokenTree], errors: &mut Errors) -> bool {
    let literal = value.get(1).and_then(|written| syn::parse2::<LitStr>(written.to_token_stream()).ok());
    let Some(literal) = literal.filter(|text| !is_kind(&text.value())) else { return false };
    let what = format!(
        "`{}` can't be a kind, which is the name of a type: a letter, then letters and digits",
        literal.value()
    );
    let letters: String = literal.value().chars().filter(char::is_ascii_alphanumeric).collect();
    let example = if is_kind(&letters) { letters } else { "Web".to_owned() };
    errors.push(&literal, codes::INCOMPLETE_KIND, &what, &format!("write for example `kind = \"{example}\"`"));
    true
}

/// Returns `true` for the name of a type that is a DNS label (RFC 1035) in lower case.
fn is_kind(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
        && text.len() <= LABEL_LEN_MAX
        && syn::parse_str::<Ident>(text).is_ok()
}

/// Reports K0043 for a `root` that is not the name of a type: kube's derive would panic. Returns a valid one for it.
fn root_in_place_of_invalid(value: &[TokenTree], errors: &mut Errors) -> Option<String> {
    let literal = syn::parse2::<LitStr>(value.get(1)?.to_token_stream()).ok()?;
    let root = literal.value();
    if is_type_name(&root) {
        return None;
    }
    let letters: String = root.chars().filter(char::is_ascii_alphanumeric).collect();
    let example = if is_type_name(&letters) { letters } else { "WebObject".to_owned() };
    let what = format!("`{root}` can't be a root, which is the name of a type");
    errors.push(&literal, codes::INCOMPLETE_KIND, &what, &format!("write for example `root = \"{example}\"`"));
    Some(example)
}

/// Reports K0043 for a group or a version that API servers reject. Returns a valid one for it.
fn name_in_place_of_invalid(option: &str, value: &[TokenTree], errors: &mut Errors) -> Option<&'static str> {
    let (example, allowed, is_valid): (_, _, fn(&str) -> bool) = match option {
        "group" => ("apps.example.com", "lower-case letters, digits, `-` and `.`", is_group),
        "version" => ("v1", "a lower-case letter, then letters, digits and `-`", is_version),
        _ => return None,
    };
    let written = value.get(1)?;
    let literal = syn::parse2::<LitStr>(written.to_token_stream()).ok().filter(|text| !is_valid(&text.value()))?;
    let what = format!("`{}` can't be a {option}, which is {allowed}", literal.value());
    errors.push(written, codes::INCOMPLETE_KIND, &what, &format!("write for example `{option} = \"{example}\"`"));
    Some(example)
}

/// Returns `true` if a group has only characters that API servers accept. `generate-crds` checks the rest, such as the length.
fn is_group(text: &str) -> bool {
    text.chars().all(|c| is_label_character(c) || c == '.')
}

/// Returns `true` if a version has only characters that API servers accept, a letter first.
fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_label_character)
}

/// Returns `true` for a character of a DNS label (RFC 1123).
fn is_label_character(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

/// Returns the kind of a spec, to be used after a mistake: `Web` of `WebSpec`, and `FooKind` of `Foo`.
fn kind_of(spec: &Ident) -> String {
    let name = spec.to_string();
    match name.strip_suffix("Spec") {
        Some(kind) if !kind.is_empty() => kind.to_owned(),
        _ => name + "Kind",
    }
}

#[cfg(test)]
mod tests {
    use super::super::expand_resource;

    /// Returns the messages about a kind with these options, in one line each.
    fn messages(options: &str) -> Vec<String> {
        let item = quote::quote!(
            struct WebSpec {}
        );
        let text = expand_resource(&options.parse().unwrap(), &item).to_string();
        let messages = text.split("compile_error ! { ").skip(1).filter_map(|rest| rest.split(" }").next());
        messages.map(|text| text.trim_matches('"').replace("\\n", " / ").replace("\\\"", "\"")).collect()
    }

    #[test]
    fn scale_without_status_is_reported() {
        let kind = r#"group = "e.com", version = "v1", kind = "Web""#;
        let scale = r#"scale(spec_replicas_path = ".spec.n", status_replicas_path = ".status.n")"#;
        let found = messages(&format!("{kind}, {scale}"));
        assert!(found.len() == 1 && found[0].starts_with("`scale` needs `status` / help: add `status"), "{found:?}");
        assert!(found[0].ends_with(": K0028"), "{found:?}");
        assert!(messages(&format!("{kind}, {scale}, status = \"WebStatus\"")).is_empty());
    }

    #[test]
    fn status_subresource_without_status_is_reported() {
        let kind = r#"group = "e.com", version = "v1", kind = "Web", status_subresource = false"#;
        let found = messages(kind);
        assert!(found.len() == 1 && found[0].starts_with("`status_subresource` needs `status` / "), "{found:?}");
        assert!(messages(&format!("{kind}, status = \"WebStatus\"")).is_empty());
        let misspelt = messages(&format!("{kind}, statuss = \"WebStatus\""));
        assert!(misspelt.len() == 1 && misspelt[0].contains("did you mean `status`?"), "{misspelt:?}");
    }

    #[test]
    fn root_is_the_name_of_the_generated_type() {
        let kind = r#"group = "e.com", version = "v1", kind = "WebSpec", root = "Web", status = "WebStatus""#;
        assert!(messages(kind).is_empty(), "the struct has another name than its kind's type");
        let item = quote::quote!(
            struct WebSpec {}
        );
        let options = format!("{kind}, status_subresource = false").parse().unwrap();
        let text = expand_resource(&options, &item).to_string();
        assert!(text.contains("impl Web {"), "{text}");
        let same = messages(r#"group = "e.com", version = "v1", kind = "Web", root = "WebSpec""#);
        assert!(same.len() == 1 && same[0].ends_with(": K0117"), "{same:?}");
    }

    #[test]
    fn root_that_names_no_type_is_reported() {
        for (root, example) in [("my web", "myweb"), ("r#Web", "rWeb"), (" Web", "Web"), ("", "WebObject")] {
            let found = messages(&format!(r#"group = "e.com", version = "v1", kind = "WebSpec", root = "{root}""#));
            let expected = format!("`{root}` can't be a root, which is the name of a type / help: write for example");
            assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
            assert!(found[0].contains(&format!("`root = \"{example}\"`")), "{found:?}");
        }
    }

    #[test]
    fn syntax_mistake_in_options_is_one_message() {
        for (options, expected) in [
            (r#"group = "e.com" version = "v1", kind = "Web""#, "expected `,` / help: write a comma"),
            (r#"group = "e.com", version = "v1", kind = "Web" namespaced"#, "expected `,` / help: write a comma"),
            (r#"group = "e.com", version = "v1", kind = "Web", namespaced plural = "webs""#, "expected `,` / help: "),
            (r#"group = "e.com" rule("true"), version = "v1", kind = "Web""#, "expected `,` / help: write a comma"),
            (r#"group "e.com", version = "v1", kind = "Web""#, "expected `=`, `(` or `,` after the name"),
            (r#"group = "e.com", "v1", kind = "Web""#, "expected ident"),
        ] {
            let messages = messages(options);
            assert!(messages.len() == 1 && messages[0].starts_with(expected), "{options}: {messages:?}");
            assert!(messages[0].ends_with(": K0024"), "{options}: {messages:?}");
        }
        assert!(messages(r#"group = "e.com", version = "v1", kind = "Web","#).is_empty());
    }
}
