//! The rules of `rbac(rule(), …)`, which the generated role has in addition to the rules for the kinds.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Expr, Ident};

use super::super::{
    model::{Rule, Rules},
    parse::{Argument, Entry},
};
use crate::{codes, diagnostics::Errors};

/// The help for a kind on several clusters that strings name: nothing in the function could say which of them is
/// meant.
pub(super) const NAME_CLUSTERS_BY_TYPES: &str =
    "to have a kind on several clusters, name them by types: `on = Edge`, where `Edge` is a `Cluster`";
/// The help for `rbac`: the form of a rule and of the function that returns it.
const RULE: &str = "write `rbac(rule())` and `fn rule() -> kctl::k8s::api::rbac::v1::PolicyRule { … }`";
/// Reads `rbac(rule, …)`, and `rbac(rule, …, on = Edge)` for rules on another cluster. Every form but a value is
/// K0025, and a second `on` is K0022: the role must not lack a rule without a message.
pub(super) fn rbac(entry: &Entry, errors: &mut Errors) -> Option<Rules> {
    for (name, _) in clusters(entry).skip(1) {
        let help = "write an `rbac(…, on = …)` for each cluster";
        errors.push(name, codes::DUPLICATE, "`on` is given twice: the rules of one `rbac` are on one cluster", help);
    }
    let mut push = |tokens: &dyn ToTokens, what: &str, help: &str| {
        errors.push(tokens, codes::FORM_OF_ANOTHER_OPTION, what, help);
    };
    if entry.value.is_some() {
        push(&entry.name, "`rbac` takes its rules in parentheses", "write `rbac(rule())`");
        return None;
    }
    for argument in &entry.arguments {
        if let Argument::Nested(option, verb) = argument
            && option == "primary"
        {
            let help = format!("write `primary({verb})` next to `rbac(…)`, not in it");
            push(option, "verbs of the primary don't belong in `rbac`", &help);
            return None;
        }
    }
    let is_cluster = |argument: &&Argument| matches!(argument, Argument::Option(name, _) if name == "on");
    let rules: Result<Vec<_>, _> = entry.arguments.iter().filter(|argument| !is_cluster(argument)).map(rule).collect();
    match (rules, rules_on(entry)) {
        (Ok(rules), _) if rules.is_empty() => push(&entry.name, "`rbac` needs a rule", RULE),
        (Err(tokens), _) => push(&tokens, "a rule is a value of the type `PolicyRule`", RULE),
        (Ok(rules), None) => return Some(Rules { rules, on: None }),
        (Ok(rules), Some(Expr::Path(cluster))) => return Some(Rules { rules, on: Some(cluster.clone()) }),
        (_, Some(other)) => push(other, "`rbac` names another cluster by its type", NAME_CLUSTERS_BY_TYPES),
    }
    None
}

/// Returns the cluster of an `rbac(…)`.
pub(super) fn rules_on(entry: &Entry) -> Option<&Expr> {
    clusters(entry).next().map(|(_, cluster)| cluster)
}

/// Returns each `on = cluster` of an `rbac(…)`. More than one is a mistake.
fn clusters(entry: &Entry) -> impl Iterator<Item = (&Ident, &Expr)> {
    entry.arguments.iter().filter_map(|argument| match argument {
        Argument::Option(name, cluster) if name == "on" => Some((name, cluster)),
        _ => None,
    })
}

/// Reads a rule of `rbac(…)`. Anything else there is an error, because the role must not silently lack a rule.
fn rule(argument: &Argument) -> Result<Rule, TokenStream> {
    match argument {
        Argument::Expr(rule) => Ok(Rule::Expr(rule.clone())),
        Argument::Word(rule) => Ok(Rule::Word(rule.clone())),
        Argument::Nested(function, argument) => {
            Ok(Rule::Call { function: function.clone(), argument: argument.clone() })
        }
        Argument::Option(name, _) => Err(name.to_token_stream()),
        Argument::As(word, _) => Err(word.to_token_stream()),
        Argument::Everything(star) => Err(star.to_token_stream()),
    }
}
