//! `InterpreterFn` → tokens: one function for each emitted item; nothing can fail here.
//!
//! ```text
//! #[interpreter(op = InterpretReplica)]
//! fn replicas(workload: &Workload) -> Result<Replicas> { … }
//! ```
//!
//! becomes the function itself, and in addition
//!
//! ```text
//! struct replicas {}
//! enum K0070_one_InterpretReplica_of_Workload {}    // a second one in the module is E0428
//! const _: () = {
//!     use ::kctl::karmada::__private_0_1 as __p;
//!     type __Kind = Workload;
//!     impl __p::Interpreter for replicas {
//!         type Transport = __p::OnTheWire;
//!         fn rules() -> __p::Vec<__p::Rule> {
//!             let about = __p::FunctionInfo::new(__p::Operation::InterpretReplica, "replicas", file!(), line!());
//!             __p::Vec::from([__p::Rule::read::<__Kind, _, _>(about, |object| async move {
//!                 __p::IntoReplicas::into_result(replicas(&object).map_err(__p::failed)?)
//!             })…])
//!         }
//!     }
//! };
//! ```

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{
    ATTRIBUTE,
    check::InterpreterFn,
    operation::{Operation, Shape},
};
use crate::{
    marker_type::{name_fragment, uniqueness_guard},
    registered_function::{Registration, alias_name, probe_imports, type_alias},
};

/// Emits the function, its type, the guard against duplicates and the implementation of `Interpreter`.
pub(super) fn emit(model: &InterpreterFn, item: &TokenStream) -> TokenStream {
    let (kind, has_status) = (type_alias("__Kind", &model.kind), has_status(model));
    let transport = if model.operation.is_served { "OnTheWire" } else { "InProcess" };
    let transport = Ident::new(transport, model.head.name.span());
    let registration = Registration {
        guard: duplicate_guard(model),
        items: quote!(#kind #has_status),
        types: quote!(type Transport = __p::#transport;),
        body: rules(model),
    };
    ATTRIBUTE.emit(&model.krate, &model.head, &registration, item)
}

/// Emits a type whose name is the same for two functions of one operation and kind. rustc shows the name, so it has the
/// code of the page.
fn duplicate_guard(model: &InterpreterFn) -> TokenStream {
    let kind = name_fragment(&model.kind);
    uniqueness_guard(&format_ident!("K0070_one_{}_of_{kind}", model.operation.name, span = model.word.span()))
}

/// Emits a check that the kind has a status, for the operations about it. It is never called; rustc reports K0032 at
/// the user's type.
fn has_status(model: &InterpreterFn) -> Option<TokenStream> {
    let kind = alias_name("__Kind", &model.kind);
    let check = quote_spanned!(model.kind.span()=> has_status::<#kind, _>(););
    model.operation.needs_status.then(|| {
        quote! {
            const _: fn() = || {
                fn has_status<K: __p::HasStatus<From>, From>() {}
                #check
            };
        }
    })
}

/// Emits the body of `rules()`: the constructor of the operation's shape with a closure. A closure that gets the
/// object by `&mut` returns it, because the result of such an operation is the changed object.
///
/// Local variables have the span `mixed_site`: a function that is called `object` or `second` is not hidden by them.
fn rules(model: &InterpreterFn) -> TokenStream {
    let (kind, imports) = (alias_name("__Kind", &model.kind), probe_imports());
    let Operation { name: operation, shape, .. } = *model.operation;
    let (operation, text) = (format_ident!("{operation}"), model.head.text());
    let about = quote!(__p::FunctionInfo::new(__p::Operation::#operation, #text, ::core::file!(), ::core::line!()));
    let new = match shape {
        Shape::Read => "read",
        Shape::Change => "change",
        Shape::Revise => "revise",
        Shape::Retain => "retain",
        Shape::Aggregate => "aggregate",
    };
    let new = format_ident!("{new}", span = model.kind.span());
    let new = quote_spanned!(model.kind.span()=> __p::Rule::#new::<#kind, _, _>);
    let new = match (shape, &model.second) {
        (Shape::Aggregate, Some(item)) => quote_spanned!(item.span()=> __p::Rule::aggregate::<#kind, #item, _, _>),
        _ => new,
    };
    let (result, local) = (call(model), Span::mixed_site());
    let call = match shape {
        Shape::Read => quote_spanned!(local=> |object| async move { #result }),
        Shape::Change => quote_spanned!(local=> |mut object| async move { #result?; __p::Ok(object) }),
        _ => quote_spanned!(local=> |mut object, second| async move { #result?; __p::Ok(object) }),
    };
    quote_spanned! {local=>
        #imports
        let probe = __p::CrdProbe::<#kind>::NEW;
        __p::Vec::from([#new(#about, #call).with_definition((&&probe).crd(), (&&probe).schema())])
    }
}

/// Emits the call of the function. `IntoReplicas::into_result` and its siblings turn the result into JSON. The call has
/// the span of the return type, where rustc shows K0058 for a wrong return type.
fn call(model: &InterpreterFn) -> TokenStream {
    let (at, local) = (model.head.result, Span::mixed_site());
    let callee = model.head.callee();
    let arguments = match model.operation.shape {
        Shape::Read => quote_spanned!(local=> &object),
        Shape::Change => quote_spanned!(local=> &mut object),
        Shape::Revise => quote_spanned!(local=> &mut object, second),
        Shape::Retain | Shape::Aggregate => match &model.second {
            Some(kind) if model.operation.shape == Shape::Retain => {
                let observed = quote_spanned!(kind.span()=> __p::observed_object::<__Kind, #kind>);
                quote_spanned!(local=> &mut object, #observed(&second))
            }
            _ => quote_spanned!(local=> &mut object, &second),
        },
    };
    let wait = model.head.is_async.then(|| quote_spanned!(at=> .await));
    let fallible = model.is_fallible.then(|| quote_spanned!(at=> .map_err(__p::failed)?));
    let into = Ident::new(model.operation.return_trait, at);
    quote_spanned!(at=> __p::#into::into_result(#callee(#arguments)#wait #fallible))
}
