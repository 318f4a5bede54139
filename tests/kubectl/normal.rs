//! What may differ between two runs: reads what a command has printed, hands on one without it.

use std::{collections::HashMap, path::Path, sync::LazyLock};

use regex::Regex;

use crate::run::Step;

/// Patterns with what stands for what they match, in this order.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
        (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} 20\d\d \d\d:\d\d:\d\d \+0000", "TIME"),
        (r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9} \+0000", "TIME"),
        (r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "TIME"),
        (r#"(resourceVersion"?: "?)\d+"#, "${1}RV"),
        (r"(resource version to be 1, was )\d+", "${1}RV"),
        // The administrator of the real server, who has a certificate of another form.
        (r"\bkubernetes-admin\b", "admin"),
        (r"(Resource Version:\s+)\d+", "${1}RV"),
        (r"https://[0-9.]+:\d+", "https://SERVER"),
        (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        // Ages that end in minutes are left: `100m` is also an amount of CPU.
        (r"\b(\d+d)?(\d+h)?(\d+m)?\d+(s|ms)\b", "AGE"),
        (r"\b(\d+y(\d+d)?|\d+d(\d+h)?|\d+h(\d+m)?)\b", "AGE"),
        (r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ ", "LOG "),
        (r"/tmp/[A-Za-z-]+-\d+\b", "/tmp/FILE"),
        (r"\bNS\.\w+\.UID\d+", "TOKEN"),
        (r":3[0-2]\d{3}/", ":NODEPORT/"),
        (r#"Invalid value: "\{\\"apiVersion.*\}": "#, "Invalid value: BODY: "),
        // The widths of columns depend on ages and names.
        (r"(?m)(\S) {2,}", "$1  "),
        (r"(?m) +$", ""),
    ]
    .into_iter()
    .map(|(pattern, replacement)| (Regex::new(pattern).expect("the pattern is right"), replacement))
    .collect()
});

static UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("the pattern is right")
});

/// What a command has printed, in words that do not change.
pub(crate) fn of(step: &Step, namespace: &str, place: &Path) -> Step {
    let mut uids = HashMap::new();
    let mut text = |text: &str| {
        let text = text.replace(place.to_str().unwrap_or("-"), "PLACE").replace(namespace, "NS");
        let text = UID.replace_all(&text, |found: &regex::Captures<'_>| {
            let n_known = uids.len();
            format!("UID{}", uids.entry(found[0].to_owned()).or_insert(n_known))
        });
        let all = PATTERNS.iter();
        all.fold(text.into_owned(), |text, (pattern, replacement)| {
            pattern.replace_all(&text, *replacement).into_owned()
        })
    };
    // After some refusals come the differences of Go's internal types.
    let err =
        step.err.split_once("\n@@ ").map_or_else(|| step.err.clone(), |(told, _)| format!("{}\n", told.trim_end()));
    Step { exit: step.exit, out: text(&step.out), err: text(&err) }
}
