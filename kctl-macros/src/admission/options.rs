//! The options: their words, their values, and which of them contradict each other.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Expr, Ident, Lit};

use crate::{
    attribute::{Entry, Input, Item, Value},
    codes,
    diagnostics::{Errors, nearest},
};

/// The two things that an admission function can do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Mutate,
    Validate,
}

impl Action {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }

    /// How it takes its object.
    pub(super) fn reference(self) -> &'static str {
        match self {
            Self::Mutate => "&mut ",
            Self::Validate => "&",
        }
    }
}

const ACTIONS: [&str; 2] = ["validate", "mutate"];
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
/// Options whose value is one of a few words of the API, with the enum of it.
const WORDS: [(&str, &str, &[&str]); 4] = [
    ("failure_policy", "FailurePolicy", &["Fail", "Ignore"]),
    ("side_effects", "SideEffects", &["None", "NoneOnDryRun"]),
    ("match_policy", "MatchPolicy", &["Equivalent", "Exact"]),
    ("reinvocation", "Reinvocation", &["Never", "IfNeeded"]),
];
const OPERATIONS: [&str; 4] = ["create", "update", "delete", "connect"];

/// An option of the webhook configuration, in the order of the attribute.
pub(super) enum Setting {
    /// `failure_policy = Ignore`: the option, the enum of its values, and the variant.
    Word {
        option: Ident,
        kind: &'static str,
        value: &'static str,
    },
    Operations(Vec<Operation>),
    Subresources(Vec<String>),
    /// In seconds.
    Timeout(u8),
    /// `namespace_selector` or `object_selector`.
    Selector {
        option: Ident,
        selector: String,
    },
    MatchConditions(Vec<MatchCondition>),
}

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    fn of(word: &str) -> Option<Self> {
        match word {
            "create" => Some(Self::Create),
            "update" => Some(Self::Update),
            "delete" => Some(Self::Delete),
            "connect" => Some(Self::Connect),
            _ => None,
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

/// A name with a CEL expression.
pub(super) struct MatchCondition {
    pub(super) name: String,
    pub(super) expression: String,
}

/// The options as they were read.
#[derive(Default)]
pub(super) struct Options {
    pub(super) action: Option<(Action, Ident)>,
    pub(super) settings: Vec<Setting>,
    /// The word that asks for what is not the object: a connect, or a subresource of another kind.
    pub(super) elsewhere: Option<(TokenStream, String)>,
}

pub(super) fn options(input: &Input, errors: &mut Errors) -> Options {
    input.known_and_once("#[admission]", &OPTIONS, codes::UNKNOWN_ADMISSION_OPTION, errors);
    let mut options = Options { action: action(input, errors), ..Options::default() };
    for entry in &input.options {
        let name = entry.name.to_string();
        if let Some((_, kind, words)) = WORDS.iter().find(|(option, ..)| *option == name) {
            word(entry, kind, words, &mut options, errors);
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

fn action(input: &Input, errors: &mut Errors) -> Option<(Action, Ident)> {
    let mut found = input.options.iter().filter(|entry| ACTIONS.iter().any(|action| entry.name == action));
    let first = found.next();
    if let Some(second) = found.find(|second| first.is_some_and(|first| first.name != second.name)) {
        let help = "write a function for each: what is mutated is validated afterwards";
        errors.push(&second.name, codes::NEITHER_VALIDATES_NOR_MUTATES, "a function either validates or mutates", help);
    }
    let Some(entry) = first else {
        // A word that is almost one of them is said already.
        let misspelt = |entry: &Entry| nearest(&entry.name.to_string(), &ACTIONS).is_some();
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

fn word(entry: &Entry, kind: &'static str, words: &[&'static str], options: &mut Options, errors: &mut Errors) {
    let name = &entry.name;
    let form =
        || format!("write {}", words.iter().map(|word| format!("`{name} = {word}`")).collect::<Vec<_>>().join(" or "));
    let Value::Expr(value) = &entry.value else {
        errors.push(name, codes::INVALID_ADMISSION_VALUE, &format!("`{name}` needs a value"), &form());
        return;
    };
    let text = value.to_token_stream().to_string();
    let Some(known) = words.iter().find(|word| **word == text) else {
        let help = match nearest(&text, words) {
            Some(known) => format!("did you mean `{known}`?"),
            None => form(),
        };
        errors.push(value, codes::INVALID_ADMISSION_VALUE, &format!("`{text}` is not a value of `{name}`"), &help);
        return;
    };
    options.settings.push(Setting::Word { option: name.clone(), kind, value: known });
}

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

fn operations(entry: &Entry, options: &mut Options, errors: &mut Errors) {
    let form = "write for example `operations(create, update, delete)`";
    let Some(items) = items(entry, form, errors) else { return };
    let mut operations = Vec::new();
    for item in items {
        let Some(operation) = Operation::of(&item.text).filter(|_| item.value.is_none()) else {
            let help = match nearest(&item.text.to_lowercase(), &OPERATIONS) {
                Some(known) => format!("did you mean `{known}`?"),
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
        if operation == Operation::Connect {
            options.elsewhere.get_or_insert((item.name.clone(), "`connect`".into()));
        }
        operations.push(operation);
    }
    options.settings.push(Setting::Operations(operations));
}

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
        if name != "status" {
            options.elsewhere.get_or_insert((item.name.clone(), format!("the subresource `{name}`")));
        }
        names.push(name.clone());
    }
    options.settings.push(Setting::Subresources(names));
}

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

/// The text of a literal.
fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn selector(entry: &Entry, options: &mut Options, errors: &mut Errors) {
    let (name, form) = (&entry.name, format!("write for example `{} = \"team=web\"`", entry.name));
    let Value::Expr(value) = &entry.value else {
        errors.push(name, codes::INVALID_ADMISSION_VALUE, &format!("`{name}` needs a value"), &form);
        return;
    };
    match text(value) {
        Some(selector) => options.settings.push(Setting::Selector { option: name.clone(), selector }),
        None => errors.push(
            value,
            codes::INVALID_ADMISSION_VALUE,
            &format!("`{name}` is a label selector, in quotes"),
            &form,
        ),
    }
}

fn conditions(entry: &Entry, options: &mut Options, errors: &mut Errors) {
    let form =
        "write for example `match_conditions(\"not-system\" = \"!request.userInfo.username.startsWith('system:')\")`";
    let Some(items) = items(entry, form, errors) else { return };
    let mut conditions = Vec::new();
    for item in items {
        match item.value.as_ref().and_then(text) {
            Some(expression) => conditions.push(MatchCondition { name: item.text.clone(), expression }),
            None => errors.push(
                &item.name,
                codes::INVALID_ADMISSION_VALUE,
                "a match condition is a name with an expression of CEL",
                form,
            ),
        }
    }
    options.settings.push(Setting::MatchConditions(conditions));
}
