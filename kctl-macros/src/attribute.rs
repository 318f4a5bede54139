//! Options of `#[admission]` and `#[interpreter]`, and parts that `#[controller]` uses.
//!
//! Tokens → `Input`: the options as the user wrote them, without rules.
//!
//! Nothing here stops at a mistake. A syntax error is kept in `Input::mistakes`, in addition to the options that could
//! be read, and reading continues after the next comma. So `#[interpreter(op = , crate = kctl)]` is one error, and the
//! attribute still knows its crate.
//!
//! | written | read as |
//! |---|---|
//! | `validate` | `Value::None` |
//! | `op = InterpretHealth` | `Value::Expr` |
//! | `operations(create, update)` | `Value::Items`, with words |
//! | `match_conditions("name" = "expression")` | `Value::Items`, with a value |
//! | `timeout = $seconds`, in `macro_rules!` | `Value::Expr`, without the group around the fragment |
//!
//! `#[controller]` has its own parser, because its options have kinds as values, with parentheses after them. It reads
//! lists, names and expressions with the functions of this file.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Error, Expr, Ident, LitStr, Result, Token,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream, Parser},
    token::Paren,
};

use crate::{
    codes::{self, Code},
    crate_path::CratePath,
    diagnostics::{Errors, closest_match},
    function::Function,
};

/// The attribute and the item below it.
pub(crate) struct Input {
    /// The options that could be read, in the order of the attribute.
    pub(crate) options: Vec<Entry>,
    /// The function below the attribute. `None` for any other item.
    pub(crate) function: Option<Function>,
    /// The tokens of the item: an item that is not a function gets its error at its keyword.
    pub(crate) other: TokenStream,
    /// Syntax errors, which the check reports with the form of the options.
    pub(crate) mistakes: Vec<Error>,
}

/// One option: `name`, `name = value` or `name(item, …)`.
pub(crate) struct Entry {
    /// The name, for the span of errors about the whole option.
    pub(crate) name: Ident,
    /// The value with its form.
    pub(crate) value: Value,
}

/// The value of an option. `name =` without a value, as while typing, is the same as `name`: the check of the option
/// asks for its value.
pub(crate) enum Value {
    /// `name`, and `name =` while the value is not typed yet.
    None,
    /// `name = value`.
    Expr(Expr),
    /// `name(item, …)`.
    Items(Vec<Item>),
}

/// One entry of a list in parentheses: `create`, `"not-system"`, or one of them with `= value`.
pub(crate) struct Item {
    /// The word or the string literal, for the span of errors.
    pub(crate) name: TokenStream,
    /// The word, or the value of the string.
    pub(crate) text: String,
    /// The expression after `=`.
    pub(crate) value: Option<Expr>,
}

/// The options of an attribute.
pub(crate) struct KnownOptions {
    /// The attribute as users write it: `#[admission]`.
    pub(crate) attribute: &'static str,
    /// The names of the options, in the order of the help.
    pub(crate) names: &'static [&'static str],
    /// The code of an unknown option.
    pub(crate) code: Code,
    /// Returns the help for a word that people write instead of an option.
    pub(crate) synonym: fn(&Entry, &Input) -> Option<String>,
}

/// Reads an attribute and its item.
pub(crate) fn parse(options: TokenStream, item: &TokenStream) -> Input {
    let mut mistakes = Vec::new();
    let parsed = (|input: ParseStream<'_>| Ok(parse_comma_separated(input, &mut mistakes))).parse2(options);
    let options = parsed.unwrap_or_else(|error| {
        mistakes.push(error);
        Vec::new()
    });
    let function = syn::parse2::<Function>(item.clone()).ok();
    Input { options, function, other: item.clone(), mistakes }
}

impl Input {
    /// Returns the first option of this name. A second one is K0022.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.options.iter().find(|entry| entry.name == name)
    }

    /// Returns the path of the framework. Reports K0010 for a value that is not a path; `::kctl` takes its place.
    pub(crate) fn krate(&self, errors: &mut Errors) -> CratePath {
        match self.entry("crate").map(|entry| (&entry.name, &entry.value)) {
            None => CratePath::default(),
            Some((_, Value::Expr(Expr::Path(path)))) => CratePath(Some(path.clone())),
            Some((name, value)) => {
                let at = if let Value::Expr(value) = value { value.to_token_stream() } else { name.to_token_stream() };
                errors.push(at, codes::MISSING_VALUE, "`crate` must be a path", "write `crate = path`");
                CratePath::default()
            }
        }
    }

    /// Reports options that the attribute does not have, with `code`, and options that are given twice, with K0022.
    /// The help for an unknown option names its synonym, the nearest known one, or the list of all. A help that several
    /// words share is shown once.
    ///
    /// `#[admission]` and `#[interpreter]` use it. `#[controller]` has `controller/check/unknown_option.rs`.
    pub(crate) fn check_known_and_unique(&self, known: &KnownOptions, errors: &mut Errors) {
        let KnownOptions { attribute, names, code, synonym } = known;
        let mut shown: Vec<String> = Vec::new();
        for (index, entry) in self.options.iter().enumerate() {
            let name = entry.name.to_string();
            if !names.contains(&name.as_str()) {
                let synonym_help = synonym(entry, self);
                if synonym_help.as_ref().is_some_and(|help| shown.contains(help)) {
                    continue;
                }
                shown.extend(synonym_help.clone());
                let help = synonym_help.unwrap_or_else(|| match closest_match(&name, names) {
                    Some(candidate) => format!("did you mean `{candidate}`?"),
                    None => format!("the options are {}", names.join(", ")),
                });
                errors.push(&entry.name, *code, &format!("`{attribute}` has no option `{name}`"), &help);
            } else if self.options[..index].iter().any(|before| before.name == entry.name) {
                errors.push_duplicate(&entry.name);
            }
        }
    }
}

/// Reads a list with commas. After a mistake it continues after the next comma; tokens before it are skipped, because
/// they belong to the entry that failed.
pub(crate) fn parse_comma_separated<T: Parse>(input: ParseStream<'_>, mistakes: &mut Vec<Error>) -> Vec<T> {
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

/// Reads the name of an option. `crate` is the only keyword among the names, but any word is read, so that the check of
/// unknown options has its help for `for = Kind` and `type = …`.
pub(crate) fn parse_name(input: ParseStream<'_>) -> Result<Ident> {
    if input.peek(Ident::peek_any) { input.call(Ident::parse_any) } else { input.parse() }
}

/// Returns an expression without the invisible groups that surround fragments of `macro_rules!`, such as
/// `$timeout:literal`. The checks of literals and paths see the fragment.
pub(crate) fn without_groups(expr: Expr) -> Expr {
    match expr {
        Expr::Group(group) => without_groups(*group.expr),
        Expr::Array(mut list) => {
            for element in &mut list.elems {
                *element = without_groups(element.clone());
            }
            Expr::Array(list)
        }
        other => other,
    }
}

/// Reads a value. A lone `*`, which people write for all of something, has its own message: as an expression it would
/// be an unfinished dereference.
pub(crate) fn parse_expression(input: ParseStream<'_>) -> Result<Expr> {
    let ahead = input.fork();
    if ahead.parse::<Token![*]>().is_ok() && (ahead.is_empty() || ahead.peek(Token![,])) {
        return Err(input.error("`*` is not supported: list each one"));
    }
    input.parse().map(without_groups)
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = parse_name(input)?;
        if input.peek(Paren) {
            let content;
            parenthesized!(content in input);
            let mut mistakes = Vec::new();
            let items = parse_comma_separated(&content, &mut mistakes);
            return match mistakes.into_iter().next() {
                Some(error) => Err(error),
                None => Ok(Self { name, value: Value::Items(items) }),
            };
        }
        let has_value = input.parse::<Option<Token![=]>>()?.is_some() && !input.is_empty() && !input.peek(Token![,]);
        let value = if has_value { Value::Expr(parse_expression(input)?) } else { Value::None };
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
        let has_value = input.parse::<Option<Token![=]>>()?.is_some();
        let value = if has_value { Some(without_groups(input.parse()?)) } else { None };
        Ok(Self { name, text, value })
    }
}
