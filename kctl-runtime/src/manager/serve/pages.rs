//! The pages of the health and the metrics server.
//!
//! A kubelet reads the status alone, 200 or 500. For people there are `?verbose`, which lists every check,
//! `?exclude=NAME`, and a page per check such as `/readyz/cache-pods`.
//!
//! kube-apiserver writes `reason withheld` for a failed check, since strangers may read it. Here the reason is
//! shown: it names a kind or a permission, and without it a probe explains nothing.

use std::{collections::BTreeSet, sync::Arc};

use http::{HeaderValue, Request, StatusCode, header};

use super::{Page, Pages, text};
use crate::manager::{
    health::{Check, Health},
    metrics::{Format, Metrics},
};

/// Maximum number of unknown names of `?exclude=` that a page repeats.
const UNKNOWN_MAX: usize = 10;

/// Returns `/healthz`, `/livez` and `/readyz`, a page for each check, `?verbose` and `?exclude=NAME`.
pub(crate) fn health(health: Arc<Health>) -> Pages {
    let of_ready = health.clone();
    probes(move || health.live(), move || of_ready.ready())
}

/// Returns the pages of [`health`] for the checks of `/livez` and `/readyz`.
pub(crate) fn probes(
    live: impl Fn() -> Vec<Check> + Send + Sync + 'static,
    ready: impl Fn() -> Vec<Check> + Send + Sync + 'static,
) -> Pages {
    Arc::new(move |request| {
        let path = request.uri().path().trim_end_matches('/');
        let (root, one) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
        let checks = match root {
            "healthz" | "livez" => live(),
            "readyz" => ready(),
            _ => return text(StatusCode::NOT_FOUND, "there are /healthz, /livez and /readyz\n"),
        };
        if one.is_empty() {
            all(root, &checks, request.uri().query().unwrap_or_default())
        } else {
            check_page(one, &checks)
        }
    })
}

/// Returns the page of one check. An unknown name is answered with the names that exist.
fn check_page(name: &str, checks: &[Check]) -> Page {
    match checks.iter().find(|check| check.name == name) {
        Some(Check { result: Ok(_), .. }) => text(StatusCode::OK, "ok"),
        Some(Check { result: Err(reason), .. }) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n")),
        None => text(StatusCode::NOT_FOUND, format!("there is no check of this name; there are {}\n", names(checks))),
    }
}

fn names(checks: &[Check]) -> String {
    checks.iter().map(|check| check.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Prints all checks as Kubernetes' components do (apiserver, `server/healthz`), but with the reasons.
///
/// An excluded check that does not exist is a warning in the output and no failure, as in Kubernetes.
fn all(root: &str, checks: &[Check], query: &str) -> Page {
    let mut options = query.split('&');
    let excluded: Vec<_> = options.clone().filter_map(|option| option.strip_prefix("exclude=")).collect();
    let verbose = options.any(|option| option == "verbose" || option.starts_with("verbose="));
    let mut body = String::new();
    let mut failed = false;
    for Check { name, result } in checks {
        body += &match result {
            _ if excluded.contains(&name.as_str()) => format!("[+]{name} excluded: ok\n"),
            Ok(note) if note.is_empty() => format!("[+]{name} ok\n"),
            Ok(note) => format!("[+]{name} ok: {note}\n"),
            Err(reason) => {
                failed = true;
                format!("[-]{name} failed: {reason}\n")
            }
        };
    }
    body += &warn_about_unknown(&excluded, checks);
    if failed {
        return text(StatusCode::INTERNAL_SERVER_ERROR, format!("{body}{root} check failed\n"));
    }
    if verbose { text(StatusCode::OK, format!("{body}{root} check passed\n")) } else { text(StatusCode::OK, "ok") }
}

/// Returns a warning about excluded checks that do not exist: each name once, at most [`UNKNOWN_MAX`] of them.
fn warn_about_unknown(excluded: &[&str], checks: &[Check]) -> String {
    let is_known = |name: &str| checks.iter().any(|check| check.name == name);
    let unknown: BTreeSet<_> = excluded.iter().copied().filter(|name| !is_known(name)).collect();
    if unknown.is_empty() {
        return String::new();
    }
    let mut named: Vec<_> = unknown.iter().take(UNKNOWN_MAX).map(|name| format!("{name:?}")).collect();
    if unknown.len() > UNKNOWN_MAX {
        named.push(format!("and {} more", unknown.len() - UNKNOWN_MAX));
    }
    format!("warn: no check of the name {} to exclude; there are {}\n", named.join(", "), names(checks))
}

/// Returns `/metrics`, in the format that the scraper prefers.
pub(crate) fn metrics(metrics: Metrics) -> Pages {
    Arc::new(move |request: &Request<()>| {
        if request.uri().path() != "/metrics" {
            return text(StatusCode::NOT_FOUND, "there is /metrics\n");
        }
        let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let format = Format::from_accept(accept);
        let mut page = text(StatusCode::OK, metrics.text(format));
        page.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
        page
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_excludes_are_named_once_up_to_ten() {
        let checks: Vec<_> =
            (0..50).map(|n| Check { name: format!("cache-kind{n}"), result: Ok(String::new()) }).collect();
        let page = |query: &str| all("readyz", &checks, query).into_body();
        let repeated = page(&format!("verbose&{}", "exclude=&".repeat(5_000)));
        assert!(repeated.len() < 4 << 10, "{} bytes", repeated.len());
        assert_eq!(repeated.matches("warn: no check of the name \"\" to exclude").count(), 1);
        let many: Vec<_> = (0..5_000).map(|n| format!("exclude=x{n:04}")).collect();
        let many = page(&format!("verbose&{}", many.join("&")));
        assert!(many.contains("\"x0009\", and 4990 more to exclude") && many.len() < 4 << 10, "{many}");
    }
}
