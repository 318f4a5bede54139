//! `#[kctl(…)]` on types, fields and variants: what the schema of the CRD says and neither serde nor schemars can express.
//!
//! ```text
//! #[kctl(min_length = 1, rule("self != 'a'", message = "not a"))]
//! ```
//!
//! is read as two `Marker`s, whose values are JSON. `emit` writes them into one string. The macro checks names, forms and bounds;
//! kctl's transform of schemars, `kctl::__private_0_1::Markers`, knows the place of each marker in a schema.
//!
//! `#[resource(…)]` accepts the markers of the object as a whole among its options: `rule(…)` and `exactly_one_of(…)` there apply to
//! the root of the schema, where a rule sees `self.metadata` and `self.spec`.

mod suggest;
mod values;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;
use syn::{
    Attribute, Error, LitBool, Token,
    ext::IdentExt,
    parenthesized,
    parse::{ParseBuffer, ParseStream, Parser},
};

pub(super) use self::suggest::snake_case;
use super::{
    bounds, crd_options,
    json::{Json, parse_comma, up_to_comma},
    marker::{Marker, Markers},
};
use crate::{codes, diagnostics::Errors};

impl Markers {
    /// Returns the fields of a JSON object with these markers. The values of a marker that may be repeated become one list.
    pub(super) fn into_fields(self) -> Vec<(String, Json)> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        for Marker { name, value, .. } in self.0 {
            let is_repeatable = is_repeatable(&name);
            match fields.iter_mut().find(|(field, _)| *field == name) {
                Some((_, Json::List(all))) if is_repeatable => all.push(value),
                _ if is_repeatable => fields.push((name, Json::List(vec![value]))),
                _ => fields.push((name, value)),
            }
        }
        fields
    }

    /// Appends a marker that has no other markers in it.
    fn push(&mut self, written: Ident, name: String, value: Json) {
        self.0.push(Marker { written, name, value, inner: Self::default() });
    }

    /// Appends `items(…)` or `values(…)` with the markers in its parentheses.
    fn push_with_inner(&mut self, written: Ident, name: String, inner: Self) {
        self.0.push(Marker { written, name, value: Json::Object(inner.clone().into_fields()), inner });
    }
}

/// The form in which a marker and its value are written.
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
    /// `items(…)` and `values(…)`: markers of the items of a list, or of the values of a map
    Inner,
}

/// All markers with their forms, sorted by name as messages list them. The transform in `kctl-runtime` has the same
/// list: a marker that is added here needs its place in the schema there.
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

/// Removes the `#[kctl(…)]` attributes from a list and returns their markers, after the checks of `bounds`.
pub(super) fn take_markers(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> Markers {
    let is_kctl = |attribute: &Attribute| attribute.path().is_ident("kctl");
    let found: Vec<Attribute> = attributes.iter().filter(|attribute| is_kctl(attribute)).cloned().collect();
    attributes.retain(|attribute| !is_kctl(attribute));
    let mut all = Markers::default();
    for attribute in &found {
        if let Err(error) = attribute.parse_args_with(|input: ParseStream| list(input, &mut all, errors)) {
            syntax(&error, "write field attributes like `#[kctl(min_length = 1, immutable)]`", errors);
        }
    }
    bounds::check(&all, errors);
    all
}

/// Returns the form of a marker. `None` for a name that is not a marker.
fn marker_form(name: &str) -> Option<Form> {
    FORMS.iter().find(|(marker, _)| *marker == name).map(|(_, form)| *form)
}

/// Returns `true` for a marker that may be given several times. These are also the markers that `#[resource(…)]` accepts.
fn is_repeatable(name: &str) -> bool {
    matches!(marker_form(name), Some(Form::Rule | Form::Names))
}

/// Appends the markers up to the end of the input to the markers of the same place. A wrong marker is reported and left
/// out; the next one is still read.
///
/// # Errors
///
/// Tokens that are not markers at all. Nothing after them can be read.
fn list(input: ParseStream, markers: &mut Markers, errors: &mut Errors) -> syn::Result<()> {
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        let text = name.unraw().to_string();
        if marker_form(&text) == Some(Form::Inner) {
            let inner = inner(&name, &text, input, errors)?;
            report_duplicate(&name, &text, markers, errors);
            markers.push_with_inner(name, text, inner);
        } else if let Some(value) = value(&name, &text, input, errors)? {
            report_duplicate(&name, &text, markers, errors);
            markers.push(name, text, value);
        }
        parse_comma(input)?;
    }
    Ok(())
}

/// Reports K0081 for a marker that the place has already, unless it may be repeated.
fn report_duplicate(name: &Ident, text: &str, markers: &Markers, errors: &mut Errors) {
    if !is_repeatable(text) && markers.has(text) {
        let (what, help) = (format!("`{text}` is given twice"), format!("write `{text}` once"));
        errors.push(name, codes::DUPLICATE_MARKER, &what, &help);
    }
}

/// Reads the markers in the parentheses of `items(…)` or `values(…)`, after its name.
fn inner(name: &Ident, text: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Markers> {
    let mut markers = Markers::default();
    list(&within(name, text, "min_length = 1", input)?, &mut markers, errors)?;
    bounds::check(&markers, errors);
    Ok(markers)
}

/// Returns the contents of the parentheses of a marker. The error shows an example.
fn within<'a>(name: &Ident, text: &str, example: &str, input: ParseStream<'a>) -> syn::Result<ParseBuffer<'a>> {
    let error = |_| Error::new(name.span(), format!("`{text}` needs parentheses: write `{text}({example})`"));
    parentheses(input).map_err(error)
}

/// Reads the value of one marker, after its name. Returns `None` for a value that was reported.
fn value(name: &Ident, text: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let Some(form) = marker_form(text) else {
        let value = up_to_comma(input)?;
        suggest::report_unknown(name, text, &value, errors);
        return Ok(None);
    };
    let with_value = |example: &str| -> syn::Result<()> {
        let error = |_| Error::new(name.span(), format!("`{text}` needs a value: write `{text} = {example}`"));
        input.parse::<Token![=]>().map(drop).map_err(error)
    };
    let within = |example: &str| within(name, text, example, input);
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
            values::number(name, text, input, errors)?
        }
        Form::Count => {
            with_value("1")?;
            values::count(name, text, input, errors)?
        }
        Form::Text => {
            with_value("\"…\"")?;
            values::string(text, &input.parse()?, errors)
        }
        Form::Value => {
            with_value("1")?;
            Some(input.parse()?)
        }
        Form::Values | Form::Names => Some(Json::List(values::list(&within("\"a\", \"b\"")?, name, text, errors)?)),
        Form::List => {
            with_value("set")?;
            values::list_type(input, errors)?
        }
        Form::Map => {
            with_value("atomic")?;
            values::read_choice(&input.call(Ident::parse_any)?, &["atomic", "granular"], errors)
        }
        Form::Rule => values::rule(&within("\"self.min <= self.max\", message = \"…\"")?, errors)?,
        Form::Docs => values::docs(&within("url = \"https://…\"")?, errors)?,
        Form::Inner => Some(Json::Object(inner(name, text, input, errors)?.into_fields())),
    })
}

/// Returns the contents of parentheses.
fn parentheses(input: ParseStream<'_>) -> syn::Result<ParseBuffer<'_>> {
    let content;
    parenthesized!(content in input);
    Ok(content)
}

/// Splits the options of `#[resource(…)]` into markers of the object as a whole and the options of kube's derive.
pub(super) fn split_root(options: &TokenStream, errors: &mut Errors) -> (Markers, TokenStream) {
    let mut markers = Markers::default();
    let mut rest = Vec::new();
    let parser = |input: ParseStream| -> syn::Result<()> {
        while !input.is_empty() {
            let word = input.fork().call(Ident::parse_any);
            let tokens = one_option(input, errors)?;
            let _comma = input.parse::<Option<Token![,]>>()?;
            let Ok(word) = word else {
                rest.push(tokens);
                continue;
            };
            let name = word.to_string();
            if crd_options::is_option(&name) || is_repeatable(&name) {
                if !is_repeatable(&name) && markers.has(&name) {
                    errors.push_duplicate(&word);
                }
                if let Some(value) = root_option(&name, tokens, errors) {
                    markers.push(word, name, value);
                }
            } else {
                rest.push(tokens);
            }
        }
        Ok(())
    };
    if parser.parse2(options.clone()).is_err() {
        // `kube_options` reports tokens that can't be read.
        return (Markers::default(), options.clone());
    }
    (markers, quote!(#(#rest),*))
}

/// Reads the tokens of one option of `#[resource(…)]`: up to the next comma, or up to the name of another option. K0024 for
/// the missing comma between the two.
fn one_option(input: ParseStream, errors: &mut Errors) -> syn::Result<TokenStream> {
    let mut tokens: Vec<TokenTree> = Vec::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        let is_complete = !matches!(tokens.last(), None | Some(TokenTree::Punct(_)));
        if is_complete && input.peek(Ident::peek_any) {
            errors.syntax(&input.error("expected `,`"), "write a comma between two options");
            break;
        }
        tokens.push(input.parse()?);
    }
    Ok(tokens.into_iter().collect())
}

/// Reads the tokens of one option of `#[resource(…)]` that is not kube's. Its errors are collected separately, because
/// the parser borrows them.
fn root_option(name: &str, tokens: TokenStream, errors: &mut Errors) -> Option<Json> {
    let mut inner = Errors::default();
    let parser = |input: ParseStream| -> syn::Result<Option<Json>> {
        let ident = input.call(Ident::parse_any)?;
        if crd_options::is_option(name) {
            return crd_options::option(&ident, name, input, &mut inner);
        }
        value(&ident, name, input, &mut inner)
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

/// Reports an error of the parser as K0024. The text after `: write ` in its message replaces the general help.
fn syntax(error: &Error, help: &str, errors: &mut Errors) {
    let text = error.to_string();
    match text.split_once(": write ") {
        Some((what, help)) => errors.push_at(error.span(), codes::SYNTAX, what, &format!("write {help}")),
        None => errors.syntax(error, help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_markers_are_sorted_as_messages_list_them() {
        assert!(FORMS.is_sorted_by_key(|(name, _)| *name));
    }
}
