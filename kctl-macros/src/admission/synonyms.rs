//! Words that people write instead of an option of `#[admission]`: words of kubebuilder's marker and of the API.

use syn::{Expr, Lit};

use crate::attribute::{Entry, Input, Value};

/// Words for `validate`.
const VALIDATE: [&str; 4] = ["validates", "validating", "validation", "validator"];
/// Words for `mutate`.
const MUTATE: [&str; 6] = ["default", "defaulter", "defaulting", "defaults", "mutates", "mutating"];
/// Operations without `operations(…)`.
const OPERATIONS: [&str; 4] = ["create", "update", "delete", "connect"];

/// Returns `true` for a word that means an action: its help names the action.
pub(super) fn is_action(name: &str) -> bool {
    VALIDATE.contains(&name) || MUTATE.contains(&name)
}

/// Returns the help for an unknown option.
pub(super) fn help(entry: &Entry, input: &Input) -> Option<String> {
    let name = entry.name.to_string();
    let help = match name.as_str() {
        name if VALIDATE.contains(&name) || (name == "mutating" && is_false(entry)) => "write `validate`",
        name if MUTATE.contains(&name) => "write `mutate`",
        name if OPERATIONS.contains(&name) => return Some(operations(input)),
        "verb" | "verbs" | "operation" => "write for example `operations(create, update)`",
        "timeout_seconds" | "timeoutSeconds" => "write for example `timeout = 10`, in seconds",
        "reinvocation_policy" | "reinvocationPolicy" => "write `reinvocation = Never` or `reinvocation = IfNeeded`",
        "conditions" => "write `match_conditions(\"name\" = \"expression\")`",
        "selector" => "write `object_selector = \"…\"` or `namespace_selector = \"…\"`",
        "namespaces" => "write `namespace_selector = \"kubernetes.io/metadata.name in (…)\"`",
        "path" | "name" => "remove it: path and name of the webhook follow from the kind",
        "kind" | "of" | "for" | "group" | "groups" | "version" | "versions" | "resource" | "resources" => {
            "remove it: the type of the first parameter is the kind"
        }
        "admission_review_versions" | "admissionReviewVersions" => "remove it: reviews are of version `v1`",
        _ => return None,
    };
    Some(help.to_owned())
}

/// Returns the help for operations outside of a list: the list of them.
fn operations(input: &Input) -> String {
    let names = input.options.iter().map(|entry| entry.name.to_string());
    let names: Vec<_> = names.filter(|name| OPERATIONS.contains(&name.as_str())).collect();
    format!("write `operations({})`", names.join(", "))
}

/// Returns `true` for `mutating = false`.
fn is_false(entry: &Entry) -> bool {
    let Value::Expr(Expr::Lit(literal)) = &entry.value else { return false };
    matches!(&literal.lit, Lit::Bool(word) if !word.value)
}

#[cfg(test)]
mod tests {
    use quote::quote;

    #[test]
    fn words_of_kubebuilder_have_their_help() {
        let item = quote!(
            fn rules(web: &Web) {}
        );
        for (options, help) in [
            (quote!(validating), "write `validate`"),
            (quote!(mutating = false), "write `validate`"),
            (quote!(default), "write `mutate`"),
            (quote!(validate, create, delete), "write `operations(create, delete)`"),
            (quote!(validate, verbs = "create"), "write for example `operations(create, update)`"),
            (quote!(validate, timeout_seconds = 5), "write for example `timeout = 10`"),
            (quote!(validate, groups = "apps"), "remove it: the type of the first parameter is the kind"),
            (quote!(validate, for = Web), "remove it: the type of the first parameter is the kind"),
            (quote!(validate, match("name" = "true")), "`#[admission]` has no option `match`"),
        ] {
            let text = crate::admission::expand(options.clone(), &item).to_string();
            assert!(text.contains(help), "{options}: {text}");
            assert_eq!(text.matches("compile_error").count(), 1, "{options}: {text}");
        }
    }
}
