//! Types that callers of the facade pass to it, or get from its own items, have a path in the facade. A program depends on no other
//! crate of kctl to name them.

use std::{collections::BTreeSet, fmt::Write, sync::LazyLock};

use regex::Regex;

use super::{PUBLIC, implementations::without_attributes};

/// A name of a type or trait.
static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[A-Z]\w*").unwrap());

/// A struct or enum: its crate, as paths name it, and its own name.
type TypeName = (&'static str, &'static str);

/// Types without a path in the facade, each with its crate and the reason why programs do without the path.
const WITHOUT_PATH: [(&str, &str, &str); 8] = [
    ("kctl_interpreter", "FunctionInfo", "`#[interpreter]` makes it"),
    ("kctl_interpreter", "Metrics", "a name of prometheus-client's registry in that signature"),
    ("kctl_interpreter", "Script", "a chain runs scripts; control planes without an `App` run single ones"),
    ("kctl_interpreter", "ScriptInputs", "an argument of a single script"),
    ("kctl_runtime", "Operation", "a string converts into it"),
    ("kctl_runtime", "SharedStore", "the caches of the manager make it"),
    ("kctl_webhook", "FunctionInfo", "`#[admission]` and `#[conversion]` make it"),
    ("kctl_webhook", "Options", "`#[admission]` makes it"),
];

/// Returns the crate of a path.
fn crate_of(path: &str) -> &str {
    path.split("::").next().unwrap()
}

/// Returns the type at a path.
fn type_name(path: &'static str) -> TypeName {
    (crate_of(path), path.rsplit("::").next().unwrap())
}

/// Returns the path and the right side of a line of the record, without attributes.
fn split(line: &str) -> (&str, &str) {
    let (path, what) = line.split_once(": ").unwrap();
    (path, without_attributes(what))
}

/// Returns the lines of the crate of a path, as [`split`] returns them; no lines if the crate is not a crate of kctl.
fn record_of(path: &str) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let public = PUBLIC.get(crate_of(path).replace('_', "-").as_str());
    public.into_iter().flat_map(|public| &public.lines).map(|line| split(line))
}

/// Returns the item of another crate of kctl that the right side of a line re-exports.
fn re_exported(what: &'static str) -> Option<&'static str> {
    let path = what.strip_prefix("use ")?;
    PUBLIC.contains_key(crate_of(path).replace('_', "-").as_str()).then_some(path)
}

/// Returns the items that the facade re-exports. If one of them is a re-export too, the item behind it is in the result as well.
fn re_exported_items() -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&'static str> = record_of("kctl").filter_map(|(_, what)| re_exported(what)).collect();
    while let Some(item) = open.pop() {
        if found.insert(item) {
            open.extend(record_of(item).filter(|(path, _)| *path == item).filter_map(|(_, what)| re_exported(what)));
        }
    }
    found
}

/// Returns the types with a path in the facade.
fn facade_types() -> BTreeSet<TypeName> {
    re_exported_items().into_iter().map(type_name).collect()
}

/// Returns all public structs and enums of the crates.
fn structs_and_enums() -> BTreeSet<TypeName> {
    let lines = PUBLIC.keys().flat_map(|krate| record_of(krate));
    let types = lines.filter(|(_, what)| what.starts_with("struct") || what.starts_with("enum"));
    types.map(|(path, _)| type_name(path)).collect()
}

/// Returns `true` if a line with this path and right side is the function `item`, or a method of the type `item`.
fn is_function_of(item: &str, path: &str, what: &str) -> bool {
    let is_part = path.strip_prefix(item).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    is_part && ["fn ", "async fn ", "const fn "].iter().any(|start| what.starts_with(start))
}

/// Returns a signature up to its result and its bounds.
fn parameters(signature: &str) -> &str {
    let head = signature.split(" where ").next().unwrap();
    head.rsplit_once(") ->").map_or(head, |(parameters, _)| parameters)
}

/// Returns the types and traits that a signature names. An associated type, as in `IntoIterator<Item = T>`, is not one of them.
fn names(signature: &'static str) -> impl Iterator<Item = &'static str> {
    let is_associated = move |end: usize| signature[end..].trim_start().starts_with('=');
    NAME.find_iter(signature).filter(move |name| !is_associated(name.end())).map(|name| name.as_str())
}

/// Returns the types that callers need, each with an item that names it: types in signatures and fields of the facade's own items,
/// and in the parameters of functions and methods that it re-exports.
///
/// Traits are left out, because attributes implement most of them. A value that a re-exported method returns can be used without the
/// name of its type.
fn needed_types() -> BTreeSet<(TypeName, &'static str)> {
    let types = structs_and_enums();
    let own = PUBLIC["kctl"].links.iter();
    let own = own.flat_map(|(item, paths)| paths.iter().map(move |path| (type_name(path), item.as_str())));
    let of_re_exports = re_exported_items().into_iter().flat_map(|item| {
        let functions = record_of(item).filter(move |(path, what)| is_function_of(item, path, what));
        functions.flat_map(move |(path, what)| names(parameters(what)).map(move |name| ((crate_of(item), name), path)))
    });
    own.chain(of_re_exports).filter(|(name, _)| types.contains(name)).collect()
}

/// Returns the needed types that are not among the facade's, each with an item that names it.
fn missing_types(facade: &BTreeSet<TypeName>) -> BTreeSet<(TypeName, &'static str)> {
    let mut needed = needed_types();
    needed.retain(|(name, _)| !facade.contains(name));
    needed
}

#[test]
fn types_in_facade_signatures_have_facade_paths() {
    let missing = missing_types(&facade_types());
    let mut wrong = String::new();
    for ((krate, name), item) in &missing {
        if !WITHOUT_PATH.iter().any(|(of, known, _)| (of, known) == (krate, name)) {
            writeln!(
                wrong,
                "{item}: `{name}` of {krate} has no path in kctl; re-export it, or give the reason in `WITHOUT_PATH`"
            )
            .unwrap();
        }
    }
    for (krate, name, _) in WITHOUT_PATH {
        if !missing.iter().any(|(of, _)| *of == (krate, name)) {
            writeln!(wrong, "{krate}: `{name}` needs no reason: remove it from `WITHOUT_PATH`").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn type_without_facade_path_is_found() {
    let mut facade = facade_types();
    for (name, item) in [
        (("kctl_webhook", "Metrics"), "kctl::App::webhook_routes"),
        (("kctl_interpreter", "Rule"), "kctl::App::interpreters"),
        (("kctl_runtime", "ShardConfig"), "kctl_runtime::manager::Manager::shard"),
    ] {
        assert!(facade.remove(&name), "{name:?}");
        assert!(missing_types(&facade).contains(&(name, item)), "{name:?}");
    }
}
