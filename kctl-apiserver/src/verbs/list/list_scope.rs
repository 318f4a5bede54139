//! Decides which state a list reads and where it starts: exact versions, and continue tokens.
//!
//! The meaning of `resourceVersion` on a list:
//!
//! | version | match | limit | reads |
//! |---|---|---|---|
//! | unset | | any | the newest state |
//! | `0` | | ignored | the newest state |
//! | another | unset | 0 | the newest state, which is at least as new |
//! | another | unset | above 0 | exactly that revision |
//! | another | `Exact` | any | exactly that revision |
//! | another | `NotOlderThan` | any | the newest state |

use std::sync::Arc;

use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, general_purpose::NO_PAD},
};
use http::StatusCode;
use kctl_apimachinery::strconv;
use serde_json::json;

use super::list_options::{ListOptions, MATCH};
use crate::{
    decode,
    request::{RequestInfo, Verb},
    status::StatusError,
    store::{Key, Store, Table},
};

/// The version of the format of continue tokens.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";
/// Base64 as Go decodes it: trailing bits may have any value. URL-safe, since the token is a query parameter, and
/// without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    NO_PAD.with_decode_padding_mode(DecodePaddingMode::RequireNone).with_decode_allow_trailing_bits(true),
);

/// The state and the first object of a list.
pub(in crate::verbs) struct ListScope {
    /// The revision of the state; `None` for the newest state.
    pub(super) revision: Option<u64>,
    /// The object after which the list continues. Exclusive. It may name an object that does not exist.
    pub(super) after: Option<Key>,
    /// The number of objects of a page; 0 for all.
    pub(super) limit: usize,
    /// The oldest revision that can be listed.
    pub(super) compacted: u64,
}

impl ListScope {
    /// Reads the scope from the options (`ValidateListOptions` of `k8s.io/apiserver/pkg/storage`). A continue token
    /// contains its revision. A `resourceVersion` in addition is an error, unless it is 0.
    ///
    /// # Errors
    /// Fails if the token or the version cannot be parsed, or if the version is newer than the newest one.
    pub(in crate::verbs) fn from_options(
        store: &Store,
        info: &RequestInfo,
        options: &ListOptions,
    ) -> Result<Self, StatusError> {
        let compacted = store.compacted_pages();
        let version = info.params.text("resourceVersion");
        // `resourceVersion: "0"` is served from the watch cache upstream, which ignores the limit (`ShouldDelegateList`
        // in `k8s.io/apiserver/pkg/storage/cacher/delegator`).
        let limit = if version == "0" { 0 } else { options.limit };
        let token = info.params.text("continue");
        if !token.is_empty() {
            let (revision, after) = decode_token(info, token)?;
            if !["", "0"].contains(&version) {
                return Err(StatusError::bad_request("resourceVersion: must not be set if continue is set"));
            }
            if let Some(revision) = revision {
                check_not_in_future(store, &revision.to_string())?;
            }
            return Ok(Self { revision, after: Some(after), limit, compacted });
        }
        if version.is_empty() {
            return Ok(Self { revision: None, after: None, limit, compacted });
        }
        let revision =
            strconv::parse_uint(version).ok_or_else(|| StatusError::bad_request(malformed_version_message(version)))?;
        check_not_in_future(store, version)?;
        // With a limit, a list reads exactly its `resourceVersion` unless `resourceVersionMatch` says otherwise. A
        // delete of a collection always lists in pages (`DeleteCollection` of
        // `k8s.io/apiserver/pkg/registry/generic/registry/store.go`).
        let is_paged = limit > 0 || info.verb == Verb::DeleteCollection;
        let is_exact = match info.params.text(MATCH) {
            "" => is_paged && revision > 0,
            matching => matching == "Exact",
        };
        Ok(Self { revision: Some(revision).filter(|_| is_exact), after: None, limit, compacted })
    }

    /// Returns the table of an older revision, or `None` if the list reads the newest state. `current` is the revision
    /// of the table. The token in the error has no revision, so the client can continue without a consistent state.
    ///
    /// # Errors
    /// `Expired` if that revision is compacted. For a continued list, the error has a token to continue in the newest
    /// state.
    pub(in crate::verbs) fn table_at_revision(
        &self,
        info: &RequestInfo,
        table: &Table,
        current: u64,
    ) -> Result<Option<Arc<Table>>, StatusError> {
        let Some(revision) = self.revision.filter(|revision| *revision != current) else { return Ok(None) };
        let state = (revision >= self.compacted).then(|| table.at_revision(revision)).flatten();
        state.map(Some).ok_or_else(|| match &self.after {
            Some(after) => StatusError::expired(TOO_OLD).with_continue_token(encode_token(info, None, after)),
            None => StatusError::expired("resourceVersion is too old: list again without it"),
        })
    }
}

/// The message of the 410 for an expired continue token.
const TOO_OLD: &str = "the continue token is too old: list again without it, or continue with the token of this response, which may miss \
                       changes between the pages";

/// Returns the error of a malformed `resourceVersion` in a get or a watch: 500, as in kube-apiserver. Lists return 400
/// instead.
pub(in crate::verbs) fn malformed_version_error(version: &str) -> StatusError {
    StatusError::server_error(malformed_version_message(version))
}

/// Returns the message about a malformed `resourceVersion`.
fn malformed_version_message(version: &str) -> String {
    format!("resourceVersion: must be a number, found {version:?}")
}

/// Fails if a `resourceVersion` is newer than the newest one. kube-apiserver waits three seconds for it
/// (`waitUntilFreshLocked` in `k8s.io/apiserver/pkg/storage/cacher/watch_cache.go`). Here only a fault or a mistake
/// leads to such a version, so the error is returned at once (`NewTooLargeResourceVersionError`). A malformed version
/// counts as 0 and passes; the caller reports it.
pub(in crate::verbs) fn check_not_in_future(store: &Store, version: &str) -> Result<(), StatusError> {
    let (requested, current) = (version.parse::<u64>().unwrap_or(0), store.revision);
    if requested <= current {
        return Ok(());
    }
    let message = format!("Timeout: Too large resource version: {requested}, current: {current}");
    let mut status_error = StatusError::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    let field_error = json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
    status_error.details = json!({ "causes": [field_error], "retryAfterSeconds": 1 });
    Err(status_error)
}

/// Returns a continue token in kube-apiserver's format. Without a revision, the list continues in the newest state. A
/// JSON object with version, revision (-1 for none) and start key, in base64. Tokens of a list of all namespaces
/// contain the namespace.
pub(super) fn encode_token(info: &RequestInfo, revision: Option<u64>, (namespace, name): &Key) -> String {
    // The key is relative to the prefix of the list in etcd. The zero byte makes it the first key after the last
    // object.
    let start = if info.namespace.is_empty() && !namespace.is_empty() {
        format!("/{namespace}/{name}\0")
    } else {
        format!("/{name}\0")
    };
    let revision = revision.map_or(json!(-1), |revision| json!(revision));
    BASE64.encode(json!({ "v": TOKEN_VERSION, "rv": revision, "start": start }).to_string())
}

/// Returns the revision and the key of a continue token (`DecodeContinue` of `k8s.io/apiserver/pkg/storage`). The key
/// is untrusted input: parts that are empty, `.` or `..` are rejected, as upstream does to prevent reads outside the
/// prefix in etcd.
fn decode_token(info: &RequestInfo, text: &str) -> Result<(Option<u64>, Key), StatusError> {
    let malformed = || StatusError::bad_request(format!("continue: must be a token of this server, found {text:?}"));
    let bytes = BASE64.decode(text).map_err(|_| malformed())?;
    let token = decode::json(&bytes).map_err(|_| malformed())?;
    let start = token["start"].as_str().unwrap_or_default();
    let revision = token["rv"].as_i64().filter(|revision| *revision != 0);
    let revision = revision.filter(|_| token["v"] == TOKEN_VERSION).ok_or_else(malformed)?;
    let key = start.strip_prefix('/').unwrap_or(start);
    if key.split('/').any(|part| ["", ".", ".."].contains(&part)) {
        return Err(malformed());
    }
    Ok((u64::try_from(revision).ok(), decode_start_key(info, key)))
}

/// Returns the key after which a list starts. `start` is the key in the token. Tokens of this server end with a zero
/// byte. Other tokens start at a key inclusively, so the position just before it is computed.
fn decode_start_key(info: &RequestInfo, start: &str) -> Key {
    let is_of_all = info.resource.listed.namespaced && info.namespace.is_empty();
    let (namespace, name) = if is_of_all { start.split_once('/').unwrap_or((start, "")) } else { ("", start) };
    let namespace = if is_of_all { namespace } else { &info.namespace };
    let name = match name.as_bytes().split_last() {
        None => String::new(),
        Some((0, _)) => name[..name.len() - 1].to_owned(),
        // The greatest key before it. Names are ASCII, so the last byte can be decremented.
        Some((last, rest)) => format!("{}{}{}", String::from_utf8_lossy(rest), char::from(last - 1), char::MAX),
    };
    (namespace.into(), name)
}
