//! Checks that functions have verbs: bounds how many have a bare participle as their name, such as `written`.
//!
//! `write`, `written_object` and `is_written` say what a caller gets, and a reader can search for them. A participle is only
//! clear in a builder (`namespaced()`) and in the implementation of another crate's trait.

use crate::{
    modules::{CRATES, code},
    tidy::sources,
};

/// Participles that don't end in `ed`.
const IRREGULAR: &str = " bound built brought chosen done drawn found given gone heard held kept known laid left lost made met \
    said seen sent shown spent taken told thought won written ";
/// Verbs that end in `ed`.
const VERBS: [&str; 6] = ["embed", "feed", "need", "proceed", "seed", "succeed"];
/// The most functions with such a name, by crate. Lower a number when you rename one.
const PARTICIPLES_MAX: [(&str, usize); 11] = [
    ("kctl", 9),
    ("kctl-apimachinery", 0),
    ("kctl-apiserver", 9),
    ("kctl-cel", 0),
    ("kctl-cli", 0),
    ("kctl-interpreter", 0),
    ("kctl-macros", 0),
    ("kctl-runtime", 13),
    ("kctl-webhook", 1),
    ("kctl-workloads", 0),
    ("xtask", 0),
];

/// Returns the names of the functions in a file, without its unit tests, that are one participle.
fn participles(text: &str) -> Vec<String> {
    let code = code(text);
    let names = code.split("fn ").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
        rest[..end].to_owned()
    });
    let is_regular = |name: &str| name.ends_with("ed") && !name.contains('_') && !VERBS.contains(&name);
    names.filter(|name| is_regular(name) || IRREGULAR.contains(&format!(" {name} "))).collect()
}

#[test]
fn participles_are_found_outside_of_tests() {
    let text = "fn written() {}\nfn write() {}\nfn is_kept() {}\nfn namespaced(self) {}\nfn written_object() {}\nfn embed() {}\n\
                #[cfg(test)]\nmod tests {\n    fn sent() {}\n}\n";
    assert_eq!(participles(text), ["written", "namespaced"]);
}

#[test]
fn functions_have_verbs() {
    for krate in CRATES {
        let (_, max) = PARTICIPLES_MAX.into_iter().find(|(name, _)| *name == krate).expect("each crate has a number");
        let files = sources(&format!("{krate}/src"));
        let names: Vec<String> =
            files.iter().filter(|(path, _)| !path.contains("tests")).flat_map(|(_, text)| participles(text)).collect();
        let n = names.len();
        assert!(n <= max, "{krate} has {n} functions with a participle as their name, at most {max}: {names:?}");
        assert!(n == max, "{krate} has only {n} such functions: lower its number from {max}");
    }
}
