//! Tokens → `Input`: what was written, without rules. Nothing here stops at a mistake: it is kept beside what could be read.

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Error, Expr, Ident, Result, Signature, Token, Visibility,
    parse::{Parse, ParseStream, Parser},
};

/// The attribute and the item.
pub(super) struct Input {
    pub(super) options: Vec<Entry>,
    pub(super) function: Option<Function>,
    /// The item, where it is no function.
    pub(super) other: TokenStream,
    pub(super) mistakes: Vec<Error>,
}

/// The head of a function. Its body is not read: a function that is half typed still has a name.
pub(super) struct Function {
    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) sig: Signature,
}

/// `name = value`.
pub(super) struct Entry {
    pub(super) name: Ident,
    /// Absent where it is not typed yet.
    pub(super) value: Option<Expr>,
}

pub(super) fn parse(options: TokenStream, item: &TokenStream) -> Input {
    let mut mistakes = Vec::new();
    let parsed = (|input: ParseStream<'_>| Ok(entries(input, &mut mistakes))).parse2(options);
    let options = parsed.unwrap_or_else(|error| {
        mistakes.push(error);
        Vec::new()
    });
    let function = syn::parse2::<Function>(item.clone()).ok();
    Input { options, function, other: item.clone(), mistakes }
}

/// What stands between commas. After a mistake it goes on behind the next comma.
fn entries(input: ParseStream<'_>, mistakes: &mut Vec<Error>) -> Vec<Entry> {
    let mut found = Vec::new();
    while !input.is_empty() {
        match input.parse::<Entry>() {
            Ok(entry) => {
                found.push(entry);
                if !input.is_empty() && !input.peek(Token![,]) {
                    mistakes.push(input.error("expected `,`"));
                }
            }
            Err(error) => mistakes.push(error),
        }
        while !input.is_empty() && !input.peek(Token![,]) {
            let _skipped = input.parse::<TokenTree>();
        }
        let _comma = input.parse::<Option<Token![,]>>();
    }
    found
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = match input.parse::<Option<Token![crate]>>()? {
            Some(word) => Ident::new("krate", word.span),
            None => input.parse()?,
        };
        let has_value = input.parse::<Option<Token![=]>>()?.is_some() && !input.is_empty() && !input.peek(Token![,]);
        let value = if has_value { Some(input.parse()?) } else { None };
        Ok(Self { name, value })
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let function = Self { attrs: input.call(Attribute::parse_outer)?, vis: input.parse()?, sig: input.parse()? };
        let _body = input.parse::<TokenStream>()?;
        Ok(function)
    }
}
