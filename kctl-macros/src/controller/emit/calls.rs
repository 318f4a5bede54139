//! The calls on the builder of a `ControllerSpec`.
//!
//! `generate-rbac`, `graph` and the manager read the specification. The text of a relation or a rule goes with it:
//! comments of the generated role show which option a rule comes from.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, spanned::Spanned};

use super::super::model::{
    DeclaredOption, DeclaredVerb, Duration, Part, PrimaryOptions, Relation, RelationKind, RelationOption, Rule, Rules,
    Setting,
};
use super::permissions;
use crate::function::{source_text, type_text};

/// Returns the call for an option of the controller.
pub(super) fn setting(setting: &Setting) -> TokenStream {
    match setting {
        Setting::Name(name) => quote!(.named(#name)),
        Setting::Finalizer { name, .. } => quote!(.finalizer(#name)),
        Setting::Number { word, value } => quote!(.#word(#value)),
        Setting::Duration { word, value } => {
            let value = duration(value);
            quote!(.#word(#value))
        }
        Setting::Backoff { first, max } => {
            let first = duration(first);
            let max = max.as_ref().map_or_else(|| quote!(__p::millis(1_000_000)), duration);
            quote!(.backoff(#first, #max))
        }
        Setting::Namespaces(list) => quote!(.namespaces(#list)),
        Setting::Rules(declared) => rules(declared),
        Setting::Primary(options) => primary(options),
    }
}

/// Emits a duration. A literal becomes a number of milliseconds, so that no string is parsed at run time.
fn duration(duration: &Duration) -> TokenStream {
    match duration {
        Duration::Millis(millis) => {
            let millis = Literal::u64_unsuffixed(*millis);
            quote!(__p::millis(#millis))
        }
        Duration::Expr(expr) => expr.to_token_stream(),
    }
}

/// Returns one call for each rule, with the rule as the user wrote it: comments of the role show it.
fn rules(Rules { rules, on }: &Rules) -> TokenStream {
    debug_assert!(!rules.is_empty(), "`check` rejects `rbac()`");
    let cluster = on.as_ref().map(|on| format!(", on = {}", source_text(&on.to_token_stream()))).unwrap_or_default();
    let calls = rules.iter().map(|rule| {
        let rule = match rule {
            Rule::Word(word) => word.to_token_stream(),
            Rule::Call { function, argument } => quote!(#function(#argument)),
            Rule::Expr(expr) => expr.to_token_stream(),
        };
        let text = format!("rbac({}{cluster})", source_text(&rule));
        match on {
            None => quote_spanned!(rule.span()=> .rbac(#text, #rule)),
            Some(on) => quote_spanned!(rule.span()=> .rbac_on::<#on, _>(#text, #rule)),
        }
    });
    calls.collect()
}

/// Returns the calls for `primary(…)`.
fn primary(PrimaryOptions { verbs, is_read_only, options }: &PrimaryOptions) -> TokenStream {
    let options = options.iter().filter(|declared| declared.option != RelationOption::On);
    let options = options.map(|declared| option(declared, &format!("primary_{}", declared.option.as_str())));
    let read_only = is_read_only.then(|| quote!(.read_only()));
    let verbs = verb_names(verbs);
    quote!(#(#options)* #read_only .primary(&[#(#verbs),*]))
}

/// Returns the calls for the parentheses of a kind, without its part and its cluster, which need type aliases.
pub(super) fn relation(relation: &Relation) -> TokenStream {
    // The builder's `owns` begins with the default verbs of a whole object.
    let verbs = match relation.part {
        Part::Whole => verb_names(&relation.verbs),
        Part::Metadata(_) | Part::View(..) => verb_names(&permissions::verbs(relation)),
    };
    let verbs = (!verbs.is_empty()).then(|| quote!(.verbs(&[#(#verbs),*])));
    let options = relation.options.iter().filter(|declared| declared.option != RelationOption::On);
    let options = options.map(|declared| option(declared, declared.option.as_str()));
    let flags = relation.blocking.iter().chain(&relation.optional);
    quote!(#verbs #(#options)* #(.#flags())*)
}

/// Returns the call for an option.
fn option(declared: &DeclaredOption, method: &str) -> TokenStream {
    let (method, value) = (Ident::new(method, declared.word.span()), &declared.value);
    quote!(.#method(#value))
}

/// Returns the verbs as the role names them.
fn verb_names(verbs: &[DeclaredVerb]) -> Vec<&'static str> {
    verbs.iter().map(|declared| declared.verb.as_str()).collect()
}

/// Returns the declaration of a relation as text, with everything that the role depends on: `owns = Pod(create)`.
pub(super) fn text(relation: &Relation) -> String {
    let flag = match relation.declared_as {
        RelationKind::ReadsLive => Some("live".to_owned()),
        RelationKind::ReadsLiveInCluster => Some("live(cluster)".to_owned()),
        RelationKind::Owns | RelationKind::Watches | RelationKind::Reads => {
            relation.blocking.as_ref().map(ToString::to_string)
        }
    };
    let arguments_of_flag: Vec<_> = flag
        .into_iter()
        .chain(relation.optional.as_ref().map(ToString::to_string))
        .chain(relation.part.text())
        .chain(verb_names(&relation.verbs).into_iter().map(str::to_owned))
        .chain(relation.options.iter().filter_map(role_restriction))
        .collect();
    let arguments =
        if arguments_of_flag.is_empty() { String::new() } else { format!("({})", arguments_of_flag.join(", ")) };
    format!("{} = {}{arguments}", relation.declared_as.as_str(), type_text(&relation.kind))
}

/// Returns an option that the role depends on. Selectors and functions don't narrow a role.
fn role_restriction(DeclaredOption { option, value, .. }: &DeclaredOption) -> Option<String> {
    let value = source_text(&value.to_token_stream());
    match option {
        RelationOption::On => Some(format!("on = {value}")),
        RelationOption::Fields => Some(format!("fields = {value}")),
        RelationOption::Map | RelationOption::When | RelationOption::Index | RelationOption::Selector => None,
    }
}

/// Returns the call for the cluster of the primary. A type gives its name; a string is the name.
pub(super) fn primary_on(on: &Expr) -> TokenStream {
    match on {
        Expr::Path(cluster) => {
            // With the span of the type, `unused_qualifications` would compare the path with the prelude's.
            let implements = quote!(__p::Cluster);
            let name = quote_spanned!(cluster.span()=> <#cluster as #implements>::NAME);
            quote!(.primary_on(#name))
        }
        text => quote!(.primary_on(#text)),
    }
}
