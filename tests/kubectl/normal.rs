//! Normalizes output: replaces the parts that may differ between two runs.

use std::{collections::HashMap, path::Path, sync::LazyLock};

use regex::Regex;

use crate::run::Step;

/// Patterns and their replacements, applied in this order.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
        (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} 20\d\d \d\d:\d\d:\d\d \+0000", "TIME"),
        (r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9} \+0000", "TIME"),
        (r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "TIME"),
        (r#"(resourceVersion"?: "?)\d+"#, "${1}RV"),
        (r"(resource version to be 1, was )\d+", "${1}RV"),
        // User name of the real server's administrator, whose certificate has another subject.
        (r"\bkubernetes-admin\b", "admin"),
        (r"(Resource Version:\s+)\d+", "${1}RV"),
        (r"https://[0-9.]+:\d+", "https://SERVER"),
        (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        // Ages that end in minutes are kept, because `100m` is also a CPU quantity.
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

/// Returns the output of a command with placeholders for UIDs, ages and other values that vary.
pub(crate) fn normalize(step: &Step, namespace: &str, place: &Path) -> Step {
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
    // Some errors end with a diff of Go's internal types, which is cut off.
    let err = step
        .err
        .split_once("\n@@ ")
        .map_or_else(|| step.err.clone(), |(message, _)| format!("{}\n", message.trim_end()));
    Step { exit: step.exit, out: text(&step.out), err: text(&err) }
}

/// Patterns of lines with a message of the server. The captured groups are compared.
static MESSAGES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let error_type =
        "Invalid value|Required value|Forbidden|Unsupported value|Duplicate value|Too long|Too many|Not found";
    [
        r"^(Error from server(?: \(\w+\))?): ".to_owned(),
        format!(r#"^(error: failed to \w+ \w+: \S+ "[^"]*" is invalid: \S+ (?:{error_type}))"#),
        format!(r"^(The .* is invalid:)(?: (\S+: (?:{error_type}))|.)"),
        format!(r"^(\* \S+: (?:{error_type}))"),
        r"^(error: Apply failed) with ".to_owned(),
        r"^(Warning:) ".to_owned(),
    ]
    .iter()
    .map(|pattern| Regex::new(pattern).expect("the pattern is right"))
    .collect()
});

/// Returns printed text without the wording of the server's messages. Reasons, and fields with the types of their
/// errors, are kept.
pub(crate) fn meaning(text: &str) -> String {
    let line = |line: &str| {
        let Some(found) = MESSAGES.iter().find_map(|pattern| pattern.captures(line)) else { return line.to_owned() };
        let parts: Vec<&str> = found.iter().skip(1).flatten().map(|part| part.as_str()).collect();
        parts.join(" ")
    };
    // kube-apiserver's message lists the rules that a role may not grant, one per line.
    let is_rule = |line: &&str| line.starts_with("{APIGroups:") || line.starts_with("{NonResourceURLs:");
    // Its message about untyped values lists all of them, one per line; the embedded server names the first.
    let is_untyped = |line: &&str| line.starts_with("  .") && line.contains("not declared in schema");
    let mut lines: Vec<String> = text.lines().filter(|line| !is_rule(line) && !is_untyped(line)).map(line).collect();
    // The order of field errors does not matter.
    for errors in lines.chunk_by_mut(|one, other| one.starts_with("* ") && other.starts_with("* ")) {
        errors.sort();
    }
    lines.dedup_by(|one, other| one.starts_with("* ") && one == other);
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meaning_keeps_reasons_fields_and_all_other_lines() {
        let cases = [
            ("NAME  AGE\na  1s\n", "NAME  AGE\na  1s\n"),
            ("Error from server (NotFound): pods \"a\" not found\n", "Error from server (NotFound)\n"),
            ("The Pod \"a\" is invalid: spec.x: Forbidden: y\n", "The Pod \"a\" is invalid: spec.x: Forbidden\n"),
            ("The request is invalid: patch\n", "The request is invalid:\n"),
            (
                "* spec.b: Required value: y\n* spec.a: Invalid value: 1: z\n",
                "* spec.a: Invalid value\n* spec.b: Required value\n",
            ),
            (
                "error: failed to create token: TokenRequest.a.k8s.io \"\" is invalid: spec.x: Invalid value: 1: y\n",
                "error: failed to create token: TokenRequest.a.k8s.io \"\" is invalid: spec.x: Invalid value\n",
            ),
            ("Error from server (Forbidden): x:\n{APIGroups:[\"\"]}\n", "Error from server (Forbidden)\n"),
            ("Error from server: x: errors:\n  .a[b=\"c\"].d: field not declared in schema\n", "Error from server\n"),
            ("Warning: unknown field \"a\"\n", "Warning:\n"),
            ("error: Apply failed with 1 conflict: conflict with \"b\": .c\n", "error: Apply failed\n"),
        ];
        for (printed, expected) in cases {
            assert_eq!(meaning(printed), expected);
        }
    }
}
