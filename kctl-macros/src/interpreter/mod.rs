//! `#[interpreter(op = …)]`: parse → check → emit, and recover when there are errors.

mod check;
mod emit;
mod operation;

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
            use #krate::karmada::__private_0_1 as __p;
            impl __p::Interpreter for #name {
                type Asked = __p::OnTheWire;
                fn rules() -> __p::Vec<__p::Rule> { ::core::unreachable!() }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_becomes_an_interpreter_and_stays_as_it_was_written() {
        let item = quote!(
            fn replicas(w: &Workload) -> Result<Replicas> {
                body()
            }
        );
        let text = expand(quote!(op = InterpretReplica), &item).to_string();
        assert!(text.contains(&item.to_string()), "{text}");
        assert!(text.contains("impl __p :: Interpreter for replicas"), "{text}");
    }

    #[test]
    fn after_a_mistake_the_function_and_a_type_of_its_name_are_still_there() {
        let item = quote!(
            fn replicas(w: Workload) -> Result<Replicas> {
                body()
            }
        );
        let text = expand(quote!(op = InterpretReplica), &item).to_string();
        assert!(text.contains(&item.to_string()) && text.contains("struct replicas"), "{text}");
        assert_eq!(text.matches("compile_error").count(), 1, "{text}");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let item = quote!(
            fn replicas(w: Workload) {}
        );
        let text = expand(quote!(op = InterpretReplica, nme = 1), &item).to_string();
        assert_eq!(text.matches("compile_error").count(), 3, "{text}");
    }
}
