//! Content negotiation of documents: reads the `Accept` header.
//!
//! Each document has a fixed set of forms; the first clause of the header, by quality, that names one of them is used.
//! Errors are negotiated separately, since a client may accept a form of the document that an error does not have.

use http::{header, request::Parts};

use crate::{
    request::{Clause, clauses},
    status::StatusError,
};

/// The form without an `Accept` header.
const JSON: &str = "application/json";
/// The YAML form of discovery documents and errors.
const YAML: &str = "application/yaml";
/// The media types of discovery. Protobuf is named in the error, as upstream, but not produced.
const FORMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The form of a document. The result of the negotiation for discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentFormat {
    /// Unaggregated discovery, and `/version`.
    Json,
    /// Unaggregated discovery as YAML.
    Yaml,
    /// Aggregated discovery as JSON.
    Aggregated,
    /// Aggregated discovery as YAML.
    AggregatedYaml,
}

/// Returns the header, or the empty string. A header that is not ASCII counts as absent.
pub(super) fn accept(parts: &Parts) -> &str {
    parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the first of these forms that the header names, or the first form without a header. Several names may select
/// one form. `forms` are pairs of the name in the header and the form that it selects. Wildcards select the first form.
pub(super) fn preferred_form<'a>(parts: &Parts, forms: &[(&str, &'a str)]) -> Option<&'a str> {
    let accept = accept(parts);
    if accept.trim().is_empty() {
        return forms.first().map(|(_, form)| *form);
    }
    clauses(accept).iter().find_map(|clause| {
        let any = ["*/*", "application/*"].contains(&clause.media);
        forms.iter().find(|(name, _)| any || *name == clause.media).map(|(_, form)| *form)
    })
}

/// The part of kube-apiserver that finds the handler of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Router {
    /// go-restful, which checks the method and `Accept` before the handler runs.
    GoRestful,
    /// Another mux: the handler checks both itself.
    Mux,
}

impl DocumentFormat {
    /// Returns the first format in the header that this path has. Only `/api` and `/apis` are aggregated. A path behind
    /// go-restful's router is checked by the router first. `path` is the path without slashes at its ends, split. The
    /// root page and requests without the header get JSON. `NotAcceptable` if no format matches.
    pub(super) fn negotiate(parts: &Parts, path: &[&str], router: Router) -> Result<Self, StatusError> {
        let accept = accept(parts);
        if accept.is_empty() || matches!(path, ["" | "index.html"]) {
            return Ok(Self::Json);
        }
        let is_version = path == ["version"];
        let forms = if is_version { JSON } else { FORMS };
        let clauses = clauses(accept);
        if router == Router::GoRestful && !clauses.iter().any(|clause| clause.is_routed(forms)) {
            return Err(StatusError::not_acceptable(forms).with_empty_details());
        }
        if is_version {
            return Ok(Self::Json);
        }
        for clause in clauses.into_iter().filter(Clause::has_valid_stream_parameter) {
            let parameters = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"];
            let is_aggregated = path.len() == 1 && parameters.iter().all(|parameter| clause.has(parameter));
            let is_plain = clause.parameter("as").is_empty();
            match clause.media {
                JSON | "application/*" | "*/*" if is_aggregated => return Ok(Self::Aggregated),
                YAML if is_aggregated => return Ok(Self::AggregatedYaml),
                YAML if is_plain => return Ok(Self::Yaml),
                JSON | "application/*" | "*/*" | "*" if is_plain => return Ok(Self::Json),
                _ => {}
            }
        }
        Err(StatusError::not_acceptable(FORMS))
    }
}
