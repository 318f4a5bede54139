//! `/livez`, `/readyz` and `/healthz`.
//!
//! Each of the three paths runs several checks, and each check also has a path below it. `?verbose` lists all results,
//! and `?exclude=NAME` skips a check. The storage check of `readyz` is the only one that can fail here.
//!
//! Upstream: `handleRootHealth` of `k8s.io/apiserver/pkg/server/healthz/healthz.go`.

use std::{collections::BTreeSet, io};

use http::{Response, StatusCode, request::Parts};

use crate::response::{Body, plain, text};

/// Checks of the server itself, which come first. Listed before all others in each root.
const FIRST: [&str; 2] = ["ping", "log"];
/// Post-start hooks of kube-apiserver. Here they are complete before the first request or not needed, so they always
/// succeed. Clients request them by name.
const HOOKS: [&str; 29] = [
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/max-in-flight-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];
/// The paths that combine several checks.
const ROOTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// Returns the checks of a root, in the order in which kube-apiserver lists them. The order matters to clients that
/// compare verbose output.
fn checks(root: &str) -> impl Iterator<Item = &'static str> {
    let (next, last): (&[&str], &[&str]) = match root {
        "readyz" => (&["etcd", "etcd-readiness", "informer-sync"], &["shutdown"]),
        _ => (&["loopback-serving-certificate", "etcd"], &[]),
    };
    FIRST.iter().chain(next).chain(&HOOKS).chain(last).copied()
}

/// Returns the paths of all checks, which `/` lists. Each root is followed by its checks.
pub(super) fn paths() -> impl Iterator<Item = String> {
    ROOTS.into_iter().flat_map(|root| {
        let checks = checks(root).map(move |check| format!("/{root}/{check}"));
        std::iter::once(format!("/{root}")).chain(checks)
    })
}

/// Returns the results of all checks as metrics, sorted by name. All of them report success. Served as `/metrics/slis`.
pub(super) fn metrics() -> String {
    let about = "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n\
                 # TYPE kubernetes_healthcheck gauge\n";
    let all: BTreeSet<String> = ROOTS
        .into_iter()
        .flat_map(|root| {
            checks(root).map(move |check| format!("kubernetes_healthcheck{{name=\"{check}\",type=\"{root}\"}} 1\n"))
        })
        .collect();
    std::iter::once(about.to_owned()).chain(all).collect()
}

/// The check that fails while changes cannot be written to disk. Named like upstream's check of its storage, since
/// clients request it by this name.
const STORAGE: &str = "etcd";

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
        ([root, check @ ..], None) if checks(root).any(|name| name == check.join("/")) => plain(StatusCode::OK, "ok"),
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
    let mut lines: String = checks(root).map(line).collect();
    let is_unknown = |name: &&&str| !checks(root).any(|check| check == **name);
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
            (&[][..], "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd ok\n", ""),
            (&["log"], "[+]ping ok\n[+]log excluded: ok\n", ""),
            (&["b", "a"], "[+]ping ok\n", warning),
        ] {
            let report = report("livez", &excluded.iter().copied().collect(), &[]);
            assert!(report.starts_with(start) && report.ends_with(&format!("{end}livez check passed\n")), "{report}");
        }
    }

    #[test]
    fn each_check_has_a_metric_per_root() {
        let metrics = metrics();
        assert_eq!(metrics.lines().count(), 2 + paths().count() - ROOTS.len());
        assert!(metrics.contains("\nkubernetes_healthcheck{name=\"shutdown\",type=\"readyz\"} 1\n"), "{metrics}");
    }
}
