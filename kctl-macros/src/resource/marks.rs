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
use crate::mistake::{Errors, nearest};

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
    quote!(::kctl::__private::Marks(#text))
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
                errors.push(&name, 81, &format!("`{text}` is said twice"), &format!("write `{text}` once"));
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
        unknown(name, text, errors);
        skip(input)?;
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

fn unknown(name: &Ident, text: &str, errors: &mut Errors) {
    let known: Vec<&str> = FORMS.iter().map(|(known, _)| *known).collect();
    let help = match (text, nearest(text, &known)) {
        (_, Some(near)) => format!("write `{near}`"),
        ("list_type" | "list_map_key" | "keys", _) => {
            "write `list = atomic`, `list = set` or `list = map(\"name\")`".into()
        }
        ("enum" | "one_of", _) => "write `allowed(\"a\", \"b\")`".into(),
        ("required" | "optional", _) => "a field of type `Option<T>` is optional, any other one is required".into(),
        ("unique" | "unique_items", _) => "write `list = set`: API servers refuse `uniqueItems`".into(),
        ("validation" | "cel", _) => "write `rule(\"self.min <= self.max\", message = \"…\")`".into(),
        _ => format!("the marks are {}", known.join(", ")),
    };
    errors.push(name, 80, &format!("`#[kctl(…)]` has no mark `{text}`"), &help);
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
    errors.push(name, 82, &format!("`{text}` is a number"), &format!("write `{text} = 1`"));
    Ok(None)
}

fn count(name: &Ident, text: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let value: Json = input.parse()?;
    if let Json::Number(digits) = &value
        && digits.parse::<u32>().is_ok()
    {
        return Ok(Some(value));
    }
    errors.push(name, 82, &format!("`{text}` is how many: 0 or more"), &format!("write `{text} = 1`"));
    Ok(None)
}

fn word(name: &str, text: &LitStr, errors: &mut Errors) -> Option<Json> {
    if name == "type_" && !TYPES.contains(&text.value().as_str()) {
        let help = format!("write one of {}", TYPES.join(", "));
        errors.push(text, 83, &format!("`{}` is no type of a schema", text.value()), &help);
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
            let what = format!("`{text}` names a value twice\nhelp: write each value once\ncode: K0081");
            errors.add(Error::new(span, what));
        }
        all.push(value);
        comma(input)?;
    }
    if all.is_empty() {
        errors.push(name, 84, &format!("`{text}` names nothing"), &format!("write `{text}(\"a\", \"b\")`"));
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
    errors.push(word, 83, &format!("`{text}` is not one of {}", quoted.join(", ")), &help);
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
        errors.push(&word, 85, "a list that is a map needs its keys", help);
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
        errors.push(&word, 85, "a list that is a map needs its keys", help);
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
                errors.push(&name, 80, &format!("a rule has no option `{text}`"), &help);
                skip(input)?;
            }
        }
        comma(input)?;
    }
    if source.value().trim().is_empty() {
        errors.push(
            &source,
            86,
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
                80,
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
        Some((what, help)) => errors.add(Error::new(error.span(), format!("{what}\nhelp: write {help}\ncode: K0024"))),
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
    fn known_marks_are_in_order_so_that_messages_list_them_in_order() {
        assert!(FORMS.is_sorted_by_key(|(name, _)| *name));
    }
}
