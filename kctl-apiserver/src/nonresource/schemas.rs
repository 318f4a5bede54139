//! The `OpenAPI` documents over HTTP: media types, `ETags` and the URLs of `/openapi/v3`.
//!
//! `openapi` renders the documents as JSON; this file decides about encoding, caching and redirects. Documents are
//! rendered per request: they change with each CRD, and clients cache them by `ETag`.
//!
//! Upstream: `k8s.io/kube-openapi/pkg/handler` and `k8s.io/kube-openapi/pkg/handler3`.

use std::hash::BuildHasher;

use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LAST_MODIFIED, LOCATION, VARY},
    request::Parts,
};
use jiff::Timestamp;

use super::accept;
use crate::{
    openapi,
    registry::{ApiResource, Registry},
    request::Params,
    response::{Body, full, plain, respond},
};

/// The default form.
const JSON: &str = "application/json";
/// `OpenAPI` v2 as protobuf.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The media type of `OpenAPI` v2 that kubectl requests.
const PROTOBUF_BEFORE: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// `OpenAPI` v3 as protobuf.
const PROTOBUF_3: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
/// The media type of `OpenAPI` v3 that kubectl requests.
const PROTOBUF_3_BEFORE: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

/// Returns the response to `/openapi/v2`. 406 if the header names no form of the document.
pub(super) fn v2(registry: &Registry, parts: &Parts) -> Response<Body> {
    let forms = [(JSON, JSON), (PROTOBUF, PROTOBUF), (PROTOBUF_BEFORE, PROTOBUF)];
    let Some(form) = accept::preferred_form(parts, &forms) else { return by_encoding(unacceptable()) };
    let document = openapi::v2(registry);
    let bytes = if form == JSON { document.to_string().into_bytes() } else { openapi::protobuf(&document) };
    let tag = tag(&bytes);
    let is_known = is_known(parts, &tag);
    let response =
        if is_known { empty_response(StatusCode::NOT_MODIFIED) } else { respond(StatusCode::OK, form, full(bytes)) };
    by_encoding(with_etag(response, &tag, "no-cache, private"))
}

/// Adds `Accept-Encoding` to `Vary`, as the first value: the body differs by encoding.
fn by_encoding(mut response: Response<Body>) -> Response<Body> {
    let before: Vec<HeaderValue> = response.headers().get_all(VARY).iter().cloned().collect();
    set_header(&mut response, VARY, "Accept-Encoding");
    for value in before {
        response.headers_mut().append(VARY, value);
    }
    response
}

/// Returns the response to `/openapi/v3`. It is a JSON document with the content type `text/plain`, as upstream.
pub(super) fn index(registry: &Registry) -> Response<Body> {
    let index = openapi::index(registry, |root| tag_of(registry, root));
    plain(StatusCode::OK, &index.to_string())
}

/// Returns a document below `/openapi/v3`. 404 without a body for a group and version that is not served. With the
/// current hash in the URL the response may be cached forever; another hash redirects to the current one. Without a
/// hash the client must revalidate each time. A document that the client already has is not rendered.
pub(super) fn v3(registry: &Registry, root: &[&str], parts: &Parts) -> Response<Body> {
    if !openapi::is_described(registry, root) {
        return empty_response(StatusCode::NOT_FOUND);
    }
    let forms = [(JSON, JSON), (PROTOBUF_3, PROTOBUF_3), (PROTOBUF_3_BEFORE, PROTOBUF_3)];
    let Some(form) = accept::preferred_form(parts, &forms) else { return unacceptable() };
    let tag = tag_of(registry, &root.join("/"));
    let params = Params::parse(parts.uri.query().unwrap_or_default());
    let cache = match params.text("hash") {
        "" => "no-cache, private",
        requested if requested == tag => "public, immutable",
        _ => {
            let mut moved = respond(StatusCode::MOVED_PERMANENTLY, JSON, full(Vec::new()));
            set_header(&mut moved, LOCATION, &format!("{}?hash={tag}", parts.uri.path()));
            set_header(&mut moved, ETAG, &format!("{tag:?}"));
            set_header(&mut moved, VARY, "Accept");
            return moved;
        }
    };
    if is_known(parts, &tag) {
        return with_etag(empty_response(StatusCode::NOT_MODIFIED), &tag, cache);
    }
    let document = openapi::v3(registry, root);
    let bytes = if form == JSON { document.to_string().into_bytes() } else { openapi::protobuf_v3(&document) };
    with_etag(respond(StatusCode::OK, form, full(bytes)), &tag, cache)
}

/// Returns 406. Unlike other errors, the response has no body.
fn unacceptable() -> Response<Body> {
    let mut response = empty_response(StatusCode::NOT_ACCEPTABLE);
    set_header(&mut response, VARY, "Accept");
    response
}

/// Adds the headers that Go's file server sends with a document; `now` becomes `Last-Modified`.
pub(super) fn as_file(mut response: Response<Body>, now: Timestamp) -> Response<Body> {
    if response.status() == StatusCode::OK {
        set_header(&mut response, ACCEPT_RANGES, "bytes");
        set_header(&mut response, LAST_MODIFIED, &now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    }
    response
}

/// Returns a response without a body and content type. Go's handler writes only the status there.
pub(super) fn empty_response(code: StatusCode) -> Response<Body> {
    let mut response = respond(code, JSON, full(Vec::new()));
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// Adds the `ETag` and cache headers to a document or to its 304. `cache` becomes `Cache-Control`.
pub(super) fn with_etag(mut response: Response<Body>, tag: &str, cache: &str) -> Response<Body> {
    set_header(&mut response, ETAG, &format!("{tag:?}"));
    set_header(&mut response, VARY, "Accept");
    set_header(&mut response, CACHE_CONTROL, cache);
    response
}

/// Returns `true` if the client has the document with this `ETag`. Several tags can be listed, and `*` matches any.
fn is_known(parts: &Parts, tag: &str) -> bool {
    let tags = parts.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut tags = tags.split(',').map(str::trim);
    // Weak tags match too (`etagWeakMatch` of Go's `net/http`).
    tags.any(|candidate| candidate == "*" || candidate.strip_prefix("W/").unwrap_or(candidate) == format!("{tag:?}"))
}

/// Sets a header. A value that no header can have is left out.
fn set_header(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Returns the `ETag` of a document. Equal documents have equal tags in each process of one version. The tag is 64 bits
/// of a hash that is not cryptographic, which suffices against collisions by chance.
pub(super) fn tag(document: &[u8]) -> String {
    format!("{:016X}", foldhash::quality::FixedState::default().hash_one(document))
}

/// Returns the tag of the document of a group and version. It is a hash of the inputs, because rendering all documents
/// for the index would take too long.
fn tag_of(registry: &Registry, root: &str) -> String {
    let mut here: Vec<_> = registry
        .all()
        .filter(|resource| openapi::root(&resource.id.group, &resource.version) == root)
        .map(|resource| {
            let version = resource.custom.as_ref().map(|custom| custom.version.to_string());
            let ApiResource { kind, namespaced, .. } = &resource.listed;
            (&resource.id.resource, kind, &resource.list_kind, namespaced, version)
        })
        .collect();
    here.sort();
    tag(format!("{} {root} {here:?}", env!("CARGO_PKG_VERSION")).as_bytes())
}
