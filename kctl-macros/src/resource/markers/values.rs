//! Values of markers: numbers, strings, lists, CEL rules. Each function reads one form and returns `None` for a value that it
//! reported.

use proc_macro2::Ident;
use syn::{Error, LitStr, Token, ext::IdentExt, parenthesized, parse::ParseStream};

use super::{Form, marker_form, up_to_comma};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
    resource::json::{Json, parse_comma},
};

/// The types of JSON schema, for `type_`.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// The reasons of a rule: `ValidationRule.reason` in `apiextensions.k8s.io/v1` accepts no other one.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Reads a bound: any JSON number. K0082 for another value.
pub(super) fn number(name: &Ident, text: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let value: Json = input.parse()?;
    if matches!(value, Json::Number(_)) {
        return Ok(Some(value));
    }
    errors.push(name, codes::INVALID_BOUND, &format!("`{text}` is a number"), &format!("write `{text} = 1`"));
    Ok(None)
}

/// Reads a number of items, characters or properties: 0 to `u32::MAX`. K0082 for another value.
pub(super) fn count(name: &Ident, text: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
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

/// Reads a string. K0083 for a `type_` that JSON schema does not have.
pub(super) fn string(name: &str, text: &LitStr, errors: &mut Errors) -> Option<Json> {
    if name == "type_" && !TYPES.contains(&text.value().as_str()) {
        let help = format!("write one of {}", TYPES.join(", "));
        errors.push(text, codes::UNKNOWN_WORD, &format!("`{}` is not a type of a schema", text.value()), &help);
        return None;
    }
    Some(Json::Text(text.value()))
}

/// Reads the values in the parentheses of `allowed` or `exactly_one_of`. K0081 for a value that is listed twice, K0084 for an
/// empty list.
pub(super) fn list(input: ParseStream, name: &Ident, text: &str, errors: &mut Errors) -> syn::Result<Vec<Json>> {
    let mut all: Vec<Json> = Vec::new();
    while !input.is_empty() {
        let span = input.span();
        let value: Json = match marker_form(text) {
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
                codes::DUPLICATE_MARKER,
                &format!("`{text}` names a value twice"),
                "write each value once",
            );
        }
        all.push(value);
        parse_comma(input)?;
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

/// Reads one of a few words. K0083 for any other one.
pub(super) fn read_choice(word: &Ident, words: &[&str], errors: &mut Errors) -> Option<Json> {
    let text = word.to_string();
    if words.contains(&text.as_str()) {
        return Some(Json::Text(text));
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    let help =
        closest_match(&text, words).map_or_else(|| "write one of them".to_owned(), |near| format!("write `{near}`"));
    errors.push(word, codes::UNKNOWN_WORD, &format!("`{text}` is not one of {}", quoted.join(", ")), &help);
    None
}

/// Reads `atomic`, `set` or `map("name", …)`: `x-kubernetes-list-type`, and the keys of a map in the form of a JSON list. K0085 for
/// a map without keys.
pub(super) fn list_type(input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let word = input.call(Ident::parse_any)?;
    if word != "map" {
        let list_types = ["atomic", "set", "map"];
        return Ok(read_choice(&word, &list_types, errors));
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
        parse_comma(&content)?;
    }
    if keys.is_empty() {
        let help = "write the fields that tell items apart: `list = map(\"name\")`";
        errors.push(&word, codes::LIST_MAP_WITHOUT_KEYS, "a list that is a map needs its keys", help);
        return Ok(None);
    }
    Ok(Some(Json::List(keys)))
}

/// Reads a CEL rule, `"self.min <= self.max", message = "…"`, with the options `message_expression`, `reason`, `field_path` and
/// `optional_old_self`. The keys of the JSON are the fields of `x-kubernetes-validations`. K0080 for another option,
/// K0086 for a rule without an expression.
pub(super) fn rule(input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let source: LitStr = input.parse().map_err(|error| {
        Error::new(error.span(), "a rule starts with its expression, in quotes: write `rule(\"self.min <= self.max\")`")
    })?;
    parse_comma(input)?;
    let (mut fields, mut options_given) = (vec![("rule".to_owned(), Json::Text(source.value()))], Vec::new());
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        let text = name.to_string();
        report_twice(&name, &mut options_given, errors);
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
                fields.extend(read_choice(&reason, &REASONS, errors).map(|reason| ("reason".to_owned(), reason)));
            }
            _ => {
                let keys = ["message", "message_expression", "reason", "field_path", "optional_old_self"];
                let help = closest_match(&text, &keys)
                    .map_or_else(|| format!("the options are {}", keys.join(", ")), |near| format!("write `{near}`"));
                errors.push(&name, codes::UNKNOWN_MARKER, &format!("a rule has no option `{text}`"), &help);
                let _skipped = up_to_comma(input)?;
            }
        }
        parse_comma(input)?;
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

/// Reports K0081 for an option of `rule` or `docs` that is given a second time.
fn report_twice(name: &Ident, options_given: &mut Vec<Ident>, errors: &mut Errors) {
    if options_given.contains(name) {
        let (what, help) = (format!("`{name}` is given twice"), format!("write `{name}` once"));
        errors.push(name, codes::DUPLICATE_MARKER, &what, &help);
    }
    options_given.push(name.clone());
}

/// Reads `url = "…", description = "…"`: the `externalDocs` of the schema.
pub(super) fn docs(input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    let (mut fields, mut options_given) = (Vec::new(), Vec::new());
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        let text = name.to_string();
        report_twice(&name, &mut options_given, errors);
        if ["url", "description"].contains(&text.as_str()) {
            input.parse::<Token![=]>()?;
            fields.push((text, Json::Text(input.parse::<LitStr>()?.value())));
        } else {
            errors.push(
                &name,
                codes::UNKNOWN_MARKER,
                &format!("`docs` has no option `{text}`"),
                "write `docs(url = \"https://…\", description = \"…\")`",
            );
            let _skipped = up_to_comma(input)?;
        }
        parse_comma(input)?;
    }
    Ok(Some(Json::Object(fields)))
}

#[cfg(test)]
mod tests {
    use syn::parse::Parser;

    use super::*;

    #[test]
    fn unknown_options_of_a_rule_get_the_list() {
        let mut errors = Errors::default();
        let parser = |input: ParseStream<'_>| rule(input, &mut errors);
        assert!(parser.parse_str("\"self.a > 0\", severity = High").unwrap().is_some());
        let text = errors.into_result(()).unwrap_err().to_string();
        assert!(text.contains("help: the options are message, message_expression, "), "{text}");
    }
}
