//! `#[admission(validate)]` and `#[admission(mutate)]`: parse → check → emit, and recover when there are errors.
//!
//! | file | task | codes |
//! |---|---|---|
//! | `options` | the options of the webhook configuration | K0022, K0101, K0102, K0104, K0105, K0106 |
//! | `synonyms` | words of kubebuilder's marker that are not options | |
//! | `requests` | rules that match no request | K0106 |
//! | `check` | the signature, and options that contradict it | K0010, K0024, K0100, K0103, K0106, K0107 |
//! | `emit` | `AdmissionFn` → code | |
//!
//! Duplicates across modules are found when the app starts (K0109).

mod check;
mod emit;
mod options;
mod requests;
mod synonyms;

use proc_macro2::TokenStream;

use crate::{attribute, codes, diagnostics::Errors, registered_function::FunctionAttribute};

/// Names and messages of this attribute.
const ATTRIBUTE: FunctionAttribute = FunctionAttribute {
    name: "#[admission]",
    subject: "an admission function",
    signature: "fn name(object: &Kind) -> Result<()>",
    misplaced: codes::NOT_ON_AN_ADMISSION,
    generic: codes::GENERIC_FUNCTION,
    generic_reason: "it is for one kind",
    generic_help: "name the kind",
    module: "admission",
    implements: "Admits",
    method: "webhooks",
    registers: "Webhook",
};

/// Expands `#[admission(…)]` on a function.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let input = attribute::parse(options, item);
    match check::check(&input) {
        Ok(model) => emit::emit(&model, item),
        Err(errors) => {
            let krate = input.krate(&mut Errors::default());
            ATTRIBUTE.recover(&errors, &krate, input.function.as_ref(), &TokenStream::new(), item)
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;
    use crate::golden::Expander;

    #[test]
    fn admission_expands_as_recorded() {
        Expander { attribute: "admission", expand }.check("admission");
    }

    #[test]
    fn function_becomes_a_webhook_and_remains_callable() {
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
    fn old_object_is_decoded_only_for_requests() {
        let without = quote!(
            fn rules(w: &Workload) {}
        );
        let with = quote!(
            fn rules(w: &Workload, request: &Admission<Workload>) {}
        );
        let leaves_out =
            |item: TokenStream| expand(quote!(validate), &item).to_string().contains("without_old_object ()");
        assert!(leaves_out(without) && !leaves_out(with));
    }

    #[test]
    fn match_conditions_are_validated_as_in_api_servers() {
        let item = quote!(
            fn rules(w: &Workload) -> Result<()> {
                body()
            }
        );
        let of = |conditions: &str| {
            let options = format!("validate, match_conditions({conditions})").parse().unwrap();
            expand(options, &item).to_string()
        };
        let many = |n: usize| (0..n).map(|n| format!("\"n{n}\" = \"true\"")).collect::<Vec<_>>().join(", ");
        for valid in [r#""a" = "true", "example.com/b" = "true""#, &many(64)] {
            let text = of(valid);
            assert!(!text.contains("compile_error"), "{text}");
        }
        for (wrong, what) in [
            (r#""a b" = "true""#, "`a b` can't be the name of a match condition"),
            (r#""" = "true""#, "`` can't be the name of a match condition"),
            (r#""x" = "true", "x" = "false""#, "the match condition `x` is given twice"),
            (r#""x" = " ""#, "the match condition `x` has no expression"),
            (&many(65), "65 match conditions, and API servers take 64"),
        ] {
            let text = of(wrong);
            assert!(text.contains(what) && text.matches("compile_error").count() == 1, "{text}");
        }
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
