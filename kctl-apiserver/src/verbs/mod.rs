//! What requests do: one file a verb, all of them on the locked state.

mod connect;
mod create;
mod delete;
mod evict;
mod list;
mod patch;
mod read;
mod reviews;
mod scale;
mod scale_owners;
mod shown;
mod subresources;
mod token;
mod update;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

pub(crate) use shown::{Form, wants_yaml};

use crate::{
    authorizer, go,
    request::{Call, Verb},
    state::State,
    status::{FieldError, StatusError},
    store::head,
    write::body::is_dry_run,
};

/// Bytes of the name of a field manager: `FieldManagerMaxLength`.
const MANAGER_LEN_MAX: usize = 128;

/// What a request is answered with.
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) payload: Payload,
}

/// The body of an answer.
pub(crate) enum Payload {
    Json(Arc<Value>),
    /// A line of JSON as it is stored, with the name of the object; no name for a list.
    Text {
        line: Bytes,
        name: String,
    },
    Watch(Box<watch::Start>),
    /// What is no JSON: the log of a container.
    Plain(String),
}

impl Answer {
    pub(crate) fn ok(object: impl Into<Arc<Value>>) -> Self {
        Self { code: StatusCode::OK, payload: Payload::Json(object.into()) }
    }

    fn text(line: Bytes, name: String) -> Self {
        Self { code: StatusCode::OK, payload: Payload::Text { line, name } }
    }

    fn created(object: impl Into<Arc<Value>>) -> Self {
        Self { code: StatusCode::CREATED, ..Self::ok(object) }
    }
}

/// Does what a call asks for. What is changed is kept before it is answered, where objects are kept.
pub(crate) fn perform(state: &mut State, call: &Call) -> Result<Answer, StatusError> {
    if !changes(call) {
        return answer(state, call);
    }
    state
        .make_up()
        .map_err(|error| StatusError::internal(&format!("{error}: nothing is changed until it can be kept")))?;
    let answer = answer(state, call)?;
    let lost = "it is done, and lost if the server ends before it can be kept";
    state.make_up().map_err(|error| StatusError::internal(&format!("{error}: {lost}")))?;
    Ok(answer)
}

/// Whether a call may change what is stored.
fn changes(call: &Call) -> bool {
    let reads = matches!(call.verb, Verb::Get | Verb::List | Verb::Watch);
    !reads && !is_dry_run(call) && !reviews::is_of(call)
}

fn answer(state: &mut State, call: &Call) -> Result<Answer, StatusError> {
    authorizer::authorize(state, call)?;
    call.session.warn_all(deprecation(call));
    if connect::is_about_processes(call) {
        return connect::answer(state, call);
    }
    check_options(call)?;
    let form = Form::of(call)?;
    let is_text = form == Form::Plain && !wants_yaml(call);
    let mut answer = match (call.verb, call.subresource.as_str()) {
        (Verb::Get, "scale") => scale::get(state, call),
        (Verb::Update | Verb::Patch, "scale") => scale::set(state, call),
        (Verb::Create, "") => create::create(state, call),
        (Verb::Create, _) => subresources::create(state, call),
        (Verb::Get, _) => read::get(state, call, is_text),
        (Verb::List, _) => list::list(state, call, is_text),
        (Verb::Watch, _) => watch::start(state, call, form),
        (Verb::Update, "finalize") => subresources::finalize(state, call),
        (Verb::Update, _) => update::replace(state, call),
        (Verb::Patch, _) => patch::patch(state, call),
        (Verb::Delete, _) => delete::delete(state, call),
        (Verb::DeleteCollection, _) => delete::delete_collection(state, call),
    }?;
    form.fits(call)?;
    let Payload::Json(object) = &mut answer.payload else { return Ok(answer) };
    if let Some(text) = as_stored(state, call, object).filter(|_| is_text) {
        answer.payload = text;
    } else if let Some(shaped) = form.shape(call, object, state.clock.now()) {
        *object = shaped.into();
    }
    Ok(answer)
}

/// The text of an answer that is a stored object: it has been written once already.
fn as_stored(state: &State, call: &Call, object: &Arc<Value>) -> Option<Payload> {
    let name = object["metadata"]["name"].as_str()?;
    let stored = state.stored(&call.resource.of, &(call.namespace.clone(), name.into()))?;
    (stored.is(object) && stored.text().starts_with(head(&call.resource).as_bytes()))
        .then(|| Payload::Text { line: stored.line().clone(), name: name.into() })
}

/// What every answer about an old kind warns of.
fn deprecation(call: &Call) -> Option<String> {
    if let Some(custom) = &call.resource.custom {
        return custom.warning.clone();
    }
    call.resource.rules.deprecation.map(str::to_owned)
}

fn check_options(call: &Call) -> Result<(), StatusError> {
    let kind = match call.verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
        Verb::Get | Verb::List | Verb::Watch => return Ok(()),
    };
    let unsupported = |field: &str, value: &str, supported: &str| FieldError {
        reason: "FieldValueNotSupported",
        message: format!("Unsupported value: {value}: supported values: {supported}"),
        field: field.into(),
    };
    let mut errors = Vec::new();
    if call.verb == Verb::Patch && call.applies() && call.params.text("fieldManager").is_empty() {
        let message = "Required value: is required for apply patch".into();
        errors.push(FieldError { reason: "FieldValueRequired", message, field: "fieldManager".into() });
    } else if call.verb == Verb::Patch && !call.applies() && call.params.given("force") {
        let message = "Forbidden: may not be specified for non-apply patch".into();
        errors.push(FieldError { reason: "FieldValueForbidden", message, field: "force".into() });
    }
    let deletes = kind == "DeleteOptions";
    if !deletes {
        errors.extend(manager_errors(call.params.text("fieldManager")));
    }
    // The options of a delete are judged together.
    let runs = call.params.all("dryRun");
    if runs.iter().any(|run| run != "All") && !deletes {
        errors.push(unsupported("dryRun", &go::json(&runs.into()), r#""All""#));
    }
    match call.params.text("fieldValidation") {
        "" | "Ignore" | "Warn" | "Strict" => {}
        _ if deletes => {}
        other => {
            let given = go::quote(other);
            errors.push(unsupported("fieldValidation", &given, r#""", "Ignore", "Strict", "Warn""#));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(StatusError::invalid("meta.k8s.io", kind, "", &errors)) }
}

/// What is wrong with the name of a field manager (`ValidateFieldManager`).
fn manager_errors(manager: &str) -> Vec<FieldError> {
    let field = || "fieldManager".to_owned();
    if manager.len() > MANAGER_LEN_MAX {
        let message = format!("Too long: may not be more than {MANAGER_LEN_MAX} bytes");
        return vec![FieldError { reason: "FieldValueTooLong", message, field: field() }];
    }
    let controls = manager.char_indices().filter(|(_, character)| character.is_control());
    let field_error = |(at, character): (usize, char)| {
        let shown: String = manager
            .chars()
            .map(|one| match one {
                '\n' | '\r' | '\t' => one.escape_default().to_string(),
                one if one.is_control() => format!("\\x{:02x}", u32::from(one)),
                one => one.to_string(),
            })
            .collect();
        let code = u32::from(character);
        let message = format!("Invalid value: \"{shown}\": invalid character U+{code:04X} (at position {at})");
        FieldError { reason: "FieldValueInvalid", message, field: field() }
    };
    controls.map(field_error).collect()
}
