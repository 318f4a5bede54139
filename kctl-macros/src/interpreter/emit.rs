//! `Model` → tokens: one function for each emitted item; nothing can fail here.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{
    check::Model,
    operation::{Operation, Shape},
};
use crate::marker_type::{in_a_name, marker, only_one};

pub(super) fn emit(model: &Model, item: &TokenStream) -> TokenStream {
    let (marker, one) = (marker(&model.docs, &model.vis, &model.name), one_for_each_kind(model));
    let (krate, name) = (&model.krate, &model.name);
    let (alias, kind) = (alias(model), &model.kind);
    let kind = quote_spanned!(kind.span()=> type #alias = #kind;);
    let rules = rules(model);
    let asked = Ident::new(if model.operation.is_served { "OnTheWire" } else { "InProcess" }, name.span());
    let has_status = model.operation.needs_status.then(|| has_status(model));
    quote! {
        #[allow(
            clippy::unnecessary_wraps,
            clippy::unused_async,
            reason = "an interpreter may fail and wait, whether it does or not"
        )]
        #item
        #marker
        #one
        const _: () = {
            use #krate::karmada::__private_0_1 as __p;
            #kind
            #has_status
            impl __p::Interpreter for #name {
                type Asked = __p::#asked;
                fn rules() -> __p::Vec<__p::Rule> { #rules }
            }
        };
    }
}

/// The kind, with the place where the user names it.
fn alias(model: &Model) -> Ident {
    format_ident!("__Kind", span = model.kind.span())
}

/// A name that two functions for the same operation and kind would both take: the compiler refuses the second one.
fn one_for_each_kind(model: &Model) -> TokenStream {
    let kind = in_a_name(&model.kind);
    only_one(&format_ident!("{}_of_{kind}", model.operation.name, span = model.word.span()))
}

fn has_status(model: &Model) -> TokenStream {
    let kind = alias(model);
    let check = quote_spanned!(model.kind.span()=> has_status::<#kind, _>(););
    quote! {
        const _: fn() = || {
            fn has_status<K: __p::HasStatus<From>, From>() {}
            #check
        };
    }
}

fn rules(model: &Model) -> TokenStream {
    let kind = alias(model);
    let Operation { name: operation, shape, .. } = *model.operation;
    let (operation, text) = (format_ident!("{operation}"), model.name.to_string());
    let about = quote!(__p::About::new(__p::Operation::#operation, #text, ::core::file!(), ::core::line!()));
    let new = match shape {
        Shape::Read => "read",
        Shape::Change => "change",
        Shape::Revise => "revise",
        Shape::Retain => "retain",
        Shape::Aggregate => "aggregate",
    };
    let new = format_ident!("{new}", span = model.kind.span());
    let new = quote_spanned!(model.kind.span()=> __p::Rule::#new::<#kind, _, _>);
    let new = match &model.item {
        Some(item) => quote_spanned!(item.span()=> __p::Rule::aggregate::<#kind, #item, _, _>),
        None => new,
    };
    let answer = answer(model);
    let call = match shape {
        Shape::Read => quote!(|object| async move { #answer }),
        Shape::Change => quote!(|mut object| async move { #answer?; __p::Ok(object) }),
        _ => quote!(|mut object, second| async move { #answer?; __p::Ok(object) }),
    };
    quote! {{
        #[allow(unused_imports, reason = "which one is used depends on the kind")]
        use __p::{HasCrd as _, HasSchema as _, NoCrd as _};
        let probe = __p::CrdProbe::<#kind>::NEW;
        __p::Vec::from([#new(#about, #call).defined((&&probe).crd(), (&&probe).schema())])
    }}
}

/// Calls the function and makes its answer JSON. Its types are checked where the user wrote them.
fn answer(model: &Model) -> TokenStream {
    let at = model.result;
    let callee = Ident::new(&model.name.to_string(), at);
    let arguments = match model.operation.shape {
        Shape::Read => quote!(&object),
        Shape::Change => quote!(&mut object),
        Shape::Revise => quote!(&mut object, second),
        Shape::Retain | Shape::Aggregate => quote!(&mut object, &second),
    };
    let wait = model.is_async.then(|| quote!(.await));
    let fallible = model.is_fallible.then(|| quote_spanned!(at=> .map_err(__p::failed)?));
    let is = Ident::new(model.operation.answer, at);
    quote_spanned!(at=> __p::#is::answer(#callee(#arguments)#wait #fallible))
}
