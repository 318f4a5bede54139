//! What `#[resource(…)]` knows beyond kube's options: things about the definition as a whole.

use syn::{Ident, LitBool, LitInt, LitStr, Token, ext::IdentExt, parenthesized, parse::ParseStream};

use super::json::{Json, comma};
use crate::mistake::Errors;

/// Where API servers ask when nothing else is said.
const CONVERT_PATH: &str = "/convert";

/// The value of an option of kctl, read up to its end; nothing is read when it is none.
pub(super) fn option(name: &str, input: ParseStream, errors: &mut Errors) -> syn::Result<Option<Json>> {
    match name {
        "status_subresource" => {
            input.call(Ident::parse_any)?;
            input.parse::<Token![=]>()?;
            Ok(Some(Json::Bool(input.parse::<LitBool>()?.value)))
        }
        "conversion" => {
            let word = input.call(Ident::parse_any)?;
            conversion(&word, input, errors).map(Some)
        }
        _ => Ok(None),
    }
}

/// `conversion(service = "name", namespace = "ns", path = "/convert", port = 443)`.
fn conversion(word: &Ident, input: ParseStream, errors: &mut Errors) -> syn::Result<Json> {
    let content;
    parenthesized!(content in input);
    let mut fields = vec![("path".to_owned(), Json::text(CONVERT_PATH))];
    while !content.is_empty() {
        let name = content.call(Ident::parse_any)?;
        let text = name.to_string();
        content.parse::<Token![=]>()?;
        let value = match text.as_str() {
            "port" => Json::Number(content.parse::<LitInt>()?.base10_digits().to_owned()),
            _ => Json::Text(content.parse::<LitStr>()?.value()),
        };
        if ["service", "namespace", "path", "port", "url"].contains(&text.as_str()) {
            fields.retain(|(known, _)| *known != text);
            fields.push((text, value));
        } else {
            let help = "its options are service, namespace, path, port, url";
            errors.push(&name, 80, &format!("`conversion` has no option `{text}`"), help);
        }
        comma(&content)?;
    }
    let has = |name: &str| fields.iter().any(|(known, _)| known == name);
    if !has("url") && !(has("service") && has("namespace")) {
        let help = "write `conversion(service = \"webs-webhook\", namespace = \"webs\")`";
        errors.push(word, 89, "who converts? a service and its namespace, or a url, are missing", help);
    }
    Ok(Json::Object(fields))
}
