//! `Input` → `Model`: the rules, each a function of its name; all mistakes are reported at once.

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, FnArg, Ident, Type, TypeReference, Visibility, spanned::Spanned};

use super::options::{Action, Options, Setting, options};
use crate::{
    attribute::Input,
    codes,
    crate_path::CratePath,
    diagnostics::Errors,
    function::{Function, argument_of, first_word, referenced, returned, text_of},
};

/// An admission function that is right.
pub(super) struct Model {
    pub(super) name: Ident,
    pub(super) vis: Visibility,
    pub(super) docs: Vec<Attribute>,
    pub(super) krate: CratePath,
    pub(super) action: Action,
    /// The word in the attribute.
    pub(super) word: Ident,
    pub(super) kind: Type,
    pub(super) takes: Takes,
    pub(super) settings: Vec<Setting>,
    pub(super) is_async: bool,
    /// Where the type of the result stands: mistakes in it are shown there.
    pub(super) result: Span,
}

/// The parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Object,
    Both,
    Request,
}

pub(super) fn check(input: &Input) -> syn::Result<Model> {
    let mut errors = Errors::default();
    for mistake in &input.mistakes {
        errors
            .syntax(mistake, "options are words, `name = value` or `name(…)`, such as `validate, operations(create)`");
    }
    let options = options(input, &mut errors);
    let krate = input.krate(&mut errors);
    let Some(function) = &input.function else {
        it_stands_on_a_function(&input.other, &mut errors);
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "not a function")));
    };
    if !function.is_free("#[admission]", codes::NOT_ON_AN_ADMISSION, &mut errors) {
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "a method")));
    }
    if !function.sig.generics.params.is_empty() {
        let what = "an admission function can't be generic: it is for one kind";
        errors.push(&function.sig.generics, codes::GENERIC_FUNCTION, what, "name the kind");
    }
    let Some((action, word)) = options.action.clone() else {
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "neither validates nor mutates")));
    };
    let taken = parameters(function, action, &mut errors);
    if let Some((_, takes)) = &taken {
        the_object_is_there(function, &options, *takes, &mut errors);
    }
    let (kind, takes) = taken.unwrap_or_else(|| (syn::parse_quote!(()), Takes::Object));
    let sig = &function.sig;
    errors.into_result(Model {
        name: sig.ident.clone(),
        vis: function.vis.clone(),
        docs: function.docs(),
        krate,
        action,
        word,
        kind,
        takes,
        settings: options.settings,
        is_async: sig.asyncness.is_some(),
        result: returned(&sig.output).map_or_else(|| sig.ident.span(), Spanned::span),
    })
}

fn it_stands_on_a_function(item: &TokenStream, errors: &mut Errors) {
    let help = "put it on `fn name(object: &Kind) -> Result<()>`";
    errors.push(first_word(item), codes::NOT_ON_AN_ADMISSION, "`#[admission]` goes on a function", help);
}

/// The kind, and which parameters there are.
fn parameters(function: &Function, action: Action, errors: &mut Errors) -> Option<(Type, Takes)> {
    let sig = &function.sig;
    let typed: Vec<&Type> = sig
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(typed) => Some(&*typed.ty),
            FnArg::Receiver(_) => None,
        })
        .collect();
    let kind = typed.first().map(|ty| referenced(ty)).map(|ty| argument_of(ty, "Admission").unwrap_or(ty));
    let shown = kind.map_or_else(|| "Kind".to_owned(), text_of);
    let object = format!("{}{shown}", action.reference());
    let help = format!("write `fn {}(object: {object}, request: &Admission<{shown}>) -> Result<()>`", sig.ident);
    if typed.len() != sig.inputs.len() || !(1..=2).contains(&typed.len()) {
        let what = "an admission function takes the object, the request, or both";
        errors.push(&sig.ident, codes::ADMISSION_PARAMETERS, what, &help);
        return None;
    }
    let last_is_request = typed.last().and_then(|ty| request_of(ty));
    match (typed.as_slice(), last_is_request) {
        ([_], Some(kind)) if action == Action::Validate => Some((kind.clone(), Takes::Request)),
        ([only], Some(_)) => {
            errors.push(only, codes::ADMISSION_PARAMETERS, "a function that mutates takes its object", &help);
            None
        }
        ([only], None) => the_object_is_borrowed(only, action, &help, errors).map(|kind| (kind, Takes::Object)),
        ([first, second], request) => {
            let kind = the_object_is_borrowed(first, action, &help, errors);
            let fits =
                request.is_some_and(|request| kind.as_ref().is_none_or(|kind| text_of(kind) == text_of(request)));
            if !fits {
                let what = "the second parameter is the request: `&Admission` of the same kind";
                errors.push(second, codes::ADMISSION_PARAMETERS, what, &help);
                return None;
            }
            kind.map(|kind| (kind, Takes::Both))
        }
        _ => None,
    }
}

/// `Kind` of `&Admission<Kind>`.
fn request_of(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Reference(TypeReference { mutability: None, elem, .. }) => argument_of(elem, "Admission"),
        _ => None,
    }
}

fn the_object_is_borrowed(ty: &Type, action: Action, help: &str, errors: &mut Errors) -> Option<Type> {
    let is_changed = action == Action::Mutate;
    let what = match ty {
        Type::Reference(TypeReference { mutability, elem, .. }) if mutability.is_some() == is_changed => {
            return Some((**elem).clone());
        }
        _ if is_changed => "a function that mutates changes its object: the first parameter must be `&mut Kind`",
        Type::Reference(_) => "a function that validates only reads its object: the first parameter must be `&Kind`",
        _ => "the first parameter of a function that validates must be `&Kind`",
    };
    errors.push(ty, codes::ADMISSION_PARAMETERS, what, help);
    None
}

/// Connections, and most subresources, have objects of other kinds.
fn the_object_is_there(function: &Function, options: &Options, takes: Takes, errors: &mut Errors) {
    if let (Some((at, word)), true) = (&options.elsewhere, takes != Takes::Request) {
        let what = format!("requests of {word} have an object of another kind");
        let help = format!(
            "write `fn {}(request: &Admission<Kind>) -> Result<()>`, and read `request.object`",
            function.sig.ident
        );
        errors.push(at, codes::CONTRADICTING_OPTIONS, &what, &help);
    }
}
