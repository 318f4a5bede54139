//! Checks that the files of each folder import each other in one direction, below the top-level modules, which
//! `modules.rs` checks. A name that the folder's own module re-exports has no direction.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{CRATES, Imports, code, cycles, files_of, group_items};

/// An import that closes a circle, and is allowed.
struct AllowedImport {
    folder: &'static str,
    from: &'static str,
    to: &'static str,
    reason: &'static str,
}

/// The imports that close a circle because neither side can do without the other.
const ALLOWED: [AllowedImport; 3] = [
    AllowedImport {
        folder: "kctl-apiserver/src/kinds",
        from: "events",
        to: "core",
        reason: "the statics of both Event kinds refer to the table that they share, which refers to both",
    },
    AllowedImport {
        folder: "kctl-runtime/src/manager/shards",
        from: "coordinator",
        to: "seat",
        reason: "`seat` has the functions of `Coordinator` about seats, which its loop calls",
    },
    AllowedImport {
        folder: "kctl/src/testing/sim",
        from: "process",
        to: "world",
        reason: "the world starts processes, and a process reads the faults of the world",
    },
];

/// A module by its names from the root of the crate, such as `["source", "filter"]`.
type Module = Vec<String>;

/// Returns the module of a file below `src`.
fn module_of(path: &str) -> Module {
    let mut names: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
        names.pop();
    }
    names
}

/// Returns the imports between the files and folders of each folder. `files` are paths below `src` with their content.
fn sibling_imports(files: &[(String, String)]) -> BTreeMap<String, Imports> {
    let mut modules = BTreeSet::new();
    for (path, _) in files {
        let module = module_of(path);
        modules.extend((0..=module.len()).map(|n_names| module[..n_names].to_vec()));
    }
    let mut found = BTreeMap::<String, Imports>::new();
    for (path, text) in files.iter().filter(|(path, _)| !path.contains("tests")) {
        let module = module_of(path);
        for imported in imported_paths(&code(text), &module) {
            let is_module = |n_names: &usize| modules.contains(&imported[..*n_names]);
            let n_names = (0..=imported.len()).rev().find(is_module).unwrap_or_default();
            let n_shared = module.iter().zip(&imported[..n_names]).take_while(|(one, other)| one == other).count();
            // Imports between top-level modules, of an enclosing module, and of a module below.
            if n_shared == 0 || n_shared == n_names || n_shared == module.len() {
                continue;
            }
            let pair = (module[n_shared].clone(), imported[n_shared].clone());
            let folder = found.entry(module[..n_shared].join("/")).or_default();
            folder.entry(pair).or_default().insert(path.clone());
        }
    }
    found
}

/// Returns the paths from the root of the crate that the code of a module names with `crate::`, `self::` or `super::`.
fn imported_paths(code: &str, module: &[String]) -> Vec<Module> {
    let mut found = Vec::new();
    for head in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(head) {
            // `super::super::` is one path, and `is_self::` is another name.
            if code[..at].ends_with(|one: char| one.is_alphanumeric() || "_:".contains(one)) {
                continue;
            }
            let (mut n_names, mut rest) = match head {
                "crate::" => (0, &code[at + head.len()..]),
                "self::" => (module.len(), &code[at + head.len()..]),
                _ => (module.len(), &code[at..]),
            };
            while let Some(outer) = rest.strip_prefix("super::") {
                (n_names, rest) = (n_names.saturating_sub(1), outer);
            }
            expand(rest, module[..n_names].to_vec(), &mut found);
        }
    }
    found
}

/// Adds the paths that begin with `prefix`: one name follows the other, or several are in braces.
fn expand(rest: &str, prefix: Module, found: &mut Vec<Module>) {
    let rest = rest.trim_start();
    if let Some(group) = rest.strip_prefix('{') {
        for item in group_items(group) {
            expand(item, prefix.clone(), found);
        }
        return;
    }
    let end = rest.find(|one: char| !one.is_alphanumeric() && one != '_').unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if name.is_empty() || name == "self" {
        found.push(prefix);
        return;
    }
    let path = [prefix, vec![name.to_owned()]].concat();
    match rest.trim_start().strip_prefix("::") {
        Some(rest) => expand(rest, path, found),
        None => found.push(path),
    }
}

fn pair(from: &str, to: &str) -> (String, String) {
    (from.to_owned(), to.to_owned())
}

#[test]
fn files_of_a_folder_import_in_one_direction() {
    let mut n_folders = 0;
    for krate in CRATES {
        for (below, mut imports) in sibling_imports(&files_of(krate)) {
            n_folders += 1;
            let folder = format!("{krate}/src/{below}");
            for allowed in ALLOWED.iter().filter(|allowed| allowed.folder == folder) {
                imports.remove(&pair(allowed.from, allowed.to));
            }
            let found = cycles(imports);
            assert!(
                found.is_empty(),
                "{folder}: these imports form a circle; move the item to the lower file: {found:#?}"
            );
        }
    }
    assert!(n_folders > 80, "imports in {n_folders} folders: the search has to follow the code");
}

#[test]
fn allowed_circles_still_exist() {
    for AllowedImport { folder, from, to, reason } in ALLOWED {
        let (krate, below) = folder.split_once("/src/").unwrap();
        let circles = cycles(sibling_imports(&files_of(krate)).remove(below).unwrap_or_default());
        let exists = circles.contains_key(&pair(from, to));
        assert!(exists, "{folder}: {from} imports {to} in no circle: remove the line ({reason})");
    }
}

#[test]
fn planted_import_between_files_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let mut files = vec![
        file("low.rs", "use crate::top::high;\n"),
        file("top/mod.rs", "mod high;\npub use self::low::Low;\n"),
        file(
            "top/low.rs",
            "// super::high\nuse super::Low;\n#[cfg(test)]\nmod tests {\n    use super::super::high;\n}\n",
        ),
        file("top/mid/inner.rs", "use super::super::low::{self, Low};\nuse crate::low::Other;\n"),
        file("top/high.rs", "use super::{\n    Low,\n    mid::{inner::A, B},\n};\nuse self::below::C;\n"),
        file("top/high/below.rs", "use super::D;\n"),
    ];
    let circle = |files: &[(String, String)]| -> Vec<(String, String)> {
        cycles(sibling_imports(files).remove("top").unwrap_or_default()).into_keys().collect()
    };
    assert!(circle(&files).is_empty());
    for import in
        ["use super::{\n    Low, high::{self, E},\n};", "use crate::top::high::below;", "fn f() { super::high::g() }"]
    {
        files[2].1 = import.to_owned();
        assert_eq!(circle(&files), [pair("high", "mid"), pair("low", "high"), pair("mid", "low")], "{import}");
    }
}
