//! The options of `#[admission]`: their names, their values, and which of them contradict each other.
//!
//! Names and values follow `ValidatingWebhook` and `MutatingWebhook` in `admissionregistration.k8s.io/v1`, in snake
//! case: `failure_policy = Ignore` is `failurePolicy: Ignore`. The runtime has the defaults, so an absent option emits
//! nothing.

use kctl_apimachinery::{labels, validation::is_qualified_name};
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Expr, Ident, Lit};

use super::synonyms;
use crate::{
    attribute::{Entry, Input, Item, KnownOptions, Value},
    codes,
    diagnostics::{Errors, closest_match},
};

/// Match conditions of a webhook: `maxItems` of `matchConditions` in `admissionregistration.k8s.io/v1`.
const CONDITIONS_MAX: usize = 64;

/// The two actions of an admission function: a `ValidatingWebhook` or a `MutatingWebhook`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Mutate,
    Validate,
}

impl Action {
    /// Returns the word of the attribute.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }

    /// Returns the reference type of the function's object parameter, as the help shows it.
    pub(super) fn reference(self) -> &'static str {
        match self {
            Self::Mutate => "&mut ",
            Self::Validate => "&",
        }
    }
}

/// The words of the actions, for "did you mean".
const ACTIONS: [&str; 2] = ["validate", "mutate"];
/// All options in the order of the help.
const OPTIONS: [&str; 13] = [
    "validate",
    "mutate",
    "operations",
    "subresources",
    "failure_policy",
    "timeout",
    "side_effects",
    "match_policy",
    "namespace_selector",
    "object_selector",
    "match_conditions",
    "reinvocation",
    "crate",
];
/// Options whose value is one of a few words of the Kubernetes API, each with the runtime's enum of the values.
const WORDS: [(&str, &str, &[&str]); 4] = [
    ("failure_policy", "FailurePolicy", &["Fail", "Ignore"]),
    ("side_effects", "SideEffects", &["None", "NoneOnDryRun"]),
    ("match_policy", "MatchPolicy", &["Equivalent", "Exact"]),
    ("reinvocation", "Reinvocation", &["Never", "IfNeeded"]),
];
/// The operations of a webhook rule. `*` is not among them: a function lists what it handles.
const OPERATIONS: [&str; 4] = ["create", "update", "delete", "connect"];

/// An option of the webhook configuration. The order of the attribute is kept, so that the generated assignments can
/// be compared with it.
pub(super) enum Setting {
    /// `failure_policy = Ignore`: the option, the enum of its values, and the variant.
    Word { option: Ident, kind: &'static str, value: &'static str },
    /// `operations(create, update)`.
    Operations(Vec<Operation>),
    /// `subresources(status)`.
    Subresources(Vec<String>),
    /// In seconds.
    Timeout(u8),
    /// `namespace_selector` or `object_selector`.
    Selector { option: Ident, selector: String },
    /// `match_conditions("name" = "expression")`.
    MatchConditions(Vec<MatchCondition>),
}

/// An operation of `admissionregistration.k8s.io/v1`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    /// Returns the operation of a word in lower case.
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "create" => Some(Self::Create),
            "update" => Some(Self::Update),
            "delete" => Some(Self::Delete),
            "connect" => Some(Self::Connect),
            _ => None,
        }
    }

    /// Returns the word of the attribute.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Connect => "connect",
        }
    }

    /// Returns the variant of the enum of the runtime.
    pub(super) fn variant(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
            Self::Connect => "Connect",
        }
    }
}

/// A condition of `matchConditions`: a name with a CEL expression. API servers skip the webhook where the expression
/// is false.
pub(super) struct MatchCondition {
    /// The name, which API servers show if the expression fails.
    pub(super) name: String,
    /// The CEL expression. `true` sends the request to the webhook.
    pub(super) expression: String,
}

/// The options after the checks.
#[derive(Default)]
pub(super) struct Options {
    /// The action with its word. `None` after a mistake.
    pub(super) action: Option<(Action, Ident)>,
    /// All other options.
    pub(super) settings: Vec<Setting>,
    /// The first word that asks for an object of another kind, with its description for the message: `connect`, or a
    /// subresource other than `status`.
    pub(super) other_object: Option<(TokenStream, String)>,
}

/// Reads all options. Unknown and repeated ones are K0102 and K0022; `reinvocation` on a validating function is
/// K0106, because API servers reinvoke mutating webhooks only.
pub(super) fn options(input: &Input, errors: &mut Errors) -> Options {
    let known = KnownOptions {
        attribute: "#[admission]",
        names: &OPTIONS,
        code: codes::UNKNOWN_ADMISSION_OPTION,
        synonym: synonyms::help,
    };
    input.check_known_and_unique(&known, errors);
    let mut options = Options { action: action(input, errors), ..Options::default() };
    for entry in &input.options {
        let name = entry.name.to_string();
        if let Some((_, kind, words)) = WORDS.iter().find(|(option, ..)| *option == name) {
            parse_choice(entry, kind, words, &mut options, errors);
        }
        match name.as_str() {
            "operations" => operations(entry, &mut options, errors),
            "subresources" => subresources(entry, &mut options, errors),
            "timeout" => timeout(entry, &mut options, errors),
            "namespace_selector" | "object_selector" => selector(entry, &mut options, errors),
            "match_conditions" => conditions(entry, &mut options, errors),
            "reinvocation" if matches!(options.action, Some((Action::Validate, _))) => {
                let what = "a validating function is called once: `reinvocation` has no effect";
                errors.push(
                    &entry.name,
                    codes::CONTRADICTING_OPTIONS,
                    what,
                    "remove `reinvocation`, or make it `mutate`",
                );
            }
            _ => {}
        }
    }
    options
}

/// Returns the action with its word. Reports K0101 for none or both, unless a misspelt one was reported already, and
/// K0104 for an action with a value.
fn action(input: &Input, errors: &mut Errors) -> Option<(Action, Ident)> {
    let mut found = input.options.iter().filter(|entry| ACTIONS.iter().any(|action| entry.name == action));
    let first = found.next();
    if let Some(second) = found.find(|second| first.is_some_and(|first| first.name != second.name)) {
        let help = "write a function for each: what is mutated is validated afterwards";
        errors.push(&second.name, codes::NEITHER_VALIDATES_NOR_MUTATES, "a function either validates or mutates", help);
    }
    let Some(entry) = first else {
        // A misspelt action was reported as an unknown option.
        let misspelt = |entry: &Entry| {
            let name = entry.name.to_string();
            closest_match(&name, &ACTIONS).is_some() || synonyms::is_action(&name)
        };
        if !input.options.iter().any(misspelt) && input.mistakes.is_empty() {
            let help = "write `#[admission(validate)]`, or `#[admission(mutate)]` for one that changes its object";
            let what = "`#[admission]` needs `validate` or `mutate`";
            match input.function.as_ref().map(|function| &function.sig.ident) {
                Some(name) => errors.push(name, codes::NEITHER_VALIDATES_NOR_MUTATES, what, help),
                None => errors.push(TokenStream::new(), codes::NEITHER_VALIDATES_NOR_MUTATES, what, help),
            }
        }
        return None;
    };
    if !matches!(entry.value, Value::None) {
        let name = &entry.name;
        errors.push(
            name,
            codes::INVALID_ADMISSION_VALUE,
            &format!("`{name}` has no value"),
            &format!("write `#[admission({name})]`"),
        );
    }
    let action = if entry.name == "mutate" { Action::Mutate } else { Action::Validate };
    Some((action, entry.name.clone()))
}

/// Reads `option = Word`, such as `failure_policy = Ignore`. K0104 for another word, with the nearest one as help.
fn parse_choice(entry: &Entry, kind: &'static str, words: &[&'static str], options: &mut Options, errors: &mut Errors) {
    let name = &entry.name;
    let form =
        || format!("write {}", words.iter().map(|word| format!("`{name} = {word}`")).collect::<Vec<_>>().join(" or "));
    let Value::Expr(value) = &entry.value else {
        errors.push(name, codes::INVALID_ADMISSION_VALUE, &format!("`{name}` needs a value"), &form());
        return;
    };
    let text = value.to_token_stream().to_string();
    let Some(candidate) = words.iter().find(|word| **word == text) else {
        let help = match closest_match(&text, words) {
            Some(candidate) => format!("did you mean `{candidate}`?"),
            None => form(),
        };
        errors.push(value, codes::INVALID_ADMISSION_VALUE, &format!("`{text}` is not a value of `{name}`"), &help);
        return;
    };
    options.settings.push(Setting::Word { option: name.clone(), kind, value: candidate });
}

/// Returns the entries of an option that is a list in parentheses. K0104 for an empty list and for any other form.
fn items<'a>(entry: &'a Entry, form: &str, errors: &mut Errors) -> Option<&'a [Item]> {
    match &entry.value {
        Value::Items(items) if !items.is_empty() => Some(items),
        _ => {
            errors.push(
                &entry.name,
                codes::INVALID_ADMISSION_VALUE,
                &format!("`{}` is a list in parentheses", entry.name),
                form,
            );
            None
        }
    }
}

/// Reports K0022 for a word that a list has already.
fn report_duplicate(item: &Item, errors: &mut Errors) {
    errors.push(&item.name, codes::DUPLICATE, &format!("`{}` is given twice", item.text), "remove one of them");
}

/// Reads `operations(create, update)`. K0104 for an unknown operation; K0106 for a mutating function of an operation
/// without an object to mutate.
fn operations(entry: &Entry, options: &mut Options, errors: &mut Errors) {
    let form = "write for example `operations(create, update, delete)`";
    let Some(items) = items(entry, form, errors) else { return };
    let mut operations = Vec::new();
    for item in items {
        let Some(operation) = Operation::of(&item.text).filter(|_| item.value.is_none()) else {
            let help = match closest_match(&item.text.to_lowercase(), &OPERATIONS) {
                Some(candidate) => format!("did you mean `{candidate}`?"),
                None => format!("the operations are {}", OPERATIONS.join(", ")),
            };
            errors.push(
                &item.name,
                codes::INVALID_ADMISSION_VALUE,
                &format!("`{}` is not an operation", item.text),
                &help,
            );
            continue;
        };
        let mutates = matches!(options.action, Some((Action::Mutate, _)));
        if mutates && matches!(operation, Operation::Delete | Operation::Connect) {
            let what = format!("there is no object to mutate in a {}", item.text);
            errors.push(&item.name, codes::CONTRADICTING_OPTIONS, &what, "make it `validate`, or remove the operation");
            continue;
        }
        if operations.contains(&operation) {
            report_duplicate(item, errors);
            continue;
        }
        if operation == Operation::Connect {
            options.other_object.get_or_insert((item.name.clone(), "`connect`".into()));
        }
        operations.push(operation);
    }
    options.settings.push(Setting::Operations(operations));
}

/// Reads `subresources(status)`. K0104 for a name that can't be a subresource. Which ones a kind has is known to the
/// API server alone.
fn subresources(entry: &Entry, options: &mut Options, errors: &mut Errors) {
    let Some(items) = items(entry, "write for example `subresources(status)`", errors) else { return };
    let mut names = Vec::new();
    for item in items {
        let name = &item.text;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase());
        if item.value.is_some() || !is_name {
            let what = format!("`{name}` is not a subresource");
            errors.push(
                &item.name,
                codes::INVALID_ADMISSION_VALUE,
                &what,
                "write its name, such as `status`, `scale` or `exec`",
            );
            continue;
        }
        if names.contains(name) {
            report_duplicate(item, errors);
            continue;
        }
        if name != "status" {
            options.other_object.get_or_insert((item.name.clone(), format!("the subresource `{name}`")));
        }
        names.push(name.clone());
    }
    options.settings.push(Setting::Subresources(names));
}

/// Reads `timeout = 5`, in seconds. API servers accept 1 to 30 (`pkg/apis/admissionregistration/validation` in
/// Kubernetes); K0104 for another number.
fn timeout(entry: &Entry, options: &mut Options, errors: &mut Errors) {
    let form = "write for example `timeout = 5`: API servers take 1 to 30 seconds";
    let Value::Expr(value) = &entry.value else {
        errors.push(&entry.name, codes::INVALID_ADMISSION_VALUE, "`timeout` needs a value", form);
        return;
    };
    let number = match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse::<u8>().ok(),
            _ => None,
        },
        _ => None,
    };
    match number.filter(|seconds| (1..=30).contains(seconds)) {
        Some(seconds) => options.settings.push(Setting::Timeout(seconds)),
        None => {
            errors.push(value, codes::INVALID_ADMISSION_VALUE, "`timeout` is a number of seconds from 1 to 30", form);
        }
    }
}

/// Returns the value of a string literal.
fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Reads a label selector as a string, such as `"team=web"`. K0105 if it is invalid. The comparisons `>` and `<` are found
/// when the app starts: a `LabelSelector` does not have them.
fn selector(entry: &Entry, options: &mut Options, errors: &mut Errors) {
    let (name, form) = (&entry.name, format!("write for example `{} = \"team=web\"`", entry.name));
    let Value::Expr(value) = &entry.value else {
        errors.push(name, codes::INVALID_ADMISSION_VALUE, &format!("`{name}` needs a value"), &form);
        return;
    };
    match text(value) {
        Some(selector) if labels::parse(&selector).is_none() => {
            errors.push(value, codes::INVALID_SELECTOR, &format!("`{selector}` is not a label selector"), &form);
        }
        Some(selector) => options.settings.push(Setting::Selector { option: name.clone(), selector }),
        None => errors.push(
            value,
            codes::INVALID_ADMISSION_VALUE,
            &format!("`{name}` is a label selector, in quotes"),
            &form,
        ),
    }
}

/// Reads `match_conditions("name" = "expression", …)`. K0104 for names and expressions that API servers reject
/// (`validateMatchConditions` in `pkg/apis/admissionregistration/validation`). They compile the expressions.
fn conditions(entry: &Entry, options: &mut Options, errors: &mut Errors) {
    let form =
        "write for example `match_conditions(\"not-system\" = \"!request.userInfo.username.startsWith('system:')\")`";
    let Some(items) = items(entry, form, errors) else { return };
    if items.len() > CONDITIONS_MAX {
        let what = format!("{} match conditions, and API servers take {CONDITIONS_MAX}", items.len());
        errors.push(&entry.name, codes::INVALID_ADMISSION_VALUE, &what, "join some of them with `&&`");
    }
    let mut conditions: Vec<MatchCondition> = Vec::new();
    for item in items {
        let Some(expression) = item.value.as_ref().and_then(text) else {
            let what = "a match condition is a name with an expression of CEL";
            errors.push(&item.name, codes::INVALID_ADMISSION_VALUE, what, form);
            continue;
        };
        let mut push = |what: &str, help: &str| errors.push(&item.name, codes::INVALID_ADMISSION_VALUE, what, help);
        if !is_qualified_name(&item.text) {
            let help = "write letters, digits, `-`, `_` and `.`, 63 at most";
            push(&format!("`{}` can't be the name of a match condition", item.text), help);
        } else if conditions.iter().any(|condition| condition.name == item.text) {
            push(&format!("the match condition `{}` is given twice", item.text), "give each one a name");
        } else if expression.trim().is_empty() {
            push(&format!("the match condition `{}` has no expression", item.text), form);
        }
        conditions.push(MatchCondition { name: item.text.clone(), expression });
    }
    options.settings.push(Setting::MatchConditions(conditions));
}
