//! Checks that the imports between the top-level modules of each crate have one direction, so that a module can be read
//! and tested after those that it imports.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::sources;

/// The crates whose source is kept in order.
pub(crate) const CRATES: [&str; 11] = [
    "kctl",
    "kctl-apimachinery",
    "kctl-apiserver",
    "kctl-cel",
    "kctl-cli",
    "kctl-interpreter",
    "kctl-macros",
    "kctl-runtime",
    "kctl-webhook",
    "kctl-workloads",
    "xtask",
];

/// The files that import a module, by the importing and the imported module.
pub(crate) type Imports = BTreeMap<(String, String), BTreeSet<String>>;

/// Returns the imports between the modules of a crate. `files` are paths below its `src` with their content. Unit tests
/// may import any module.
fn imports(files: &[(String, String)]) -> Imports {
    let module = |path: &str| path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
    let modules: BTreeSet<_> = files.iter().map(|(path, _)| module(path)).collect();
    let mut found = Imports::new();
    for (path, text) in files {
        let from = module(path);
        if path.contains("tests") || path == "lib.rs" || path == "main.rs" {
            continue;
        }
        for to in imported_modules(&top_level_code(path, text)) {
            if to != from && modules.contains(&to) {
                found.entry((from.clone(), to)).or_default().insert(path.clone());
            }
        }
    }
    found
}

/// Returns a file like [`code`]. In the imports of a top-level module, `super` is written as `crate`, which it is there.
fn top_level_code(path: &str, text: &str) -> String {
    let is_top_level = !path.trim_end_matches("/mod.rs").contains('/');
    let with_crate = |line: &str| {
        let is_import_of_file = is_top_level && !line.starts_with(' ');
        if is_import_of_file { line.replace("use super::", "use crate::") } else { line.to_owned() }
    };
    code(text).lines().map(with_crate).collect::<Vec<_>>().join("\n")
}

/// Returns a file without its comments and without the unit tests at its end.
pub(crate) fn code(text: &str) -> String {
    let end = text.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at).find(|at| {
        let line = text[*at..].lines().nth(1).unwrap_or_default();
        line.ends_with('{')
    });
    let text = &text[..end.unwrap_or(text.len())];
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the first name of each path that starts with `crate::`, also in `crate::{a::B, c}`.
fn imported_modules(code: &str) -> Vec<String> {
    let name = |path: &str| -> String {
        path.trim_start()
            .chars()
            .take_while(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || *one == '_')
            .collect()
    };
    let mut found = Vec::new();
    for (at, word) in code.match_indices("crate::") {
        let rest = &code[at + word.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(group_items(group).into_iter().map(name)),
            None => found.push(name(rest)),
        }
    }
    found
}

/// Returns the items of a group `{a::B, c}` of paths, after its opening brace.
pub(crate) fn group_items(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (1, 0, Vec::new());
    for (at, one) in group.char_indices() {
        match one {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && one == ',') {
            items.push(&group[start..at]);
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    items
}

/// Returns the imports that are part of a cycle or connect two cycles; empty if the modules can be ordered.
pub(crate) fn cycles(mut imports: Imports) -> Imports {
    loop {
        let importing: BTreeSet<_> = imports.keys().map(|(from, _)| from.clone()).collect();
        let imported: BTreeSet<_> = imports.keys().map(|(_, to)| to.clone()).collect();
        let before = imports.len();
        imports.retain(|(from, to), _| importing.contains(to) && imported.contains(from));
        if imports.len() == before {
            return imports;
        }
    }
}

/// Returns the files of a crate: paths below its `src` with their content.
pub(crate) fn files_of(name: &str) -> Vec<(String, String)> {
    let folder = format!("{name}/src");
    sources(&folder).into_iter().map(|(path, text)| (path[folder.len() + 1..].to_owned(), text)).collect()
}

#[test]
fn modules_of_each_crate_import_in_one_direction() {
    for name in CRATES {
        let all = imports(&files_of(name));
        assert!(!all.is_empty(), "no imports found in {name}: the search has to follow the code");
        let found = cycles(all);
        assert!(found.is_empty(), "{name}: these imports form a circle; move the item to the lower module: {found:#?}");
    }
}

/// The store gets the built-in kinds when it is created (`BuiltInKinds`), so that it can be read without their rules.
#[test]
fn store_imports_no_kind() {
    let all = imports(&files_of("kctl-apiserver"));
    let found = |from: &str, to: &str| all.get(&(from.to_owned(), to.to_owned()));
    assert!(found("store", "registry").is_some(), "the store has moved: follow it");
    assert_eq!(found("store", "kinds"), None, "add what the store needs to `BuiltInKinds`");
}

/// Functions of `kctl-apiserver` that take the whole state of a server. The number may only decrease: a function that
/// only reads or writes objects takes `&Store`, and one that needs no object takes `&Core`.
///
/// These need both: steps that authorize a user, because the rules of a user are cached in the core; steps that may call
/// a webhook, for admission or conversion, because the core has its transport; and the callers of such steps.
const FUNCTIONS_WITH_WHOLE_STATE: usize = 78;

#[test]
fn steps_take_store_or_core_if_enough() {
    let files: Vec<_> = sources("kctl-apiserver/src").into_iter().filter(|(path, _)| !path.contains("tests")).collect();
    assert!(files.iter().any(|(path, _)| path.ends_with("/src/state/core.rs")), "the core has moved: follow it");
    let found: Vec<_> = files
        .iter()
        .map(|(path, text)| (path, code(text)))
        .map(|(path, code)| (path, code.matches(": &State").count() + code.matches(": &mut State").count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let n_found: usize = found.iter().map(|(_, count)| count).sum();
    assert_eq!(
        n_found, FUNCTIONS_WITH_WHOLE_STATE,
        "more: take `&Store` or `&Core` if that is enough; fewer: lower the number: {found:?}"
    );
}

/// String literals of `kctl-apiserver` that are the name of a built-in resource (`"pods"`), its kind (`"Pod"`) or a
/// subresource (`"pods/log"`), outside `kinds/` and tests. The number may only decrease.
///
/// These are left:
/// - fields with the name of a resource: `secrets` of a service account (3), `endpoints` of slices and volumes (2),
///   `namespaces` of affinity terms and paths (2);
/// - modules below `kinds`: names of amounts (7), sources of volumes and claims (3), the Event as an owner (1), the
///   columns of kinds without columns (1);
/// - the `Event` of audit logs (1), which is another kind, and the parameters of logs (1), which are data.
const LITERALS_OUTSIDE_KINDS: usize = 21;

#[test]
fn built_in_resources_are_named_in_their_kinds() {
    let files = sources("kctl-apiserver/src");
    assert!(files.iter().any(|(path, _)| path.contains("/kinds/core/pod.rs")), "the kinds have moved: follow them");
    let listed = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../kctl-apiserver/data/resources.json"));
    let groups: Vec<serde_json::Value> = serde_json::from_str(&listed.unwrap()).unwrap();
    let resources = groups.iter().flat_map(|group| group["resources"].as_array().unwrap());
    let literals: BTreeSet<String> = resources
        .flat_map(|one| {
            let name = one["name"].as_str().unwrap();
            // The kinds of subresources, such as `Scale`, are types that several resources share.
            let kind = one["kind"].as_str().filter(|_| !name.contains('/'));
            [Some(name), kind].into_iter().flatten().map(|one| format!("\"{one}\""))
        })
        .collect();
    assert!(["\"pods\"", "\"Pod\"", "\"pods/log\""].iter().all(|one| literals.contains(*one)), "{literals:?}");
    let mut found = Vec::new();
    for (path, text) in files {
        let is_test = path["kctl-apiserver/src".len()..].contains("tests");
        if !path.contains("/src/kinds/") && !is_test {
            let code = code(&text);
            let counted =
                literals.iter().map(|literal| (path.clone(), literal, code.matches(literal.as_str()).count()));
            found.extend(counted.filter(|(_, _, count)| *count > 0));
        }
    }
    let n_found: usize = found.iter().map(|(_, _, count)| count).sum();
    assert_eq!(
        n_found, LITERALS_OUTSIDE_KINDS,
        "more: use `KIND.kind`, or move the rule to the kind's file; fewer: lower the number: {found:?}"
    );
}

/// Comparisons with a built-in kind in `kctl-apiserver`, outside the kinds. The number may only decrease: a rule of one
/// kind is a field or function of its `Kind`, and a kind lists its admission plugins.
///
/// Most of them are in `controllers/`: a controller exists for named kinds, and selects the events of these (12). The
/// names of a CRD (1) are accepted by the request that writes it, and the names of Namespaces (1) are the namespaces of
/// their requests. Five compare a reference inside an object, which has a kind and no `Kind`: the role of a binding in
/// the authorizer (2) and in the check for escalation (1), its subject (1), and the target of a `Binding` (1).
const COMPARISONS_OUTSIDE_KINDS: usize = 19;

#[test]
fn steps_ask_the_kind_for_its_rules() {
    let is_free = |path: &str| ["/kinds/", "tests"].iter().any(|one| path.contains(one));
    let files: Vec<_> = sources("kctl-apiserver/src").into_iter().filter(|(path, _)| !is_free(path)).collect();
    let found = |(path, text): &(String, String)| vec![path.clone(); comparisons(&code(text))];
    let comparisons: Vec<_> = files.iter().flat_map(found).collect();
    assert_eq!(
        comparisons.len(),
        COMPARISONS_OUTSIDE_KINDS,
        "more: make the rule a field of `Kind`; fewer: lower the number: {comparisons:?}"
    );
}

/// The statics that hold the `GroupResource` of one kind.
const RESOURCES_OF_KINDS: [&str; 3] = ["*API_SERVICES", "*DEFINITIONS", "*EVENTS"];

/// Counts the comparisons of a resource with a kind: `resource.is(&pod::KIND)`, functions that are named like one
/// (`mutation.creates(&pod::KIND)`, `updates(&pod::KIND, "")`), `pod::KIND.is_of(resource)`, `resource == *DEFINITIONS`,
/// `name == pod::KIND.resource`, `name == pod::KIND.kind` and `["", pod::KIND.kind].contains(name)`.
fn comparisons(code: &str) -> usize {
    let calls = [".is(&", ".creates(&", ".updates(&"].into_iter().flat_map(|call| code.split(call).skip(1));
    let arguments = calls.map(|rest| rest.split([')', ',']).next().unwrap_or_default());
    let operands = ["== ", "!= "].into_iter().flat_map(|operator| code.split(operator).skip(1)).map(|rest| {
        let is_path = |one: char| one.is_ascii_alphanumeric() || "_:.*".contains(one);
        rest.split(|one: char| !is_path(one)).next().unwrap_or_default()
    });
    let names = ["::KIND.resource", "::KIND.kind"];
    let is_kind_resource =
        |operand: &str| RESOURCES_OF_KINDS.contains(&operand) || names.iter().any(|name| operand.ends_with(name));
    let lists = code.match_indices("].contains(").map(|(end, _)| code[..end].rsplit('[').next().unwrap_or_default());
    arguments.filter(|argument| argument.ends_with("::KIND")).count()
        + lists.map(|list| names.iter().map(|name| list.matches(*name).count()).sum::<usize>()).sum::<usize>()
        + code.matches("::KIND.is_of(").count()
        + operands.filter(|operand| is_kind_resource(operand)).count()
}

#[test]
fn comparison_with_a_kind_is_counted() {
    let code = "a.is(&pod::KIND) || b.is(&c::KIND)\nif pod::KIND.is_of(resource) {}\n";
    assert_eq!(comparisons(code), 3);
    assert_eq!(comparisons("if m.creates(&pod::KIND) || m.updates(&pod::KIND, \"resize\").is_some() {}"), 2);
    assert_eq!(comparisons("a.is(&other)\na.is(kind) && b::KIND.group_resource()"), 0);
    assert_eq!(comparisons("if a == *DEFINITIONS || b != *EVENTS {}\nname == pod::KIND.resource {"), 3);
    assert_eq!(comparisons("a[\"kind\"] == node::KIND.kind && b != role::KIND.kind; pod::KIND.kind.len() == 3"), 2);
    assert_eq!(comparisons("[\"\", node::KIND.kind].contains(&kind) || [pod::KIND.kind].is_empty()"), 1);
    assert_eq!(comparisons("get(&DEFINITIONS, key) == *other\n(node::KIND.resource, name)"), 0);
}

#[test]
fn planted_import_is_found_as_a_circle() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let mut files = vec![
        file("low.rs", "#[cfg(test)]\nmod cases;\nuse std::fmt;\n#[cfg(test)]\nmod tests {\n    use crate::high;\n}\n"),
        file("mid/mod.rs", "// use crate::high;\nuse crate::low::Low;\n"),
        file("high.rs", "use crate::{\n    low::{A, B},\n    mid,\n};\n"),
    ];
    assert!(cycles(imports(&files)).is_empty());
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    for import in ["#[cfg(test)]\nmod cases;\nuse crate::{std::A, high::{B, C}};\n", "pub(crate) use super::high::D;\n"]
    {
        import.clone_into(&mut files[0].1);
        let found: Vec<_> = cycles(imports(&files)).into_keys().collect();
        let expected = [pair("high", "low"), pair("high", "mid"), pair("low", "high"), pair("mid", "low")];
        assert_eq!(found, expected, "{import}");
    }
}
