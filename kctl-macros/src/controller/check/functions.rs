//! The functions of options: `map`, `when`, `index` and `converged`. Where a function stands in the same file, its head is
//! compared with the one that is needed, because the compiler names neither the second parameter nor what to write. Types are
//! left to the compiler: an alias has another name.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Expr, ExprClosure, FnArg, GenericArgument, PathArguments, ReturnType, Signature, Type};

use super::super::{
    model::{Model, RelationOption},
    parse::{Argument, Entry, Value},
};
use crate::{codes, diagnostics::Errors, function::text_of, source};

/// A function as an option needs it.
struct Needed {
    option: &'static str,
    /// `the object and the store of its primaries`
    of: &'static str,
    /// Names and types of the parameters.
    parameters: Vec<(String, String)>,
    returns: String,
}

/// Compares each function that can be seen.
pub(super) fn check(options: &[Entry], model: &Model, errors: &mut Errors) {
    for entry in options {
        if entry.name == "converged"
            && let Some(Value::Expr(function)) = &entry.value
        {
            let (kind, controller) = (text_of(&model.primary), &model.name);
            let parameters =
                vec![(parameter(&kind), format!("&{kind}")), ("cx".into(), format!("&Context<{controller}>"))];
            let of = "the object and the context";
            compare(function, &Needed { option: "converged", of, parameters, returns: "bool".into() }, errors);
        }
        let Some(kind) = kind_of(entry, model) else { continue };
        for argument in &entry.arguments {
            if let Argument::Option(option, function) = argument
                && let Some(option) = RelationOption::of(&option.to_string())
                && let Some(needed) = needed(option, &kind, &text_of(&model.primary))
            {
                compare(function, &needed, errors);
            }
        }
    }
}

/// What the functions of a relation are called with.
fn kind_of(entry: &Entry, model: &Model) -> Option<String> {
    let kind = match &entry.value {
        Some(Value::Kind(kind)) => text_of(kind),
        None if entry.name == "primary" => text_of(&model.primary),
        _ => return None,
    };
    let part = entry.arguments.iter().find_map(|argument| match argument {
        Argument::As(_, view) => Some(text_of(view)),
        Argument::Word(word) if word == "metadata" => Some(format!("PartialObjectMeta<{kind}>")),
        _ => None,
    });
    Some(part.unwrap_or(kind))
}

fn needed(option: RelationOption, kind: &str, primary: &str) -> Option<Needed> {
    let object = (parameter(kind), format!("&{kind}"));
    Some(match option {
        RelationOption::Map => Needed {
            option: "map",
            of: "the object and the store of the primaries",
            parameters: vec![object, (format!("{}s", parameter(primary)), format!("&Store<{primary}>"))],
            returns: format!("Vec<Key<{primary}>>"),
        },
        RelationOption::When => Needed {
            option: "when",
            of: "a change",
            parameters: vec![("change".into(), format!("&Change<{kind}>"))],
            returns: "bool".into(),
        },
        RelationOption::Index => {
            Needed { option: "index", of: "the object", parameters: vec![object], returns: "Vec<String>".into() }
        }
        RelationOption::Selector | RelationOption::Fields | RelationOption::On => return None,
    })
}

/// `config_map` for `ConfigMap`.
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

fn compare(function: &Expr, needed: &Needed, errors: &mut Errors) {
    let Needed { option, of, parameters, returns } = needed;
    let n = parameters.len();
    match function {
        Expr::Path(path) => {
            let Some(name) = path.path.get_ident() else { return };
            let Some(found) = source::text().and_then(|text| source::function(&text, name)) else { return };
            let Some(difference) = difference(&found, needed) else { return };
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
            let what = format!("`{option}` takes a function of {of}, and this one has {}", counted(inputs.len()));
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

fn counted(n_parameters: usize) -> String {
    if n_parameters == 1 { "1 parameter".into() } else { format!("{n_parameters} parameters") }
}

/// How a function differs from the one that is needed, as far as its head shows it for certain.
fn difference(found: &Signature, needed: &Needed) -> Option<String> {
    if !found.generics.params.is_empty() {
        return None;
    }
    if found.asyncness.is_some() {
        return Some("is `async`: it is called while the cache is written, and only reads".into());
    }
    if found.inputs.len() != needed.parameters.len() {
        return Some(format!("has {}", counted(found.inputs.len())));
    }
    for input in &found.inputs {
        let FnArg::Typed(input) = input else { return None };
        let is_shared = |ty: &Type| last_word(ty).is_some_and(|word| word == "Arc");
        match &*input.ty {
            Type::Reference(reference) if reference.mutability.is_some() || is_shared(&reference.elem) => {
                return Some(format!("takes a `{}`", written(&input.ty)));
            }
            Type::Reference(_) => {}
            ty if is_shared(ty) || last_word(ty).is_some() && is_by_value(ty, needed) => {
                return Some(format!("takes a `{}`, not a reference", written(ty)));
            }
            _ => {}
        }
    }
    match &found.output {
        ReturnType::Default => Some("returns nothing".into()),
        ReturnType::Type(_, ty) if is_other(ty, needed) => Some(format!("returns `{}`", written(ty))),
        ReturnType::Type(..) => None,
    }
}

/// A kind by value; an alias of a reference has another name.
fn is_by_value(ty: &Type, needed: &Needed) -> bool {
    let text = text_of(ty);
    needed.parameters.iter().any(|(_, needed)| needed.trim_start_matches('&') == text)
}

/// Whether a type is certainly not the one that is needed.
fn is_other(ty: &Type, needed: &Needed) -> bool {
    if matches!(ty, Type::ImplTrait(_) | Type::Reference(_) | Type::Tuple(_)) {
        return true;
    }
    let Some(word) = last_word(ty) else { return false };
    let others = ["Option", "Result", "HashSet", "BTreeSet", "String", "Key", "ObjectRef", "Action", "Box"];
    if needed.returns == "bool" {
        return word == "Vec" || others.iter().any(|other| word == other);
    }
    if word == "bool" || others.iter().any(|other| word == other) {
        return true;
    }
    let items = ["String", "ObjectKey", "ObjectRef", "ObjectReference", "NamespacedName", "Request", "Arc"];
    needed.option == "map"
        && word == "Vec"
        && argument(ty).and_then(last_word).is_some_and(|item| items.iter().any(|other| item == other))
}

fn last_word(ty: &Type) -> Option<&Ident> {
    let Type::Path(path) = ty else { return None };
    path.path.segments.last().map(|last| &last.ident)
}

fn argument(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

/// A type as people write it.
fn written(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    let text = text.replace(" :: ", "::").replace("& ", "&").replace(" < ", "<").replace(" >", ">").replace(" <", "<");
    text.replace("< ", "<").replace(" ,", ",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(option: &str, head: &str) -> Option<String> {
        let needed = needed(RelationOption::of(option).unwrap(), "Secret", "ConfigMap").unwrap();
        let function: syn::ItemFn = syn::parse_str(&format!("{head} {{ }}")).unwrap();
        difference(&function.sig, &needed)
    }

    #[test]
    fn heads_are_compared_as_far_as_they_are_certain() {
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
                Some("is `async`: it is called while the cache is written, and only reads"),
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
            assert_eq!(told(option, head).as_deref(), expected, "{head}");
        }
    }

    #[test]
    fn parameters_are_named_after_their_kinds() {
        for (kind, expected) in [("ConfigMap", "config_map"), ("a::Pod", "pod"), ("PartialObjectMeta<Pod>", "pod")] {
            assert_eq!(parameter(kind), expected);
        }
    }
}
