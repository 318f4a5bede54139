//! `Input` → `Model`: the rules, each a function of its name; all mistakes are reported at once.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Expr, FnArg, Ident, ReturnType, Type, TypeReference, Visibility, spanned::Spanned};

use super::operation::{OPERATIONS, Operation, Shape};
use crate::{
    attribute::{Entry, Input, Value},
    codes,
    crate_path::CratePath,
    diagnostics::{Errors, nearest},
    function::{Function, first_word, is_result, referenced, text_of},
};

/// An interpreter that is right.
pub(super) struct Model {
    pub(super) name: Ident,
    pub(super) vis: Visibility,
    pub(super) docs: Vec<Attribute>,
    pub(super) krate: CratePath,
    pub(super) operation: &'static Operation,
    /// The word in the attribute.
    pub(super) word: Ident,
    pub(super) kind: Type,
    /// What a status item is read as.
    pub(super) item: Option<Type>,
    pub(super) is_async: bool,
    /// Whether the function returns a `Result`, as far as its text says.
    pub(super) is_fallible: bool,
    /// Where the type of the result stands: mistakes in it are shown there.
    pub(super) result: Span,
}

const OPTIONS: [&str; 2] = ["op", "crate"];

pub(super) fn check(input: &Input) -> syn::Result<Model> {
    let mut errors = Errors::default();
    for mistake in &input.mistakes {
        errors.syntax(mistake, "options are written `name = value`, such as `op = InterpretReplica`");
    }
    input.known_and_once("#[interpreter]", &OPTIONS, codes::UNKNOWN_INTERPRETER_OPTION, &mut errors);
    let krate = input.krate(&mut errors);
    let operation = operation(input, &mut errors);
    let Some(function) = &input.function else {
        it_stands_on_a_function(&input.other, &mut errors);
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "not a function")));
    };
    if !function.is_free("#[interpreter]", codes::NOT_ON_AN_INTERPRETER, &mut errors) {
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "a method")));
    }
    if !function.sig.generics.params.is_empty() {
        let help = "name the kind";
        errors.push(
            &function.sig.generics,
            codes::GENERIC_INTERPRETER,
            "an interpreter can't be generic: it is for one kind",
            help,
        );
    }
    let Some((operation, word)) = operation else {
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "no operation")));
    };
    let taken = parameters(function, operation, &mut errors);
    it_returns_an_answer(function, operation, &mut errors);
    let (kind, item) = taken.unwrap_or_else(|| (syn::parse_quote!(()), None));
    let sig = &function.sig;
    errors.into_result(Model {
        name: sig.ident.clone(),
        vis: function.vis.clone(),
        docs: function.docs(),
        krate,
        operation,
        word,
        kind,
        item,
        is_async: sig.asyncness.is_some(),
        is_fallible: is_result(&sig.output),
        result: match &sig.output {
            ReturnType::Type(_, result) => result.span(),
            ReturnType::Default => sig.ident.span(),
        },
    })
}

fn it_stands_on_a_function(item: &TokenStream, errors: &mut Errors) {
    let help = "put it on `fn name(object: &Kind) -> Result<…>`";
    errors.push(first_word(item), codes::NOT_ON_AN_INTERPRETER, "`#[interpreter]` goes on a function", help);
}

fn operation(input: &Input, errors: &mut Errors) -> Option<(&'static Operation, Ident)> {
    let names = || OPERATIONS.iter().map(|operation| operation.name).collect::<Vec<_>>();
    let Some(entry) = input.entry("op") else {
        // An option that is almost `op` is said already.
        let misspelt = |entry: &Entry| entry.name != "krate" && !matches!(entry.value, Value::None);
        if !input.options.iter().any(misspelt) && input.mistakes.is_empty() {
            let at = input.function.as_ref().map(|function| function.sig.ident.clone());
            let help = format!("write `#[interpreter(op = …)]` with one of {}", names().join(", "));
            errors.push(at, codes::MISSING_OPERATION, "an interpreter needs its operation", &help);
        }
        return None;
    };
    let Value::Expr(value) = &entry.value else {
        let help = format!("write `op = …` with one of {}", names().join(", "));
        errors.push(&entry.name, codes::MISSING_OPERATION, "an interpreter needs its operation", &help);
        return None;
    };
    let text = value.to_token_stream().to_string();
    let word = match value {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    };
    if let Some((operation, word)) = word.and_then(|word| Some((Operation::of(&word.to_string())?, word.clone()))) {
        return Some((operation, word));
    }
    let several = operations_in(value);
    if several.len() > 1 {
        let each: Vec<_> = several.iter().map(|name| format!("`#[interpreter(op = {name})]`")).collect();
        let help = format!("write a function for each, with {}; what they share is called by both", each.join(" and "));
        errors.push(value, codes::UNKNOWN_OPERATION, "a function answers one operation", &help);
        return None;
    }
    let plain = text.trim_matches('"');
    let same = |name: &&&str| name.eq_ignore_ascii_case(plain);
    let help = match nearest(plain, &names()).or_else(|| names().iter().find(same).copied()) {
        Some(known) if text.starts_with('"') => format!("operations are written without quotes: `op = {known}`"),
        Some(known) => format!("did you mean `{known}`?"),
        None if several.len() == 1 => format!("write `op = {}`", several[0]),
        None => format!("the operations are {}", names().join(", ")),
    };
    errors.push(value, codes::UNKNOWN_OPERATION, &format!("`{plain}` is not an operation"), &help);
    None
}

/// The operations that an expression names in whatever form: a list, alternatives, a call, a path.
fn operations_in(value: &Expr) -> Vec<&'static str> {
    let (mut tokens, mut found) = (vec![value.to_token_stream()], Vec::new());
    while let Some(stream) = tokens.pop() {
        for token in stream {
            match token {
                TokenTree::Group(group) => tokens.push(group.stream()),
                TokenTree::Ident(word) => {
                    found.extend(Operation::of(&word.to_string()).map(|operation| operation.name));
                }
                _ => {}
            }
        }
    }
    found
}

/// The kind, and what status items are read as.
fn parameters(function: &Function, operation: &Operation, errors: &mut Errors) -> Option<(Type, Option<Type>)> {
    let (name, sig) = (function.sig.ident.to_string(), &function.sig);
    let typed: Vec<&Type> = sig
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(typed) => Some(&*typed.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let wanted = operation.shape.n_parameters();
    let kind = typed.first().map_or_else(|| "Kind".to_owned(), |ty| text_of(referenced(ty)));
    let help = format!("write `{}`", operation.signature(&name, &kind));
    if typed.len() != wanted || sig.inputs.len() != wanted {
        let parameters = if wanted == 1 { "one parameter" } else { "two parameters" };
        let what = format!("a function for {} has {parameters}", operation.name);
        errors.push(&sig.ident, codes::NUMBER_OF_PARAMETERS, &what, &help);
        return None;
    }
    let kind = the_object_is_borrowed(typed[0], operation, &help, errors);
    let second = typed.get(1).map(|second| the_second_parameter_fits(second, kind.as_ref(), operation, &help, errors));
    Some((kind?, second.flatten()))
}

fn the_object_is_borrowed(ty: &Type, operation: &Operation, help: &str, errors: &mut Errors) -> Option<Type> {
    let is_changed = operation.shape != Shape::Read;
    let what = match ty {
        Type::Reference(TypeReference { mutability, elem, .. }) if mutability.is_some() == is_changed => {
            return Some((**elem).clone());
        }
        _ if is_changed => format!("{} changes its object: the first parameter must be `&mut Kind`", operation.name),
        Type::Reference(_) => format!("{} only reads its object: the first parameter must be `&Kind`", operation.name),
        _ => format!("the first parameter of {} must be `&Kind`", operation.name),
    };
    errors.push(ty, codes::OBJECT_NOT_BORROWED, &what, help);
    None
}

/// Returns what a status item is read as, where it takes such.
fn the_second_parameter_fits(
    ty: &Type,
    kind: Option<&Type>,
    operation: &Operation,
    help: &str,
    errors: &mut Errors,
) -> Option<Type> {
    let fits = match (operation.shape, ty) {
        (Shape::Revise, _) => text_of(ty) == "i32",
        (Shape::Retain, Type::Reference(TypeReference { mutability: None, elem, .. })) => {
            kind.is_none_or(|kind| text_of(kind) == text_of(elem))
        }
        (Shape::Aggregate, Type::Reference(TypeReference { mutability: None, elem, .. })) => match &**elem {
            Type::Slice(slice) => return Some((*slice.elem).clone()),
            _ => false,
        },
        _ => false,
    };
    if !fits {
        let must = match operation.shape {
            Shape::Revise => "the number of replicas, an `i32`",
            Shape::Retain => "the object as the cluster has it, by reference: `&Kind` of the same kind",
            _ => "what the clusters reported: `&[AggregatedStatusItem]`",
        };
        errors.push(
            ty,
            codes::INVALID_SECOND_PARAMETER,
            &format!("the second parameter of {} must be {must}", operation.name),
            help,
        );
    }
    None
}

/// What else a type must be to be an answer, the compiler says.
fn it_returns_an_answer(function: &Function, operation: &Operation, errors: &mut Errors) {
    let is_nothing = match &function.sig.output {
        ReturnType::Default => true,
        ReturnType::Type(_, ty) => matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty()),
    };
    if is_nothing && operation.shape == Shape::Read {
        let first = function.sig.inputs.first();
        let kind = match first {
            Some(FnArg::Typed(typed)) => text_of(referenced(&typed.ty)),
            _ => "Kind".to_owned(),
        };
        let help = format!("write `{}`", operation.signature(&function.sig.ident.to_string(), &kind));
        let what = format!("a function for {} returns `{}`", operation.name, operation.returns);
        match &function.sig.output {
            ReturnType::Default => errors.push(&function.sig.ident, codes::NOT_AN_ANSWER, &what, &help),
            ReturnType::Type(_, ty) => errors.push(ty, codes::NOT_AN_ANSWER, &what, &help),
        }
    }
}
