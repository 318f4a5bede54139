//! The struct with the name of an annotated function, and its stub after an error.
//!
//! `App::admission::<rules>()` takes a type, and users write a function. A function lives in the value namespace and
//! a struct with braces in the type namespace, so both can be called `rules`:
//!
//! ```text
//! fn rules(object: &Deployment) -> Result<()> { … }
//! struct rules {}
//! ```
//!
//! A struct declared as `struct rules;` would be in both namespaces and collide with the function.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, Error, Ident, Type, Visibility};

use crate::function::Function;

/// Emits the struct of a function, with the function's docs and visibility.
///
/// It has the span of the function's name: if the function is private, rustc shows the function that needs a `pub`.
/// Lints take it for the user's code for the same reason. Those that no user could satisfy are silenced.
pub(crate) fn name_type(docs: &[Attribute], vis: &Visibility, name: &Ident) -> TokenStream {
    let item = quote_spanned!(name.span()=> struct #name {});
    quote! {
        #(#docs)*
        #[allow(missing_copy_implementations, missing_debug_implementations, reason = "a name")]
        #[allow(non_camel_case_types, reason = "it has the name of its function")]
        #[allow(clippy::empty_structs_with_brackets, reason = "the function is the value")]
        #vis #item
    }
}

/// Returns a kind as a part of an identifier: `v1::Pod` is `v1_Pod`. Every other character becomes an underscore, so
/// that two spellings of one kind, such as `Pod` and `v1::Pod`, are two names. The runtime finds those duplicates
/// when the app starts.
pub(crate) fn name_fragment(kind: &Type) -> String {
    let text = crate::function::compact_text(kind).replace("::", "_");
    text.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// Emits a type that can exist once in a module. Two functions that must not be in one app get the same name here,
/// and rustc reports `E0428` at the second one.
pub(crate) fn uniqueness_guard(name: &Ident) -> TokenStream {
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code, reason = "only its name counts: there is one function for it")]
        enum #name {}
    }
}

/// Emits the user's item, a stub with the function's name, and the errors.
///
/// The stub can be registered, so that one mistake is one error, and completion works in a function that is half typed.
/// `impls` returns its trait implementations, whose bodies are `unreachable!()`: the errors fail the build, so nothing
/// calls them.
///
/// A method gets no stub, because an `impl` contains nothing but methods. An item that is not a function has no name
/// that a stub could take.
pub(crate) fn recover(
    errors: &Error,
    function: Option<&Function>,
    item: &TokenStream,
    impls: impl FnOnce(&Ident) -> TokenStream,
) -> TokenStream {
    let errors = errors.to_compile_error();
    // An `impl` can contain only methods, so a stub type can't be emitted there.
    let function = function.filter(|function| !function.is_method());
    let stub = function.map(|function| {
        let (name, vis) = (&function.sig.ident, &function.vis);
        let impls = impls(name);
        quote! {
            #[allow(non_camel_case_types, dead_code, reason = "it stands in for a function with mistakes")]
            #vis struct #name {}
            const _: () = { #impls };
        }
    });
    quote! {
        #[allow(dead_code, unused_variables, unused_imports, reason = "its attribute has mistakes")]
        #item
        #stub
        #errors
    }
}
