//! After an error: the user's item stays, and a stand-in controller may do everything, so that one mistake is one diagnostic
//! and completion goes on in a function that is half typed.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{FnArg, Generics, Type};

use super::{
    check::{Mistakes, Unmarked, described_by, is_dynamic},
    parse::{Annotated, Input, Value},
};
use crate::{
    crate_path::CratePath,
    function::{Function, argument_of, referenced},
    resource::mentions,
    source,
};

pub(super) fn recover(mistakes: &Mistakes, input: &Input, item: &TokenStream) -> TokenStream {
    let errors = mistakes.errors.to_compile_error();
    let stand_in = mistakes.unmarked.as_ref().map(Unmarked::stand_in);
    let stub = match &input.item {
        // Nothing can stand beside a method but methods.
        Annotated::Function(function) if matches!(function.sig.inputs.first(), Some(FnArg::Receiver(_))) => {
            TokenStream::new()
        }
        Annotated::Function(function) => {
            let kind = first_kind(function).unwrap_or_else(any_kind);
            let (name, vis) = (&function.sig.ident, &function.vis);
            let stub = stub(name, &Generics::default(), &kind, input);
            let reconcile = reconcile(name);
            quote! {
                #[allow(non_camel_case_types, dead_code, reason = "it stands in for a controller with mistakes")]
                #vis struct #name {}
                const _: () = { #stub #reconcile };
            }
        }
        Annotated::Struct(item) => {
            let of = input.options.iter().find(|entry| entry.name == "of").and_then(|entry| entry.value.as_ref());
            let kind = match of {
                Some(Value::Kind(kind)) => meant(kind),
                _ => any_kind(),
            };
            let stub = stub(&item.ident, &item.generics, &kind, input);
            quote!(const _: () = { #stub };)
        }
        Annotated::Other(_) => TokenStream::new(),
    };
    let item = match &input.item {
        Annotated::Function(function) if mistakes.of_the_head => without_body(function, item),
        _ => item.clone(),
    };
    quote! {
        #[allow(dead_code, unused_variables, unused_imports, reason = "its controller has mistakes")]
        #item
        #stub
        #stand_in
        #errors
    }
}

/// The function without its body, which was written for another head: it would be wrong in each line. In an editor, where no
/// file can be read, it stays for completion.
fn without_body(function: &Function, item: &TokenStream) -> TokenStream {
    if source::text().is_none() {
        return item.clone();
    }
    let Function { attrs, vis, sig } = function;
    quote! {
        #[allow(unused_mut, clippy::unused_async, reason = "its head has mistakes")]
        #(#attrs)*
        #vis #sig { ::core::unreachable!() }
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
    let is_parameter = |kind: &Type| function.sig.generics.type_params().any(|of| mentions(&quote!(#kind), &of.ident));
    kinds.next().filter(|kind| matches!(kind, Type::Path(_)) && !is_parameter(kind)).map(meant)
}

/// The kind, also where its spec stands; one that is named at run time was told already.
fn meant(kind: &Type) -> TokenStream {
    if is_dynamic(kind) {
        return any_kind();
    }
    described_by(kind).map_or_else(|| kind.to_token_stream(), |(_spec, kind)| kind.to_token_stream())
}

/// The declaration of everything. What is generic gets it for all of its types that can be a controller.
fn stub(name: &Ident, generics: &Generics, kind: &TokenStream, input: &Input) -> TokenStream {
    let krate =
        CratePath(input.options.iter().find(|entry| entry.name == "krate").and_then(|entry| match &entry.value {
            Some(Value::Expr(syn::Expr::Path(path))) => Some(path.clone()),
            _ => None,
        }));
    let seal = quote!(
        const SEAL: __p::Seal = __p::Seal;
    );
    let (_, of, _) = generics.split_for_impl();
    let mut bounded = generics.clone();
    for parameter in bounded.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!('static));
        parameter.default = None;
    }
    let bounds = &bounded.where_clause;
    let parameters: Vec<_> = bounded.params.iter().collect();
    quote! {
        use #krate::__private_0_1 as __p;
        pub struct __Everything;
        impl<V, C: ?Sized, K> __p::Allows<V, C, K> for __Everything { #seal }
        impl<#(#parameters),*> __p::Controller for #name #of #bounds {
            type Primary = #kind;
            type Grant = __Everything;
            fn spec() -> __p::ControllerSpec { ::core::unreachable!() }
        }
        impl<#(#parameters),*> __p::DeclaresFinalizer for #name #of #bounds {}
        impl<#(#parameters),*> __p::HasRules for #name #of #bounds { #seal }
        impl<#(#parameters,)* __M> __p::HasRulesOn<__M> for #name #of #bounds { #seal }
        impl<#(#parameters),*> __p::WritesStatus for #name #of #bounds { #seal }
        impl<#(#parameters,)* __K> __p::Declares<__K> for #name #of #bounds { type Grant = __Everything; #seal }
        impl<#(#parameters,)* __K> __p::Writes<__K> for #name #of #bounds { type Grant = __Everything; #seal }
        impl<#(#parameters,)* __K> __p::Caches<__K> for #name #of #bounds { #seal }
        impl<#(#parameters,)* __M, __K> __p::CachesOn<__M, __K> for #name #of #bounds { #seal }
        impl<#(#parameters,)* __M, __K> __p::WritesOn<__M, __K> for #name #of #bounds { type Grant = __Everything; #seal }
        impl<#(#parameters,)* __M, __K> __p::ReadsLiveOn<__M, __K> for #name #of #bounds { #seal }
        impl<#(#parameters,)* __K> __p::ReadsLive<__K> for #name #of #bounds { #seal }
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
