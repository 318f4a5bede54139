//! The options of an attribute on a function. Tokens → `Input`: what was written, without rules. Nothing here stops at a mistake: it
//! is kept beside what could be read.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Error, Expr, Ident, LitStr, Result, Token, parenthesized,
    parse::{Parse, ParseStream, Parser},
    token::Paren,
};

use crate::{
    codes::{self, Code},
    crate_path::CratePath,
    diagnostics::{Errors, nearest},
    function::Function,
};

/// The attribute and the item.
pub(crate) struct Input {
    pub(crate) options: Vec<Entry>,
    pub(crate) function: Option<Function>,
    /// The item, where it is no function.
    pub(crate) other: TokenStream,
    pub(crate) mistakes: Vec<Error>,
}

/// `name`, `name = value` or `name(item, …)`.
pub(crate) struct Entry {
    pub(crate) name: Ident,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    None,
    Expr(Expr),
    Items(Vec<Item>),
}

/// `word`, `"text"` or one of them with `= value`.
pub(crate) struct Item {
    pub(crate) name: TokenStream,
    /// The word or the text.
    pub(crate) text: String,
    pub(crate) value: Option<Expr>,
}

pub(crate) fn parse(options: TokenStream, item: &TokenStream) -> Input {
    let mut mistakes = Vec::new();
    let parsed = (|input: ParseStream<'_>| Ok(separated(input, &mut mistakes))).parse2(options);
    let options = parsed.unwrap_or_else(|error| {
        mistakes.push(error);
        Vec::new()
    });
    let function = syn::parse2::<Function>(item.clone()).ok();
    Input { options, function, other: item.clone(), mistakes }
}

impl Input {
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.options.iter().find(|entry| entry.name == name)
    }

    /// Returns the path of the framework.
    pub(crate) fn krate(&self, errors: &mut Errors) -> CratePath {
        match self.entry("krate").map(|entry| (&entry.name, &entry.value)) {
            None => CratePath::default(),
            Some((_, Value::Expr(Expr::Path(path)))) => CratePath(Some(path.clone())),
            Some((name, value)) => {
                let at = if let Value::Expr(value) = value { value.to_token_stream() } else { name.to_token_stream() };
                errors.push(at, codes::MISSING_VALUE, "`crate` names a path", "write `crate = path`");
                CratePath::default()
            }
        }
    }

    /// Each option is one of these, and is given once. `code` is that of an unknown one.
    pub(crate) fn known_and_once(&self, attribute: &str, known: &[&str], code: Code, errors: &mut Errors) {
        for (index, entry) in self.options.iter().enumerate() {
            let name = if entry.name == "krate" { "crate".to_owned() } else { entry.name.to_string() };
            if !known.contains(&name.as_str()) {
                let help = match nearest(&name, known) {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => format!("the options are {}", known.join(", ")),
                };
                errors.push(&entry.name, code, &format!("`{attribute}` has no option `{name}`"), &help);
            } else if self.options[..index].iter().any(|before| before.name == entry.name) {
                errors.push(&entry.name, codes::DUPLICATE, &format!("`{name}` is given twice"), "remove one of them");
            }
        }
    }
}

/// What stands between commas. After a mistake it goes on behind the next comma.
pub(crate) fn separated<T: Parse>(input: ParseStream<'_>, mistakes: &mut Vec<Error>) -> Vec<T> {
    let mut found = Vec::new();
    while !input.is_empty() {
        match input.parse::<T>() {
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

/// A value that is no kind. Where all of something is meant the parser would say only what it expects behind the star.
pub(crate) fn expression(input: ParseStream<'_>) -> Result<Expr> {
    if input.peek(Token![*]) {
        return Err(input.error("`*` is not supported: list each one"));
    }
    input.parse()
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = match input.parse::<Option<Token![crate]>>()? {
            Some(word) => Ident::new("krate", word.span),
            None => input.parse()?,
        };
        if input.peek(Paren) {
            let content;
            parenthesized!(content in input);
            let mut mistakes = Vec::new();
            let items = separated(&content, &mut mistakes);
            return match mistakes.into_iter().next() {
                Some(error) => Err(error),
                None => Ok(Self { name, value: Value::Items(items) }),
            };
        }
        let has_value = input.parse::<Option<Token![=]>>()?.is_some() && !input.is_empty() && !input.peek(Token![,]);
        let value = if has_value { Value::Expr(expression(input)?) } else { Value::None };
        Ok(Self { name, value })
    }
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (name, text) = if input.peek(LitStr) {
            let literal: LitStr = input.parse()?;
            (literal.to_token_stream(), literal.value())
        } else {
            let word: Ident = input.parse()?;
            (word.to_token_stream(), word.to_string())
        };
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Self { name, text, value })
    }
}
