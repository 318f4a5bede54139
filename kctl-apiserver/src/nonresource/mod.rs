//! Documents that are not objects: discovery, `OpenAPI`, version, health, metrics.
//!
//! `server::service` calls [`handle`] after authorization if the path of a request is not one of a resource.

mod accept;
mod health;
mod keys;
mod schemas;

use std::collections::BTreeSet;

use http::{Method, Response, StatusCode, header, request::Parts};
use serde_json::{Value, json};

use self::accept::{DocumentFormat, Router};
use crate::{
    authorizer, metrics, openapi,
    registry::{self, Registry},
    request::{self, User, errors_are_yaml},
    response::{Body, bytes_of, full, plain, reject, respond, text, yaml},
    state::State,
    status::StatusError,
    version,
};

/// The media type of aggregated discovery.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The media type of aggregated discovery as YAML.
const AGGREGATED_YAML: &str = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Handles a request whose path is not one of a resource.
///
/// 1. The user needs the path in a rule with `nonResourceURLs`. Paths with the form of a resource were authorized as
///    such.
/// 2. Paths of an `APIService` with a Service return 503: nothing is forwarded.
/// 3. Health, metrics, `OpenAPI` and the documents for tokens have their own handlers.
/// 4. Everything else is discovery, or 404. A 404 is a `Status` below the version of a built-in group, and plain text
///    otherwise, as from kube-aggregator.
pub(crate) fn handle(state: &State, user: &User, parts: &Parts) -> Response<Body> {
    let (path, verb) = (parts.uri.path(), parts.method.as_str().to_lowercase());
    // A path with the form of a resource was authorized and parsed already.
    let is_of_objects = request::parse_path(&request::decode(path)).is_some();
    if !is_of_objects && !authorizer::allows_path(state, user, &verb, path) {
        let error = authorizer::forbidden_path(user, &verb, path);
        return error_response(parts, &error.because(&authorizer::missing_roles(state, user, "").unwrap_or_default()));
    }
    let registry = &state.store.registry;
    if registry.is_remote(path) {
        // The response of kube-aggregator for an unavailable APIService.
        return text(StatusCode::SERVICE_UNAVAILABLE, "service unavailable\n");
    }
    let path: Vec<&str> = path.trim_matches('/').split('/').collect();
    if let Some(response) = respond_beside_kinds(state, &path, parts) {
        return response;
    }
    let Some(document) = document(registry, &path) else {
        return match path.as_slice() {
            ["apis", group, _, ..] if !group.is_empty() && registry.is_built_in(group) => {
                error_response(parts, &StatusError::path_not_found())
            }
            _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        };
    };
    let router = router(registry, &path);
    if router == Router::GoRestful && parts.method != Method::GET {
        return error_response(parts, &StatusError::method_not_allowed());
    }
    discovery_response(registry, &path, &document, router, parts)
}

/// Handles requests for health, metrics, `OpenAPI` and token keys; `None` for discovery. `names` is the path without
/// slashes at its ends, split. Paths below a document, and paths with doubled slashes, are 404 as in Go's router.
fn respond_beside_kinds(state: &State, names: &[&str], parts: &Parts) -> Option<Response<Body>> {
    let path = parts.uri.path();
    // These documents have nothing below them.
    if path.ends_with('/') && path.starts_with("/openapi/v3/") {
        return Some(schemas::empty_response(StatusCode::NOT_FOUND));
    }
    let is_below =
        ["/healthz/", "/livez/", "/readyz/", "/openapi/", "/metrics/"].iter().any(|root| path.starts_with(root));
    if path.starts_with("//") || (path.ends_with('/') && is_below) {
        return Some(text(StatusCode::NOT_FOUND, "404 page not found\n"));
    }
    let registry = &state.store.registry;
    Some(match names {
        ["openid", "v1", "jwks"] | [".well-known", "openid-configuration"] => keys::handle(&state.core, names, parts),
        ["openid", "v1", "jwks", ..] | [".well-known", "openid-configuration", ..] => {
            error_response(parts, &StatusError::path_not_found())
        }
        ["livez" | "readyz" | "healthz", ..] => health::handle(names, parts, || state.store.check_storage()),
        // Upstream does not check the method of these.
        ["metrics"] if parts.method == Method::DELETE => plain(StatusCode::OK, "metrics reset\n"),
        ["metrics"] => {
            let metrics = metrics::to_text(&state.core.counts, state.store.sizes(), parts.extensions.get());
            let form = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
            respond(StatusCode::OK, form, full(metrics.into_bytes()))
        }
        ["openapi", version @ ("v2" | "v3"), root @ ..] => {
            let document = match (*version, root) {
                ("v2", []) => schemas::v2(registry, parts),
                ("v3", []) => schemas::index(registry),
                ("v3", root) => schemas::v3(registry, root, parts),
                _ => return None,
            };
            schemas::as_file(document, state.store.clock.now())
        }
        ["api", version] if registry::resources(registry, "", version).is_none() => {
            error_response(parts, &StatusError::path_not_found())
        }
        ["api", _, _, ..] | ["version", _, ..] => error_response(parts, &StatusError::path_not_found()),
        _ => return None,
    })
}

/// Returns a discovery document in the accepted format. Aggregated discovery has an `ETag` and is the only document
/// here that is answered with 304.
fn discovery_response(
    registry: &Registry,
    path: &[&str],
    document: &Value,
    router: Router,
    parts: &Parts,
) -> Response<Body> {
    match DocumentFormat::negotiate(parts, path, router) {
        Err(error) => error_response(parts, &error),
        Ok(form @ (DocumentFormat::Aggregated | DocumentFormat::AggregatedYaml)) => {
            let document = if path[0] == "api" {
                registry::aggregated_core(registry)
            } else {
                registry::aggregated_apis(registry)
            };
            let (form, bytes) = match form {
                DocumentFormat::Aggregated => (AGGREGATED, bytes_of(&document)),
                _ => (AGGREGATED_YAML, yaml(&document)),
            };
            // Discovery compares tags strictly, without weak validators.
            let tag = schemas::tag(&bytes);
            let known = parts.headers.get(header::IF_NONE_MATCH);
            let response = if known.is_some_and(|known| *known == *format!("{tag:?}")) {
                schemas::empty_response(StatusCode::NOT_MODIFIED)
            } else {
                respond(StatusCode::OK, form, full(bytes))
            };
            schemas::with_etag(response, &tag, "public")
        }
        Ok(DocumentFormat::Yaml) => respond(StatusCode::OK, "application/yaml", full(yaml(document))),
        Ok(DocumentFormat::Json) => respond(StatusCode::OK, "application/json", full(bytes_of(document))),
    }
}

/// Returns the router of a path. go-restful rejects other methods than GET, and unknown media types, before the handler
/// runs.
fn router(registry: &Registry, path: &[&str]) -> Router {
    match path {
        ["" | "index.html" | "apis"] | ["apis", _] => Router::Mux,
        ["apis", group, ..] if !registry.is_built_in(group) => Router::Mux,
        _ => Router::GoRestful,
    }
}

/// Returns an error in the format that the client accepts. The default is JSON.
pub(crate) fn error_response(parts: &Parts, error: &StatusError) -> Response<Body> {
    let mut response = reject(error);
    if errors_are_yaml(accept::accept(parts)) {
        *response.body_mut() = full(yaml(&error.body()));
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/yaml"));
    }
    response
}

/// Returns the document of a path; `None` for an unknown path. `gitVersion` has the build suffix `kctl`, so that a
/// client can recognize this server.
fn document(registry: &Registry, path: &[&str]) -> Option<Value> {
    Some(match path {
        ["version"] => json!({
            "major": "1",
            "minor": version::minor().to_string(),
            "emulationMajor": "1",
            "emulationMinor": version::minor().to_string(),
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": (version::minor() - 1).to_string(),
            "gitVersion": format!("v{}+kctl-{}", version::kubernetes(), env!("CARGO_PKG_VERSION")),
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "2026-01-01T00:00:00Z",
            "goVersion": "none",
            "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, architecture()),
        }),
        ["api"] => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1" }],
        }),
        ["" | "index.html"] => json!({ "paths": paths(registry) }),
        ["apis"] => registry::groups(registry),
        ["apis", group] => registry::group(registry, group)?,
        ["apis", group, version] => registry::resources(registry, group, version)?,
        ["api", version] => registry::resources(registry, "", version)?,
        _ => return None,
    })
}

/// Returns the paths that `/` lists: everything that is served except objects.
fn paths(registry: &Registry) -> BTreeSet<String> {
    let fixed = [
        "/.well-known/openid-configuration",
        "/api",
        "/apis",
        "/apis/",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/metrics",
        "/openid/v1/jwks",
        "/version",
    ];
    let mut paths: BTreeSet<String> = fixed.map(str::to_owned).into();
    paths.extend(health::paths());
    paths.extend(openapi::discovery_roots(registry.all()).map(|root| format!("/{root}")));
    paths
}

/// Returns Go's name of the architecture. Go and Rust name the common ones differently.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
