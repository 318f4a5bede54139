//! `AdmissionFn` → tokens: one function for each emitted item; nothing can fail here.
//!
//! ```text
//! #[admission(validate, timeout = 3)]
//! fn rules(object: &Deployment) -> Result<()> { … }
//! ```
//!
//! becomes the function itself, and in addition
//!
//! ```text
//! struct rules {}
//! enum K0109_one_validate_of_Deployment {}  // a second one in the module is E0428
//! const _: () = {
//!     use ::kctl::admission::__private_0_1 as __p;
//!     type __Kind = Deployment;
//!     impl __p::Admits for rules {
//!         fn webhooks() -> __p::Vec<__p::Webhook> {
//!             let probe = __p::CrdProbe::<__Kind>::NEW;
//!             let mut options = __p::Options::new(__p::Action::Validate);
//!             options.timeout_seconds = 3;
//!             …
//!             __p::Vec::from([__p::Webhook::object::<__Kind, _, _>(about, options, |object, request| async move { … })…])
//!         }
//!     }
//! };
//! ```

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{
    ATTRIBUTE,
    check::{AdmissionFn, Parameters},
    options::{Action, MatchCondition, Setting},
};
use crate::{
    marker_type::{name_fragment, uniqueness_guard},
    registered_function::{Registration, alias_name, probe_imports, type_alias},
};

/// Emits the function, its type, the guard against duplicates and the implementation of `Admits`.
pub(super) fn emit(model: &AdmissionFn, item: &TokenStream) -> TokenStream {
    let registration = Registration {
        guard: duplicate_guard(model),
        items: type_alias("__Kind", &model.kind),
        types: TokenStream::new(),
        body: webhooks(model),
    };
    ATTRIBUTE.emit(&model.krate, &model.head, &registration, item)
}

/// Emits a type whose name two functions with the same action, subresources and kind share: API servers would call
/// both at the same path. rustc shows the name, so it has the code of the page.
fn duplicate_guard(model: &AdmissionFn) -> TokenStream {
    let kind = name_fragment(&model.kind);
    let subresources = model.settings.iter().filter_map(|setting| match setting {
        Setting::Subresources(names) => Some(names),
        _ => None,
    });
    let subresources: Vec<_> = subresources.flatten().map(String::as_str).collect();
    let (action, of) = (model.action.name(), subresources.join("_"));
    let of = if of.is_empty() { of } else { format!("{of}_") };
    uniqueness_guard(&format_ident!("K0109_one_{action}_{of}of_{kind}", span = model.word.span()))
}

/// Emits the body of `webhooks()`: options, and a closure that calls the function with the parameters that it has.
///
/// Local variables have the span `mixed_site`: a function that is called `options` or `object` is not hidden by them.
fn webhooks(model: &AdmissionFn) -> TokenStream {
    let (kind, text) = (alias_name("__Kind", &model.kind), model.head.text());
    let (imports, sets) = (probe_imports(), model.settings.iter().map(assignment));
    let action = Ident::new(if model.action == Action::Mutate { "Mutate" } else { "Validate" }, model.word.span());
    let about = quote!(__p::FunctionInfo::new(#text, ::core::file!(), ::core::line!()));
    let new = if model.takes == Parameters::Request { "request" } else { "object" };
    let new = format_ident!("{new}", span = model.kind.span());
    let new = quote_spanned!(model.kind.span()=> __p::Webhook::#new::<#kind, _, _>);
    let (result, local) = (call(model), Span::mixed_site());
    let call = match (model.takes, model.action) {
        (Parameters::Request, _) => quote_spanned!(local=> |request| async move { #result }),
        (_, Action::Mutate) => quote_spanned!(local=> |mut object, request| async move { #result?; __p::Ok(object) }),
        (_, Action::Validate) => quote_spanned!(local=> |object, request| async move { #result?; __p::Ok(object) }),
    };
    let mutable = (!model.settings.is_empty()).then(|| quote!(mut));
    // A function without the request can't see the stored object.
    let unused = (model.takes == Parameters::Object).then(|| quote!(.without_old_object()));
    quote_spanned! {local=>
        #imports
        let probe = __p::CrdProbe::<#kind>::NEW;
        let #mutable options = __p::Options::new(__p::Action::#action);
        #(#sets)*
        let definition = __p::Definition { crd: (&&probe).crd(), schema: (&&probe).schema() };
        __p::Vec::from([#new(#about, options, #call).with_definition(definition) #unused])
    }
}

/// Returns the assignment of a setting to a field of `options`.
fn assignment(setting: &Setting) -> TokenStream {
    let local = Span::mixed_site();
    match setting {
        Setting::Word { option, kind, value } => {
            let (kind, value) = (format_ident!("{kind}"), format_ident!("{value}"));
            quote_spanned!(local=> options.#option = __p::#kind::#value;)
        }
        Setting::Operations(operations) => {
            let variants = operations.iter().map(|operation| format_ident!("{}", operation.variant()));
            quote_spanned!(local=> options.operations = __p::Vec::from([#(__p::Operation::#variants),*]);)
        }
        Setting::Subresources(names) => {
            quote_spanned!(local=> options.subresources = __p::Vec::from([#(__p::String::from(#names)),*]);)
        }
        Setting::Timeout(seconds) => {
            let seconds = Literal::u8_unsuffixed(*seconds);
            quote_spanned!(local=> options.timeout_seconds = #seconds;)
        }
        Setting::Selector { option, selector } => {
            quote_spanned!(local=> options.#option = __p::String::from(#selector);)
        }
        Setting::MatchConditions(conditions) => {
            let pairs = conditions.iter().map(|MatchCondition { name, expression }| {
                quote!((__p::String::from(#name), __p::String::from(#expression)))
            });
            quote_spanned!(local=> options.match_conditions = __p::Vec::from([#(#pairs),*]);)
        }
    }
}

/// Emits the call of the function. It has the span of the return type, where rustc shows K0110 for a type that is not
/// an answer.
fn call(model: &AdmissionFn) -> TokenStream {
    let at = model.head.result;
    let callee = model.head.callee();
    let local = Span::mixed_site();
    let reference = if model.action == Action::Mutate { quote!(&mut) } else { quote!(&) };
    let arguments = match model.takes {
        Parameters::Object => quote_spanned!(local=> { let _request = &request; #reference object }),
        Parameters::Both => match &model.request {
            None => quote_spanned!(local=> #reference object, &request),
            Some(kind) => {
                let of = quote_spanned!(kind.span()=> __p::request_of::<__Kind, #kind>);
                quote_spanned!(local=> #reference object, #of(&request))
            }
        },
        Parameters::Request => quote_spanned!(local=> &request),
    };
    let wait = model.head.is_async.then(|| quote_spanned!(at=> .await));
    quote_spanned!(at=> __p::IntoAdmissionResult::into_result(#callee(#arguments)#wait))
}
