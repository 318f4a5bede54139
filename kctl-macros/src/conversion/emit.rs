//! `ConversionFn` → tokens: one function for each emitted item; nothing can fail here.
//!
//! ```text
//! #[conversion]
//! fn up(old: v1alpha1::Web) -> Result<v1::Web> { … }
//! ```
//!
//! becomes the function itself, and beside it
//!
//! ```text
//! struct up {}
//! const _: () = {
//!     use ::kctl::conversion::__private_0_1 as __p;
//!     type __From = v1alpha1::Web;
//!     type __To = v1::Web;
//!     impl __p::Converts for up {
//!         fn rules() -> __p::Vec<__p::Rule> {
//!             let (from, to) = (__p::CrdProbe::<__From>::NEW, __p::CrdProbe::<__To>::NEW);
//!             let about = __p::About::new("up", file!(), line!());
//!             …
//!             __p::Vec::from([__p::Rule::new::<__From, __To, _, _>(about, |object| async move { … }).defined(from, to)])
//!         }
//!     }
//! };
//! ```
//!
//! `CrdProbe` returns the CRD of a type that has one, and nothing for a built-in kind. Rust has no specialization, so
//! it uses method resolution by reference: `(&&probe).crd()` finds the trait for types with a CRD first.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::check::ConversionFn;
use crate::{function::Head, marker_type};

/// Emits the function, its type and the implementation of `Converts`.
pub(super) fn emit(model: &ConversionFn, item: &TokenStream) -> TokenStream {
    let ConversionFn { head: Head { name, vis, docs, .. }, krate, from, to, .. } = model;
    let (marker, rule) = (marker_type::marker(docs, vis, name), rule(model));
    let (taken, made) = (alias("__From", from), alias("__To", to));
    let from = quote_spanned!(from.span()=> type #taken = #from;);
    let to = quote_spanned!(to.span()=> type #made = #to;);
    quote! {
        #[allow(
            clippy::unnecessary_wraps,
            clippy::unused_async,
            reason = "a conversion may fail and wait, whether it does or not"
        )]
        #item
        #marker
        const _: () = {
            use #krate::conversion::__private_0_1 as __p;
            #from
            #to
            impl __p::Converts for #name {
                fn rules() -> __p::Vec<__p::Rule> { #rule }
            }
        };
    }
}

/// Returns the name of a type alias with the span of the type: an error about the alias is shown at the type that the
/// user wrote.
fn alias(name: &str, ty: &syn::Type) -> Ident {
    format_ident!("{name}", span = ty.span())
}

/// Emits the body of `rules()`. The call has the span of the return type, so that rustc shows a wrong type there. A
/// function without `Result` is wrapped in `Ok`.
fn rule(model: &ConversionFn) -> TokenStream {
    let (from, to) = (alias("__From", &model.from), alias("__To", &model.to));
    let (text, callee) = (model.head.text(), model.head.callee());
    let wait = model.head.is_async.then(|| quote!(.await));
    // The span of the call: in a function of `macro_rules`, a name with another span would be another variable.
    let object = Ident::new("object", model.head.result);
    let call = quote_spanned!(model.head.result=> #callee(#object)#wait);
    let call = if model.is_fallible { quote!(#call.map_err(__p::failed)) } else { quote!(__p::Ok(#call)) };
    let new = quote_spanned!(model.from.span()=> __p::Rule::new::<#from, #to, _, _>);
    quote! {
        #[allow(unused_imports, reason = "which one is used depends on the kind")]
        use __p::{HasCrd as _, HasSchema as _, NoCrd as _};
        let (from, to) = (__p::CrdProbe::<#from>::NEW, __p::CrdProbe::<#to>::NEW);
        let about = __p::About::new(#text, ::core::file!(), ::core::line!());
        let from = __p::Definition { crd: (&&from).crd(), schema: (&&from).schema() };
        let to = __p::Definition { crd: (&&to).crd(), schema: (&&to).schema() };
        __p::Vec::from([#new(about, |#object| async move { #call }).defined(from, to)])
    }
}
