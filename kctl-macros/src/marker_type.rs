//! The struct that has the name of an annotated function, and the stand-in for it after an error.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, Error, FnArg, Ident, Type, Visibility};

use crate::function::Function;

/// The type lives in the type namespace only, so the function stays callable. It stands where the function does: where it is
/// private, rustc shows the function that needs a `pub`.
pub(crate) fn marker(docs: &[Attribute], vis: &Visibility, name: &Ident) -> TokenStream {
    let item = quote_spanned!(name.span()=> struct #name {});
    quote! {
        #(#docs)*
        #[allow(non_camel_case_types, reason = "it has the name of its function")]
        #vis #item
    }
}

/// A kind as a part of a name: two functions that need the same name are refused by the compiler.
pub(crate) fn in_a_name(kind: &Type) -> String {
    let text = crate::function::text_of(kind).replace("::", "_");
    text.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// A type of which there can be one in a module.
pub(crate) fn only_one(name: &Ident) -> TokenStream {
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code, reason = "only its name counts: there is one function for it")]
        enum #name {}
    }
}

/// After an error: the user's item stays, and a stand-in of the function's name can be registered, so that one mistake is one
/// diagnostic and completion goes on in a function that is half typed. `declares` is what is said of the stand-in.
pub(crate) fn recover(
    errors: &Error,
    function: Option<&Function>,
    item: &TokenStream,
    declares: impl FnOnce(&Ident) -> TokenStream,
) -> TokenStream {
    let errors = errors.to_compile_error();
    // Nothing can stand beside a method but methods.
    let function = function.filter(|function| !matches!(function.sig.inputs.first(), Some(FnArg::Receiver(_))));
    let stub = function.map(|function| {
        let (name, vis) = (&function.sig.ident, &function.vis);
        let declares = declares(name);
        quote! {
            #[allow(non_camel_case_types, dead_code, reason = "it stands in for a function with mistakes")]
            #vis struct #name {}
            const _: () = { #declares };
        }
    });
    quote! {
        #[allow(dead_code, unused_variables, unused_imports, reason = "its attribute has mistakes")]
        #item
        #stub
        #errors
    }
}
