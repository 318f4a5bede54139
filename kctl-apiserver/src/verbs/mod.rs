//! Performs parsed requests: one file per verb, all of them on the locked state.
//!
//! A request passes through these steps: authorization, `Warning` headers of deprecated kinds, options
//! ([`check_options`]), the verb, then the requested output form (`output_form.rs`).
//!
//! Every verb runs synchronously under the lock of the server, from a parsed request to a `VerbResponse`. A verb that
//! needs the reply of a webhook returns `StatusError::waiting`, and is run again from its start. So it must not change
//! the state before its last webhook has replied (see `webhook_round`). Watches are the exception: the verb only
//! accepts the watch, and the body is streamed without the lock.
//!
//! | request | file |
//! |---|---|
//! | GET, LIST, WATCH | `read`, `list`, `watch` |
//! | POST, PUT, PATCH, DELETE | `create`, `update`, `patch`, `delete` |
//! | `scale` | `scale`, `scale_owners` |
//! | `binding`, `eviction`, `token` | `subresources`, `evict`, `token` |
//! | `exec`, `log`, `proxy` and so on | `connect` |
//! | reviews | `reviews` |

mod connect;
mod create;
mod delete;
mod dry_run;
mod evict;
mod list;
mod output_form;
mod patch;
mod read;
mod reviews;
mod scale;
mod scale_owners;
mod subresources;
mod token;
mod update;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

pub(crate) use dry_run::is_dry_run;
pub(crate) use output_form::{OutputForm, wants_yaml};

use crate::{
    authorizer,
    field_errors::Errors,
    registry::kind::Subresource,
    request::{FIELD_MANAGER_LEN_MAX, RequestInfo, Verb},
    state::State,
    status::StatusError,
    store::{Store, head},
};

/// The result of a successful request, before it is written as an HTTP response.
pub(crate) struct VerbResponse {
    /// The HTTP status: 200, or 201 and 202 where kube-apiserver sends them.
    pub(crate) code: StatusCode,
    /// The body, or the stream that produces it.
    pub(crate) payload: Payload,
}

/// The body of a response.
pub(crate) enum Payload {
    /// An object or a list, which is serialized for the response. Shared with the store where possible, so that a
    /// response costs no copy of the object.
    Json(Arc<Value>),
    /// JSON as it is stored, with the name of the object. The name is empty for a list.
    Text { line: Bytes, name: String },
    /// A watch, which is streamed without the lock.
    Watch(Box<watch::Start>),
    /// A body that is not JSON: the log of a container.
    Plain(String),
}

impl VerbResponse {
    /// Returns 200 with an object.
    pub(crate) fn ok(object: impl Into<Arc<Value>>) -> Self {
        Self { code: StatusCode::OK, payload: Payload::Json(object.into()) }
    }

    /// Returns 200 with stored JSON.
    fn text(line: Bytes, name: String) -> Self {
        Self { code: StatusCode::OK, payload: Payload::Text { line, name } }
    }

    /// Returns 201 with an object.
    fn created(object: impl Into<Arc<Value>>) -> Self {
        Self { code: StatusCode::CREATED, ..Self::ok(object) }
    }

    /// Returns a `Status` of success. `code` has the HTTP status, as upstream writes it for created subresources.
    fn success(code: StatusCode) -> Self {
        let status =
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16() });
        Self { code, ..Self::ok(status) }
    }
}

/// Performs a request. With `--data`, a change is in the journal before the client gets its response. A request that
/// only reads, or a dry run, never touches the journal. Before a change, earlier changes that could not be written to
/// the journal are written first: if that fails, the request fails without an effect. If the disk fails afterwards, the
/// change is in memory and the client gets an error that says so.
///
/// # Errors
/// Fails if the request does, and if the disk rejects a change: see
/// [`Store::write_missed`].
pub(crate) fn perform(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    if !may_change(info) {
        return run_verb(state, info);
    }
    state.store.write_missed().map_err(|error| {
        StatusError::internal(&format!("{error}: writes are rejected until this one can be stored"))
    })?;
    let response = run_verb(state, info)?;
    let lost = "the write took effect, and is lost if the server ends before it is stored";
    state.store.write_missed().map_err(|error| StatusError::internal(&format!("{error}: {lost}")))?;
    Ok(response)
}

/// Returns `true` if the request may change stored objects. The creation of a review changes nothing, although its verb
/// is `create`.
fn may_change(info: &RequestInfo) -> bool {
    let is_read = matches!(info.verb, Verb::Get | Verb::List | Verb::Watch);
    !is_read && !is_dry_run(info) && !reviews::is_review(info)
}

/// The source of the JSON in a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResponseSource {
    /// The stored JSON, if it already has the form that the client requested: nothing is parsed or serialized.
    StoredText,
    /// The object, because the response has another form.
    Object,
}

/// Performs a request without regard to the journal. The `Accept` header is parsed before the verb runs, so a header
/// without a supported form has no effect on the state. Connections skip the options: they have their own.
fn run_verb(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    authorizer::authorize(state, info)?;
    info.round.warn_all(deprecation(info));
    if info.resource.kind.requests.connects.contains(&info.subresource) {
        return connect::connect(state, info);
    }
    check_options(info)?;
    let form = OutputForm::negotiate(info)?;
    let source = if form == OutputForm::Plain && !wants_yaml(info) {
        ResponseSource::StoredText
    } else {
        ResponseSource::Object
    };
    let mut response = match (info.verb, info.subresource) {
        (Verb::Get, Subresource::Scale) => scale::get(state, info),
        (Verb::Update | Verb::Patch, Subresource::Scale) => scale::set(state, info),
        (Verb::Create, Subresource::Main) => create::create(state, info),
        (Verb::Create, _) => subresources::create(state, info),
        (Verb::Get, _) => read::get(state, info, source),
        (Verb::List, _) => list::list(state, info, source),
        (Verb::Watch, _) => watch::start(&mut state.store, info, form),
        (Verb::Update, _) => update::replace(state, info),
        (Verb::Patch, _) => patch::patch(state, info),
        (Verb::Delete, _) => delete::delete(state, info),
        (Verb::DeleteCollection, _) => delete::delete_collection(state, info),
    }?;
    form.check_verb(info)?;
    let Payload::Json(object) = &mut response.payload else { return Ok(response) };
    if let Some(text) = stored_payload(&state.store, info, object).filter(|_| source == ResponseSource::StoredText) {
        response.payload = text;
    } else if let Some(shaped) = form.shape(info, object, state.store.clock.now()) {
        *object = shaped.into();
    }
    Ok(response)
}

/// Returns the stored JSON of an object, if the response is exactly that object: it has been serialized already.
/// Objects in another version than the requested one do not qualify.
fn stored_payload(store: &Store, info: &RequestInfo, object: &Arc<Value>) -> Option<Payload> {
    let name = object["metadata"]["name"].as_str()?;
    let stored = store.get_stored(&info.resource.id, &(info.namespace.clone(), name.into()))?;
    (stored.is_same_value(object) && stored.text().starts_with(head(&info.resource).as_bytes()))
        .then(|| Payload::Text { line: stored.line().clone(), name: name.into() })
}

/// Returns the warning of a deprecated kind or version, which each response carries.
fn deprecation(info: &RequestInfo) -> Option<String> {
    if let Some(custom) = &info.resource.custom {
        return custom.warning.clone();
    }
    info.resource.kind.requests.deprecation.map(str::to_owned)
}

/// Validates the options in the query (`ValidateCreateOptions` and its neighbours in
/// `k8s.io/apimachinery/pkg/apis/meta/v1/validation`). Errors are `Invalid` with the kind of the options as the kind.
/// An apply needs a field manager; `force` is for applies only.
fn check_options(info: &RequestInfo) -> Result<(), StatusError> {
    let kind = match info.verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // The verb validates `DeleteOptions` (`delete/options.rs`), which may be in the body.
        Verb::Delete | Verb::DeleteCollection | Verb::Get | Verb::List | Verb::Watch => return Ok(()),
    };
    let mut errors = Errors::default();
    match info.verb {
        Verb::Patch if info.applies() && info.params.text("fieldManager").is_empty() => {
            errors.required("fieldManager", "is required for apply patch");
        }
        Verb::Patch if !info.applies() && info.params.is_present("force") => {
            errors.forbidden("force", "may only be set for apply patch");
        }
        _ => {}
    }
    // `ValidateFieldManager`. An empty name is valid; the default is derived from the user agent.
    let manager = info.params.text("fieldManager");
    if manager.len() > FIELD_MANAGER_LEN_MAX {
        errors.too_long("fieldManager", FIELD_MANAGER_LEN_MAX);
    } else if manager.chars().any(char::is_control) {
        errors.invalid("fieldManager", &manager.into(), "must not have control characters");
    }
    let runs = info.params.values("dryRun");
    if runs.iter().any(|run| run != "All") {
        errors.unsupported("dryRun", &runs.into(), &["All"]);
    }
    let validation = info.params.text("fieldValidation");
    if !["", "Ignore", "Warn", "Strict"].contains(&validation) {
        errors.unsupported("fieldValidation", &validation.into(), &["Ignore", "Warn", "Strict"]);
    }
    StatusError::unless_valid("meta.k8s.io", kind, "", &errors)
}
