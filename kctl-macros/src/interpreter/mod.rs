//! `#[interpreter(op = …)]`: parse → check → emit, and recover when there are errors.
//!
//! A function answers one operation of Karmada's resource interpreter for one kind. `operation` has a table of the
//! operations: the signature that each one needs, and the trait of its return type.

mod check;
mod emit;
mod operation;

use proc_macro2::TokenStream;
use quote::quote;

use crate::{attribute, codes, diagnostics::Errors, registered_function::FunctionAttribute};

/// Names and messages of this attribute.
const ATTRIBUTE: FunctionAttribute = FunctionAttribute {
    name: "#[interpreter]",
    subject: "an interpreter",
    signature: "fn name(object: &Kind) -> Result<…>",
    misplaced: codes::NOT_ON_AN_INTERPRETER,
    generic: codes::GENERIC_INTERPRETER,
    generic_reason: "it is for one kind",
    generic_help: "name the kind",
    module: "karmada",
    implements: "Interpreter",
    method: "rules",
    registers: "Rule",
};

/// Expands `#[interpreter(…)]` on a function. After an error, the stub is served by a webhook, as most operations
/// are; the error fails the build anyway.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let input = attribute::parse(options, item);
    match check::check(&input) {
        Ok(model) => emit::emit(&model, item),
        Err(errors) => {
            let krate = input.krate(&mut Errors::default());
            let transport = quote!(
                type Transport = __p::OnTheWire;
            );
            ATTRIBUTE.recover(&errors, &krate, input.function.as_ref(), &transport, item)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::Expander;

    #[test]
    fn interpreter_expands_as_recorded() {
        Expander { attribute: "interpreter", expand }.check("interpreter");
    }

    #[test]
    fn function_becomes_an_interpreter_and_stays_callable() {
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
    fn crate_is_an_option_of_that_name() {
        let item = quote!(
            fn replicas(w: &Workload) -> Result<Replicas> {
                body()
            }
        );
        let text = expand(quote!(op = InterpretReplica, krate = ::kctl), &item).to_string();
        assert!(text.contains("has no option `krate`\\nhelp: did you mean `crate`?"), "{text}");
        let text = expand(quote!(op = InterpretReplica, crate = ::other), &item).to_string();
        assert!(text.contains(":: other ::") && !text.contains("compile_error"), "{text}");
    }

    #[test]
    fn mistake_keeps_the_function_and_its_type() {
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
