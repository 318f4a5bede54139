//! `Input` → `Model`: each rule is a function; all mistakes are reported at once.
//!
//! | code | mistake |
//! |---|---|
//! | K0001–K0009 | the item: `check/item.rs` |
//! | K0010, K0025 | an option without a value, or in the form of another option; the rules of `rbac`: `check/rbac.rs` |
//! | K0011 | an unknown option: `check/unknown_option.rs` |
//! | K0012–K0016, K0028, K0049, K0105 | a relation and its parentheses: `check/relation.rs`, `check/relation_options.rs`, `check/primary.rs`, `check/verbs.rs`, `check/part.rs` |
//! | K0017–K0020, K0026, K0027 | values: `check/values.rs` |
//! | K0021, K0022, K0023, K0041 | options that conflict with each other or with the item: `check/conflicts.rs`, `check/spellings.rs` |
//! | K0024 | tokens that are not options |
//! | K0030 | not a kind: a spec, `DynamicObject`, or a struct without `#[resource]` |
//! | K0119 | a callback with a wrong signature: `check/callbacks.rs` |
//!
//! Errors are reported in this order: syntax errors, the item, the options from left to right, rules that compare
//! options, and callbacks.

mod callbacks;
mod conflicts;
mod item;
mod missing_resource;
mod part;
mod primary;
mod rbac;
mod relation;
mod relation_options;
mod spellings;
#[cfg(test)]
mod tests;
mod unknown_option;
mod values;
mod verbs;

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Error, Expr, Ident};

use self::{
    item::{function_form, signature, struct_form},
    primary::primary,
    rbac::rbac,
    relation::relation,
    unknown_option::unknown_option,
    values::{backoff, concurrency, duration, entry_value, finalizer, name, namespaces, number},
};
pub(super) use self::{
    item::{kind_of_alias, kind_of_spec, kind_of_struct},
    missing_resource::MissingResource,
    relation::is_dynamic,
    spellings::last_segment,
};
use super::{
    model::{Form, Model, RelationKind, Setting},
    parse::{AnnotatedItem, Entry, Input, Value},
};
use crate::{codes, crate_path::CratePath, diagnostics::Errors, function::item_keyword};

/// The mistakes of a declaration, with what the stub depends on.
pub(super) struct CheckErrors {
    /// All mistakes, as one error of syn.
    pub(super) errors: Error,
    /// `true` if the function's signature has a mistake. Its body was then written for another signature.
    pub(super) is_signature_wrong: bool,
    /// The primary, if its struct lacks `#[resource]`: the stub turns it into a kind.
    pub(super) missing_resource: Option<MissingResource>,
}

/// Checks the item and all options.
///
/// # Errors
///
/// All mistakes, in the order of discovery. The error is boxed because it is large and rare.
pub(super) fn check(input: &Input) -> Result<Model, Box<CheckErrors>> {
    let mut errors = Errors::default();
    for mistake in &input.mistakes {
        errors.syntax(mistake, "options are written `name = value`, `name(…)` or `name = Kind(verb, option = value)`");
    }
    let of = input.options.iter().find(|entry| entry.name == "of");
    let n_syntax_errors = errors.len();
    let item = match &input.item {
        AnnotatedItem::Function(function) => function_form(function, of, &mut errors),
        AnnotatedItem::Struct(item) => struct_form(item, &input.options, &mut errors),
        AnnotatedItem::Other(tokens) => {
            let help =
                "put it on `async fn name(object: Arc<Kind>, cx: Context<name>) -> Result<Action>` or on a struct";
            let word = item_keyword(tokens);
            errors.push(
                word,
                codes::NOT_ON_A_CONTROLLER,
                "`#[controller]` must be applied to a function or a struct",
                help,
            );
            None
        }
    };
    let mut is_signature_wrong = errors.len() > n_syntax_errors;
    let (form, name) = match &input.item {
        AnnotatedItem::Struct(item) => (Form::Struct, item.ident.clone()),
        AnnotatedItem::Function(function) => (Form::Function, function.sig.ident.clone()),
        AnnotatedItem::Other(_) => (Form::Function, Ident::new("controller", Span::call_site())),
    };
    let (vis, docs, signature) = match &input.item {
        AnnotatedItem::Function(function) => (function.vis.clone(), function.docs(), signature(function)),
        _ => (syn::Visibility::Inherited, Vec::new(), None),
    };
    let missing_resource =
        item.as_ref().and_then(|kind| missing_resource::find(kind, &name)).filter(|kind| kind.report(&mut errors));
    is_signature_wrong |= missing_resource.is_some();
    let primary = item.unwrap_or_else(|| syn::parse_quote!(()));
    let mut model = Model {
        form,
        name,
        vis,
        docs,
        krate: CratePath::default(),
        primary,
        settings: Vec::new(),
        relations: Vec::new(),
        converged: None,
        signature,
    };
    relation::report_dynamic(&model.primary, &mut errors);
    for entry in &input.options {
        option(entry, &mut model, &mut errors);
    }
    conflicts::check(&model, &input.options, &mut errors);
    callbacks::check(&input.options, &model, &mut errors);
    errors.into_result(model).map_err(|errors| Box::new(CheckErrors { errors, is_signature_wrong, missing_resource }))
}

/// Checks one option and adds it to the model.
fn option(entry: &Entry, model: &mut Model, errors: &mut Errors) {
    if let Some(declared_as) = RelationKind::of(&entry.name) {
        model.relations.extend(relation(entry, declared_as, errors));
        return;
    }
    let setting = match entry.name.to_string().as_str() {
        "primary" => primary(entry, errors).map(Setting::Primary),
        "name" => name(entry, errors).map(Setting::Name),
        "finalizer" => {
            let word = entry.name.clone();
            finalizer(entry, errors).map(|name| Setting::Finalizer { word, name })
        }
        "concurrency" => {
            let word = entry.name.clone();
            concurrency(entry, errors).map(|value| Setting::Number { word, value })
        }
        "retries" => {
            let word = entry.name.clone();
            number(entry, errors).map(|value| Setting::Number { word, value })
        }
        "resync" | "timeout" => {
            let (word, value) = (entry.name.clone(), entry_value(entry, errors));
            let value = value.and_then(|value| duration(value, errors));
            value.map(|value| Setting::Duration { word, value })
        }
        "backoff" => backoff(entry, errors),
        "namespaces" => namespaces(entry, errors).map(Setting::Namespaces),
        "rbac" => rbac(entry, errors).map(Setting::Rules),
        "of" => {
            no_parentheses(entry, "declare options and verbs of the primary in `primary(…)`", errors);
            None
        }
        "crate" => {
            model.krate = krate(entry, errors).unwrap_or_default();
            None
        }
        "converged" => {
            model.converged = entry_value(entry, errors).cloned();
            None
        }
        unknown => {
            unknown_option(entry, unknown, errors);
            None
        }
    };
    model.settings.extend(setting);
}

/// Reads `crate = path`. K0010 for anything but a path.
fn krate(entry: &Entry, errors: &mut Errors) -> Option<CratePath> {
    let wrong = match &entry.value {
        Some(Value::Expr(Expr::Path(path))) => return Some(CratePath(Some(path.clone()))),
        Some(Value::Expr(other)) => other.to_token_stream(),
        _ => entry.name.to_token_stream(),
    };
    errors.push(wrong, codes::MISSING_VALUE, "`crate` must be a path", "write `crate = path`");
    None
}

/// Reports K0025 for an option with parentheses that it does not have. Their contents would be lost without a
/// message.
pub(super) fn no_parentheses(entry: &Entry, help: &str, errors: &mut Errors) {
    if let Some(parentheses) = &entry.parentheses {
        let what = format!("`{}` takes no parentheses", entry.name);
        errors.push_at(parentheses.span.join(), codes::FORM_OF_ANOTHER_OPTION, &what, help);
    }
}
