//! `GET` of many objects: selectors, consistent pages, versions of the past.

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Answer;
use crate::{
    kinds::Resource,
    request::Call,
    selector::{Selector, fields_of},
    status::{Cause, Refusal},
    store::{Key, State, Table},
};

/// Where a paged list goes on: the revision that all its pages show, and the last key of the page before.
#[derive(Serialize, Deserialize)]
struct Token {
    v: String,
    rv: u64,
    start: Key,
}

pub(super) fn list(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let selector = selector(call)?;
    let limit = usize::try_from(call.params.number("limit")?.unwrap_or(0)).unwrap_or(0);
    let version = call.params.text("resourceVersion").to_owned();
    check_versions(call, &version)?;
    not_from_the_future(state, &version)?;
    let token = match call.params.text("continue") {
        "" => None,
        text => Some(decode_token(text)?),
    };
    let exact = call.params.text("resourceVersionMatch") == "Exact";
    let at = match &token {
        Some(token) => Some(token.rv),
        None if exact => version.parse().ok(),
        None => None,
    };
    let revision = state.revision;
    let table = state.table(&call.resource.of);
    let past = match at.filter(|at| *at != revision) {
        Some(at) => Some(table.at(at).ok_or_else(|| too_old(token.is_some(), at, revision))?),
        None => None,
    };
    let table = past.as_ref().unwrap_or(table);
    let shown = at.unwrap_or(revision);
    let page = page(table, call, &selector, token.as_ref().map(|token| &token.start), limit);
    Ok(Answer::ok(envelope(&call.resource, page, shown, selector.is_empty())))
}

/// The selectors of a list, a watch or a delete of many; a name in the path selects that object.
pub(super) fn selector(call: &Call) -> Result<Selector, Refusal> {
    let custom: Vec<&str>;
    let known = match &call.resource.custom {
        Some(custom_kind) => {
            let fields = custom_kind.version["selectableFields"].as_array();
            let paths = fields.into_iter().flatten().filter_map(|field| field["jsonPath"].as_str());
            custom = paths.map(|path| path.trim_start_matches('.')).collect();
            custom.as_slice()
        }
        None => fields_of(&call.resource.of.group, &call.resource.of.resource),
    };
    let mut fields = call.params.text("fieldSelector").to_owned();
    if !call.name.is_empty() {
        fields = format!("metadata.name={},{fields}", call.name);
    }
    Selector::parse(call.params.text("labelSelector"), &fields, known)
}

struct Page {
    items: Vec<Value>,
    /// The last key of the page when more follows, and how much.
    more: Option<(Key, usize)>,
}

fn page(table: &Table, call: &Call, selector: &Selector, after: Option<&Key>, limit: usize) -> Page {
    let namespace = Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let mut matching = table.range(namespace, after).filter(|(_, object)| selector.matches(object));
    let mut items = Vec::new();
    let mut last = None;
    while limit == 0 || items.len() < limit {
        let Some((key, object)) = matching.next() else { return Page { items, more: None } };
        last = Some(key.clone());
        items.push(item(&call.resource, object));
    }
    let left = matching.count();
    Page { items, more: last.filter(|_| left > 0).map(|last| (last, left)) }
}

/// Items of built-in kinds do not repeat their kind; those of custom kinds do.
pub(super) fn item(resource: &Resource, object: &Value) -> Value {
    let mut item = object.clone();
    if let Value::Object(map) = &mut item {
        if resource.custom.is_none() {
            map.remove("kind");
            map.remove("apiVersion");
        } else {
            map.insert("apiVersion".into(), resource.api_version().into());
        }
    }
    item
}

fn envelope(resource: &Resource, page: Page, revision: u64, all: bool) -> Value {
    let mut meta = Map::new();
    meta.insert("resourceVersion".into(), revision.to_string().into());
    if let Some((start, left)) = page.more {
        meta.insert("continue".into(), encode_token(&Token { v: "meta.k8s.io/v1".into(), rv: revision, start }).into());
        if all {
            meta.insert("remainingItemCount".into(), left.into());
        }
    }
    json!({ "kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": meta, "items": page.items })
}

fn check_versions(call: &Call, version: &str) -> Result<(), Refusal> {
    let forbidden = |why: &str| {
        let cause = Cause {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {why}"),
            field: "resourceVersionMatch".into(),
        };
        Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &[cause]))
    };
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(Refusal::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax"
        )));
    }
    match call.params.text("resourceVersionMatch") {
        "" => Ok(()),
        _ if version.is_empty() => forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"),
        _ if call.params.given("continue") => forbidden("resourceVersionMatch is forbidden when continue is provided"),
        "Exact" if version == "0" => forbidden(r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#),
        "Exact" | "NotOlderThan" => Ok(()),
        other => {
            let cause = Cause {
                reason: "FieldValueNotSupported",
                message: format!(r#"Unsupported value: {other:?}: supported values: "Exact", "NotOlderThan", """#),
                field: "resourceVersionMatch".into(),
            };
            Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &[cause]))
        }
    }
}

/// A version that does not exist yet is waited for by the real server, for three seconds; here nobody can know one.
pub(super) fn not_from_the_future(state: &State, version: &str) -> Result<(), Refusal> {
    let (asked, current) = (version.parse::<u64>().unwrap_or(0), state.revision);
    if asked <= current {
        return Ok(());
    }
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let mut refusal = Refusal::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    let cause = json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
    refusal.details = json!({ "causes": [cause], "retryAfterSeconds": 1 });
    Err(refusal)
}

fn too_old(continued: bool, at: u64, current: u64) -> Refusal {
    Refusal::expired(if continued {
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter."
            .to_owned()
    } else {
        format!("The resourceVersion for the provided list is too old: {at} ({current})")
    })
}

/// Opaque to clients: URL-safe without padding, as the real one's base64.
fn encode_token(token: &Token) -> String {
    let json = serde_json::to_vec(token).unwrap_or_default();
    json.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn decode_token(text: &str) -> Result<Token, Refusal> {
    let bytes: Option<Vec<u8>> =
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect();
    let token = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    token.ok_or_else(|| Refusal::bad_request("invalid continue token: continue key is not valid"))
}
