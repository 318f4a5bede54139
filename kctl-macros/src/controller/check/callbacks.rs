//! The functions of the options `map`, `when`, `index` and `converged`.
//!
//! | option | signature |
//! |---|---|
//! | `map` | `fn(&Kind, &Store<Primary>) -> Vec<Key<Primary>>` |
//! | `when` | `fn(&Change<Kind>) -> bool` |
//! | `index` | `fn(&Kind) -> Vec<String>` |
//! | `converged` | `fn(&Primary, &Context<controller>) -> bool` |
//!
//! If a function is in the same file, its signature is compared with the required one. rustc's error names neither the
//! second parameter nor the signature to write. Types are compared only where an alias can't make them equal; rustc
//! reports the rest.

use proc_macro2::Ident;
use syn::{Expr, ExprClosure, FnArg, GenericArgument, PathArguments, ReturnType, Signature, Type};

use super::super::{
    model::{Model, RelationOption},
    parse::{Argument, Entry, Value},
};
use crate::{
    codes,
    diagnostics::Errors,
    function::{compact_text, type_text},
    source_file,
};

/// The signature that an option requires.
struct RequiredSignature {
    /// The name of the option.
    option: &'static str,
    /// `the object and the store of its primaries`
    of: &'static str,
    /// Names and types of the parameters, as the help shows them.
    parameters: Vec<(String, String)>,
    returns: String,
}

/// Checks each function that the file defines, and closures by their number of parameters.
pub(super) fn check(options: &[Entry], model: &Model, errors: &mut Errors) {
    for entry in options {
        if entry.name == "converged"
            && let Some(Value::Expr(function)) = &entry.value
        {
            let (kind, controller) = (compact_text(&model.primary), &model.name);
            let parameters =
                vec![(parameter(&kind), format!("&{kind}")), ("cx".into(), format!("&Context<{controller}>"))];
            let of = "the object and the context";
            compare(
                function,
                &RequiredSignature { option: "converged", of, parameters, returns: "bool".into() },
                errors,
            );
        }
        let Some(kind) = kind_of(entry, model) else { continue };
        for argument in &entry.arguments {
            if let Argument::Option(option, function) = argument
                && let Some(option) = RelationOption::of(&option.to_string())
                // `primary.rs` has rejected it.
                && (entry.name != "primary" || option != RelationOption::Map)
                && let Some(required) = required_signature(option, &kind, &compact_text(&model.primary))
            {
                compare(function, &required, errors);
            }
        }
    }
}

/// Returns the type with which the functions of a relation are called: the kind, its metadata, or its view.
fn kind_of(entry: &Entry, model: &Model) -> Option<String> {
    let kind = match &entry.value {
        Some(Value::Kind(kind)) => compact_text(kind),
        None if entry.name == "primary" => compact_text(&model.primary),
        _ => return None,
    };
    let part = entry.arguments.iter().find_map(|argument| match argument {
        Argument::As(_, view) => Some(compact_text(view)),
        Argument::Word(word) if word == "metadata" => Some(format!("PartialObjectMeta<{kind}>")),
        _ => None,
    });
    Some(part.unwrap_or(kind))
}

/// Returns the signature of an option. `None` for options that are not functions.
fn required_signature(option: RelationOption, kind: &str, primary: &str) -> Option<RequiredSignature> {
    let object = (parameter(kind), format!("&{kind}"));
    Some(match option {
        RelationOption::Map => RequiredSignature {
            option: "map",
            of: "the object and the store of the primaries",
            parameters: vec![object, (format!("{}s", parameter(primary)), format!("&Store<{primary}>"))],
            returns: format!("Vec<Key<{primary}>>"),
        },
        RelationOption::When => RequiredSignature {
            option: "when",
            of: "a change",
            parameters: vec![("change".into(), format!("&Change<{kind}>"))],
            returns: "bool".into(),
        },
        RelationOption::Index => RequiredSignature {
            option: "index",
            of: "the object",
            parameters: vec![object],
            returns: "Vec<String>".into(),
        },
        RelationOption::Selector | RelationOption::Fields | RelationOption::On => return None,
    })
}

/// Returns a parameter's name for a kind: `config_map` for `ConfigMap`.
fn parameter(kind: &str) -> String {
    let name = kind.rsplit("::").next().unwrap_or(kind);
    let name = name.split(['<', '>']).rfind(|word| !word.is_empty()).unwrap_or(name);
    let mut text = String::new();
    for char in name.chars() {
        if char.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(char.to_lowercase());
    }
    text
}

/// Reports K0119 if a function certainly has another signature.
fn compare(function: &Expr, required: &RequiredSignature, errors: &mut Errors) {
    let RequiredSignature { option, of, parameters, returns } = required;
    let n = parameters.len();
    match function {
        Expr::Path(path) => {
            let Some(name) = path.path.get_ident() else { return };
            let Some(found) = source_file::read().and_then(|text| source_file::unique_signature(&text, name)) else {
                return;
            };
            let Some(difference) = difference(&found, required) else { return };
            let typed: Vec<_> = parameters.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
            let what = format!("`{option}` takes a function of {of}, and `{name}` {difference}");
            errors.push(
                name,
                codes::WRONG_FUNCTION,
                &what,
                &format!("write `fn {name}({}) -> {returns}`", typed.join(", ")),
            );
        }
        Expr::Closure(ExprClosure { inputs, .. }) if inputs.len() != n => {
            let names: Vec<_> = parameters.iter().map(|(name, _)| name.as_str()).collect();
            let what =
                format!("`{option}` takes a function of {of}, and this one has {}", parameter_count_text(inputs.len()));
            errors.push(
                inputs,
                codes::WRONG_FUNCTION,
                &what,
                &format!("write `{option} = |{}| …`, which returns `{returns}`", names.join(", ")),
            );
        }
        _ => {}
    }
}

/// Returns a number of parameters in words.
fn parameter_count_text(n_parameters: usize) -> String {
    if n_parameters == 1 { "1 parameter".into() } else { format!("{n_parameters} parameters") }
}

/// Returns the difference between a function and the required signature in words, for "`f` …". `None` for a generic
/// function, and wherever an alias could make both equal.
fn difference(found: &Signature, required: &RequiredSignature) -> Option<String> {
    if !found.generics.params.is_empty() {
        return None;
    }
    if found.asyncness.is_some() {
        return Some("is `async`: callbacks are plain functions, which only read what is cached".into());
    }
    if found.inputs.len() != required.parameters.len() {
        return Some(format!("has {}", parameter_count_text(found.inputs.len())));
    }
    for input in &found.inputs {
        let FnArg::Typed(input) = input else { return None };
        let is_shared = |ty: &Type| last_segment(ty).is_some_and(|word| word == "Arc");
        match &*input.ty {
            Type::Reference(reference) if reference.mutability.is_some() || is_shared(&reference.elem) => {
                return Some(format!("takes a `{}`", type_text(&input.ty)));
            }
            Type::Reference(_) => {}
            ty if is_shared(ty) || last_segment(ty).is_some() && is_by_value(ty, required) => {
                return Some(format!("takes a `{}`, not a reference", type_text(ty)));
            }
            _ => {}
        }
    }
    match &found.output {
        ReturnType::Default => Some("returns nothing".into()),
        ReturnType::Type(_, ty) if is_certainly_wrong(ty, required) => Some(format!("returns `{}`", type_text(ty))),
        ReturnType::Type(..) => None,
    }
}

/// Returns `true` for a parameter that has the required type without the reference. Any other name could be an alias
/// of a reference.
fn is_by_value(ty: &Type, required: &RequiredSignature) -> bool {
    let text = compact_text(ty);
    required.parameters.iter().any(|(_, required)| required.trim_start_matches('&') == text)
}

/// Returns `true` for a return type that can't be the required one. The lists have types that people return by
/// mistake.
fn is_certainly_wrong(ty: &Type, required: &RequiredSignature) -> bool {
    if matches!(ty, Type::ImplTrait(_) | Type::Reference(_) | Type::Tuple(_)) {
        return true;
    }
    let Some(word) = last_segment(ty) else { return false };
    let others = ["Option", "Result", "HashSet", "BTreeSet", "String", "Key", "ObjectRef", "Action", "Box"];
    if required.returns == "bool" {
        return word == "Vec" || others.iter().any(|other| word == other);
    }
    if word == "bool" || others.iter().any(|other| word == other) {
        return true;
    }
    let items = ["String", "ObjectKey", "ObjectRef", "ObjectReference", "NamespacedName", "Request", "Arc"];
    required.option == "map"
        && word == "Vec"
        && argument(ty).and_then(last_segment).is_some_and(|item| items.iter().any(|other| item == other))
}

/// Returns the last segment of a path.
fn last_segment(ty: &Type) -> Option<&Ident> {
    let Type::Path(path) = ty else { return None };
    path.path.segments.last().map(|last| &last.ident)
}

/// Returns the first type argument of a path.
fn argument(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference_to(option: &str, head: &str) -> Option<String> {
        let required = required_signature(RelationOption::of(option).unwrap(), "Secret", "ConfigMap").unwrap();
        let function: syn::ItemFn = syn::parse_str(&format!("{head} {{ }}")).unwrap();
        difference(&function.sig, &required)
    }

    #[test]
    fn signatures_are_compared_where_they_are_certain() {
        for (option, head, expected) in [
            ("map", "fn f(s: &Secret) -> Vec<Key<ConfigMap>>", Some("has 1 parameter")),
            (
                "map",
                "fn f(s: Arc<Secret>, c: &Store<ConfigMap>) -> Vec<Key<ConfigMap>>",
                Some("takes a `Arc<Secret>`, not a reference"),
            ),
            (
                "map",
                "fn f(s: &Arc<Secret>, c: &Store<ConfigMap>) -> Vec<Key<ConfigMap>>",
                Some("takes a `&Arc<Secret>`"),
            ),
            (
                "map",
                "fn f(s: Secret, c: &Store<ConfigMap>) -> Vec<Key<ConfigMap>>",
                Some("takes a `Secret`, not a reference"),
            ),
            (
                "map",
                "async fn f(s: &Secret, c: &Store<ConfigMap>) -> Vec<Key<ConfigMap>>",
                Some("is `async`: callbacks are plain functions, which only read what is cached"),
            ),
            (
                "map",
                "fn f(s: &Secret, c: &Store<ConfigMap>) -> Option<Key<ConfigMap>>",
                Some("returns `Option<Key<ConfigMap>>`"),
            ),
            ("map", "fn f(s: &Secret, c: &Store<ConfigMap>) -> Vec<String>", Some("returns `Vec<String>`")),
            ("map", "fn f(s: &Secret, c: &Store<ConfigMap>)", Some("returns nothing")),
            ("map", "fn f(s: &Secret, c: &Store<ConfigMap>) -> Vec<Key<ConfigMap>>", None),
            ("map", "fn f(s: &Other, c: &Others) -> Keys", None),
            ("when", "fn f(old: &Secret, new: &Secret) -> bool", Some("has 2 parameters")),
            ("when", "fn f(change: &Change<Secret>) -> bool", None),
            ("index", "fn f(s: &Secret) -> Option<String>", Some("returns `Option<String>`")),
            ("index", "fn f(s: &Secret) -> Vec<String>", None),
            ("index", "fn f<K>(s: &K) -> Vec<String>", None),
        ] {
            assert_eq!(difference_to(option, head).as_deref(), expected, "{head}");
        }
    }

    #[test]
    fn parameters_are_named_after_their_kinds() {
        for (kind, expected) in [("ConfigMap", "config_map"), ("a::Pod", "pod"), ("PartialObjectMeta<Pod>", "pod")] {
            assert_eq!(parameter(kind), expected);
        }
    }
}
