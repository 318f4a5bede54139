//! Rules that no lint checks: modules that may list, watch and write, the first line of files, names of tests, and the
//! examples in the README.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::modules::code;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns all Rust files below a folder in order, with paths relative to the workspace.
pub(crate) fn sources(folder: &str) -> Vec<(String, String)> {
    let mut folders = vec![root().join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with("target") && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(root()).unwrap().display().to_string(), text));
            }
        }
    }
    files.sort();
    files
}

/// Checks that the runtime's sources contain `words` only below these paths, and do contain them there.
fn check_only(places: &[&str], words: &[&str]) {
    for word in words {
        let found: Vec<_> = sources("kctl-runtime/src").into_iter().filter(|(_, text)| text.contains(word)).collect();
        let is_in = |path: &str| places.iter().any(|place| path.starts_with(&format!("kctl-runtime/src/{place}")));
        let outside: Vec<_> = found.iter().map(|(path, _)| path).filter(|path| !is_in(path)).collect();
        assert!(outside.is_empty(), "`{word}` belongs into {places:?} and is in {outside:?}");
        assert!(!found.is_empty() || places.is_empty(), "`{word}` is nowhere: the search has to follow the code");
    }
}

#[test]
fn only_source_lists_and_watches() {
    check_only(&["source/"], &["watch=true", "limit={", "continue={", "transport::open("]);
}

#[test]
fn only_writer_and_the_lease_write() {
    check_only(
        &["writer/", "manager/lease", "connection/tests/"],
        &["Method::POST", "Method::PUT", "Method::PATCH", "Method::DELETE"],
    );
}

#[test]
fn only_writer_sends_requests() {
    check_only(&["transport/mod.rs", "writer/raw.rs"], &["client.send("]);
    // kube's other ways to send requests, which are forbidden except in the raw client's module.
    check_only(&["writer/raw.rs"], &["Api::<"]);
    check_only(&[], &["client.request", "Api::all", "Api::namespaced", "kube_runtime", "kube::runtime"]);
}

/// A task that is spawned in another way continues while the simulator has frozen its process. The listed places serve
/// sockets or run programs, which a simulated process does not do.
#[test]
fn tasks_of_the_runtime_can_be_frozen() {
    let places = ["connection/", "freezer.rs", "manager/serve/"].map(|place| format!("kctl-runtime/src/{place}"));
    let spawns = |text: &str| [".spawn(", "tokio::spawn(", "task::spawn("].iter().any(|word| text.contains(word));
    let files = sources("kctl-runtime/src").into_iter().filter(|(path, _)| !path.contains("tests"));
    let found: Vec<_> = files.filter(|(_, text)| spawns(&code(text))).map(|(path, _)| path).collect();
    let outside: Vec<_> = found.iter().filter(|path| !places.iter().any(|place| path.starts_with(place))).collect();
    assert!(outside.is_empty(), "spawn tasks with `freezer::spawn`: {outside:?}");
    assert!(found.contains(&places[1]), "the search has to follow the code: {found:?}");
}

#[test]
fn every_file_has_a_module_doc() {
    let files = sources(".");
    assert!(files.len() > 50, "{} files", files.len());
    let bare: Vec<_> = files.iter().filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| path).collect();
    assert!(bare.is_empty(), "the first line is `//!` and one sentence: {bare:?}");
}

/// Most lines of a file in `src`. A file has about 250; one of 400 may have two topics.
const FILE_LINES_MAX: usize = 680;

/// Files that may be longer, and why.
const LONG_FILES: [(&str, &str); 1] = [("kctl/src/lib.rs", "the documentation of the macros is at their exports")];

#[test]
fn files_have_one_topic_each() {
    let files: Vec<_> = sources(".").into_iter().filter(|(path, _)| path.contains("/src/")).collect();
    assert!(files.len() > 1000, "{} files", files.len());
    let long: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.lines().count()))
        .filter(|(_, n_lines)| *n_lines > FILE_LINES_MAX)
        .collect();
    let is_known = |path: &str| LONG_FILES.iter().any(|(known, _)| *known == path);
    let unexplained: Vec<_> = long.iter().filter(|(path, _)| !is_known(path)).collect();
    assert!(unexplained.is_empty(), "split by topic: {unexplained:?}");
    let stale: Vec<_> = LONG_FILES.iter().filter(|(known, _)| !long.iter().any(|(path, _)| path == known)).collect();
    assert!(stale.is_empty(), "remove these from `LONG_FILES`: {stale:?}");
}

/// The longest name of a test, in words: scenario and outcome.
const TEST_WORDS_MAX: usize = 8;

/// Returns the names of the tests in a file.
fn tests_of(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.lines().map(str::trim_start);
    let is_test = |line: &&str| ["#[test", "#[tokio::test", "#[kctl::test"].iter().any(|begin| line.starts_with(begin));
    std::iter::from_fn(move || {
        lines.by_ref().find(is_test)?;
        let declared = lines.by_ref().find(|line| line.contains("fn ") && !line.starts_with("//"))?;
        let (_, name) = declared.split_once("fn ")?;
        Some(name.split(['(', '<']).next().unwrap_or_default())
    })
}

#[test]
fn tests_are_named_in_eight_words() {
    let text = "#[tokio::test]\n    async fn a_b() {}\n/// c\n#[test]\n#[ignore]\nfn d() {}\n";
    assert_eq!(tests_of(text).collect::<Vec<_>>(), ["a_b", "d"]);
    let files = sources(".");
    let names: Vec<_> = files.iter().flat_map(|(path, text)| tests_of(text).map(move |name| (path, name))).collect();
    assert!(names.len() > 2000, "{} tests", names.len());
    let long: Vec<_> = names.into_iter().filter(|(_, name)| name.split('_').count() > TEST_WORDS_MAX).collect();
    assert!(long.is_empty(), "name the scenario and the outcome in fewer words: {long:?}");
}

/// First words of a test name that is a sentence about something unnamed, instead of a scenario and its outcome.
const FIRST_WORDS_REJECTED: [&str; 5] = ["a_", "an_", "the_", "what_", "who_"];

/// Words that a test name does not contain: `is_rejected`, `is_reported`, `no_caller`, `is_kept` and `resumes` say more.
const WORDS_REJECTED: [&str; 16] = [
    "_is_none_",
    "_is_no_",
    "_are_no_",
    "_of_its_own_",
    "_of_their_own_",
    "_that_of_",
    "_those_of_",
    "_stands_",
    "_told_",
    "_nobody_",
    "_somebody_",
    "_anew_",
    "_stay_",
    "_stays_",
    "_go_on_",
    "_goes_on_",
];

/// Returns `true` for a test name that does not name its subject.
fn is_vague(name: &str) -> bool {
    let words = format!("_{name}_");
    FIRST_WORDS_REJECTED.iter().any(|word| name.starts_with(word))
        || WORDS_REJECTED.iter().any(|word| words.contains(word))
}

#[test]
fn test_names_say_scenario_and_outcome() {
    let files = sources(".");
    let names = files.iter().flat_map(|(path, text)| tests_of(text).map(move |name| (path, name)));
    let vague: Vec<_> = names.filter(|(_, name)| is_vague(name)).collect();
    assert!(vague.is_empty(), "name the object first, then what happens to it: {vague:?}");
}

#[test]
fn vague_test_names_are_found() {
    for name in ["a_path_is_read", "what_is_missing_is_null", "bad_request_is_none", "error_is_told", "nobody_waits"] {
        assert!(is_vague(name), "{name}");
    }
    for name in ["object_stays", "names_stay_empty", "watch_goes_on_without_a_list", "task_is_no_finding"] {
        assert!(is_vague(name), "{name}");
    }
    for name in ["request_is_rejected", "answer_is_reported", "theme_is_kept", "another_key_is_queued"] {
        assert!(!is_vague(name), "{name}");
    }
}

#[test]
fn every_kind_cites_its_upstream_file() {
    let kinds: Vec<_> = sources("kctl-apiserver/src/kinds")
        .into_iter()
        .filter(|(_, text)| text.contains("pub(crate) static KIND"))
        .collect();
    assert!(kinds.len() > 60, "{} kinds", kinds.len());
    let cites = |text: &str| text.lines().any(|line| line.starts_with("//") && line.contains("`pkg/"));
    let bare: Vec<_> = kinds.iter().filter(|(_, text)| !cites(text)).map(|(path, _)| path).collect();
    assert!(bare.is_empty(), "name the file of Kubernetes that has the rules of the kind: {bare:?}");
}

#[test]
fn every_example_is_in_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(!path.is_dir() || readme.contains(&format!("| `{name}` |")), "README.md has no line for `{name}`");
    }
}

/// Parameters of type `bool` or tuple that are right where they are: the file, the parameter and the reason. The
/// classes are in docs/decisions/parameters-are-enums.md. `BOOL_PARAMETERS` has the parameters of `kctl-apiserver`.
const FLAGS_ALLOWED: [(&str, &str, &str); 14] = [
    ("kctl-cel/src/check.rs", "is_optional", "a field of the syntax tree"),
    ("kctl-runtime/src/handler/mod.rs", "(index, origin)", "the origin of a change, with the relation that it is for"),
    ("kctl-runtime/src/handler/predicate.rs", "passes", "the expected result of a check"),
    ("kctl-runtime/src/manifest/rbac/permission.rs", "namespaced", "a field of the kind"),
    ("kctl-runtime/src/object/meta.rs", "value", "`skip_serializing_if` of serde"),
    ("kctl-runtime/src/reconcile/conditions.rs", "holds", "the result of a check, which is stored"),
    ("kctl-runtime/src/source/reflector_model.rs", "selected", "the result of a check, which is stored"),
    ("kctl-runtime/src/source/server_selection.rs", "is_confirmed", "the result of a check, which is stored"),
    ("kctl-runtime/src/trace.rs", "sampled", "the public setter of one flag"),
    ("kctl-runtime/src/writer/tests.rs", "stays", "the expected result of a check"),
    ("kctl/src/app/helm/values.rs", "is_on", "converts an option to an enum"),
    ("kctl/src/app/log.rs", "value", "a method of tracing"),
    ("kctl/src/testing/sim/authors.rs", "reconcile", "a key of the maps: controller and object"),
    ("xtask/src/steps.rs", "(succeeded, output)", "takes the result of `Run::output`"),
];

#[test]
fn functions_take_no_bool_or_tuple_parameters() {
    assert_eq!(
        flags("fn a<F: Fn(u8) -> bool>(&self, f: F, is_b: bool, (c, d): (u8, &str), e: &'a mut bool) {}").len(),
        3
    );
    assert!(flags("fn a(f: impl Fn(bool), error: &(dyn Error + 'static), of: &[(u8, u8)]) -> bool {}").is_empty());
    let is_code = |path: &str| match path.split_once('/') {
        // `api_server_takes_listed_bool_parameters_alone` checks that one.
        Some((folder, rest)) if folder.starts_with("kctl") && folder != "kctl-apiserver" => {
            rest.starts_with("src/") || rest.starts_with("templates/")
        }
        Some((folder, _)) => ["benches", "examples", "xtask"].contains(&folder),
        None => false,
    };
    let files: Vec<_> = sources(".").into_iter().filter(|(path, _)| is_code(path)).collect();
    let found: Vec<(&str, &str)> = files
        .iter()
        .flat_map(|(path, text)| flags(text).into_iter().map(move |parameter| (path.as_str(), parameter)))
        .map(|(path, parameter)| (path, parameter.split(": ").next().unwrap_or(parameter)))
        .collect();
    let is_allowed = |flag: &&(&str, &str)| FLAGS_ALLOWED.iter().any(|(path, name, _)| (*path, *name) == **flag);
    let unexplained: Vec<_> = found.iter().filter(|flag| !is_allowed(flag)).collect();
    assert!(unexplained.is_empty(), "write an enum, a struct or two functions: {unexplained:#?}");
    let stale: Vec<_> = FLAGS_ALLOWED.iter().filter(|(path, name, _)| !found.contains(&(*path, *name))).collect();
    assert!(stale.is_empty(), "remove these from `FLAGS_ALLOWED`: {stale:?}");
}

/// The parameters of `kctl-apiserver` that are a `bool`, by file. `docs/decisions/parameters-are-enums.md` has their
/// classes: conditions of functions `…_if`, a signature of serde, and a public setter.
const BOOL_PARAMETERS: [(&str, &[&str]); 3] = [
    ("kctl-apiserver/src/decode/duplicates.rs", &["_: bool"]),
    ("kctl-apiserver/src/feature_gates.rs", &["is_enabled: bool"]),
    (
        "kctl-apiserver/src/field.rs",
        &[
            "is_invalid: bool",
            "is_invalid: bool",
            "is_required: bool",
            "is_required: bool",
            "is_forbidden: bool",
            "is_duplicate: bool",
            "is_missing: bool",
            "is_unsupported: bool",
        ],
    ),
];

#[test]
fn api_server_takes_listed_bool_parameters_alone() {
    let files = sources("kctl-apiserver/src").into_iter();
    let tested = files.filter(|(path, _)| !path.contains("/tests")).map(|(path, text)| (path, code(&text)));
    let (none, mut n_found): (&[&str], usize) = (&[], 0);
    for (path, code) in tested {
        let listed = BOOL_PARAMETERS.iter().find(|(file, _)| *file == path).map_or(none, |(_, listed)| *listed);
        assert_eq!(flags(&code), listed, "{path}: write an enum, a struct or two functions");
        n_found += listed.len();
    }
    assert_eq!(n_found, 10, "the search has to follow the code");
}

/// Returns function parameters of type `bool` or tuple, including references to them. Closures are not checked.
fn flags(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, word) in text.match_indices("fn ") {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let name = &text[at + word.len()..];
        let generics = name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        if line.trim_start().starts_with("//") || generics.len() == name.len() {
            continue;
        }
        let head = if generics.starts_with('<') { pieces(generics, '>').1 } else { generics };
        if head.starts_with('(') {
            found.extend(pieces(head, ')').0.into_iter().filter(|parameter| is_flag(parameter)));
        }
    }
    found
}

/// Splits the bracketed list at the start of a string at its commas. Returns the pieces and the rest of the string.
fn pieces(text: &str, end: char) -> (Vec<&str>, &str) {
    let (mut depth, mut start, mut before, mut pieces) = (0, 1, ' ', Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            ',' if depth == 1 => {
                pieces.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        if depth == 0 && c == end {
            pieces.push(text[start..at].trim());
            return (pieces, &text[at + 1..]);
        }
        before = c;
    }
    (Vec::new(), "")
}

fn is_flag(parameter: &str) -> bool {
    let Some((_name, ty)) = parameter.split_once(": ") else { return false };
    // Handles types such as `&'a mut bool`.
    let ty = ty.trim_start_matches('&');
    let ty = if ty.starts_with('\'') { ty.split_once(' ').map_or(ty, |(_lifetime, ty)| ty) } else { ty };
    let ty = ty.trim_start_matches("mut ");
    ty == "bool" || ty.starts_with('(') && ty.contains(',')
}
