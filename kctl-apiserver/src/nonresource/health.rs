//! `/livez`, `/readyz` and `/healthz`.
//!
//! Each of the three paths runs several checks, and each check also has a path below it. `?verbose` lists all results,
//! and `?exclude=NAME` skips a check. The storage check of `readyz` is the only one that can fail here.
//!
//! Upstream: `handleRootHealth` of `k8s.io/apiserver/pkg/server/healthz/healthz.go`.

use std::{collections::BTreeSet, io};

use http::{Response, StatusCode, request::Parts};

use crate::response::{Body, plain, text};

/// The paths that combine several checks.
const ROOTS: [&str; 3] = ["healthz", "livez", "readyz"];
/// The check that fails while changes cannot be written to disk. Named like upstream's check of its storage, since
/// clients request it by this name.
const STORAGE: &str = "etcd";

/// Returns the checks of a root. kube-apiserver has about thirty more, for parts that this server does not have.
fn checks(root: &str) -> &'static [&'static str] {
    match root {
        "readyz" => &["ping", "log", STORAGE, "shutdown"],
        _ => &["ping", "log", STORAGE],
    }
}

/// Returns the paths of all checks, which `/` lists. Each root is followed by its checks.
pub(super) fn paths() -> impl Iterator<Item = String> {
    ROOTS.into_iter().flat_map(|root| {
        let checks = checks(root).iter().map(move |check| format!("/{root}/{check}"));
        std::iter::once(format!("/{root}")).chain(checks)
    })
}

/// Handles a request for a check or a group of checks. `storage` checks the disk; only readiness depends on it, because
/// a restart by a liveness probe would not free the disk. Responses are plain text: 200 `ok`, 500 with the list of
/// checks, or 404 for an unknown check. `storage` is called at most once, and only if the response depends on it.
pub(super) fn handle(path: &[&str], parts: &Parts, storage: impl FnOnce() -> io::Result<()>) -> Response<Body> {
    // `exclude` may be repeated, so the query is not a map.
    let options: Vec<&str> = parts.uri.query().unwrap_or_default().split('&').collect();
    let tells_all = options.iter().any(|option| option.split('=').next() == Some("verbose"));
    let excluded: BTreeSet<&str> = options.iter().filter_map(|option| option.strip_prefix("exclude=")).collect();
    let is_included = match path {
        ["readyz"] => !excluded.contains(STORAGE),
        ["readyz", check] => *check == STORAGE,
        _ => false,
    };
    let failure = if is_included { storage().err() } else { None };
    match (path, failure) {
        ([root], Some(error)) => {
            tracing::warn!(%error, "not ready: the journal cannot be written");
            text(StatusCode::INTERNAL_SERVER_ERROR, &report(root, &excluded, &[STORAGE]))
        }
        (_, Some(error)) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("internal server error: {error}\n")),
        ([_], None) if !tells_all => text(StatusCode::OK, "ok"),
        ([root], None) => text(StatusCode::OK, &report(root, &excluded, &[])),
        ([root, check], None) if checks(root).contains(check) => plain(StatusCode::OK, "ok"),
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// Formats one line per check, and one line about excluded checks and unknown ones. Reasons of failures are withheld
/// from the response, as upstream, and logged.
fn report(root: &str, excluded: &BTreeSet<&str>, failed: &[&str]) -> String {
    let line = |check: &str| {
        if failed.contains(&check) {
            return format!("[-]{check} failed: reason withheld\n");
        }
        let excluded = if excluded.contains(check) { "excluded: " } else { "" };
        format!("[+]{check} {excluded}ok\n")
    };
    let mut lines: String = checks(root).iter().copied().map(line).collect();
    let is_unknown = |name: &&&str| !checks(root).contains(name);
    let unknown: Vec<String> = excluded.iter().filter(is_unknown).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        lines += &format!("warn: some health checks cannot be excluded: no matches for {}\n", unknown.join(","));
    }
    lines + &format!("{root} check {}\n", if failed.is_empty() { "passed" } else { "failed" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_excluded_check_is_reported() {
        let warning = "warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\n";
        for (excluded, start, end) in [
            (&[][..], "[+]ping ok\n[+]log ok\n[+]etcd ok\n", ""),
            (&["log"], "[+]ping ok\n[+]log excluded: ok\n", ""),
            (&["b", "a"], "[+]ping ok\n", warning),
        ] {
            let report = report("livez", &excluded.iter().copied().collect(), &[]);
            assert!(report.starts_with(start) && report.ends_with(&format!("{end}livez check passed\n")), "{report}");
        }
    }
}
