//! The `OpenID` Connect documents with which other servers verify service account tokens: issuer and public key.
//!
//! The paths are `/.well-known/openid-configuration` and `/openid/v1/jwks`. The public key belongs to the core's
//! signer, so a server with another key rejects the tokens.
//!
//! Upstream: `OpenIDMetadataServer` of `pkg/routes/openidmetadata.go`, and `pkg/serviceaccount/openidmetadata.go`.

use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};

use super::{accept, error_response};
use crate::{
    response::{Body, full, respond},
    state::Core,
    status::StatusError,
    tokens::{self, SignerError},
};

/// The media type of a key set.
const KEYS: &str = "application/jwk-set+json";

/// Handles a request for one of these paths. Responses may be cached for an hour by any cache. A signer without a key
/// causes a 500.
pub(super) fn handle(core: &Core, path: &[&str], parts: &Parts) -> Response<Body> {
    if parts.method != Method::GET {
        return error_response(parts, &StatusError::method_not_allowed());
    }
    let form = if path[0] == "openid" { KEYS } else { "application/json" };
    if accept::preferred_form(parts, &[(form, form)]).is_none() {
        return error_response(parts, &StatusError::not_acceptable(form).with_empty_details());
    }
    let document = match form {
        KEYS => core.signer.get().map(tokens::Signer::keys),
        _ => Ok(tokens::configuration(host(parts))),
    };
    let internal =
        |why: SignerError| StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why.to_string());
    let document = match document.map_err(internal) {
        Ok(document) => document,
        Err(error) => return error_response(parts, &error),
    };
    let mut response = respond(StatusCode::OK, form, full(document.to_string().into_bytes()));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// Returns the host that the client used to reach the server. It is part of the URL of the keys in the configuration.
/// The request line takes precedence over the header `Host`.
fn host(parts: &Parts) -> &str {
    let header = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    parts.uri.authority().map(http::uri::Authority::as_str).or(header).unwrap_or("kubernetes.default.svc")
}
