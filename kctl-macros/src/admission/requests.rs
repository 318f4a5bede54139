//! The requests that call a function: a subresource gets one operation, so some rules of a webhook configuration match
//! nothing. API servers accept such a rule, and the function is never called.

use super::options::Operation;
use crate::{
    attribute::{Input, Item, Value},
    codes,
    diagnostics::Errors,
};

/// The subresources of built-in and custom kinds with the operation of their requests, from the storages in
/// `pkg/registry` of Kubernetes. `None` for one that is only read: reads call no webhook.
const SUBRESOURCES: [(&str, Option<Operation>); 14] = [
    ("approval", Some(Operation::Update)),
    ("attach", Some(Operation::Connect)),
    ("binding", Some(Operation::Create)),
    ("ephemeralcontainers", Some(Operation::Update)),
    ("eviction", Some(Operation::Create)),
    ("exec", Some(Operation::Connect)),
    ("finalize", Some(Operation::Update)),
    ("log", None),
    ("portforward", Some(Operation::Connect)),
    ("proxy", Some(Operation::Connect)),
    ("resize", Some(Operation::Update)),
    ("scale", Some(Operation::Update)),
    ("status", Some(Operation::Update)),
    ("token", Some(Operation::Create)),
];
/// The operations of a function without the option `operations`.
const DEFAULT_OPERATIONS: [Operation; 2] = [Operation::Create, Operation::Update];

/// Reports K0106 for subresources and operations whose requests never call the function. The options are valid one by
/// one. Subresources of other API servers may get any operation.
pub(super) fn check_called(input: &Input, errors: &mut Errors) {
    let (operations, subresources) = (items(input, "operations"), items(input, "subresources"));
    let declared: Vec<Operation> = operations.iter().filter_map(|item| Operation::of(&item.text)).collect();
    let declared = if operations.is_empty() { DEFAULT_OPERATIONS.to_vec() } else { declared };
    let before = errors.len();
    for item in subresources {
        check_subresource(item, &declared, subresources, errors);
    }
    if errors.len() == before {
        for item in operations {
            check_operation(item, subresources, errors);
        }
    }
}

/// Returns the entries of an option that is a list.
fn items<'a>(input: &'a Input, option: &str) -> &'a [Item] {
    match input.entry(option).map(|entry| &entry.value) {
        Some(Value::Items(items)) => items,
        _ => &[],
    }
}

/// Returns the row of a subresource. `None` for one of another API server.
fn row(subresource: &Item) -> Option<&'static (&'static str, Option<Operation>)> {
    SUBRESOURCES.iter().find(|(name, _)| *name == subresource.text)
}

/// Reports a subresource whose operation is not declared.
fn check_subresource(item: &Item, declared: &[Operation], subresources: &[Item], errors: &mut Errors) {
    let Some((name, operation)) = row(item) else { return };
    let Some(operation) = operation else {
        let what = format!("`{name}` is only read, and reads call no webhook");
        errors.push(&item.name, codes::CONTRADICTING_OPTIONS, &what, &format!("remove `{name}`"));
        return;
    };
    if declared.contains(operation) {
        return;
    }
    let mut needed: Vec<&str> = Vec::new();
    for operation in subresources.iter().filter_map(row).filter_map(|(_, operation)| *operation) {
        if !needed.contains(&operation.word()) {
            needed.push(operation.word());
        }
    }
    let operation = operation.word();
    let what = format!("`{name}` gets `{operation}` requests only: they would not call the function");
    let help = format!("write `operations({})`", needed.join(", "));
    errors.push(&item.name, codes::CONTRADICTING_OPTIONS, &what, &help);
}

/// Reports `connect` and `delete` where no request has this operation. A `create` in addition to the `update` of a
/// `status` is common in other programs, and harmless.
fn check_operation(item: &Item, subresources: &[Item], errors: &mut Errors) {
    let Some(operation @ (Operation::Connect | Operation::Delete)) = Operation::of(&item.text) else { return };
    let may_match = |subresource: &Item| row(subresource).is_none_or(|(_, own)| *own == Some(operation));
    if subresources.iter().any(may_match) || (subresources.is_empty() && operation == Operation::Delete) {
        return;
    }
    let names: Vec<_> = subresources.iter().map(|subresource| format!("`{}`", subresource.text)).collect();
    let (what, help) = match (operation, names.is_empty()) {
        (Operation::Connect, true) => (
            "only subresources such as `exec` get `connect` requests".to_owned(),
            "write for example `subresources(exec)`, or remove `connect`",
        ),
        (Operation::Connect, false) => (
            format!("{} gets no `connect` requests", names.join(" or ")),
            "remove `connect`, or add a subresource such as `exec`",
        ),
        _ => (
            format!("{} gets no `delete` requests", names.join(" or ")),
            "remove `delete`, and write a function with `operations(delete)` and without `subresources` for deleted objects",
        ),
    };
    errors.push(&item.name, codes::CONTRADICTING_OPTIONS, &what, help);
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    /// Returns the messages about `no_shell(request: &Admission<Pod>)` with these options.
    fn messages(options: &TokenStream) -> String {
        let item = quote!(
            fn no_shell(request: &Admission<Pod>) {}
        );
        crate::admission::expand(quote!(validate, #options), &item).to_string()
    }

    #[test]
    fn rules_that_match_no_request_are_reported() {
        for (options, what) in [
            (quote!(subresources(exec)), "`exec` gets `connect` requests only"),
            (quote!(subresources(exec), operations(create)), "`exec` gets `connect` requests only"),
            (quote!(operations(delete), subresources(status)), "`status` gets `update` requests only"),
            (quote!(subresources(status, proxy)), "help: write `operations(update, connect)`"),
            (quote!(subresources(log)), "`log` is only read"),
            (quote!(operations(connect)), "only subresources such as `exec`"),
            (quote!(operations(update, connect), subresources(status)), "`status` gets no `connect` requests"),
            (quote!(operations(update, delete), subresources(status)), "`status` gets no `delete` requests"),
        ] {
            let text = messages(&options);
            assert!(text.contains(what), "{options}: {text}");
            assert_eq!(text.matches("compile_error").count(), 1, "{options}: {text}");
        }
    }

    #[test]
    fn rules_that_match_requests_are_accepted() {
        for options in [
            quote!(operations(connect), subresources(exec, attach)),
            quote!(operations(update, connect), subresources(status, exec)),
            quote!(operations(create, update), subresources(status)),
            quote!(subresources(eviction, scale)),
            quote!(operations(create, update, delete)),
            quote!(operations(connect), subresources(console)),
        ] {
            let text = messages(&options);
            assert!(!text.contains("compile_error"), "{options}: {text}");
        }
    }
}
