//! `Input` → `AdmissionFn`: each rule is a function; all mistakes are reported at once.
//!
//! The signature follows from the action:
//!
//! | action | parameters |
//! |---|---|
//! | `validate` | `&Kind`, `&Kind` and `&Admission<Kind>`, or `&Admission<Kind>` alone |
//! | `mutate` | `&mut Kind`, or `&mut Kind` and `&Admission<Kind>` |
//!
//! The return type is left to rustc: `IntoAdmissionResult` is implemented for `()` and for each `Result<()>`, and its
//! diagnostic is K0110.

use syn::{Ident, Type, TypeReference};

use super::{
    ATTRIBUTE,
    options::{Action, Options, Setting, options},
    requests::check_called,
};
use crate::{
    attribute::Input,
    codes,
    crate_path::CratePath,
    diagnostics::Errors,
    function::{Function, Head, compact_text, generic_argument},
    registered_function::{Borrow, borrowed_kind, shown_kind},
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
    /// The kind of the request, if it is spelled in another way than the kind of the objects: rustc compares them.
    pub(super) request: Option<Type>,
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

/// The kinds of the parameters, and their form.
struct Taken {
    kind: Type,
    takes: Parameters,
    request: Option<Type>,
}

/// Checks options and function. It returns early without a free function or an action: then the parameters
/// can't be judged.
pub(super) fn check(input: &Input) -> syn::Result<AdmissionFn> {
    let mut errors = Errors::default();
    for mistake in &input.mistakes {
        errors
            .syntax(mistake, "options are words, `name = value` or `name(…)`, such as `validate, operations(create)`");
    }
    let mut options = options(input, &mut errors);
    // A function that mutates can't have such a subresource at all.
    let is_possible = options.other_object.is_none() || !matches!(options.action, Some((Action::Mutate, _)));
    if errors.len() == 0 && is_possible {
        check_called(input, &mut errors);
        if errors.len() > 0 && !has_subresources(&options.settings) {
            // A `connect` without a subresource is one mistake, whatever the function takes.
            options.other_object = None;
        }
    }
    let krate = input.krate(&mut errors);
    let function = ATTRIBUTE.check_function(input.function.as_ref(), &input.other, &mut errors)?;
    let Some((action, word)) = options.action.clone() else { return Err(errors.into_error()) };
    let taken = parameters(function, action, &mut errors);
    if let Some(Taken { kind, takes: Parameters::Object | Parameters::Both, .. }) = &taken {
        check_object_available(function, kind, &options, &mut errors);
    }
    let nothing = || Taken { kind: syn::parse_quote!(()), takes: Parameters::Object, request: None };
    let Taken { kind, takes, request } = taken.unwrap_or_else(nothing);
    errors.into_result(AdmissionFn {
        head: function.head(),
        krate,
        action,
        word,
        kind,
        takes,
        request,
        settings: options.settings,
    })
}

fn has_subresources(settings: &[Setting]) -> bool {
    settings.iter().any(|setting| matches!(setting, Setting::Subresources(_)))
}

/// Returns the kinds and the form of the parameters, or reports K0103. The help shows the whole signature with the
/// user's kind.
fn parameters(function: &Function, action: Action, errors: &mut Errors) -> Option<Taken> {
    let sig = &function.sig;
    let typed: Vec<&Type> = function.parameter_types().collect();
    let shown = shown_kind(typed.first().copied());
    let object = format!("{}{shown}", action.reference());
    let help = format!("write `fn {}(object: {object}, request: &Admission<{shown}>) -> Result<()>`", sig.ident);
    if typed.len() != sig.inputs.len() || !(1..=2).contains(&typed.len()) {
        let what = "an admission function takes the object, the request, or both";
        errors.push(&sig.ident, codes::ADMISSION_PARAMETERS, what, &help);
        return None;
    }
    let last_is_request = typed.last().and_then(|ty| request_of(ty));
    match (typed.as_slice(), last_is_request) {
        ([_], Some(kind)) if action == Action::Validate => {
            Some(Taken { kind: kind.clone(), takes: Parameters::Request, request: None })
        }
        ([only], Some(_)) => {
            errors.push(only, codes::ADMISSION_PARAMETERS, "a function that mutates takes its object", &help);
            None
        }
        ([only], None) => {
            let kind = check_object_borrowed(only, action, &help, errors)?;
            Some(Taken { kind, takes: Parameters::Object, request: None })
        }
        ([first, second], request) => {
            let kind = check_object_borrowed(first, action, &help, errors);
            let Some(request) = request else {
                let what = "the second parameter is the request: `&Admission` of the same kind";
                errors.push(second, codes::ADMISSION_PARAMETERS, what, &help);
                return None;
            };
            let kind = kind?;
            // An alias and the kind, or two paths of it, are one type. Only rustc knows.
            let request = (compact_text(&kind) != compact_text(request)).then(|| request.clone());
            Some(Taken { kind, takes: Parameters::Both, request })
        }
        _ => None,
    }
}

/// Returns `Kind` of `&Admission<Kind>`.
fn request_of(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Reference(TypeReference { mutability: None, elem, .. }) => generic_argument(elem, "Admission"),
        _ => None,
    }
}

/// Returns the kind behind the reference, or reports K0103.
fn check_object_borrowed(ty: &Type, action: Action, help: &str, errors: &mut Errors) -> Option<Type> {
    let (borrow, subject) = match action {
        Action::Mutate => (Borrow::Mutable, "a function that mutates"),
        Action::Validate => (Borrow::Shared, "a function that validates"),
    };
    borrowed_kind(ty, borrow, subject).map_err(|what| errors.push(ty, codes::ADMISSION_PARAMETERS, &what, help)).ok()
}

/// Reports K0106 for a function that takes an object that its requests don't have. The object of a `connect` is an
/// options object such as `PodExecOptions`, and a subresource other than `status` has its own kind. A function for them
/// takes the request alone.
fn check_object_available(function: &Function, kind: &Type, options: &Options, errors: &mut Errors) {
    let (Some((at, word)), Some((action, _))) = (&options.other_object, &options.action) else { return };
    let what = format!("requests of {word} have an object of another kind");
    let help = match action {
        // A `connect` of a function that mutates was reported.
        Action::Mutate => "make it `validate` with the request alone, or remove the subresource".to_owned(),
        Action::Validate => {
            let (name, kind) = (&function.sig.ident, compact_text(kind));
            format!("write `fn {name}(request: &Admission<{kind}>) -> Result<()>`, and read `request.object`")
        }
    };
    errors.push(at, codes::CONTRADICTING_OPTIONS, &what, &help);
}
