//! Options that `#[controller]` does not have: K0011, with the option that the user means.

use super::super::{
    model::{RelationOption, Verb},
    parse::Entry,
};
use crate::{
    codes,
    diagnostics::{Errors, closest_match},
};

/// All options in the order of the help.
const OPTIONS: [&str; 16] = [
    "owns",
    "watches",
    "reads",
    "primary",
    "of",
    "name",
    "finalizer",
    "concurrency",
    "backoff",
    "retries",
    "namespaces",
    "resync",
    "timeout",
    "converged",
    "rbac",
    "crate",
];

/// Names that kube-rs, controller-runtime and other frameworks have for an option, with the help.
const OTHER_OPTIONS: [(&str, &str); 20] = [
    ("cleanup", FINALIZER),
    ("filter", PREDICATE),
    ("for", KIND),
    ("interval", RESYNC),
    ("kind", KIND),
    ("label_selector", "write `primary(selector = \"…\")`, or `owns = Kind(selector = \"…\")`"),
    ("leader_elect", "it is an option of the program: `run --leader-elect`"),
    ("leader_election", "it is an option of the program: `run --leader-elect`"),
    ("max_concurrent_reconciles", CONCURRENCY),
    ("max_retries", "write `retries = 5`"),
    ("on_delete", FINALIZER),
    ("parallelism", CONCURRENCY),
    ("period", RESYNC),
    ("predicate", PREDICATE),
    ("predicates", PREDICATE),
    ("rate_limit", "write `backoff(\"5ms\", max = \"1000s\")`"),
    ("rate_limiter", "write `backoff(\"5ms\", max = \"1000s\")`"),
    ("requeue", RESYNC),
    ("resource", KIND),
    ("workers", CONCURRENCY),
];
/// The help for names of the number of workers.
const CONCURRENCY: &str = "write `concurrency = 4`";
/// The help for names of cleanup.
const FINALIZER: &str = "write `finalizer = \"example.com/name\"` on a struct with `impl Finalize`";
/// The help for names of the primary's kind.
const KIND: &str =
    "the kind of a function is the type of its first parameter, `Arc<Kind>`; a struct names it by `of = Kind`";
/// The help for names of predicates.
const PREDICATE: &str = "write `owns = Kind(when = f)`, or `primary(when = f)`";
/// The help for names of periodic reconciles.
const RESYNC: &str = "write `resync = \"10m\"`, or return `Action::requeue(…)` for one object";

/// Reports K0011. The help knows names of other frameworks, options and verbs that belong into the parentheses of a
/// kind, and kinds that follow another kind: `owns = Pod, Secret`.
pub(super) fn unknown_option(entry: &Entry, unknown: &str, errors: &mut Errors) {
    let other = OTHER_OPTIONS.iter().find(|(other, _)| *other == unknown).map(|(_, help)| *help);
    let help = match closest_match(unknown, &OPTIONS) {
        _ if other.is_some() => other.unwrap_or_default().to_owned(),
        // `owns` accepts neither of these two.
        _ if ["as", "on"].contains(&unknown) => {
            format!("write it in the parentheses of a kind: `reads = Kind({unknown} = …)`")
        }
        _ if RelationOption::of(unknown).is_some() => {
            format!("write it in the parentheses of a kind: `owns = Kind({unknown} = …)`")
        }
        // `create` is nearest to `crate`.
        None | Some("crate") if Verb::of(unknown).is_some() => {
            format!("write a verb in the parentheses of a kind: `owns = Kind({unknown})`")
        }
        Some(candidate) => format!("did you mean `{candidate}`?"),
        // `owns = Pod, Secret`: a second kind after a comma.
        None if unknown.starts_with(char::is_uppercase) => {
            format!(
                "name the relation of each kind: `owns = {unknown}`, `watches = {unknown}(map = f)` or `reads = {unknown}`"
            )
        }
        None => format!("the options are {}", OPTIONS.join(", ")),
    };
    let what = format!("`#[controller]` has no option `{unknown}`");
    errors.push(&entry.name, codes::UNKNOWN_OPTION, &what, &help);
}
