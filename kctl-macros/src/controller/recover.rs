//! After an error: the user's item stays, and a stand-in controller may do everything, so that one mistake is one diagnostic
//! and completion goes on in a function that is half typed.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{Error, FnArg, Type};

use super::{
    check::described_by,
    parse::{Annotated, Input, Value},
    relation::is_dynamic,
};
use crate::function::{Function, argument_of, referenced};

pub(super) fn recover(errors: &Error, input: &Input, item: &TokenStream) -> TokenStream {
    let errors = errors.to_compile_error();
    let stub = match &input.item {
        // Nothing can stand beside a method but methods.
        Annotated::Function(function) if matches!(function.sig.inputs.first(), Some(FnArg::Receiver(_))) => {
            TokenStream::new()
        }
        Annotated::Function(function) => {
            let kind = first_kind(function).unwrap_or_else(any_kind);
            let (name, vis) = (&function.sig.ident, &function.vis);
            let stub = stub(name, &kind, input);
            let reconcile = reconcile(name);
            quote! {
                #[allow(non_camel_case_types, dead_code, reason = "it stands in for a controller with mistakes")]
                #vis struct #name {}
                const _: () = { #stub #reconcile };
            }
        }
        Annotated::Struct(item) if item.generics.params.is_empty() => {
            let of = input.options.iter().find(|entry| entry.name == "of").and_then(|entry| entry.value.as_ref());
            let kind = match of {
                Some(Value::Kind(kind)) => meant(kind),
                _ => any_kind(),
            };
            let stub = stub(&item.ident, &kind, input);
            quote!(const _: () = { #stub };)
        }
        _ => TokenStream::new(),
    };
    quote! {
        #[allow(dead_code, unused_variables, unused_imports, reason = "its controller has mistakes")]
        #item
        #stub
        #errors
    }
}

/// A kind where none is named.
fn any_kind() -> TokenStream {
    quote!(__p::k8s_openapi::api::core::v1::ConfigMap)
}

/// The kind of the first parameter that is no context, as far as it can be seen.
fn first_kind(function: &Function) -> Option<TokenStream> {
    let types = function.sig.inputs.iter().filter_map(|argument| match argument {
        FnArg::Typed(argument) => Some(&*argument.ty),
        FnArg::Receiver(_) => None,
    });
    // The context in the first place says nothing about the kind.
    let mut kinds = types.map(referenced).filter(|ty| argument_of(ty, "Context").is_none());
    kinds.next().filter(|kind| matches!(kind, Type::Path(_))).map(meant)
}

/// The kind, also where its spec stands; one that is named at run time was told already.
fn meant(kind: &Type) -> TokenStream {
    if is_dynamic(kind) {
        return any_kind();
    }
    described_by(kind).map_or_else(|| kind.to_token_stream(), |(_spec, kind)| kind.to_token_stream())
}

fn stub(name: &Ident, kind: &TokenStream, input: &Input) -> TokenStream {
    let krate = input.options.iter().find(|entry| entry.name == "krate").and_then(|entry| match &entry.value {
        Some(Value::Expr(path @ syn::Expr::Path(_))) => Some(path.to_token_stream()),
        _ => None,
    });
    let krate = krate.unwrap_or_else(|| quote!(::kctl));
    let seal = quote!(
        const SEAL: __p::Seal = __p::Seal;
    );
    quote! {
        use #krate::__private as __p;
        pub struct __Everything;
        impl<V, C: ?Sized, K> __p::Allows<V, C, K> for __Everything { #seal }
        impl __p::Controller for #name {
            type Primary = #kind;
            type Grant = __Everything;
            fn spec() -> __p::ControllerSpec { ::core::unreachable!() }
        }
        impl __p::DeclaresFinalizer for #name {}
        impl __p::HasRules for #name { #seal }
        impl<M> __p::HasRulesOn<M> for #name { #seal }
        impl __p::WritesStatus for #name { #seal }
        impl<K> __p::Declares<K> for #name { type Grant = __Everything; #seal }
        impl<K> __p::Writes<K> for #name { type Grant = __Everything; #seal }
        impl<K> __p::Caches<K> for #name { #seal }
        impl<M, K> __p::CachesOn<M, K> for #name { #seal }
        impl<M, K> __p::WritesOn<M, K> for #name { type Grant = __Everything; #seal }
        impl<M, K> __p::ReadsLiveOn<M, K> for #name { #seal }
        impl<K> __p::ReadsLive<K> for #name { #seal }
    }
}

fn reconcile(name: &Ident) -> TokenStream {
    quote! {
        impl __p::Reconcile for #name {
            async fn reconcile(
                &self,
                _object: __p::Arc<<Self as __p::Controller>::Primary>,
                _cx: __p::Context<Self>,
            ) -> __p::Result<__p::Action> {
                ::core::unreachable!()
            }
        }
        impl __p::FunctionController for #name {
            fn instance() -> Self { Self {} }
        }
    }
}
