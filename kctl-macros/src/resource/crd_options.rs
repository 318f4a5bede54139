//! Options of `#[resource(…)]` that kube's derive does not have: `conversion(…)` and `status_subresource`.
//!
//! They are about the CRD as a whole. Like markers, they travel as JSON to the transform of the root schema, which
//! `generate-crds` reads.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Ident, LitInt, LitStr, Token, ext::IdentExt, parenthesized, parse::ParseStream};

use super::{
    json::{Json, parse_comma, up_to_comma},
    option_values,
};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
};

/// The options of `conversion(…)`.
const CONVERSION_OPTIONS: [&str; 5] = ["service", "namespace", "path", "port", "url"];
/// The path to which API servers send conversion reviews if no other one is given.
const CONVERT_PATH: &str = "/convert";

/// Returns `true` for an option of this file.
pub(super) fn is_option(name: &str) -> bool {
    ["conversion", "status_subresource"].contains(&name)
}

/// Reads the value of an option, after its name.
pub(super) fn option(word: &Ident, name: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    if name == "conversion" {
        return conversion(word, input, errors).map(Some);
    }
    let value: Vec<TokenTree> = input.parse::<TokenStream>()?.into_iter().collect();
    Ok(option_values::switch(word, &value, errors).map(Json::Bool))
}

/// Reads `conversion(service = "name", namespace = "ns", path = "/convert", port = 443)`. K0045 for an unknown
/// option, K0022 for a repeated one, K0089 without an address, K0106 for `url` together with an option of a Service.
fn conversion(word: &Ident, input: ParseStream, errors: &mut Errors) -> syn::Result<Json> {
    let content;
    parenthesized!(content in input);
    let (mut fields, mut options_given) = (vec![("path".to_owned(), Json::text(CONVERT_PATH))], Vec::<Ident>::new());
    while !content.is_empty() {
        let name = content.call(Ident::parse_any)?;
        let text = name.to_string();
        if !CONVERSION_OPTIONS.contains(&text.as_str()) {
            let help = closest_match(&text, &CONVERSION_OPTIONS).map_or_else(
                || format!("its options are {}", CONVERSION_OPTIONS.join(", ")),
                |candidate| format!("did you mean `{candidate}`?"),
            );
            errors.push(&name, codes::UNKNOWN_RESOURCE_OPTION, &format!("`conversion` has no option `{text}`"), &help);
            let _skipped = up_to_comma(&content)?;
            parse_comma(&content)?;
            continue;
        }
        content.parse::<Token![=]>()?;
        let value = match text.as_str() {
            "port" => port(&content.parse()?, errors),
            _ => Json::Text(content.parse::<LitStr>()?.value()),
        };
        if options_given.contains(&name) {
            errors.push_duplicate(&name);
        }
        options_given.push(name);
        fields.retain(|(field, _)| *field != text);
        fields.push((text, value));
        parse_comma(&content)?;
    }
    if let Some(url) = options_given.iter().find(|name| *name == "url")
        && options_given.len() > 1
    {
        let what = "a conversion webhook is a Service or a URL, not both";
        let help = "remove `url`, or the other options: a URL contains port and path";
        errors.push(url, codes::CONTRADICTING_OPTIONS, what, help);
    }
    let has = |name: &str| fields.iter().any(|(field, _)| field == name);
    let is_answered = has("url") || (has("service") && has("namespace"));
    if !is_answered {
        let help = "write `conversion(service = \"webs-webhook\", namespace = \"webs\")`";
        errors.push(
            word,
            codes::CONVERSION_WITHOUT_ADDRESS,
            "a conversion webhook needs `service` and `namespace`, or `url`",
            help,
        );
    }
    Ok(Json::Object(fields))
}

/// Returns the port of a Service. K0018 for a number that is not a port.
fn port(number: &LitInt, errors: &mut Errors) -> Json {
    if !number.base10_parse::<u16>().is_ok_and(|port| port > 0) {
        let what = format!("`{number}` is not a port, which is 1 to 65535");
        errors.push(number, codes::INVALID_NUMBER, &what, "write for example `port = 443`");
    }
    Json::Number(number.base10_digits().to_owned())
}
