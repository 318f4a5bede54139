//! `#[conversion]`: check → emit, and recover when there are errors.
//!
//! The attribute has no options but `crate`: the two versions are the types of the parameter and the result. `emit`
//! shows the generated code.

mod check;
mod emit;

use proc_macro2::TokenStream;

use crate::{codes, diagnostics::Errors, function::Function, registered_function::FunctionAttribute};

/// Names and messages of this attribute.
const ATTRIBUTE: FunctionAttribute = FunctionAttribute {
    name: "#[conversion]",
    subject: "a conversion",
    signature: "fn name(old: v1alpha1::Kind) -> Result<v1::Kind>",
    misplaced: codes::NOT_ON_A_CONVERSION,
    generic: codes::GENERIC_FUNCTION,
    generic_reason: "it is between two versions",
    generic_help: "name both",
    module: "conversion",
    implements: "Converts",
    method: "rules",
    registers: "Rule",
};

/// Expands `#[conversion]` on a function.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let function = syn::parse2::<Function>(item.clone()).ok();
    match check::check(options.clone(), function.as_ref(), item) {
        Ok(model) => emit::emit(&model, item),
        Err(errors) => {
            let krate = check::krate(options, &mut Errors::default());
            ATTRIBUTE.recover(&errors, &krate, function.as_ref(), &TokenStream::new(), item)
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;
    use crate::golden::Expander;

    #[test]
    fn conversion_expands_as_recorded() {
        Expander { attribute: "conversion", expand }.check("conversion");
    }

    #[test]
    fn function_becomes_a_conversion_and_remains_callable() {
        let item = quote!(
            fn up(old: v1alpha1::Web) -> Result<v1::Web> {
                body()
            }
        );
        let text = expand(TokenStream::new(), &item).to_string();
        assert!(text.contains(&item.to_string()) && text.contains("impl __p :: Converts for up"), "{text}");
    }

    #[test]
    fn mistake_keeps_the_function_and_its_type() {
        let item = quote!(
            fn up(old: &v1alpha1::Web) {
                body()
            }
        );
        let text = expand(quote!(hub), &item).to_string();
        assert!(text.contains(&item.to_string()) && text.contains("struct up"), "{text}");
        assert_eq!(text.matches("compile_error").count(), 3, "{text}");
    }
}
