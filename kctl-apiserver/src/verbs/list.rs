//! `GET` of many objects: selectors, consistent pages, versions of the past.

mod list_options;
mod list_scope;

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value, json};

pub(super) use self::{
    list_options::{ListOptions, MATCH, unsupported_match},
    list_scope::{ListScope, not_from_the_future, unreadable_version},
};
use super::Answer;
use crate::{
    conversion::{self, Way},
    registry::Resource,
    request::RequestInfo,
    selector::Selector,
    state::State,
    status::StatusError,
    store::{Key, Object, Table, head},
};

/// `is_text`: the client wants the objects as they are, in JSON.
pub(super) fn list(state: &mut State, info: &RequestInfo, is_text: bool) -> Result<Answer, StatusError> {
    let (asked, selector) = asked(info)?;
    let reach = ListScope::of(state, info, &asked)?;
    let revision = state.revision;
    let table = state.table(&info.resource.of);
    let reach = match table.stale(info).filter(|_| reach.at.is_none()) {
        // A server that is behind shows what it has, however old that is.
        Some(behind) => ListScope { at: Some(behind), compacted: 0, ..reach },
        None => reach,
    };
    let past = reach.past(info, table, revision)?;
    let table = past.as_ref().unwrap_or(table);
    let shown = reach.at.unwrap_or(revision);
    let (limit, start) = (reach.limit, reach.after.as_ref());
    if conversion::is_asked(&info.resource) && !selector.is_empty() {
        let all = page(table, info, &Selector::default(), start, 0);
        let all = all.items.iter().map(|object| table.value(object)).collect();
        let page = chosen(conversion::all_shown(state, info, all)?, &selector, limit);
        return Ok(Answer::ok(envelope(info, shown_in(&info.resource, page), shown, false)));
    }
    let Page { items, more } = page(table, info, &selector, start, limit);
    if is_text && let Some(texts) = texts(&info.resource, &items) {
        let Value::Object(mut list) = envelope(info, Page { items: Vec::new(), more }, shown, selector.is_empty())
        else {
            return Ok(Answer::ok(Value::Null));
        };
        list.remove("items");
        return Ok(Answer::text(listed(&list, &texts), String::new()));
    }
    let items = items.iter().map(|object| table.value(object)).collect();
    let items = conversion::all_shown(state, info, items)?;
    let page = shown_in(&info.resource, Page { items, more });
    Ok(Answer::ok(envelope(info, page, shown, selector.is_empty())))
}

/// What a list, or a delete of many, is asked for.
///
/// # Errors
/// The first of its options that is wrong, in the order of the real server.
pub(super) fn asked(info: &RequestInfo) -> Result<(ListOptions, Selector), StatusError> {
    let asked = ListOptions::read(info)?;
    ListOptions::check_versions(info)?;
    let selector = asked.selector(info)?;
    Ok((asked, selector))
}

/// Objects that are to go, and how a list of them says what it is about.
pub(super) struct Doomed {
    pub(super) objects: Vec<(Key, Arc<Value>)>,
    revision: u64,
    more: Option<(Key, usize)>,
    is_all: bool,
}

impl Doomed {
    /// Those that a list with these options would have.
    ///
    /// # Errors
    /// As of that list.
    pub(super) fn of(
        state: &mut State,
        info: &RequestInfo,
        (asked, selector): &(ListOptions, Selector),
    ) -> Result<Self, StatusError> {
        let reach = ListScope::of(state, info, asked)?;
        let revision = state.revision;
        let table = state.table(&info.resource.of);
        let past = reach.past(info, table, revision)?;
        let table = past.as_ref().unwrap_or(table);
        let start = reach.after.as_ref();
        let is_judged_later = conversion::is_asked(&info.resource) && !selector.is_empty();
        let (all, limit) = if is_judged_later { (&Selector::default(), 0) } else { (selector, reach.limit) };
        let Page { items, mut more } = page(table, info, all, start, limit);
        let mut objects: Vec<_> = items.iter().map(|object| table.value(object)).map(|it| (key_of(&it), it)).collect();
        if is_judged_later {
            let shown = conversion::all_shown(state, info, objects.iter().map(|(_, object)| object.clone()).collect())?;
            let chosen = chosen(shown, selector, reach.limit);
            let keys: BTreeSet<Key> = chosen.items.iter().map(|object| key_of(object)).collect();
            objects.retain(|(key, _)| keys.contains(key));
            more = chosen.more;
        }
        Ok(Self { objects, revision: reach.at.unwrap_or(revision), more, is_all: selector.is_empty() })
    }

    /// The list of what has gone.
    pub(super) fn list(self, info: &RequestInfo, shown: &[Arc<Value>]) -> Value {
        let items = shown.iter().map(|object| item(&info.resource, object)).collect();
        envelope(info, Page { items, more: self.more }, self.revision, self.is_all)
    }
}

fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// A page of those that are chosen in the version that a webhook makes: what they are there, nobody knows before.
fn chosen(mut items: Vec<Arc<Value>>, selector: &Selector, limit: usize) -> Page<Arc<Value>> {
    items.retain(|object| selector.matches(object));
    let left = items.len().saturating_sub(limit);
    let last = limit.checked_sub(1).and_then(|last| items.get(last)).filter(|_| left > 0);
    let key = last.map(|last| key_of(last));
    if key.is_some() {
        items.truncate(limit);
    }
    Page { items, more: key.map(|key| (key, left)) }
}

fn shown_in(resource: &Resource, page: Page<Arc<Value>>) -> Page<Value> {
    Page { items: page.items.iter().map(|object| item(resource, object)).collect(), more: page.more }
}

struct Page<T> {
    items: Vec<T>,
    /// The last key of the page when more follows, and how much.
    more: Option<(Key, usize)>,
}

fn page(
    table: &Table,
    info: &RequestInfo,
    selector: &Selector,
    after: Option<&Key>,
    limit: usize,
) -> Page<Arc<Object>> {
    let namespace = Some(info.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let seen = |object: &Object| {
        if selector.is_empty() {
            return true;
        }
        let value = table.value(object);
        match conversion::way(&info.resource, &value) {
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

fn envelope(info: &RequestInfo, page: Page<Value>, revision: u64, all: bool) -> Value {
    let resource = &info.resource;
    let mut meta = Map::new();
    // Lists of custom kinds write out that nothing follows.
    if resource.custom.is_some() {
        meta.insert("continue".into(), "".into());
    }
    meta.insert("resourceVersion".into(), revision.to_string().into());
    if let Some((start, left)) = page.more {
        meta.insert("continue".into(), list_scope::token(info, Some(revision), &start).into());
        if all {
            meta.insert("remainingItemCount".into(), left.into());
        }
    }
    json!({ "kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": meta, "items": page.items })
}
