//! Tokens → `Input`: what was written, without rules.

use proc_macro2::TokenStream;
use syn::{
    Expr, Ident, Item, Path, Result, Token, Type, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// The attribute and the item.
pub(super) struct Input {
    pub(super) options: Vec<Entry>,
    pub(super) item: Item,
}

/// `name = value(arguments)`, or `name(arguments)`.
pub(super) struct Entry {
    pub(super) name: Ident,
    pub(super) value: Option<Value>,
    pub(super) arguments: Vec<Argument>,
}

pub(super) enum Value {
    Kind(Type),
    Expr(Expr),
}

/// One thing in parentheses: a verb or flag, an option, or an expression.
pub(super) enum Argument {
    Word(Ident),
    Option(Ident, Expr),
    Nested(Ident, Ident),
    Expr(Expr),
}

/// Options whose value is a kind.
const KINDS: [&str; 4] = ["owns", "watches", "reads", "of"];

pub(super) fn parse(options: TokenStream, item: TokenStream) -> Result<Input> {
    let entries = |input: ParseStream<'_>| Punctuated::<Entry, Token![,]>::parse_terminated(input);
    let options = syn::parse::Parser::parse2(entries, options)?;
    Ok(Input { options: options.into_iter().collect(), item: syn::parse2(item)? })
}

/// The name of the function, if the tokens have one: also where nothing else parses.
pub(super) fn function_name(item: &TokenStream) -> Option<Ident> {
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(function)) => Some(function.sig.ident),
        _ => None,
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = if input.peek(Token![crate]) {
            Ident::new("krate", input.parse::<Token![crate]>()?.span)
        } else {
            input.parse::<Ident>()?
        };
        let mut value = None;
        if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            value = Some(if KINDS.contains(&name.to_string().as_str()) {
                Value::Kind(Type::Path(syn::TypePath {
                    attrs: Vec::new(),
                    qself: None,
                    path: input.call(Path::parse_mod_style)?,
                }))
            } else {
                Value::Expr(input.parse()?)
            });
        }
        let mut arguments = Vec::new();
        if input.peek(syn::token::Paren) {
            let content;
            parenthesized!(content in input);
            arguments = Punctuated::<Argument, Token![,]>::parse_terminated(&content)?.into_iter().collect();
        }
        Ok(Self { name, value, arguments })
    }
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if !input.peek(Ident) {
            return Ok(Self::Expr(input.parse()?));
        }
        if input.peek2(Token![=]) {
            let name = input.parse()?;
            input.parse::<Token![=]>()?;
            return Ok(Self::Option(name, input.parse()?));
        }
        if input.peek2(Token![,]) || input.cursor().ident().is_some_and(|(_, rest)| rest.eof()) {
            return Ok(Self::Word(input.parse()?));
        }
        let ahead = input.fork();
        let nested = |stream: ParseStream<'_>| -> Result<Self> {
            let outer = stream.parse()?;
            let content;
            parenthesized!(content in stream);
            Ok(Self::Nested(outer, content.parse()?))
        };
        if nested(&ahead).is_ok() && (ahead.is_empty() || ahead.peek(Token![,])) {
            return nested(input);
        }
        Ok(Self::Expr(input.parse()?))
    }
}
