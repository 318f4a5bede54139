//! `/livez`, `/readyz` and `/healthz`: the server is well when it answers.

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
    match path {
        [_, check] if CHECKS.contains(check) => plain(StatusCode::OK, "ok"),
        [_] if !tells_all => text(StatusCode::OK, "ok"),
        [root] => {
            let line = |check: &&str| {
                let exclude = format!("exclude={check}");
                let excluded = if options.contains(&exclude.as_str()) { "excluded: " } else { "" };
                format!("[+]{check} {excluded}ok\n")
            };
            let told: String = CHECKS.iter().map(line).collect();
            plain(StatusCode::OK, &format!("{told}{root} check passed\n"))
        }
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}
