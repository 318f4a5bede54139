//! JSON in attributes: `default = { "a": [1] }`.
//!
//! Markers of a field travel as one string literal, so that an expansion is short. The crate has no dependency on
//! `serde_json`, whose parser could not read tokens anyway: this parser reads them, with errors at the wrong token.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Error, Lit, Token, braced, bracketed,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    token::{Brace, Bracket},
};

/// A JSON value. Objects keep the order of their keys, so that expansions are deterministic.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// The digits as the user wrote them, without underscores and suffix, in the grammar of JSON: a large number is
    /// exact.
    Number(String),
    /// A string, without quotes and escapes.
    Text(String),
    List(Vec<Json>),
    /// Names and values in the order of the source.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Appends the value as JSON without spaces.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(digits) => out.push_str(digits),
            Self::Text(text) => write_string(text, out),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(fields) => {
                out.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_string(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends a string with the escapes that JSON requires.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if u32::from(control) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            char => out.push(char),
        }
    }
    out.push('"');
}

/// `null`, `true`, `-1.5`, `"text"`, `[1, 2]`, `{ "key": 1 }`.
impl Parse for Json {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let ahead = input.lookahead1();
        if ahead.peek(Brace) {
            let (content, mut fields) = (within_braces(input)?, Vec::new());
            while !content.is_empty() {
                let name: syn::LitStr = content.parse()?;
                content.parse::<Token![:]>()?;
                fields.push((name.value(), content.parse()?));
                parse_comma(&content)?;
            }
            Ok(Self::Object(fields))
        } else if ahead.peek(Bracket) {
            let (content, mut items) = (within_brackets(input)?, Vec::new());
            while !content.is_empty() {
                items.push(content.parse()?);
                parse_comma(&content)?;
            }
            Ok(Self::List(items))
        } else if ahead.peek(Token![-]) {
            input.parse::<Token![-]>()?;
            match input.parse()? {
                Self::Number(digits) => Ok(Self::Number(format!("-{digits}"))),
                _ => Err(input.error("expected a number")),
            }
        } else if input.peek(syn::Ident::peek_any) && !input.peek(Lit) {
            let word = input.call(syn::Ident::parse_any)?;
            if word == "null" {
                return Ok(Self::Null);
            }
            Err(Error::new(word.span(), not_json(&word)))
        } else {
            literal(&input.parse()?)
        }
    }
}

/// Returns the tokens in `{…}`.
fn within_braces(input: ParseStream<'_>) -> syn::Result<syn::parse::ParseBuffer<'_>> {
    let content;
    braced!(content in input);
    Ok(content)
}

/// Returns the tokens in `[…]`.
fn within_brackets(input: ParseStream<'_>) -> syn::Result<syn::parse::ParseBuffer<'_>> {
    let content;
    bracketed!(content in input);
    Ok(content)
}

/// Reads the comma after an entry. The last entry need not have one.
pub(super) fn parse_comma(input: ParseStream) -> syn::Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

/// Reads the tokens before the next comma.
pub(super) fn up_to_comma(input: ParseStream) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?.to_tokens(&mut tokens);
    }
    Ok(tokens)
}

/// Returns the JSON of a Rust literal. Characters, bytes and byte strings have none.
fn literal(literal: &Lit) -> syn::Result<Json> {
    match literal {
        Lit::Bool(value) => Ok(Json::Bool(value.value)),
        Lit::Str(text) => Ok(Json::Text(text.value())),
        Lit::Int(digits) => number(literal, digits.base10_digits()),
        Lit::Float(digits) => number(literal, digits.base10_digits()),
        other => Err(Error::new_spanned(other, not_json(other))),
    }
}

/// Returns the error for a token that is not JSON, such as the beginning of an expression.
fn not_json(token: impl ToTokens) -> String {
    let token = token.into_token_stream();
    format!("`{token}` is not a JSON value: write a number, a string in quotes, `true`, `[…]` or `{{…}}`")
}

/// Returns a number of Rust in the grammar of JSON, which has digits on both sides of the point and no zeros before the
/// others: `1.` is `1`, and `00.5` is `0.5`.
///
/// # Errors
///
/// A number beyond `f64`, which JSON parsers reject.
fn number(literal: &Lit, digits: &str) -> syn::Result<Json> {
    if !digits.parse::<f64>().is_ok_and(f64::is_finite) {
        return Err(Error::new_spanned(literal, "a number beyond the range of `f64`: write a smaller one"));
    }
    let (mantissa, exponent) = digits.find(['e', 'E']).map_or((digits, ""), |at| digits.split_at(at));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(Json::Number(format!("{whole}{point}{fraction}{exponent}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_literals_become_json() {
        for (rust, json) in [
            ("null", "null"),
            ("-1.5", "-1.5"),
            ("1_000", "1000"),
            ("1.", "1"),
            ("-1.", "-1"),
            ("00.5", "0.5"),
            ("007", "7"),
            ("0", "0"),
            ("0.0", "0.0"),
            ("0x10", "16"),
            ("1_0.2_5f64", "10.25"),
            ("01.50e+3", "1.50e3"),
            ("1e308", "1e308"),
            ("18446744073709551616", "18446744073709551616"),
            (r#""a \"b\"\n\\""#, r#""a \"b\"\n\\""#),
            (r#"[1, true, "x",]"#, r#"[1,true,"x"]"#),
            (r#"{ "a": { "b": [] }, "c": -2 }"#, r#"{"a":{"b":[]},"c":-2}"#),
        ] {
            let mut text = String::new();
            syn::parse_str::<Json>(rust).unwrap().write(&mut text);
            assert_eq!(text, json);
        }
    }

    #[test]
    fn other_literals_and_words_are_rejected() {
        for rust in ["'a'", "Foo", "{ a: 1 }", "[1 2]", "-\"a\"", "b\"x\"", "1e999", "-1e999"] {
            assert!(syn::parse_str::<Json>(rust).is_err(), "{rust}");
        }
    }
}
