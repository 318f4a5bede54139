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
    fn function_becomes_an_interpreter_and_remains_callable() {
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
        let text = expand(quote!(type = InterpretReplica), &item).to_string();
        assert!(text.contains("has no option `type`\\nhelp: the options are op, crate"), "{text}");
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

    #[test]
    fn status_of_another_type_is_reported() {
        let text = |returned: &TokenStream| {
            let item = quote!(
                fn status(w: &v1::Web) -> #returned {
                    body()
                }
            );
            expand(quote!(op = InterpretStatus), &item).to_string()
        };
        for wrong in [quote!(Result<()>), quote!(Result<Web>), quote!(Option<bool>), quote!(Result<String>)] {
            let text = text(&wrong);
            assert_eq!(text.matches("compile_error").count(), 1, "{wrong}: {text}");
        }
        for right in [quote!(Result<WebStatus>), quote!(Option<WebStatus>), quote!(Value), quote!(Result<(i32, i32)>)] {
            let text = text(&right);
            assert!(!text.contains("compile_error"), "{right}: {text}");
        }
    }

    #[test]
    fn items_that_are_statuses_are_reported() {
        let text = |kind: &str, item: &str| {
            let (kind, item): (syn::Type, syn::Type) = (syn::parse_str(kind).unwrap(), syn::parse_str(item).unwrap());
            let function = quote!(
                fn aggregate(object: &mut #kind, items: &[#item]) {}
            );
            expand(quote!(op = AggregateStatus), &function).to_string()
        };
        for (kind, wrong) in [("Web", "WebStatus"), ("v1::Web", "Web"), ("Web", "ClusterStatus<Web>")] {
            assert!(text(kind, wrong).contains("is the report of a cluster"), "{kind}: {wrong}");
        }
        for (kind, right) in [
            ("Web", "ClusterStatus<WebStatus>"),
            ("Web", "AggregatedStatusItem"),
            ("Web", "Mine"),
            ("Cluster", "ClusterStatus<Status>"),
        ] {
            assert!(!text(kind, right).contains("compile_error"), "{kind}: {right}");
        }
    }
}
