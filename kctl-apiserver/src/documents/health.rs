//! `/livez`, `/readyz` and `/healthz`: the server is well when it answers.

use std::collections::BTreeSet;

use http::{Response, StatusCode, request::Parts};

use crate::server::respond::{Body, plain, text};

/// Of the checks of the real server those that mean something here: it answers, writes its log, reaches its objects.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// All paths of checks.
pub(super) fn paths() -> impl Iterator<Item = String> {
    ["healthz", "livez", "readyz"].into_iter().flat_map(|root| {
        let checks = CHECKS.iter().map(move |check| format!("/{root}/{check}"));
        std::iter::once(format!("/{root}")).chain(checks)
    })
}

/// Answers a request about such a path.
pub(super) fn answer(path: &[&str], parts: &Parts) -> Response<Body> {
    // Several checks can be excluded, so this is no map.
    let options: Vec<&str> = parts.uri.query().unwrap_or_default().split('&').collect();
    let tells_all = options.iter().any(|option| option.split('=').next() == Some("verbose"));
    let excluded: BTreeSet<&str> = options.iter().filter_map(|option| option.strip_prefix("exclude=")).collect();
    match path {
        [_, check] if CHECKS.contains(check) => plain(StatusCode::OK, "ok"),
        [_] if !tells_all => text(StatusCode::OK, "ok"),
        [root] => text(StatusCode::OK, &told(root, &excluded)),
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// A line for each check, and one about those that are excluded and that there are not.
fn told(root: &str, excluded: &BTreeSet<&str>) -> String {
    let line = |check: &&str| {
        let excluded = if excluded.contains(check) { "excluded: " } else { "" };
        format!("[+]{check} {excluded}ok\n")
    };
    let mut told: String = CHECKS.iter().map(line).collect();
    let unknown: Vec<String> =
        excluded.iter().filter(|name| !CHECKS.contains(name)).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        told += &format!("warn: some health checks cannot be excluded: no matches for {}\n", unknown.join(","));
    }
    told + &format!("{root} check passed\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_cannot_be_excluded_is_told_of() {
        let warning = "warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\n";
        for (excluded, expected) in [
            (&[][..], "[+]ping ok\n[+]log ok\n[+]etcd ok\nlivez check passed\n".to_owned()),
            (&["etcd"], "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\nlivez check passed\n".to_owned()),
            (&["b", "a"], format!("[+]ping ok\n[+]log ok\n[+]etcd ok\n{warning}livez check passed\n")),
        ] {
            assert_eq!(told("livez", &excluded.iter().copied().collect()), expected);
        }
    }
}
