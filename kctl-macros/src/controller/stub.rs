//! The code after an error: the user's item, a stub controller, and the errors.
//!
//! The stub may do everything. Without it no permission would be declared, so each use of the `Context` would be one
//! more error. With it, one mistake is one error, and completion works in a function that is half typed. Its trait
//! implementations are generic over every kind, so that no verb needs to be named.
//!
//! | item | emitted |
//! |---|---|
//! | a function | the function, a struct of its name, and both implementations; without its body if the signature is wrong |
//! | a method or an associated function | the function alone: an `impl` contains nothing else |
//! | a struct | the struct and its `impl Controller`; the user has `impl Reconcile` |
//! | an `impl Reconcile` | the block and the `impl Controller` of its struct |
//! | any other item | the item |

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{FnArg, Generics, ImplItem, ItemImpl, Type};

use super::{
    check::{CheckErrors, is_dynamic, kind_of_alias, kind_of_spec, kind_of_struct},
    parse::{AnnotatedItem, Input, Value},
};
use crate::{
    crate_path::CratePath,
    function::{Function, generic_argument, strip_any_pointer, strip_pointers},
    resource::contains_word,
    source_file,
};

/// Emits the item, the stub and the errors. The body of a function with a wrong signature is left out, because it was
/// written for another signature and would be wrong in each line.
pub(super) fn recover(mistakes: &CheckErrors, input: &Input, item: &TokenStream) -> TokenStream {
    let errors = mistakes.errors.to_compile_error();
    let kind_stub = mistakes.missing_resource.as_ref().map(|kind| kind.stub(&crate_path(input)));
    let stub = match &input.item {
        // An `impl` can contain only methods, so a stub type can't be emitted there.
        AnnotatedItem::Function(function) if function.is_method() => TokenStream::new(),
        AnnotatedItem::Function(function) => {
            let kind = first_kind(function).unwrap_or_else(placeholder_kind);
            let (name, vis) = (&function.sig.ident, &function.vis);
            let stub = stub(name, &Generics::default(), &kind, input);
            let reconcile = reconcile(name);
            quote! {
                #[allow(non_camel_case_types, dead_code, reason = "it stands in for a controller with mistakes")]
                #vis struct #name {}
                const _: () = { #stub #reconcile };
            }
        }
        AnnotatedItem::Struct(item) => {
            let kind = kind_of_struct(&input.options).as_ref().map_or_else(placeholder_kind, kind_or_kind_of_spec);
            let stub = stub(&item.ident, &item.generics, &kind, input);
            quote!(const _: () = { #stub };)
        }
        AnnotatedItem::Other(tokens) => stub_of_impl(tokens, input).unwrap_or_default(),
    };
    let item = match &input.item {
        AnnotatedItem::Function(function) if mistakes.is_signature_wrong => with_unreachable_body(function, item),
        _ => item.clone(),
    };
    quote! {
        #[allow(dead_code, unused_variables, unused_imports, reason = "its controller has mistakes")]
        #item
        #stub
        #kind_stub
        #errors
    }
}

/// Emits the stub of a struct without the attribute, which is on its `impl Reconcile`. Without the stub, rustc would
/// report at each method that the struct is not a controller.
fn stub_of_impl(item: &TokenStream, input: &Input) -> Option<TokenStream> {
    let block: ItemImpl = syn::parse2(item.clone()).ok()?;
    let (implemented, _) = block.trait_.as_ref()?;
    implemented.segments.last().filter(|last| last.ident == "Reconcile")?;
    let Type::Path(of) = &*block.self_ty else { return None };
    let name = of.path.get_ident()?;
    if source_file::read().is_none_or(|text| source_file::is_controller(&text, name)) {
        return None;
    }
    let mut parameters = block.items.iter().flat_map(|item| match item {
        ImplItem::Fn(function) => function.sig.inputs.iter().collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let kind = parameters.find_map(|parameter| match parameter {
        FnArg::Typed(typed) => generic_argument(&typed.ty, "Arc"),
        FnArg::Receiver(_) => None,
    });
    let kind = kind.map_or_else(placeholder_kind, kind_or_kind_of_spec);
    let stub = stub(name, &Generics::default(), &kind, input);
    Some(quote!(const _: () = { #stub };))
}

/// Returns the function with `unreachable!()` as its body. In an editor, where no file can be read, the body is kept
/// for completion. A method gets no type of its name, so its `Context<name>` becomes a type that exists.
fn with_unreachable_body(function: &Function, item: &TokenStream) -> TokenStream {
    if source_file::read().is_none() {
        return item.clone();
    }
    let Function { attrs, vis, sig } = function;
    let (mut sig, is_method) = (sig.clone(), function.is_method());
    for input in sig.inputs.iter_mut().filter(|_| is_method) {
        if let FnArg::Typed(typed) = input
            && contains_word(&typed.ty.to_token_stream(), &function.sig.ident)
        {
            *typed.ty = syn::parse_quote!(());
        }
    }
    quote! {
        #[allow(unused_mut, clippy::unused_async, reason = "its head has mistakes")]
        #(#attrs)*
        #vis #sig { ::core::unreachable!() }
    }
}

/// Returns the kind of a stub whose real kind is unknown.
fn placeholder_kind() -> TokenStream {
    quote!(__p::k8s_openapi::api::core::v1::ConfigMap)
}

/// Returns the kind of the first parameter that is not a `Context`. `None` for a type parameter, which does not exist
/// outside of the function, and for a type that is not a path.
fn first_kind(function: &Function) -> Option<TokenStream> {
    // A `Context` as the first parameter does not show the kind.
    let is_context = |ty: &Type| generic_argument(strip_pointers(ty), "Context").is_some();
    let mut kinds = function.parameter_types().filter(|ty| !is_context(ty)).map(strip_any_pointer);
    let is_parameter =
        |kind: &Type| function.sig.generics.type_params().any(|of| contains_word(&quote!(#kind), &of.ident));
    kinds.next().filter(|kind| matches!(kind, Type::Path(_)) && !is_parameter(kind)).map(kind_or_kind_of_spec)
}

/// Returns the kind, or the kind whose spec or alias was named. The mistake was reported; with the right kind, the function's
/// body compiles.
fn kind_or_kind_of_spec(kind: &Type) -> TokenStream {
    if is_dynamic(kind) {
        return placeholder_kind();
    }
    if let Some((_spec, kind)) = kind_of_spec(kind) {
        return kind.to_token_stream();
    }
    kind_of_alias(kind).as_ref().unwrap_or(kind).to_token_stream()
}

/// Emits implementations of the permission traits for every kind. A generic struct gets them for all of its types
/// that can be a controller.
fn stub(name: &Ident, generics: &Generics, kind: &TokenStream, input: &Input) -> TokenStream {
    let krate = crate_path(input);
    let seal = quote!(
        const SEAL: __p::Seal = __p::Seal;
    );
    let (_, of, _) = generics.split_for_impl();
    let mut bounded = generics.clone();
    for lifetime in bounded.lifetimes_mut() {
        lifetime.bounds.push(syn::parse_quote!('static));
    }
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
            type Verbs = __Everything;
            fn spec() -> __p::ControllerSpec { ::core::unreachable!() }
        }
        impl<#(#parameters),*> __p::DeclaresFinalizer for #name #of #bounds {}
        impl<#(#parameters),*> __p::HasRules for #name #of #bounds { #seal }
        impl<#(#parameters,)* __M> __p::HasRulesOn<__M> for #name #of #bounds { #seal }
        impl<#(#parameters),*> __p::WritesStatus for #name #of #bounds { #seal }
        impl<#(#parameters,)* __K> __p::Declares<__K> for #name #of #bounds { type Verbs = __Everything; #seal }
        impl<#(#parameters,)* __K> __p::Writes<__K> for #name #of #bounds { type Verbs = __Everything; #seal }
        impl<#(#parameters,)* __K> __p::Caches<__K> for #name #of #bounds { #seal }
        impl<#(#parameters,)* __M, __K> __p::CachesOn<__M, __K> for #name #of #bounds { #seal }
        impl<#(#parameters,)* __M, __K> __p::WritesOn<__M, __K> for #name #of #bounds { type Verbs = __Everything; #seal }
        impl<#(#parameters,)* __M, __K> __p::ReadsLiveOn<__M, __K> for #name #of #bounds { #seal }
        impl<#(#parameters,)* __K> __p::ReadsLive<__K> for #name #of #bounds { #seal }
    }
}

/// Returns the path of the option `crate`.
fn crate_path(input: &Input) -> CratePath {
    CratePath(input.options.iter().find(|entry| entry.name == "crate").and_then(|entry| match &entry.value {
        Some(Value::Expr(syn::Expr::Path(path))) => Some(path.clone()),
        _ => None,
    }))
}

/// Emits `impl Reconcile` for the stub of a function.
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
