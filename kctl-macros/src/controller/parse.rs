//! Tokens → `Input`: the options as the user wrote them, without rules.
//!
//! A mistake stops nothing: it is kept in addition to the options that could be read, and reading continues after the
//! next comma.
//!
//! The grammar of an option is `name`, `name = value`, `name(argument, …)` or `name = Kind(argument, …)`. The last
//! form is not Rust: as an expression it would be a call, and `Kind<T>(a = b)` no expression at all. So the value of
//! an option in `KINDS` is parsed as a path, and the parentheses separately.

use proc_macro2::TokenStream;
use syn::{
    BinOp, Error, Expr, Ident, Item, Path, PathArguments, Result, Token, Type,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream, Parser},
};

use crate::{
    attribute::{parse_comma_separated, parse_expression, parse_name, without_groups},
    function::{Function, remove_groups},
};

/// The attribute and the item below it.
pub(super) struct Input {
    /// The options that could be read, in the order of the attribute.
    pub(super) options: Vec<Entry>,
    /// The item below the attribute.
    pub(super) item: AnnotatedItem,
    /// Syntax errors, of options and within parentheses.
    pub(super) mistakes: Vec<Error>,
}

/// The item with the attribute. A function whose body has syntax errors is also a function.
pub(super) enum AnnotatedItem {
    /// A function, also with a body that has syntax errors.
    Function(Function),
    Struct(syn::ItemStruct),
    /// Any other item, or a struct with syntax errors.
    Other(TokenStream),
}

/// One option: `name = value(arguments)`, or `name(arguments)`.
pub(super) struct Entry {
    /// The name of the option.
    pub(super) name: Ident,
    /// The value after `=`. `None` while it is not typed yet.
    pub(super) value: Option<Value>,
    /// The parentheses, for the span of errors about them.
    pub(super) parentheses: Option<syn::token::Paren>,
    /// The entries in the parentheses.
    pub(super) arguments: Vec<Argument>,
    /// Syntax errors in the parentheses. `parse` moves them into `Input::mistakes`.
    mistakes: Vec<Error>,
}

/// The value after `=`: a kind for `owns`, `watches`, `reads` and `of`, an expression for any other option. An
/// expression in place of a kind is a mistake that `check` reports with the right form.
pub(super) enum Value {
    /// A path with its generic arguments: `Pod`, `v1::Pod`, `PartialObjectMeta<Pod>`.
    Kind(Type),
    /// Any other value, and a mistake in place of a kind.
    Expr(Expr),
}

/// One entry in parentheses. The form of its tokens decides the variant. `check` decides which entries an option
/// accepts.
pub(super) enum Argument {
    /// A verb or a flag: `create`, `optional`.
    Word(Ident),
    /// `selector = "app=web"`, `map = f`.
    Option(Ident, Expr),
    /// `live(cluster)`, or a rule with one argument.
    Nested(Ident, Ident),
    /// `as = Type`.
    As(Token![as], Type),
    /// A lone `*`, as roles of Kubernetes have it. `check` rejects it with a help that lists verbs.
    Everything(Token![*]),
    /// Anything else: a string, a closure, a call.
    Expr(Expr),
}

/// Options whose value is a kind.
const KINDS: [&str; 4] = ["owns", "watches", "reads", "of"];

/// Reads the attribute and the item.
pub(super) fn parse(options: TokenStream, item: &TokenStream) -> Input {
    let mut mistakes = Vec::new();
    let entries = |input: ParseStream<'_>| Ok(parse_comma_separated::<Entry>(input, &mut mistakes));
    let parsed = entries.parse2(options);
    let mut options = parsed.unwrap_or_else(|error| {
        mistakes.push(error);
        Vec::new()
    });
    mistakes.extend(options.iter_mut().flat_map(|entry| entry.mistakes.drain(..)));
    Input { options, item: parse_item(item), mistakes }
}

/// Reads the item. Only a function's signature is parsed, because a body may be half typed.
fn parse_item(item: &TokenStream) -> AnnotatedItem {
    if let Ok(function) = syn::parse2::<Function>(item.clone()) {
        return AnnotatedItem::Function(function);
    }
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Struct(item)) => AnnotatedItem::Struct(item),
        _ => AnnotatedItem::Other(item.clone()),
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = parse_name(input)?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { value(&name, input)? } else { None };
        let (mut mistakes, mut arguments, mut parentheses) = (Vec::new(), Vec::new(), None);
        if input.peek(syn::token::Paren) {
            let content;
            parentheses = Some(parenthesized!(content in input));
            arguments = parse_comma_separated(&content, &mut mistakes);
        }
        Ok(Self { name, value, parentheses, arguments, mistakes })
    }
}

/// Reads the value after `=`; `None` if nothing is typed yet. In place of a kind, any other expression is returned as
/// it is. `check` reports both.
fn value(name: &Ident, input: ParseStream<'_>) -> Result<Option<Value>> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(None);
    }
    let begins_a_path = input.peek(Ident::peek_any) || input.peek(Token![::]);
    if !KINDS.contains(&name.to_string().as_str()) || !begins_a_path {
        return Ok(Some(Value::Expr(parse_expression(input)?)));
    }
    // `Pod + Secret` is kept as one expression, so that the check can say how to write several kinds.
    let ahead = input.fork();
    if matches!(ahead.parse(), Ok(Expr::Binary(joined)) if matches!(joined.op, BinOp::Add(_) | BinOp::BitOr(_) | BinOp::BitAnd(_)))
    {
        return Ok(Some(Value::Expr(input.parse()?)));
    }
    let mut path = input.call(Path::parse_mod_style)?;
    // `parse_mod_style` leaves out `<…>`. The parser of type paths would read the parentheses of a relation as `Fn(…)`.
    if input.peek(Token![<])
        && let Some(last) = path.segments.last_mut()
    {
        last.arguments = PathArguments::AngleBracketed(input.parse()?);
    }
    let mut kind = Type::Path(syn::TypePath { attrs: Vec::new(), qself: None, path });
    remove_groups(&mut kind);
    Ok(Some(Value::Kind(kind)))
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(Token![as]) {
            let word = input.parse()?;
            input.parse::<Token![=]>()?;
            let mut view = input.parse()?;
            remove_groups(&mut view);
            return Ok(Self::As(word, view));
        }
        let ahead = input.fork();
        if ahead.parse::<Token![*]>().is_ok() && (ahead.is_empty() || ahead.peek(Token![,])) {
            return Ok(Self::Everything(input.parse()?));
        }
        if !input.peek(Ident) {
            return Ok(Self::Expr(without_groups(input.parse()?)));
        }
        if input.peek2(Token![=]) {
            let name = input.parse()?;
            input.parse::<Token![=]>()?;
            return Ok(Self::Option(name, without_groups(input.parse()?)));
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
        Ok(Self::Expr(without_groups(input.parse()?)))
    }
}
