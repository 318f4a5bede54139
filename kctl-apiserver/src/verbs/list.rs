//! `GET` of many objects: selectors, consistent pages, versions of the past.

use std::sync::Arc;

use base64::{DecodeError, Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    Answer,
    versions::{self, Way},
};
use crate::{
    decode,
    kinds::Resource,
    request::Call,
    selector::{Selector, fields_of},
    status::{Cause, Refusal},
    store::{Key, Object, State, Table, head},
};

/// Where a paged list goes on: the revision that all its pages show, and the last key of the page before.
struct Token {
    rv: u64,
    start: Key,
}

/// `is_text`: the client wants the objects as they are, in JSON.
pub(super) fn list(state: &mut State, call: &Call, is_text: bool) -> Result<Answer, Refusal> {
    let selector = selector(call)?;
    let limit = usize::try_from(call.params.number("limit")?.unwrap_or(0)).unwrap_or(0);
    call.params.number("timeoutSeconds")?;
    let version = call.params.text("resourceVersion").to_owned();
    check_versions(call, &version)?;
    not_from_the_future(state, &version)?;
    // What is at hand comes as a whole.
    let limit = if version == "0" { 0 } else { limit };
    let token = match call.params.text("continue") {
        "" => None,
        text => Some(decode_token(text)?),
    };
    // Pages of a version are of that very one, unless the client says otherwise.
    let is_page = limit > 0 && token.is_none() && !version.is_empty();
    let exact = match call.params.text("resourceVersionMatch") {
        "" => is_page,
        asked => asked == "Exact",
    };
    let at = match &token {
        Some(token) => Some(token.rv),
        None if exact => version.parse().ok(),
        None => None,
    };
    let revision = state.revision;
    let table = state.table(&call.resource.of);
    let at = at.or_else(|| table.stale(call));
    let past = match at.filter(|at| *at != revision) {
        Some(at) => Some(table.at(at).ok_or_else(|| too_old(token.is_some()))?),
        None => None,
    };
    let table = past.as_ref().unwrap_or(table);
    let shown = at.unwrap_or(revision);
    let start = token.as_ref().map(|token| &token.start);
    if versions::is_asked(&call.resource) && !selector.is_empty() {
        let all = page(table, call, &Selector::default(), start, 0);
        let all = all.items.iter().map(|object| table.value(object)).collect();
        let page = chosen(versions::all_shown(state, call, all)?, &selector, limit);
        return Ok(Answer::ok(envelope(&call.resource, shown_in(&call.resource, page), shown, false)));
    }
    let Page { items, more } = page(table, call, &selector, start, limit);
    if is_text && let Some(texts) = texts(&call.resource, &items) {
        let Value::Object(mut list) =
            envelope(&call.resource, Page { items: Vec::new(), more }, shown, selector.is_empty())
        else {
            return Ok(Answer::ok(Value::Null));
        };
        list.remove("items");
        return Ok(Answer::text(listed(&list, &texts), String::new()));
    }
    let items = items.iter().map(|object| table.value(object)).collect();
    let items = versions::all_shown(state, call, items)?;
    let page = shown_in(&call.resource, Page { items, more });
    Ok(Answer::ok(envelope(&call.resource, page, shown, selector.is_empty())))
}

/// A page of those that are chosen in the version that a webhook makes: what they are there, nobody knows before.
fn chosen(mut items: Vec<Arc<Value>>, selector: &Selector, limit: usize) -> Page<Arc<Value>> {
    items.retain(|object| selector.matches(object));
    let left = items.len().saturating_sub(limit);
    let last = limit.checked_sub(1).and_then(|last| items.get(last)).filter(|_| left > 0);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let key = last.map(|last| (text(&last["metadata"]["namespace"]), text(&last["metadata"]["name"])));
    if key.is_some() {
        items.truncate(limit);
    }
    Page { items, more: key.map(|key| (key, left)) }
}

fn shown_in(resource: &Resource, page: Page<Arc<Value>>) -> Page<Value> {
    Page { items: page.items.iter().map(|object| item(resource, object)).collect(), more: page.more }
}

/// The selectors of a list, a watch or a delete of many; a name in the path selects that object.
pub(super) fn selector(call: &Call) -> Result<Selector, Refusal> {
    let custom: Vec<&str>;
    let known = match &call.resource.custom {
        Some(custom_kind) => {
            let fields = custom_kind.version["selectableFields"].as_array();
            let paths = fields.into_iter().flatten().filter_map(|field| field["jsonPath"].as_str());
            // These two are known of every kind; that a custom kind names them tells the words of its refusals.
            let always = ["metadata.name", "metadata.namespace"];
            custom = always.into_iter().chain(paths.map(|path| path.trim_start_matches('.'))).collect();
            custom.as_slice()
        }
        None => fields_of(&call.resource.of.group, &call.resource.of.resource),
    };
    let (labels, fields) = (call.params.text("labelSelector"), call.params.text("fieldSelector"));
    let selector = Selector::parse(labels, fields, known)?;
    if call.name.is_empty() || selector.name() == Some(&call.name) {
        return Ok(selector);
    }
    if !Selector::parse("", fields, known)?.is_empty() {
        return Err(Refusal::bad_request("fieldSelector metadata.name doesn't match requested name"));
    }
    Selector::parse(labels, &format!("metadata.name={}", call.name), known)
}

struct Page<T> {
    items: Vec<T>,
    /// The last key of the page when more follows, and how much.
    more: Option<(Key, usize)>,
}

fn page(table: &Table, call: &Call, selector: &Selector, after: Option<&Key>, limit: usize) -> Page<Arc<Object>> {
    let namespace = Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let seen = |object: &Object| {
        if selector.is_empty() {
            return true;
        }
        let value = table.value(object);
        match versions::way(&call.resource, &value) {
            Way::Done(converted) => selector.matches(&converted),
            Way::Same | Way::Ask => selector.matches(&value),
        }
    };
    let mut matching = table.range(namespace, after).filter(|(_, object)| seen(object));
    let mut items = Vec::new();
    let mut last = None;
    while limit == 0 || items.len() < limit {
        let Some((key, object)) = matching.next() else { return Page { items, more: None } };
        last = Some(key.clone());
        items.push(object.clone());
    }
    // What comes after the page is counted, not looked at.
    let left = if selector.name().is_some() { 0 } else { table.range(namespace, last.as_ref()).count() };
    Page { items, more: last.filter(|_| left > 0).map(|last| (last, left)) }
}

/// The texts of the items of a list, when all of them are stored in the version in which they are asked for.
fn texts<'a>(resource: &Resource, items: &'a [Arc<Object>]) -> Option<Vec<&'a [u8]>> {
    let head = head(resource);
    let text = |object: &'a Arc<Object>| {
        let rest = object.text().strip_prefix(head.as_bytes())?;
        Some(if resource.custom.is_some() { object.text() } else { rest })
    };
    items.iter().map(text).collect()
}

/// A list as a line of JSON. A text that has lost its kind has lost its bracket as well.
fn listed(list: &Map<String, Value>, texts: &[&[u8]]) -> Bytes {
    let start = json!(list).to_string();
    let len = start.len() + texts.iter().map(|text| text.len() + 2).sum::<usize>() + 20;
    let mut line = Vec::with_capacity(len);
    line.extend_from_slice(start.strip_suffix('}').unwrap_or(&start).as_bytes());
    line.extend_from_slice(b",\"items\":[");
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        if !text.starts_with(b"{") {
            line.push(b'{');
        }
        line.extend_from_slice(text);
    }
    line.extend_from_slice(b"]}\n");
    line.into()
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

/// A list of these items, and no more.
pub(super) fn all(resource: &Resource, items: Vec<Value>, revision: u64) -> Value {
    envelope(resource, Page { items, more: None }, revision, true)
}

fn envelope(resource: &Resource, page: Page<Value>, revision: u64, all: bool) -> Value {
    let mut meta = Map::new();
    // Lists of custom kinds write out that nothing follows.
    if resource.custom.is_some() {
        meta.insert("continue".into(), "".into());
    }
    meta.insert("resourceVersion".into(), revision.to_string().into());
    if let Some((start, left)) = page.more {
        meta.insert("continue".into(), encode_token(revision, &start).into());
        if all {
            meta.insert("remainingItemCount".into(), left.into());
        }
    }
    json!({ "kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": meta, "items": page.items })
}

/// Where one object or a watch is asked for, the real server takes this for its own fault.
pub(super) fn unreadable_version(version: &str) -> Refusal {
    let message =
        format!("resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax");
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

/// What a list may say of versions, and whether it is one.
fn check_versions(call: &Call, version: &str) -> Result<(), Refusal> {
    let continues = !call.params.text("continue").is_empty();
    check_options(call)?;
    if !version.is_empty() && version.parse::<u64>().is_err() {
        return Err(Refusal::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax"
        )));
    }
    if continues && !["", "0"].contains(&version) {
        return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(())
}

/// Options of lists that contradict each other (apimachinery, `ValidateListOptions`).
pub(super) fn check_options(call: &Call) -> Result<(), Refusal> {
    let version = call.params.text("resourceVersion");
    let matching = call.params.text("resourceVersionMatch");
    let continues = !call.params.text("continue").is_empty();
    let mut causes = Vec::new();
    if !matching.is_empty() {
        let forbidden = [
            (version.is_empty(), "resourceVersionMatch is forbidden unless resourceVersion is provided"),
            (continues, "resourceVersionMatch is forbidden when continue is provided"),
        ];
        causes.extend(forbidden.iter().filter(|(is_so, _)| *is_so).map(|(_, why)| Cause::forbidden(MATCH, why)));
        if !["Exact", "NotOlderThan"].contains(&matching) {
            causes.push(unsupported_match(matching, r#""Exact", "NotOlderThan", """#));
        }
        if matching == "Exact" && version == "0" {
            causes
                .push(Cause::forbidden(MATCH, r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#));
        }
    }
    // Only watches stream what is there.
    if call.params.given("sendInitialEvents") {
        causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &causes)) }
}

pub(super) const MATCH: &str = "resourceVersionMatch";

/// How a version is meant, in a word that is not known.
pub(super) fn unsupported_match(found: &str, supported: &str) -> Cause {
    Cause {
        reason: "FieldValueNotSupported",
        message: format!("Unsupported value: {found:?}: supported values: {supported}"),
        field: MATCH.into(),
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

fn too_old(continued: bool) -> Refusal {
    Refusal::expired(if continued {
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter."
            .to_owned()
    } else {
        "The resourceVersion for the provided list is too old.".to_owned()
    })
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// A token as the real server makes them: opaque to clients.
fn encode_token(revision: u64, (namespace, name): &Key) -> String {
    let start = format!("{namespace}/{name}");
    let token = json!({ "v": TOKEN_VERSION, "rv": revision, "start": start });
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn decode_token(text: &str) -> Result<Token, Refusal> {
    let refused =
        |why: String| Refusal::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => at,
            DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len(),
        };
        refused(format!("illegal base64 data at input byte {at}"))
    })?;
    let token = decode::json(&bytes).map_err(refused)?;
    let version = token["v"].as_str().unwrap_or_default();
    if version != TOKEN_VERSION {
        return Err(refused(format!("server does not recognize this encoded version {version}")));
    }
    let Some(rv) = token["rv"].as_u64().filter(|revision| *revision > 0) else {
        return Err(refused(format!("incorrect encoded start resourceVersion (version {TOKEN_VERSION})")));
    };
    let start = token["start"].as_str().unwrap_or_default();
    if start.is_empty() {
        return Err(refused(format!("encoded start key empty (version {TOKEN_VERSION})")));
    }
    if start.split('/').any(|part| part == "..") {
        return Err(refused(start.into()));
    }
    let (namespace, name) = start.split_once('/').unwrap_or(("", start));
    Ok(Token { rv, start: (namespace.into(), name.into()) })
}
