//! Finds out if a request is a dry run, from the query or from the options in the body.

use crate::{
    registry::kind::Subresource,
    request::{RequestInfo, Verb},
    write::body,
};

/// Returns `true` if the request must not store anything. A delete may set `dryRun` in its body, and an eviction in its
/// delete options. A body that does not decode counts as no dry run; decoding it again reports the error.
pub(crate) fn is_dry_run(info: &RequestInfo) -> bool {
    let kind = match info.verb {
        // Options in the body replace those in the query.
        Verb::Delete | Verb::DeleteCollection if !info.body.is_empty() => "DeleteOptions",
        _ if info.dry_run() => return true,
        Verb::Create if info.subresource == Subresource::Eviction => "Eviction",
        _ => return false,
    };
    let sent = body::read_built_in(info, kind).unwrap_or_default();
    let options = if info.verb == Verb::Create { &sent["deleteOptions"] } else { &sent };
    options["dryRun"].as_array().is_some_and(|runs| !runs.is_empty())
}
