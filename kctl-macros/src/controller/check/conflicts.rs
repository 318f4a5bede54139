//! Options that conflict with each other or with the item.
//!
//! | written | result |
//! |---|---|
//! | `owns = Pod, reads = Pod` | K0021, help: name it once |
//! | `owns = Pod, reads = Pod(live)` | K0021, help: read the cache by `cx.store` |
//! | `reads = ConfigMap(live)`, with that primary | K0021, help: `primary(get)` and `cx.get()` |
//! | `owns = Pod(on = Edge)` | K0041, unless the primary is there, too |
//! | `retries = 1, retries = 2` | K0022 |
//! | `finalizer = "example.com/a"` on a function | K0023, help: the struct form |

use quote::ToTokens;
use syn::{Expr, Ident, Type};

use super::{
    super::{
        model::{Form, Model, Relation, RelationKind},
        parse::Entry,
    },
    rbac::{NAME_CLUSTERS_BY_TYPES, rules_on},
    spellings::Imports,
};
use crate::{
    codes,
    diagnostics::Errors,
    function::{compact_text, type_text},
};

/// Reports all conflicts.
pub(super) fn check(model: &Model, options: &[Entry], errors: &mut Errors) {
    check_unique_kinds(model, errors);
    check_owned_clusters(model, errors);
    check_unique_options(options, errors);
    check_finalizer_form(model, options, errors);
}

/// Reports K0021 for a kind that is declared twice on one cluster, and for the primary as a relation. A kind may be
/// on several clusters if types name them, because `cx.cluster(Edge)` then says which one is meant.
fn check_unique_kinds(model: &Model, errors: &mut Errors) {
    let imports = Imports::for_model(model);
    let text = |kind: &Type| imports.as_ref().and_then(|all| all.path_of(kind)).unwrap_or_else(|| compact_text(kind));
    let mut seen: Vec<(String, Option<String>, &Relation)> = Vec::new();
    let mut elsewhere: Vec<String> = Vec::new();
    for relation in &model.relations {
        let (kind, written) = (text(&relation.kind), compact_text(&relation.kind));
        let cluster = relation.cluster().map(|cluster| cluster.to_token_stream().to_string());
        if relation.on().is_some() && relation.declared_as != RelationKind::Owns && cluster.is_none() {
            elsewhere.push(kind.clone());
        }
        let help = |other: String| if elsewhere.contains(&kind) { NAME_CLUSTERS_BY_TYPES.to_owned() } else { other };
        if kind == text(&model.primary) && cluster.is_none() {
            let what = format!("`{written}` is the primary: it is cached and triggers already");
            errors.push(&relation.kind, codes::DUPLICATE_KIND, &what, &help(help_for_primary(relation)));
        } else if let Some((.., first)) = seen.iter().find(|(other, on, _)| *other == kind && *on == cluster) {
            let on = cluster.as_ref().map(|cluster| format!(" on `{cluster}`")).unwrap_or_default();
            let other = Some(compact_text(&first.kind)).filter(|first| *first != written);
            let other = other.map(|first| format!(": it is the kind `{first}`")).unwrap_or_default();
            let what = format!("`{written}` is declared twice{on}{other}");
            errors.push(&relation.kind, codes::DUPLICATE_KIND, &what, &help(help_for_twice(first, relation)));
        }
        seen.push((kind, cluster, relation));
    }
}

/// Returns the help for the primary as a relation: the operation on the primary that reads as the relation does.
fn help_for_primary(relation: &Relation) -> String {
    if relation.declared_as.is_live() {
        return "write `primary(get)`, and read it from the API server by `cx.get()`".to_owned();
    }
    "remove it, or write `primary(…)` with the verbs that are used".to_owned()
}

/// Returns the help for two relations of a kind. A kind is cached or read live: with both, no read would say which.
fn help_for_twice(first: &Relation, second: &Relation) -> String {
    if first.declared_as.is_live() == second.declared_as.is_live() {
        return "name it once: `owns = K(map = f)` has both triggers".to_owned();
    }
    let kind = compact_text(&second.kind);
    format!("remove the one that is `live`, and read the cache by `cx.store::<{kind}>()`")
}

/// Reports K0041 for an owned kind on another cluster than the primary: garbage collection looks for owners in the
/// cluster of the object.
fn check_owned_clusters(model: &Model, errors: &mut Errors) {
    let text = |on: Option<&Expr>| on.map(|on| on.to_token_stream().to_string());
    let primary = text(model.primary_on());
    for relation in model.relations.iter().filter(|relation| relation.declared_as == RelationKind::Owns) {
        let Some(on) = relation.on() else { continue };
        if text(Some(on)) != primary {
            let kind = type_text(&relation.kind);
            let what = format!("`{kind}` cannot be owned on another cluster: owner references do not cross clusters");
            let help =
                format!("write `watches = {kind}(map = f, on = …)` with the verbs that are used, or remove `on`");
            errors.push(on, codes::OWNED_ON_ANOTHER_CLUSTER, &what, &help);
        }
    }
}

/// Reports K0022 for an option that is given twice. Relations may be repeated, and so may `rbac` with different
/// clusters.
fn check_unique_options(options: &[Entry], errors: &mut Errors) {
    let single = |name: &Ident| RelationKind::of(name).is_none();
    let same =
        |one: &Entry, other: &Entry| one.name == other.name && (one.name != "rbac" || rules_on(one) == rules_on(other));
    for (index, entry) in options.iter().enumerate().filter(|(_, entry)| single(&entry.name)) {
        if options[..index].iter().any(|before| same(before, entry)) {
            errors.push_duplicate(&entry.name);
        }
    }
}

/// Reports K0023 for a finalizer on a function: a function has nothing that could clean up.
fn check_finalizer_form(model: &Model, options: &[Entry], errors: &mut Errors) {
    let entry = options.iter().find(|entry| entry.name == "finalizer");
    if let Some(entry) = entry.filter(|_| model.form == Form::Function) {
        let help =
            "write `#[controller(of = Kind, finalizer = …)] struct Name;` with `impl Reconcile` and `impl Finalize`";
        errors.push(
            &entry.name,
            codes::FUNCTION_WITH_FINALIZER,
            "a function can't clean up: a finalizer needs `impl Finalize`",
            help,
        );
    }
}
