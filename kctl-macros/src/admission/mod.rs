//! `#[admission(validate)]` and `#[admission(mutate)]`: parse → check → emit, and recover when there are errors.

mod check;
mod emit;
mod options;

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    attribute::{self, Input},
    diagnostics::Errors,
    marker_type,
};

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let input = attribute::parse(options, item);
    match check::check(&input) {
        Ok(model) => emit::emit(&model, item),
        Err(errors) => recover(&errors, &input, item),
    }
}

fn recover(errors: &syn::Error, input: &Input, item: &TokenStream) -> TokenStream {
    let krate = input.krate(&mut Errors::default());
    marker_type::recover(errors, input.function.as_ref(), item, |name| {
        quote! {
            use #krate::admission::__private_0_1 as __p;
            impl __p::Admits for #name {
                fn rules() -> __p::Vec<__p::Rule> { ::core::unreachable!() }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_admits_and_stays_as_it_was_written() {
        let item = quote!(
            fn rules(w: &Workload) -> Result<()> {
                body()
            }
        );
        let text = expand(quote!(validate, operations(create, delete), timeout = 3), &item).to_string();
        assert!(text.contains(&item.to_string()), "{text}");
        assert!(text.contains("impl __p :: Admits for rules"), "{text}");
        assert!(text.contains("timeout_seconds = 3"), "{text}");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let item = quote!(
            fn rules(w: Workload) -> Result<()> {
                body()
            }
        );
        let text = expand(quote!(validate, timeout = 31, nme = 1), &item).to_string();
        assert_eq!(text.matches("compile_error").count(), 3, "{text}");
        assert!(text.contains("struct rules"), "{text}");
    }
}
