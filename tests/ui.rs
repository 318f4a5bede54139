//! What misuse prints: each file of `ui/fail` breaks one rule, and its `.stderr` is what the user reads.
//!
//! `TRYBUILD=overwrite cargo test -p kctl-tests --test ui` writes the messages anew: read each one as a newcomer would. The files of
//! `ui/pass` are modules of this test: right use compiles.

use std::{fs, path::Path};

#[path = "ui/pass/advised.rs"]
mod advised;
#[path = "ui/pass/built_in_status.rs"]
mod built_in_status;
#[path = "ui/pass/clusters.rs"]
mod clusters;
#[path = "ui/pass/crate_path.rs"]
mod crate_path;
#[path = "ui/pass/error_of_ones_own.rs"]
mod error_of_ones_own;
#[path = "ui/pass/helpers.rs"]
mod helpers;
#[path = "ui/pass/inside_a_function.rs"]
mod inside_a_function;
#[path = "ui/pass/interpreters.rs"]
mod interpreters;
#[path = "ui/pass/options.rs"]
mod options;
#[path = "ui/pass/owned_subresources.rs"]
mod owned_subresources;
#[path = "ui/pass/parts.rs"]
mod parts;
#[path = "ui/pass/predicates.rs"]
mod predicates;
#[path = "ui/pass/structure.rs"]
mod structure;
#[path = "ui/pass/verbs.rs"]
mod verbs;
#[path = "ui/pass/webhooks.rs"]
mod webhooks;

#[test]
fn misuse_teaches() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}

#[test]
fn right_use_compiles() {
    let apps = [
        (advised::app(), vec!["site", "configmap"]),
        (built_in_status::app(), vec!["deployment"]),
        (clusters::app(), vec!["configmap", "edge"]),
        (crate_path::app(), vec!["configmap", "secret"]),
        (error_of_ones_own::app(), vec!["configmap"]),
        (helpers::app(), vec!["configmap", "adder"]),
        (inside_a_function::app(), vec!["note", "cluster-scoped"]),
        (options::app(), vec!["configs"]),
        (owned_subresources::app(), vec!["configmap"]),
        (parts::app(), vec!["configmap"]),
        (predicates::app(), vec!["deployment"]),
        (structure::app(), vec!["greeting"]),
        (verbs::app(), vec!["deployment"]),
    ];
    for (app, names) in apps {
        let specs = app.specs();
        let found: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(found, names);
    }
}

#[test]
fn interpreters_of_every_operation_compile_and_are_registered() {
    let names =
        |rules: &[kctl::karmada::function::Rule]| -> Vec<_> { rules.iter().map(|rule| format!("{rule:?}")).collect() };
    let functions = interpreters::in_process();
    assert_eq!(
        names(functions.rules()),
        [
            "InterpretReplica of example.com/v1, Kind=Fleet by `replicas`",
            "Prune of example.com/v1, Kind=Fleet by `prune`",
            "InterpretReplica of batch/v1, Kind=Job by `jobs`",
            "AggregateStatus of apps/v1, Kind=Deployment by `raw`",
            "InterpretHealth of batch/v1, Kind=Job by `well`",
        ]
    );
    assert_eq!(interpreters::app().interpreters().len(), 8);
}

#[test]
fn webhooks_of_every_form_compile_and_have_the_paths_of_kubebuilder() {
    let app = webhooks::app();
    let paths: Vec<_> = app.admissions().iter().map(kctl::admission::Rule::path).collect();
    assert_eq!(
        paths,
        [
            "/mutate-example-com-v1-ship",
            "/validate-example-com-v1-ship",
            "/validate-example-com-v1-ship-status",
            "/validate--v1-pod-exec-attach",
        ]
    );
    let conversions: Vec<_> =
        app.conversions().iter().map(|rule| format!("{} {}", rule.from().version, rule.to().version)).collect();
    assert_eq!(conversions, ["v1alpha1 v1", "v1 v1alpha1"]);
}

/// The files below a folder of this crate with this ending.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut found: Vec<_> = paths.filter(|path| name(path).ends_with(ending)).collect();
    found.sort();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Cases with more than one error. The first ones make several mistakes, to show that all are reported at once; of the others rustc
/// reports one mistake several times, and each case says why.
const SEVERAL: [(&str, usize); 12] = [
    ("several_mistakes", 3),
    ("mark_several_mistakes", 2),
    ("view_several_mistakes", 3),
    ("interpreter_several_mistakes", 3),
    ("admission_several_mistakes", 4),
    ("cluster_by_text_in_the_call", 2),
    ("helper_needs_more", 3),
    ("helper_owns_with_fewer_verbs", 3),
    ("helper_client_without_rules", 3),
    ("helper_writes_any_status", 2),
    ("reconcile_without_controller", 3),
    ("state_not_shared", 2),
];

#[test]
fn one_mistake_is_one_error() {
    let messages = files("ui/fail", ".stderr");
    assert!(messages.len() >= 90, "{} cases", messages.len());
    for (name, text) in messages {
        let case = name.trim_end_matches(".stderr");
        let expected = SEVERAL.iter().find(|(several, _)| *several == case).map_or(1, |(_, n)| *n);
        let n_errors = text.lines().filter(|line| line.starts_with("error")).count();
        assert_eq!(n_errors, expected, "{name}");
        assert!(!text.lines().any(|line| line.starts_with("warning")), "{name} has a warning");
    }
}
