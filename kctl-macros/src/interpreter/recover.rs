//! After an error: the user's item stays, and a stand-in of the function's name can be registered, so that one mistake is
//! one diagnostic and completion goes on in a function that is half typed.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, Expr};

use super::parse::Input;

pub(super) fn recover(errors: &Error, input: &Input, item: &TokenStream) -> TokenStream {
    let errors = errors.to_compile_error();
    let stub = input.function.as_ref().map(|function| {
        let (name, vis) = (&function.sig.ident, &function.vis);
        let krate = input.options.iter().find(|entry| entry.name == "krate").and_then(|entry| match &entry.value {
            Some(path @ Expr::Path(_)) => Some(path.to_token_stream()),
            _ => None,
        });
        let krate = krate.unwrap_or_else(|| quote!(::kctl));
        quote! {
            #[allow(non_camel_case_types, dead_code, reason = "it stands in for an interpreter with mistakes")]
            #vis struct #name {}
            const _: () = {
                use #krate::interpreter::__private as __p;
                impl __p::Interpreter for #name {
                    type Asked = __p::OnTheWire;
                    fn rules() -> __p::Vec<__p::Rule> { ::core::unreachable!() }
                }
            };
        }
    });
    quote! {
        #[allow(dead_code, unused_variables, unused_imports, reason = "its interpreter has mistakes")]
        #item
        #stub
        #errors
    }
}
