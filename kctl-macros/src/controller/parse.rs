//! Tokens → `Input`: what was written, without rules. Nothing here stops at a mistake: it is kept beside what could be read.

use proc_macro2::TokenStream;
use syn::{
    BinOp, Error, Expr, Ident, Item, Path, PathArguments, Result, Token, Type,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream, Parser},
};

use crate::{
    attribute::{expression, separated},
    function::Function,
};

/// The attribute and the item.
pub(super) struct Input {
    pub(super) options: Vec<Entry>,
    pub(super) item: Annotated,
    pub(super) mistakes: Vec<Error>,
}

/// The item that the attribute stands on.
pub(super) enum Annotated {
    Function(Function),
    Struct(syn::ItemStruct),
    Other(TokenStream),
}

/// `name = value(arguments)`, or `name(arguments)`.
pub(super) struct Entry {
    pub(super) name: Ident,
    pub(super) value: Option<Value>,
    pub(super) parentheses: Option<syn::token::Paren>,
    pub(super) arguments: Vec<Argument>,
    mistakes: Vec<Error>,
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
    /// `as = Type`.
    As(Token![as], Type),
    /// `*`, which is nothing here, but what roles of Kubernetes have.
    Everything(Token![*]),
    Expr(Expr),
}

/// Options whose value is a kind.
const KINDS: [&str; 4] = ["owns", "watches", "reads", "of"];

pub(super) fn parse(options: TokenStream, item: &TokenStream) -> Input {
    let mut mistakes = Vec::new();
    let entries = |input: ParseStream<'_>| Ok(separated::<Entry>(input, &mut mistakes));
    let parsed = entries.parse2(options);
    let mut options = parsed.unwrap_or_else(|error| {
        mistakes.push(error);
        Vec::new()
    });
    mistakes.extend(options.iter_mut().flat_map(|entry| entry.mistakes.drain(..)));
    Input { options, item: annotated(item), mistakes }
}

fn annotated(item: &TokenStream) -> Annotated {
    if let Ok(function) = syn::parse2::<Function>(item.clone()) {
        return Annotated::Function(function);
    }
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Struct(item)) => Annotated::Struct(item),
        _ => Annotated::Other(item.clone()),
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = if input.peek(Token![crate]) {
            Ident::new("krate", input.parse::<Token![crate]>()?.span)
        } else {
            input.parse::<Ident>()?
        };
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { value(&name, input)? } else { None };
        let (mut mistakes, mut arguments, mut parentheses) = (Vec::new(), Vec::new(), None);
        if input.peek(syn::token::Paren) {
            let content;
            parentheses = Some(parenthesized!(content in input));
            arguments = separated(&content, &mut mistakes);
        }
        Ok(Self { name, value, parentheses, arguments, mistakes })
    }
}

/// What stands behind `=`; nothing, where it is not typed yet or is no kind: the rules ask for it.
fn value(name: &Ident, input: ParseStream<'_>) -> Result<Option<Value>> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(None);
    }
    let begins_a_path = input.peek(Ident::peek_any) || input.peek(Token![::]);
    if !KINDS.contains(&name.to_string().as_str()) || !begins_a_path {
        return Ok(Some(Value::Expr(expression(input)?)));
    }
    // `Pod + Secret` is whole in the expression: the rules say how several kinds are written.
    let ahead = input.fork();
    if matches!(ahead.parse(), Ok(Expr::Binary(joined)) if matches!(joined.op, BinOp::Add(_) | BinOp::BitOr(_) | BinOp::BitAnd(_)))
    {
        return Ok(Some(Value::Expr(input.parse()?)));
    }
    let mut path = input.call(Path::parse_mod_style)?;
    // A path of types would take the parentheses of the relation for those of `Fn(…)`.
    if input.peek(Token![<])
        && let Some(last) = path.segments.last_mut()
    {
        last.arguments = PathArguments::AngleBracketed(input.parse()?);
    }
    Ok(Some(Value::Kind(Type::Path(syn::TypePath { attrs: Vec::new(), qself: None, path }))))
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Token![as]) {
            let word = input.parse()?;
            input.parse::<Token![=]>()?;
            return Ok(Self::As(word, input.parse()?));
        }
        let ahead = input.fork();
        if ahead.parse::<Token![*]>().is_ok() && (ahead.is_empty() || ahead.peek(Token![,])) {
            return Ok(Self::Everything(input.parse()?));
        }
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
