//! Compile errors as users read them: each file in a `fail` folder breaks one rule, and its `.stderr` is the whole message.
//!
//! The folders are named after the attributes; `context` has what reconcile and helper functions do with their `Context`, as far as
//! the declaration allows it. Files of the `pass` folders are modules of this test: they compile. `README.md` is the index.
//!
//! `TRYBUILD=overwrite cargo test --workspace --test ui` writes the messages and the index: read each one as a newcomer would.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[path = "context/pass/clusters.rs"]
mod clusters;
#[path = "controller/pass/crate_path.rs"]
mod crate_path;
#[path = "controller/pass/custom_error.rs"]
mod custom_error;
#[path = "controller/pass/fragments.rs"]
mod fragments;
#[path = "admission/pass/function_names.rs"]
mod function_names;
#[path = "context/pass/help_texts.rs"]
mod help_texts;
#[path = "context/pass/helpers.rs"]
mod helpers;
#[path = "controller/pass/inside_a_function.rs"]
mod inside_a_function;
#[path = "interpreter/pass/operations.rs"]
mod operations;
#[path = "controller/pass/opt_in_lints.rs"]
mod opt_in_lints;
#[path = "controller/pass/options.rs"]
mod options;
#[path = "context/pass/owned_subresources.rs"]
mod owned_subresources;
#[path = "controller/pass/predicates.rs"]
mod predicates;
#[path = "context/pass/primary_built_in_status.rs"]
mod primary_built_in_status;
#[path = "controller/pass/struct_form.rs"]
mod struct_form;
#[path = "context/pass/verbs.rs"]
mod verbs;
#[path = "view/pass/views_and_metadata.rs"]
mod views_and_metadata;
#[path = "admission/pass/webhooks.rs"]
mod webhooks;

/// trybuild checks the dependencies with its own flags, and then the cases with one more, for which Cargo would check all
/// dependencies again. This variable replaces both sets by one.
const FLAGS: (&str, &str) = (
    "CARGO_ENCODED_RUSTFLAGS",
    "--cfg\u{1f}trybuild\u{1f}--verbose\u{1f}-A\u{1f}dead_code\u{1f}--diagnostic-width=140",
);

#[test]
fn mistakes_have_their_messages() {
    if env::var(FLAGS.0).is_ok_and(|flags| flags == FLAGS.1) {
        return trybuild::TestCases::new().compile_fail("ui/*/fail/*.rs");
    }
    // Variables of this process can't be changed while other tests run.
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["mistakes_have_their_messages", "--exact", "--nocapture"]).env(FLAGS.0, FLAGS.1);
    let ended = again.output().unwrap();
    let [printed, errors] = [&ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(ended.status.success() && printed.contains("1 passed"), "{printed}{errors}");
}

#[test]
fn pass_files_compile_and_are_registered() {
    let apps = [
        (clusters::app(), vec!["configmap", "edge"]),
        (crate_path::app(), vec!["configmap", "secret"]),
        (custom_error::app(), vec!["configmap"]),
        (fragments::app(), vec!["configmap"]),
        (function_names::app(), vec!["configmap", "secret"]),
        (help_texts::app(), vec!["site", "configmap"]),
        (helpers::app(), vec!["configmap", "adder"]),
        (inside_a_function::app(), vec!["note", "cluster-scoped"]),
        (opt_in_lints::app(), vec!["configmap"]),
        (options::app(), vec!["configs"]),
        (owned_subresources::app(), vec!["configmap"]),
        (predicates::app(), vec!["deployment"]),
        (primary_built_in_status::app(), vec!["deployment"]),
        (struct_form::app(), vec!["greeting"]),
        (verbs::app(), vec!["deployment"]),
        (views_and_metadata::app(), vec!["configmap"]),
    ];
    for (app, names) in apps {
        let specs = app.specs();
        let found: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(found, names);
    }
}

#[test]
fn interpreters_of_every_operation_compile_and_are_registered() {
    let functions = operations::in_process();
    let names: Vec<_> = functions.rules().iter().map(|rule| format!("{rule:?}")).collect();
    assert_eq!(
        names,
        [
            "InterpretReplica of example.com/v1, Kind=Fleet by `replicas`",
            "Prune of example.com/v1, Kind=Fleet by `prune`",
            "InterpretReplica of batch/v1, Kind=Job by `jobs`",
            "AggregateStatus of apps/v1, Kind=Deployment by `raw`",
            "InterpretHealth of batch/v1, Kind=Job by `well`",
        ]
    );
    assert_eq!(operations::app().interpreters().len(), 8);
}

#[test]
fn webhooks_of_every_form_have_kubebuilder_paths() {
    let app = webhooks::app();
    let paths: Vec<_> = app.admissions().iter().map(kctl::admission::Webhook::path).collect();
    assert_eq!(
        paths,
        [
            "/mutate-example-com-v1-ship",
            "/validate-example-com-v1-ship",
            "/validate-example-com-v1-ship-status",
            "/validate--v1-pod-exec-attach",
            "/mutate-example-com-v1-ship-status",
        ]
    );
    let conversions: Vec<_> =
        app.conversions().iter().map(|rule| format!("{} {}", rule.from().version, rule.to().version)).collect();
    assert_eq!(conversions, ["v1alpha1 v1", "v1 v1alpha1"]);
}

/// One file of a `fail` folder with its message.
struct Case {
    /// The folder: the attribute, or `context`.
    group: String,
    name: String,
    /// The first line of the file: one sentence about the rule that the file breaks.
    rule: String,
    /// The text of the `.stderr` file.
    message: String,
}

impl Case {
    fn path(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// Returns the codes of the message, each one once. Errors that rustc finds without kctl's help have no code.
    fn codes(&self) -> Vec<&str> {
        let found = self.message.match_indices("code: K").map(|(at, label)| at + label.len() - 1);
        let mut codes: Vec<_> = found.map(|at| &self.message[at..at + 5]).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

/// Returns all cases, sorted by folder and name.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for group in groups() {
        for Source { path, about } in sources(&group.join("fail")) {
            let message = fs::read_to_string(path.with_extension("stderr")).unwrap_or_default();
            cases.push(Case { group: name(&group), name: name(&path), rule: about, message });
        }
    }
    cases
}

/// A Rust file with its first line: one sentence.
struct Source {
    path: PathBuf,
    about: String,
}

/// Returns the Rust files of a folder, sorted by name. A folder that does not exist has none.
fn sources(folder: &Path) -> Vec<Source> {
    let paths = if folder.is_dir() { sorted(folder) } else { Vec::new() };
    let source = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let about = text.lines().next().and_then(|line| line.strip_prefix("//! ")).expect("a sentence").to_owned();
        Source { path, about }
    };
    paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).map(source).collect()
}

/// Returns the folders of the attributes.
fn groups() -> Vec<PathBuf> {
    sorted(&folder()).into_iter().filter(|path| path.is_dir()).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui")
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Cases with more than one error. The first ones make several mistakes, to show that all are reported at once; of the others rustc
/// reports one mistake several times, and each case says why.
const SEVERAL: [(&str, usize); 12] = [
    ("admission/several_mistakes", 4),
    ("controller/several_mistakes", 3),
    ("interpreter/several_mistakes", 3),
    ("schema/several_mistakes", 2),
    ("view/several_mistakes", 3),
    ("context/cluster_by_string_in_the_call", 2),
    ("context/helper_needs_owns", 3),
    ("context/helper_needs_rules", 3),
    ("context/helper_needs_undeclared_verb", 3),
    ("context/helper_without_bound_writes_status", 2),
    ("controller/struct_without_attribute", 3),
    ("controller/struct_state_not_sync", 2),
];

#[test]
fn one_mistake_is_one_error() {
    let cases = cases();
    assert!(cases.len() >= 350, "{} cases", cases.len());
    for case in cases {
        let path = case.path();
        let expected = SEVERAL.iter().find(|(several, _)| *several == path).map_or(1, |(_, n)| *n);
        let n_errors = case.message.lines().filter(|line| line.starts_with("error")).count();
        assert_eq!(n_errors, expected, "{path}");
        assert!(!case.message.lines().any(|line| line.starts_with("warning")), "{path} has a warning");
    }
}

/// Codes that no compiler can report, because the functions may be in different modules: the app fails with them when it starts.
const AT_THE_START: [&str; 4] = ["K0070", "K0109", "K0113", "K0114"];

/// Returns the codes of the book with their titles.
fn titles() -> BTreeMap<String, String> {
    let book = fs::read_to_string(folder().join("../../guide/errors.md")).unwrap();
    let sections = book.lines().filter_map(|line| line.strip_prefix("## ")?.split_once(": "));
    sections.map(|(code, title)| (code.to_owned(), title.to_owned())).collect()
}

/// Returns the content of `README.md`.
fn index(cases: &[Case]) -> String {
    let mut text = String::from(
        "# Compile errors, by code and by attribute\n\n\
         Each case is a file `ATTRIBUTE/fail/CASE.rs` with its message in `CASE.stderr`. [Compile errors](../../guide/errors.md)\n\
         explains each code. `TRYBUILD=overwrite cargo test --workspace --test ui` writes this page.\n\n\
         ## By code\n\n| Code | Rule | Cases |\n|---|---|---|\n",
    );
    for (code, title) in titles() {
        let with_code = cases.iter().filter(|case| case.codes().contains(&code.as_str()));
        let mut found: Vec<_> = with_code.map(|case| format!("`{}`", case.path())).collect();
        if AT_THE_START.contains(&code.as_str()) {
            found.push("reported when the program starts".into());
        }
        writeln!(text, "| {code} | {title} | {} |", found.join(", ")).unwrap();
    }
    let without_code = cases.iter().filter(|case| case.codes().is_empty());
    let without_code: Vec<_> = without_code.map(|case| format!("`{}`", case.path())).collect();
    writeln!(text, "| none | reported by rustc alone | {} |", without_code.join(", ")).unwrap();
    for group in groups() {
        let folder = name(&group);
        let title = if folder == "context" { "The `Context` in functions".into() } else { format!("`#[{folder}]`") };
        write!(text, "\n## {title}\n\n| Case in `{folder}/fail` | Code | Rule |\n|---|---|---|\n").unwrap();
        for case in cases.iter().filter(|case| case.group == folder) {
            writeln!(text, "| `{}` | {} | {} |", case.name, case.codes().join(", "), case.rule).unwrap();
        }
        let programs = sources(&group.join("pass"));
        if !programs.is_empty() {
            write!(text, "\n| Program in `{folder}/pass` | Contents |\n|---|---|\n").unwrap();
        }
        for Source { path, about } in programs {
            writeln!(text, "| `{}` | {about} |", name(&path)).unwrap();
        }
    }
    text
}

#[test]
fn index_lists_every_case() {
    let (path, text) = (folder().join("README.md"), index(&cases()));
    if std::env::var("TRYBUILD").is_ok_and(|mode| mode == "overwrite") {
        fs::write(&path, &text).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(known, text, "tests/ui/README.md is not up to date: run this test with TRYBUILD=overwrite");
}

#[test]
fn every_code_has_a_case() {
    let cases = cases();
    for (code, title) in titles() {
        let has_case = cases.iter().any(|case| case.codes().contains(&code.as_str()));
        let is_startup_code = AT_THE_START.contains(&code.as_str());
        assert_ne!(
            has_case, is_startup_code,
            "{code} ({title}) has a case in tests/ui, or is reported when the program starts"
        );
    }
}
