//! `Input` → `AdmissionFn`: each rule is a function; all mistakes are reported at once.
//!
//! The signature follows from the action:
//!
//! | action | parameters |
//! |---|---|
//! | `validate` | `&Kind`, `&Kind` and `&Admission<Kind>`, or `&Admission<Kind>` alone |
//! | `mutate` | `&mut Kind`, or `&mut Kind` and `&Admission<Kind>` |
//!
//! The return type is left to rustc: `IsAdmitted` is implemented for `()` and for each `Result<()>`, and its
//! diagnostic is K0110.

use proc_macro2::{Span, TokenStream};
use syn::{Ident, Type, TypeReference};

use super::options::{Action, Options, Setting, options};
use crate::{
    attribute::Input,
    codes,
    crate_path::CratePath,
    diagnostics::Errors,
    function::{Function, Head, argument_of, compact_text, first_word, strip_pointers},
};

/// A valid admission function.
pub(super) struct AdmissionFn {
    /// The function without its parameters.
    pub(super) head: Head,
    /// The path of the framework.
    pub(super) krate: CratePath,
    /// The kind of webhook.
    pub(super) action: Action,
    /// The word in the attribute, at which the error for two functions with the same path is reported.
    pub(super) word: Ident,
    /// The kind of the objects, from the first parameter.
    pub(super) kind: Type,
    /// The parameters of the function.
    pub(super) takes: Parameters,
    /// The options of the webhook configuration, in the order of the attribute.
    pub(super) settings: Vec<Setting>,
}

/// The parameters of the function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameters {
    /// `(object)`.
    Object,
    /// `(object, request)`.
    Both,
    /// `(request)`, for validation alone: the object is in the request, and missing in a delete of a collection.
    Request,
}

/// Checks options and function. It returns early without a free function or an action: then the parameters
/// can't be judged.
pub(super) fn check(input: &Input) -> syn::Result<AdmissionFn> {
    let mut errors = Errors::default();
    for mistake in &input.mistakes {
        errors
            .syntax(mistake, "options are words, `name = value` or `name(…)`, such as `validate, operations(create)`");
    }
    let options = options(input, &mut errors);
    let krate = input.krate(&mut errors);
    let Some(function) = &input.function else {
        report_not_a_function(&input.other, &mut errors);
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "not a function")));
    };
    if !function.is_free("#[admission]", codes::NOT_ON_AN_ADMISSION, &mut errors) {
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "a method")));
    }
    if let Some(generic) = function.generic_part() {
        let what = "an admission function can't be generic: it is for one kind";
        errors.push(generic, codes::GENERIC_FUNCTION, what, "name the kind");
    }
    let Some((action, word)) = options.action.clone() else {
        return errors.into_result(()).and(Err(syn::Error::new(Span::call_site(), "neither validates nor mutates")));
    };
    let taken = parameters(function, action, &mut errors);
    if let Some((_, takes)) = &taken {
        check_object_available(function, &options, *takes, &mut errors);
    }
    let (kind, takes) = taken.unwrap_or_else(|| (syn::parse_quote!(()), Parameters::Object));
    errors.into_result(AdmissionFn {
        head: function.head(),
        krate,
        action,
        word,
        kind,
        takes,
        settings: options.settings,
    })
}

/// Reports K0100 at the keyword of the item.
fn report_not_a_function(item: &TokenStream, errors: &mut Errors) {
    let help = "put it on `fn name(object: &Kind) -> Result<()>`";
    errors.push(first_word(item), codes::NOT_ON_AN_ADMISSION, "`#[admission]` goes on a function", help);
}

/// Returns the kind and the form of the parameters, or reports K0103. The help shows the whole signature with the
/// user's kind.
fn parameters(function: &Function, action: Action, errors: &mut Errors) -> Option<(Type, Parameters)> {
    let sig = &function.sig;
    let typed: Vec<&Type> = function.parameter_types().collect();
    let kind = typed.first().map(|ty| strip_pointers(ty)).map(|ty| argument_of(ty, "Admission").unwrap_or(ty));
    let shown = kind.map_or_else(|| "Kind".to_owned(), compact_text);
    let object = format!("{}{shown}", action.reference());
    let help = format!("write `fn {}(object: {object}, request: &Admission<{shown}>) -> Result<()>`", sig.ident);
    if typed.len() != sig.inputs.len() || !(1..=2).contains(&typed.len()) {
        let what = "an admission function takes the object, the request, or both";
        errors.push(&sig.ident, codes::ADMISSION_PARAMETERS, what, &help);
        return None;
    }
    let last_is_request = typed.last().and_then(|ty| request_of(ty));
    match (typed.as_slice(), last_is_request) {
        ([_], Some(kind)) if action == Action::Validate => Some((kind.clone(), Parameters::Request)),
        ([only], Some(_)) => {
            errors.push(only, codes::ADMISSION_PARAMETERS, "a function that mutates takes its object", &help);
            None
        }
        ([only], None) => check_object_borrowed(only, action, &help, errors).map(|kind| (kind, Parameters::Object)),
        ([first, second], request) => {
            let kind = check_object_borrowed(first, action, &help, errors);
            let fits = request
                .is_some_and(|request| kind.as_ref().is_none_or(|kind| compact_text(kind) == compact_text(request)));
            if !fits {
                let what = "the second parameter is the request: `&Admission` of the same kind";
                errors.push(second, codes::ADMISSION_PARAMETERS, what, &help);
                return None;
            }
            kind.map(|kind| (kind, Parameters::Both))
        }
        _ => None,
    }
}

/// Returns `Kind` of `&Admission<Kind>`.
fn request_of(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Reference(TypeReference { mutability: None, elem, .. }) => argument_of(elem, "Admission"),
        _ => None,
    }
}

/// Returns the kind behind the reference. A validating function gets `&Kind`, so that it can't change an object whose
/// changes would be lost; a mutating function gets `&mut Kind`.
fn check_object_borrowed(ty: &Type, action: Action, help: &str, errors: &mut Errors) -> Option<Type> {
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

/// Reports K0106 for a function that takes an object that its requests don't have. The object of a `connect` is an
/// options object such as `PodExecOptions`, and a subresource other than `status` has its own kind; a function for
/// them takes the request alone.
fn check_object_available(function: &Function, options: &Options, takes: Parameters, errors: &mut Errors) {
    if let (Some((at, word)), true) = (&options.other_object, takes != Parameters::Request) {
        let what = format!("requests of {word} have an object of another kind");
        let help = format!(
            "write `fn {}(request: &Admission<Kind>) -> Result<()>`, and read `request.object`",
            function.sig.ident
        );
        errors.push(at, codes::CONTRADICTING_OPTIONS, &what, &help);
    }
}
