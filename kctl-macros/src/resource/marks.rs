//! `#[kctl(…)]` on types, fields and variants: what the schema says that neither serde nor schemars can. Reads the marks and
//! hands on one attribute of schemars with all of them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, LitBool, LitStr, Token,
    ext::IdentExt,
    parenthesized,
    parse::{ParseStream, Parser},
};

use super::{
    bounds, definition,
    json::{Json, comma},
    optional::NoneIs,
};
use crate::{
    codes,
    diagnostics::{Errors, nearest},
    function::written,
};

/// How a mark is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `immutable`
    Flag,
    /// `nullable = true`
    Switch,
    /// `minimum = 1`
    Number,
    /// `min_items = 1`
    Count,
    /// `pattern = "…"`
    Text,
    /// `default = …`
    Value,
    /// `allowed("a", "b")`
    Values,
    /// `exactly_one_of("a", "b")`
    Names,
    /// `list = set`
    List,
    /// `map = atomic`
    Map,
    /// `rule("…", message = "…")`
    Rule,
    /// `docs(url = "…", description = "…")`
    Docs,
    /// `items(…)`: the marks of what is in a list or a map
    Inner,
}

const FORMS: [(&str, Form); 33] = [
    ("allowed", Form::Values),
    ("at_least_one_of", Form::Names),
    ("at_most_one_of", Form::Names),
    ("default", Form::Value),
    ("docs", Form::Docs),
    ("embedded", Form::Flag),
    ("exactly_one_of", Form::Names),
    ("example", Form::Value),
    ("exclusive_maximum", Form::Number),
    ("exclusive_minimum", Form::Number),
    ("format", Form::Text),
    ("immutable", Form::Flag),
    ("int_or_string", Form::Flag),
    ("items", Form::Inner),
    ("list", Form::List),
    ("map", Form::Map),
    ("max_items", Form::Count),
    ("max_length", Form::Count),
    ("max_properties", Form::Count),
    ("maximum", Form::Number),
    ("min_items", Form::Count),
    ("min_length", Form::Count),
    ("min_properties", Form::Count),
    ("minimum", Form::Number),
    ("multiple_of", Form::Number),
    ("nullable", Form::Switch),
    ("pattern", Form::Text),
    ("preserve_unknown", Form::Flag),
    ("rule", Form::Rule),
    ("schemaless", Form::Flag),
    ("title", Form::Text),
    ("type_", Form::Text),
    ("values", Form::Inner),
];

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Takes the marks out of attributes and puts the attribute of schemars that does what they say in their place.
pub(super) fn replace(attributes: &mut Vec<Attribute>, none: NoneIs, errors: &mut Errors) {
    let is_mark = |attribute: &Attribute| attribute.path().is_ident("kctl");
    let found: Vec<Attribute> = attributes.iter().filter(|attribute| is_mark(attribute)).cloned().collect();
    attributes.retain(|attribute| !is_mark(attribute));
    let mut all = Vec::new();
    for attribute in &found {
        match attribute.parse_args_with(|input: ParseStream| list(input, errors)) {
            Ok(marks) => all.extend(marks),
            Err(error) => syntax(&error, "write marks like `#[kctl(min_length = 1, immutable)]`", errors),
        }
    }
    let span = found
        .first()
        .map_or_else(Span::call_site, |first| first.path().get_ident().map_or_else(Span::call_site, Ident::span));
    bounds::check(&all, span, errors);
    none.apply(&mut all, attributes);
    if all.is_empty() {
        return;
    }
    let marks = emit(all);
    attributes.push(syn::parse_quote!(#[schemars(transform = #marks)]));
}

/// The transform that applies marks.
pub(super) fn emit(marks: Vec<(String, Json)>) -> TokenStream {
    let mut text = String::new();
    Json::Object(merge(marks)).write(&mut text);
    quote!(::kctl::__private_0_1::Marks(#text))
}

/// Marks that may be repeated become lists.
fn merge(marks: Vec<(String, Json)>) -> Vec<(String, Json)> {
    let mut merged: Vec<(String, Json)> = Vec::new();
    for (name, value) in marks {
        let is_repeated = matches!(form(&name), Some(Form::Rule | Form::Names));
        let known = merged.iter_mut().find(|(known, _)| *known == name);
        match known {
            Some((_, Json::List(all))) if is_repeated => all.push(value),
            _ if is_repeated => merged.push((name, Json::List(vec![value]))),
            _ => merged.push((name, value)),
        }
    }
    merged
}

fn form(name: &str) -> Option<Form> {
    FORMS.iter().find(|(known, _)| *known == name).map(|(_, form)| *form)
}

/// Whether `#[resource(…)]` takes it for the object as a whole.
pub(super) fn is_of_root(name: &str) -> bool {
    matches!(form(name), Some(Form::Rule | Form::Names))
}

/// Reads marks up to the end; what is wrong with one of them is no reason not to read the next.
pub(super) fn list(input: ParseStream, errors: &mut Errors) -> syn::Result<Vec<(String, Json)>> {
    let mut marks = Vec::new();
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        let text = name.unraw().to_string();
        if let Some(value) = one(&name, &text, input, errors)? {
            let is_repeatable = matches!(form(&text), Some(Form::Rule | Form::Names));
            if !is_repeatable && marks.iter().any(|(known, _)| *known == text) {
                errors.push(
                    &name,
                    codes::DUPLICATE_MARK,
                    &format!("`{text}` is given twice"),
                    &format!("write `{text}` once"),
                );
            }
            marks.push((text, value));
        }
        comma(input)?;
    }
    Ok(marks)
}

/// The value of one mark.
pub(super) fn one(name: &Ident, text: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let Some(form) = form(text) else {
        let value = up_to_comma(input)?;
        unknown(name, text, &value, errors);
        return Ok(None);
    };
    let with_value = |example: &str| -> syn::Result<()> {
        let error = |_| Error::new(name.span(), format!("`{text}` needs a value: write `{text} = {example}`"));
        input.parse::<Token![=]>().map(drop).map_err(error)
    };
    let within = |example: &str| -> syn::Result<syn::parse::ParseBuffer<'_>> {
        let inner = || -> syn::Result<syn::parse::ParseBuffer<'_>> {
            let content;
            parenthesized!(content in input);
            Ok(content)
        };
        inner().map_err(|_| Error::new(name.span(), format!("`{text}` needs parentheses: write `{text}({example})`")))
    };
    Ok(match form {
        Form::Flag => {
            if input.peek(Token![=]) || input.peek(syn::token::Paren) {
                return Err(input.error(format!("`{text}` takes no value: write `{text}` alone")));
            }
            Some(Json::Bool(true))
        }
        Form::Switch => {
            with_value("true")?;
            Some(Json::Bool(input.parse::<LitBool>()?.value))
        }
        Form::Number => {
            with_value("1")?;
            number(name, text, input, errors)?
        }
        Form::Count => {
            with_value("1")?;
            count(name, text, input, errors)?
        }
        Form::Text => {
            with_value("\"…\"")?;
            word(text, &input.parse()?, errors)
        }
        Form::Value => {
            with_value("1")?;
            Some(input.parse()?)
        }
        Form::Values | Form::Names => Some(Json::List(values(&within("\"a\", \"b\"")?, name, text, errors)?)),
        Form::List => {
            with_value("set")?;
            list_type(input, errors)?
        }
        Form::Map => {
            with_value("atomic")?;
            choice(&input.call(Ident::parse_any)?, &["atomic", "granular"], errors)
        }
        Form::Rule => rule(&within("\"self.min <= self.max\", message = \"…\"")?, errors)?,
        Form::Docs => docs(&within("url = \"https://…\"")?, errors)?,
        Form::Inner => {
            let marks = list(&within("min_length = 1")?, errors)?;
            bounds::check(&marks, name.span(), errors);
            Some(Json::Object(merge(marks)))
        }
    })
}

/// Names that other validators and JSON schemas use for a mark, with the mark.
const OTHER_NAMES: [(&str, &str); 24] = [
    ("choices", "allowed"),
    ("enum", "allowed"),
    ("gt", "exclusive_minimum"),
    ("gte", "minimum"),
    ("len_max", "max_length"),
    ("len_min", "min_length"),
    ("lt", "exclusive_maximum"),
    ("lte", "maximum"),
    ("matches", "pattern"),
    ("max", "maximum"),
    ("max_len", "max_length"),
    ("max_props", "max_properties"),
    ("max_value", "maximum"),
    ("min", "minimum"),
    ("min_len", "min_length"),
    ("min_props", "min_properties"),
    ("min_value", "minimum"),
    ("one_of", "allowed"),
    ("preserve_unknown_fields", "preserve_unknown"),
    ("regex", "pattern"),
    ("regexp", "pattern"),
    ("ty", "type_"),
    ("type", "type_"),
    ("values_of", "allowed"),
];

fn unknown(name: &Ident, text: &str, value: &TokenStream, errors: &mut Errors) {
    let what = format!("`#[kctl(…)]` has no option `{text}`");
    errors.push(name, codes::UNKNOWN_MARK, &what, &instead(&snake_case(text), value));
}

/// Returns the help for a name that is not a mark: what to write in its place, with the value that was given.
fn instead(text: &str, value: &TokenStream) -> String {
    let known: Vec<&str> = FORMS.iter().map(|(known, _)| *known).collect();
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == text).map(|(_, mark)| *mark);
    let same = known.iter().find(|known| **known == text).copied();
    match text {
        "range" => return bounds_within(value, "minimum", "maximum", ["1", "10"]),
        "length" | "len" => return bounds_within(value, "min_length", "max_length", ["1", "63"]),
        "list_type" | "list_map_key" | "list_map_keys" | "keys" => {
            return "write `list = atomic`, `list = set` or `list = map(\"name\")`".into();
        }
        "map_type" | "struct_type" => return "write `map = atomic` or `map = granular`".into(),
        "required" | "optional" => return "a field of type `Option<T>` is optional, any other one is required".into(),
        "unique" | "unique_items" => return "write `list = set`: API servers refuse `uniqueItems`".into(),
        "validation" | "validate" | "cel" | "x_kubernetes_validations" => {
            return "write `rule(\"self.min <= self.max\", message = \"…\")`".into();
        }
        "email" | "uri" | "url" | "ipv4" | "ipv6" | "uuid" | "hostname" | "date" => {
            let format = if text == "url" { "uri" } else { text };
            return format!("write `format = \"{format}\"`");
        }
        "description" => return "write it as a doc comment above the field: `/// …`".into(),
        "rename" | "skip" | "flatten" | "rename_all" => {
            return format!("it is an option of serde: write `#[serde({})]`", with_value(text, value));
        }
        "read_only" | "readonly" => return "write `immutable`".into(),
        "not_empty" | "non_empty" => return "write `min_length = 1` for a string, `min_items = 1` for a list".into(),
        _ => {}
    }
    match other.or(same).or_else(|| nearest(text, &known)) {
        Some(mark) => format!("write `{}`", with_mark(mark, value)),
        None => format!("the options are {}", known.join(", ")),
    }
}

/// The name of a mark as it is spelled here: JSON schemas and kubebuilder write `minLength` and `MinLength`.
pub(super) fn snake_case(text: &str) -> String {
    let mut name = String::new();
    for char in text.chars() {
        if char.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(char.to_ascii_lowercase());
    }
    name
}

/// The value as it was written: ` = 0`, `(…)` or nothing.
fn with_value(name: &str, value: &TokenStream) -> String {
    let text = written(value);
    match text.strip_prefix('=') {
        Some(value) => format!("{name} = {value}"),
        None => format!("{name}{text}"),
    }
}

/// A mark with the value that was given to another name, in the form that the mark has.
fn with_mark(mark: &str, value: &TokenStream) -> String {
    let text = written(value);
    let given = text.trim_start_matches('=').trim();
    let within = given.trim_start_matches(['(', '[']).trim_end_matches([')', ']']).trim();
    match form(mark) {
        _ if given.is_empty() => mark.to_owned(),
        Some(Form::Flag) => mark.to_owned(),
        Some(Form::Values | Form::Names | Form::Inner | Form::Rule | Form::Docs) => format!("{mark}({within})"),
        Some(Form::List | Form::Map) => format!("{mark} = {given}"),
        _ => format!("{mark} = {within}"),
    }
}

/// `range(min = 0, max = 5)` and `length(max = 63)`, as two marks.
fn bounds_within(value: &TokenStream, low: &str, high: &str, examples: [&str; 2]) -> String {
    let text = written(value);
    let given = |name: &str| {
        let (_, rest) = text.split_once(&format!("{name}="))?;
        let end = rest.find([',', ')']).unwrap_or(rest.len());
        Some(rest[..end].trim().to_owned())
    };
    let marks: Vec<_> = [(low, given("min")), (high, given("max"))]
        .into_iter()
        .filter_map(|(mark, bound)| bound.map(|bound| format!("{mark} = {bound}")))
        .collect();
    if marks.is_empty() {
        return format!("write `{low} = {}, {high} = {}`", examples[0], examples[1]);
    }
    format!("write `{}`", marks.join(", "))
}

/// Goes to the next comma.
pub(super) fn skip(input: ParseStream) -> syn::Result<()> {
    up_to_comma(input).map(drop)
}

fn number(name: &Ident, text: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let value: Json = input.parse()?;
    if matches!(value, Json::Number(_)) {
        return Ok(Some(value));
    }
    errors.push(name, codes::INVALID_BOUND, &format!("`{text}` is a number"), &format!("write `{text} = 1`"));
    Ok(None)
}

fn count(name: &Ident, text: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let value: Json = input.parse()?;
    if let Json::Number(digits) = &value
        && digits.parse::<u32>().is_ok()
    {
        return Ok(Some(value));
    }
    errors.push(
        name,
        codes::INVALID_BOUND,
        &format!("`{text}` is how many: 0 or more"),
        &format!("write `{text} = 1`"),
    );
    Ok(None)
}

fn word(name: &str, text: &LitStr, errors: &mut Errors) -> Option<Json> {
    if name == "type_" && !TYPES.contains(&text.value().as_str()) {
        let help = format!("write one of {}", TYPES.join(", "));
        errors.push(text, codes::UNKNOWN_WORD, &format!("`{}` is not a type of a schema", text.value()), &help);
        return None;
    }
    Some(Json::Text(text.value()))
}

fn values(input: ParseStream, name: &Ident, text: &str, errors: &mut Errors) -> syn::Result<Vec<Json>> {
    let mut all: Vec<Json> = Vec::new();
    while !input.is_empty() {
        let span = input.span();
        let value: Json = match form(text) {
            Some(Form::Names) => Json::Text(
                input
                    .parse::<LitStr>()
                    .map_err(|error| {
                        let what = format!("`{text}` names fields as in JSON, in quotes: write `{text}(\"a\", \"b\")`");
                        Error::new(error.span(), what)
                    })?
                    .value(),
            ),
            _ => input.parse()?,
        };
        if all.contains(&value) {
            errors.push_at(
                span,
                codes::DUPLICATE_MARK,
                &format!("`{text}` names a value twice"),
                "write each value once",
            );
        }
        all.push(value);
        comma(input)?;
    }
    if all.is_empty() {
        errors.push(
            name,
            codes::EMPTY_LIST,
            &format!("`{text}` names nothing"),
            &format!("write `{text}(\"a\", \"b\")`"),
        );
    }
    Ok(all)
}

fn choice(word: &Ident, known: &[&str], errors: &mut Errors) -> Option<Json> {
    let text = word.to_string();
    if known.contains(&text.as_str()) {
        return Some(Json::Text(text));
    }
    let quoted: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    let help = nearest(&text, known).map_or_else(|| "write one of them".to_owned(), |near| format!("write `{near}`"));
    errors.push(word, codes::UNKNOWN_WORD, &format!("`{text}` is not one of {}", quoted.join(", ")), &help);
    None
}

/// `atomic`, `set` or `map("name", …)`.
fn list_type(input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let word = input.call(Ident::parse_any)?;
    if word != "map" {
        let known = ["atomic", "set", "map"];
        return Ok(choice(&word, &known, errors));
    }
    if !input.peek(syn::token::Paren) {
        let help = "write the fields that tell items apart: `list = map(\"name\")`";
        errors.push(&word, codes::LIST_MAP_WITHOUT_KEYS, "a list that is a map needs its keys", help);
        return Ok(None);
    }
    let content;
    parenthesized!(content in input);
    let mut keys = Vec::new();
    while !content.is_empty() {
        keys.push(Json::Text(content.parse::<LitStr>()?.value()));
        comma(&content)?;
    }
    if keys.is_empty() {
        let help = "write the fields that tell items apart: `list = map(\"name\")`";
        errors.push(&word, codes::LIST_MAP_WITHOUT_KEYS, "a list that is a map needs its keys", help);
        return Ok(None);
    }
    Ok(Some(Json::List(keys)))
}

/// `"self.min <= self.max", message = "…", message_expression = "…", reason = …, field_path = "…", optional_old_self`.
fn rule(input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let source: LitStr = input.parse().map_err(|error| {
        Error::new(error.span(), "a rule starts with its expression, in quotes: write `rule(\"self.min <= self.max\")`")
    })?;
    comma(input)?;
    let mut fields = vec![("rule".to_owned(), Json::Text(source.value()))];
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        let text = name.to_string();
        let mut string = |key: &str| -> syn::Result<()> {
            input.parse::<Token![=]>()?;
            fields.push((key.to_owned(), Json::Text(input.parse::<LitStr>()?.value())));
            Ok(())
        };
        match text.as_str() {
            "message" => string("message")?,
            "message_expression" => string("messageExpression")?,
            "field_path" => string("fieldPath")?,
            "optional_old_self" => fields.push(("optionalOldSelf".to_owned(), Json::Bool(true))),
            "reason" => {
                input.parse::<Token![=]>()?;
                let reason = input.call(Ident::parse_any)?;
                fields.extend(choice(&reason, &REASONS, errors).map(|reason| ("reason".to_owned(), reason)));
            }
            _ => {
                let known = ["message", "message_expression", "reason", "field_path", "optional_old_self"];
                let help = nearest(&text, &known).map_or_else(|| known.join(", "), |near| format!("write `{near}`"));
                errors.push(&name, codes::UNKNOWN_MARK, &format!("a rule has no option `{text}`"), &help);
                skip(input)?;
            }
        }
        comma(input)?;
    }
    if source.value().trim().is_empty() {
        errors.push(
            &source,
            codes::EMPTY_RULE,
            "a rule without an expression",
            "write what must hold: `rule(\"self.min <= self.max\")`",
        );
        return Ok(None);
    }
    Ok(Some(Json::Object(fields)))
}

fn docs(input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let mut fields = Vec::new();
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        let text = name.to_string();
        if ["url", "description"].contains(&text.as_str()) {
            input.parse::<Token![=]>()?;
            fields.push((text, Json::Text(input.parse::<LitStr>()?.value())));
        } else {
            errors.push(
                &name,
                codes::UNKNOWN_MARK,
                &format!("`docs` has no option `{text}`"),
                "write `docs(url = \"https://…\", description = \"…\")`",
            );
            skip(input)?;
        }
        comma(input)?;
    }
    Ok(Some(Json::Object(fields)))
}

/// The marks in `#[resource(…)]` and the rest of its options, which are kube's.
pub(super) fn of_root(options: &TokenStream, errors: &mut Errors) -> (Vec<(String, Json)>, TokenStream) {
    let mut marks = Vec::new();
    let mut rest = Vec::new();
    let parser = |input: ParseStream| -> syn::Result<()> {
        while !input.is_empty() {
            let name = input.fork().call(Ident::parse_any)?.to_string();
            let tokens = up_to_comma(input)?;
            if definition::is_option(&name) || is_of_root(&name) {
                marks.extend(own_option(&name, tokens, errors).map(|value| (name, value)));
            } else {
                rest.push(tokens);
            }
            comma(input)?;
        }
        Ok(())
    };
    if parser.parse2(options.clone()).is_err() {
        // kube says what it does not understand.
        return (Vec::new(), options.clone());
    }
    (merge(marks), quote!(#(#rest),*))
}

/// One option of kctl in `#[resource(…)]`, by its tokens.
fn own_option(name: &str, tokens: TokenStream, errors: &mut Errors) -> Option<Json> {
    let mut inner = Errors::default();
    let parser = |input: ParseStream| -> syn::Result<Option<Json>> {
        let ident = input.call(Ident::parse_any)?;
        if definition::is_option(name) {
            return definition::option(&ident, name, input, &mut inner);
        }
        one(&ident, name, input, &mut inner)
    };
    let found = parser.parse2(tokens);
    if let Err(all) = inner.into_result(()) {
        errors.add(all);
    }
    found.unwrap_or_else(|error| {
        syntax(&error, "write it as in `rule(\"self.metadata.name.size() < 20\")`", errors);
        None
    })
}

fn up_to_comma(input: ParseStream) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?.to_tokens(&mut tokens);
    }
    Ok(tokens)
}

/// What is not written as marks are; an error may say itself what to write.
fn syntax(error: &Error, help: &str, errors: &mut Errors) {
    let text = error.to_string();
    match text.split_once(": write ") {
        Some((what, help)) => errors.push_at(error.span(), codes::SYNTAX, what, &format!("write {help}")),
        None => errors.syntax(error, help),
    }
}

/// Texts of a list, for checks.
pub(super) fn number_of(marks: &[(String, Json)], name: &str) -> Option<f64> {
    marks.iter().find(|(known, _)| known == name).and_then(|(_, value)| match value {
        Json::Number(digits) => digits.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_validators_are_answered_with_the_mark_and_the_value() {
        for (written, expected) in [
            ("min = 0", "write `minimum = 0`"),
            ("max = 5", "write `maximum = 5`"),
            ("Minimum = 1", "write `minimum = 1`"),
            ("regex = \"^a$\"", "write `pattern = \"^a$\"`"),
            ("regex(\"^a$\")", "write `pattern = \"^a$\"`"),
            ("range(min = 0, max = 5)", "write `minimum = 0, maximum = 5`"),
            ("range(max = 5)", "write `maximum = 5`"),
            ("range = \"1..5\"", "write `minimum = 1, maximum = 10`"),
            ("length(min = 1)", "write `min_length = 1`"),
            ("minLength = 1", "write `min_length = 1`"),
            ("MaxItems = 3", "write `max_items = 3`"),
            ("min_len = 1", "write `min_length = 1`"),
            ("enum(\"a\", \"b\")", "write `allowed(\"a\", \"b\")`"),
            ("one_of = [\"a\", \"b\"]", "write `allowed(\"a\", \"b\")`"),
            ("email", "write `format = \"email\"`"),
            ("rename = \"a\"", "it is an option of serde: write `#[serde(rename = \"a\")]`"),
            ("minimun = 1", "write `minimum = 1`"),
            ("XValidation(\"a\")", "the options are "),
        ] {
            let mut errors = Errors::default();
            let marks = (|input: ParseStream<'_>| list(input, &mut errors)).parse_str(written).unwrap();
            assert!(marks.is_empty(), "{written}");
            let text = errors.into_result(()).unwrap_err().to_string();
            assert!(text.contains(&format!("help: {expected}")), "{written}: {text}");
        }
    }

    #[test]
    fn known_marks_are_in_order_so_that_messages_list_them_in_order() {
        assert!(FORMS.is_sorted_by_key(|(name, _)| *name));
    }
}
