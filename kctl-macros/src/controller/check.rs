//! `Input` → `Model`: each rule is a function; all mistakes are reported at once.
//!
//! | code | mistake |
//! |---|---|
//! | K0001–K0009 | the item: `check/item.rs` |
//! | K0010, K0011, K0022, K0025 | an option: no value, unknown, given twice, in the form of another one |
//! | K0012–K0016, K0028, K0049 | a relation and its parentheses: `check/relation.rs`, `check/verbs.rs`, `check/part.rs` |
//! | K0017–K0020, K0026, K0027 | values: `check/values.rs` |
//! | K0021, K0041 | a kind is declared twice, or owned on another cluster |
//! | K0023 | a function with a finalizer |
//! | K0030 | not a kind: a spec, `DynamicObject`, or a struct without `#[resource]` |
//! | K0119 | a callback with a wrong signature: `check/callbacks.rs` |
//!
//! The order is that of reading: the item first, then the options from left to right, then rules that compare
//! options.

mod callbacks;
mod item;
mod missing_resource;
mod part;
mod relation;
mod values;
mod verbs;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Error, Expr, Ident, Type};

pub(super) use self::{item::kind_of_spec, missing_resource::MissingResource, relation::is_dynamic};
use self::{
    item::{function_form, signature, struct_form},
    relation::{primary, relation},
    values::{backoff, concurrency, duration, entry_value, finalizer, name, namespaces, number},
};
use super::{
    model::{Form, Model, RelationKind, RelationOption, Rule, Rules, Setting, Verb},
    parse::{Annotated, Argument, Entry, Input, Value},
};
use crate::{
    codes,
    crate_path::CratePath,
    diagnostics::{Errors, nearest},
    function::first_word,
};

/// The help for a kind on several clusters that strings name: nothing in the function could say which of them is
/// meant.
const NAME_CLUSTERS_BY_TYPES: &str =
    "to have a kind on several clusters, name them by types: `on = Edge`, where `Edge` is a `Cluster`";
/// The help for `rbac`: the form of a rule and of the function that returns it.
const RULE: &str = "write `rbac(rule())` and `fn rule() -> kctl::k8s::api::rbac::v1::PolicyRule { … }`";
/// All options in the order of the help.
const OPTIONS: [&str; 16] = [
    "owns",
    "watches",
    "reads",
    "primary",
    "of",
    "name",
    "finalizer",
    "concurrency",
    "backoff",
    "retries",
    "namespaces",
    "resync",
    "timeout",
    "converged",
    "rbac",
    "crate",
];

/// The mistakes of a declaration, with what the stub depends on.
pub(super) struct CheckErrors {
    /// All mistakes, as one error of syn.
    pub(super) errors: Error,
    /// `true` if the function's signature has a mistake. Its body was then written for another signature.
    pub(super) is_signature_wrong: bool,
    /// The primary, if its struct lacks `#[resource]`: the stub turns it into a kind.
    pub(super) missing_resource: Option<MissingResource>,
}

/// Names that kube-rs, controller-runtime and other frameworks have for an option, with the help.
const OTHER_OPTIONS: [(&str, &str); 19] = [
    ("cleanup", FINALIZER),
    ("filter", PREDICATE),
    ("interval", RESYNC),
    ("kind", KIND),
    ("label_selector", "write `primary(selector = \"…\")`, or `owns = Kind(selector = \"…\")`"),
    ("leader_elect", "it is an option of the program: `run --leader-elect`"),
    ("leader_election", "it is an option of the program: `run --leader-elect`"),
    ("max_concurrent_reconciles", CONCURRENCY),
    ("max_retries", "write `retries = 5`"),
    ("on_delete", FINALIZER),
    ("parallelism", CONCURRENCY),
    ("period", RESYNC),
    ("predicate", PREDICATE),
    ("predicates", PREDICATE),
    ("rate_limit", "write `backoff(\"5ms\", max = \"1000s\")`"),
    ("rate_limiter", "write `backoff(\"5ms\", max = \"1000s\")`"),
    ("requeue", RESYNC),
    ("resource", KIND),
    ("workers", CONCURRENCY),
];
/// The help for names of the number of workers.
const CONCURRENCY: &str = "write `concurrency = 4`";
/// The help for names of cleanup.
const FINALIZER: &str = "write `finalizer = \"example.com/name\"` on a struct with `impl Finalize`";
/// The help for names of the primary's kind.
const KIND: &str =
    "the kind of a function is the type of its first parameter, `Arc<Kind>`; a struct names it by `of = Kind`";
/// The help for names of predicates.
const PREDICATE: &str = "write `owns = Kind(when = f)`, or `primary(when = f)`";
/// The help for names of periodic reconciles.
const RESYNC: &str = "write `resync = \"10m\"`, or return `Action::requeue(…)` for one object";

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
    let n_of_options = errors.len();
    let item = match &input.item {
        Annotated::Function(function) => function_form(function, of, &mut errors),
        Annotated::Struct(item) => struct_form(item, of, &mut errors),
        Annotated::Other(tokens) => {
            let help =
                "put it on `async fn name(object: Arc<Kind>, cx: Context<name>) -> Result<Action>` or on a struct";
            let word = first_word(tokens);
            errors.push(word, codes::NOT_ON_A_CONTROLLER, "`#[controller]` goes on a function or a struct", help);
            None
        }
    };
    let mut is_signature_wrong = errors.len() > n_of_options;
    let (form, name) = match &input.item {
        Annotated::Struct(item) => (Form::Struct, item.ident.clone()),
        Annotated::Function(function) => (Form::Function, function.sig.ident.clone()),
        Annotated::Other(_) => (Form::Function, Ident::new("controller", Span::call_site())),
    };
    let (vis, docs, signature) = match &input.item {
        Annotated::Function(function) => (function.vis.clone(), function.docs(), signature(function)),
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
    check_unique_kinds(&model, &mut errors);
    check_owned_clusters(&model, &mut errors);
    check_unique_options(&input.options, &mut errors);
    check_finalizer_form(&model, &input.options, &mut errors);
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
            no_parentheses(entry, "write `primary(…)` for what may be done with it", errors);
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
    errors.push(wrong, codes::MISSING_VALUE, "`crate` names a path", "write `crate = path`");
    None
}

/// Reports K0011. The help knows names of other frameworks, options and verbs that belong into the parentheses of a
/// kind, and kinds that follow another kind: `owns = Pod, Secret`.
fn unknown_option(entry: &Entry, unknown: &str, errors: &mut Errors) {
    let other = OTHER_OPTIONS.iter().find(|(other, _)| *other == unknown).map(|(_, help)| *help);
    let help = match nearest(unknown, &OPTIONS) {
        _ if other.is_some() => other.unwrap_or_default().to_owned(),
        _ if RelationOption::of(unknown).is_some() => {
            format!("it stands in the parentheses of a kind: `owns = Kind({unknown} = …)`")
        }
        // `create` is nearest to `crate`.
        None | Some("crate") if Verb::of(unknown).is_some() => {
            format!("a verb stands in the parentheses of a kind: `owns = Kind({unknown})`")
        }
        Some(candidate) => format!("did you mean `{candidate}`?"),
        // `owns = Pod, Secret`: a second kind after a comma.
        None if unknown.starts_with(char::is_uppercase) => {
            format!(
                "name the relation of each kind: `owns = {unknown}`, `watches = {unknown}(map = f)` or `reads = {unknown}`"
            )
        }
        None => format!("the options are {}", OPTIONS.join(", ")),
    };
    let what = format!("`#[controller]` has no option `{unknown}`");
    errors.push(&entry.name, codes::UNKNOWN_OPTION, &what, &help);
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

/// Reports K0025 for an option with parentheses that it does not have. Their contents would be lost without a
/// message.
pub(super) fn no_parentheses(entry: &Entry, help: &str, errors: &mut Errors) {
    if let Some(parentheses) = &entry.parentheses {
        let what = format!("`{}` takes no parentheses", entry.name);
        errors.push_at(parentheses.span.join(), codes::FORM_OF_ANOTHER_OPTION, &what, help);
    }
}

/// Reports K0021 for a kind that is declared twice on one cluster, and for the primary as a relation. A kind may be
/// on several clusters if types name them, because `cx.cluster(Edge)` then says which one is meant.
fn check_unique_kinds(model: &Model, errors: &mut Errors) {
    let text = |kind: &Type| kind.to_token_stream().to_string();
    let mut seen: Vec<(String, Option<String>)> = Vec::new();
    let mut elsewhere: Vec<String> = Vec::new();
    for relation in &model.relations {
        let kind = text(&relation.kind);
        let cluster = relation.cluster().map(|cluster| cluster.to_token_stream().to_string());
        if relation.on().is_some() && relation.declared_as != RelationKind::Owns && cluster.is_none() {
            elsewhere.push(kind.clone());
        }
        let help = |other| if elsewhere.contains(&kind) { NAME_CLUSTERS_BY_TYPES } else { other };
        if kind == text(&model.primary) && cluster.is_none() {
            let what = format!("`{kind}` is the primary: it is cached and triggers already");
            let help = help("remove it, or write `primary(…)` with the verbs that are used");
            errors.push(&relation.kind, codes::DUPLICATE_KIND, &what, help);
        } else if seen.contains(&(kind.clone(), cluster.clone())) {
            let on = cluster.as_ref().map(|cluster| format!(" on `{cluster}`")).unwrap_or_default();
            let what = format!("`{kind}` is declared twice{on}");
            errors.push(
                &relation.kind,
                codes::DUPLICATE_KIND,
                &what,
                help("name it once: `owns = K(map = f)` has both triggers"),
            );
        }
        seen.push((kind, cluster));
    }
}

/// Reports K0041 for an owned kind on another cluster than the primary: garbage collection looks for owners in the
/// cluster of the object.
fn check_owned_clusters(model: &Model, errors: &mut Errors) {
    let text = |on: Option<&Expr>| on.map(|on| on.to_token_stream().to_string());
    let primary = text(model.primary_on());
    for relation in model.relations.iter().filter(|relation| relation.declared_as == RelationKind::Owns) {
        let Some(on) = relation.on() else { continue };
        if text(Some(on)) != primary {
            let kind = relation.kind.to_token_stream();
            let what = format!("`{kind}` cannot be owned on another cluster: owner references do not cross clusters");
            let help =
                format!("write `watches = {kind}(map = f, on = …)` with the verbs that are used, or remove `on`");
            errors.push(on, codes::OWNED_ON_ANOTHER_CLUSTER, &what, &help);
        }
    }
}

/// Reads `rbac(rule, …)`, and `rbac(rule, …, on = Edge)` for rules on another cluster. Every form but a value is
/// K0025, and a second `on` is K0022: the role must not lack a rule without a message.
fn rbac(entry: &Entry, errors: &mut Errors) -> Option<Rules> {
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
            let help = format!("write `primary({verb})` beside `rbac(…)`, not in it");
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
fn rules_on(entry: &Entry) -> Option<&Expr> {
    clusters(entry).next().map(|(_, cluster)| cluster)
}

/// Returns each `on = cluster` of an `rbac(…)`. More than one is a mistake.
fn clusters(entry: &Entry) -> impl Iterator<Item = (&Ident, &Expr)> {
    entry.arguments.iter().filter_map(|argument| match argument {
        Argument::Option(name, cluster) if name == "on" => Some((name, cluster)),
        _ => None,
    })
}

/// Reports K0022 for an option that is given twice. Relations may be repeated, and so may `rbac` with different
/// clusters.
fn check_unique_options(options: &[Entry], errors: &mut Errors) {
    let single = |name: &Ident| RelationKind::of(name).is_none();
    let same = |one: &Entry, other: &Entry| one.name == other.name && rules_on(one) == rules_on(other);
    for (index, entry) in options.iter().enumerate().filter(|(_, entry)| single(&entry.name)) {
        if options[..index].iter().any(|before| same(before, entry)) {
            errors.push(
                &entry.name,
                codes::DUPLICATE,
                &format!("`{}` is given twice", entry.name),
                "remove one of them",
            );
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
