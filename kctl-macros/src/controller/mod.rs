//! `#[controller(…)]`: parse → check → emit, and a stub when there are errors.
//!
//! | file | task |
//! |---|---|
//! | `parse` | tokens → options, kinds and parentheses, without rules |
//! | `model` | the declaration as plain data |
//! | `check` | the rules; its files have relations, values, callbacks and the primary |
//! | `emit` | the `ControllerSpec`, the permission types and `impl Reconcile` |
//! | `stub` | after an error: a controller that may do everything |
//!
//! The permissions are types. `owns = Pod(create)` emits a type that implements the trait of `create` for `Pod`
//! and no other one: `Allows<verb::create, …>`. `Context<configs>` finds it through `impl Declares<Pod> for configs`, so
//! `cx.owned::<Pod>().delete(…)` does not compile. Its bound `MayDelete` is not met, and
//! `#[diagnostic::on_unimplemented]` of that trait words the error (`kctl-runtime/src/reconcile/verb_bounds.rs`).

mod check;
mod emit;
mod model;
mod parse;
mod stub;

use proc_macro2::TokenStream;

/// Expands `#[controller(…)]` on a function or a struct.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let input = parse::parse(options, item);
    match check::check(&input) {
        Ok(model) => emit::emit(&model, item),
        Err(mistakes) => stub::recover(&mistakes, &input, item),
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;
    use crate::golden::Expander;

    const CONTROLLER: Expander = Expander { attribute: "controller", expand };

    fn check(options: TokenStream, item: &TokenStream, expected: &str) {
        let text = expand(options, item).to_string();
        assert!(text.contains(expected), "{expected} is not in {text}");
    }

    fn reconcile() -> TokenStream {
        quote!(
            async fn podset(set: Arc<PodSet>, cx: Context<podset>) -> Result<Action> {}
        )
    }

    #[test]
    fn function_becomes_a_controller() {
        check(quote!(owns = Pod), &reconcile(), "impl __p :: Controller for podset");
    }

    #[test]
    fn unknown_option_gets_the_nearest_one() {
        check(quote!(own = Pod), &reconcile(), "did you mean `owns`?");
    }

    #[test]
    fn options_of_other_frameworks_get_the_option_here() {
        check(quote!(max_concurrent_reconciles = 4), &reconcile(), "help: write `concurrency = 4`");
        check(quote!(kind = PodSet), &reconcile(), "the kind of a function is the type of its first parameter");
        check(quote!(predicates = f), &reconcile(), "`primary(when = f)`");
    }

    #[test]
    fn keyword_as_an_option_is_an_unknown_option() {
        let item = quote!(
            struct Reconciler;
        );
        let text = expand(quote!(for = Site), &item).to_string();
        assert!(text.contains("has no option `for`") && text.contains("a struct names it by `of = Kind`"), "{text}");
        assert_eq!(text.matches("compile_error").count(), 1, "{text}");
        assert!(text.contains("Site"), "the stub is for another kind: {text}");
    }

    #[test]
    fn crate_is_an_option_of_that_name() {
        let twice = "`crate` is given twice";
        check(quote!(crate = ::kctl, crate = ::kctl), &reconcile(), twice);
        check(
            quote!(krate = ::kctl),
            &reconcile(),
            "`#[controller]` has no option `krate`\\nhelp: did you mean `crate`?",
        );
        check(quote!(workloads = 1), &reconcile(), "rbac, crate");
    }

    #[test]
    fn verb_outside_of_parentheses_is_explained() {
        check(quote!(owns = Pod, create), &reconcile(), "parentheses of a kind: `owns = Kind(create)`");
        check(quote!(watch = Pod), &reconcile(), "did you mean `watches`?");
    }

    #[test]
    fn unknown_verb_gets_the_nearest_one() {
        check(quote!(owns = Pod(creat)), &reconcile(), "did you mean `create`?");
    }

    #[test]
    fn paths_of_kinds_are_shown_as_written() {
        check(quote!(owns = v1::Pod(create)), &reconcile(), "\"owns = v1::Pod(create)\"");
        check(quote!(reads = v1::Pod(as = views::Zone)), &reconcile(), "\"reads = v1::Pod(as = views::Zone)\"");
        check(quote!(reads = v1::Pod(fields = names::ONE)), &reconcile(), "\"reads = v1::Pod(fields = names::ONE)\"");
        check(quote!(owns = v1::Pod("create")), &reconcile(), "write `owns = v1::Pod(create)`");
        check(quote!(owns = [v1::Pod, Secret]), &reconcile(), "write `owns = v1::Pod, owns = Secret`");
        check(quote!(watches = v1::Pod), &reconcile(), "write `watches = v1::Pod(map = f)`");
    }

    #[test]
    fn watch_without_a_mapper_is_rejected() {
        check(quote!(watches = Pod), &reconcile(), "needs a mapper");
    }

    #[test]
    fn function_that_is_not_async_is_rejected() {
        check(
            quote!(),
            &quote!(
                fn podset(set: Arc<PodSet>, cx: Context<podset>) -> Result<Action> {}
            ),
            "must be `async`",
        );
    }

    #[test]
    fn borrowed_primary_is_rejected() {
        check(
            quote!(),
            &quote!(
                async fn podset(set: &PodSet, cx: Context<podset>) -> Result<Action> {}
            ),
            "must be `Arc<",
        );
    }

    #[test]
    fn rules_in_each_form_are_in_the_role() {
        let cases = [
            (quote!(rule), quote!(.rbac("rbac(rule)", rule))),
            (quote!(rule()), quote!(.rbac("rbac(rule())", rule()))),
            (quote!(rule(GROUP)), quote!(.rbac("rbac(rule(GROUP))", rule(GROUP)))),
            (quote!(rules::of(A, "b")), quote!(.rbac("rbac(rules::of(A, \"b\"))", rules::of(A, "b")))),
            (quote!(a(), b(B)), quote!(.rbac("rbac(a())", a()).rbac("rbac(b(B))", b(B)))),
        ];
        for (written, expected) in cases {
            check(quote!(rbac(#written)), &reconcile(), &expected.to_string());
        }
        check(quote!(rbac(group = "apps", verbs = "get")), &reconcile(), "a rule is a value of the type");
        check(quote!(rbac()), &reconcile(), "`rbac` needs a rule");
    }

    #[test]
    fn zero_concurrency_is_rejected() {
        check(quote!(concurrency = 0), &reconcile(), "at least 1");
    }

    #[test]
    fn bad_duration_is_rejected() {
        check(quote!(resync = "10 apples"), &reconcile(), "is not a duration");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = expand(quote!(own = Pod, concurrency = 0), &reconcile()).to_string();
        assert_eq!(text.matches("compile_error").count(), 2, "{text}");
    }

    #[test]
    fn same_kind_twice_is_rejected() {
        check(quote!(owns = Pod, reads = Pod), &reconcile(), "declared twice");
    }

    #[test]
    fn kinds_of_one_name_are_compared_by_rustc() {
        let impls = |options: TokenStream| {
            let text = expand(options, &reconcile()).to_string();
            text.matches("impl __p :: K0021EachKindIsDeclaredOnce").count()
        };
        assert_eq!(impls(quote!(owns = Pod, owns = v1::Pod, reads = Node)), 2);
        assert_eq!(impls(quote!(owns = mine::PodSet)), 2);
        assert_eq!(impls(quote!(owns = Pod, reads = v1::Pod(live))), 0);
        assert_eq!(impls(quote!(owns = Pod, reads = v1::Pod(metadata))), 0);
        assert_eq!(impls(quote!(owns = Pod, reads = Node)), 0);
    }

    #[test]
    fn function_expands_as_recorded() {
        CONTROLLER.check("function");
    }

    #[test]
    fn struct_keeps_its_own_reconcile() {
        let text = CONTROLLER.check("structure");
        assert!(!text.contains("impl __p::Reconcile for"), "{text}");
    }

    #[test]
    fn every_option_is_a_call() {
        CONTROLLER.check("options");
    }

    #[test]
    fn every_option_of_a_relation_is_a_call() {
        CONTROLLER.check("relations");
    }

    #[test]
    fn view_and_metadata_are_types_of_the_declaration() {
        let text = CONTROLLER.check("parts");
        assert!(text.contains("__p::PartialObjectMeta<__K0>") && text.contains(".view::<__V1>()"), "{text}");
    }

    #[test]
    fn clusters_are_types_of_the_declaration() {
        CONTROLLER.check("clusters");
    }
}
