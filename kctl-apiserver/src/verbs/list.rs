//! `GET` of a collection: selectors, consistent pages, and past states.
//!
//! There are three paths, from cheap to expensive. Stored JSON is concatenated (`stored_json`), objects are parsed and
//! shaped, or a webhook converts all objects before the selector is applied. The result is the same.
//!
//! Lists read one revision under the lock, so they are consistent. A list of the past reads a table that is rebuilt
//! from the history.

mod list_options;
mod list_scope;

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value, json};

pub(super) use self::{
    list_options::{ListOptions, MATCH},
    list_scope::{ListScope, check_not_in_future, malformed_version_error},
};
use super::{ResponseSource, VerbResponse};
use crate::{
    conversion::{self, ConversionPlan},
    key,
    registry::Resource,
    request::RequestInfo,
    selector::Selector,
    state::State,
    status::StatusError,
    store::{Key, Object, Table, head},
};

/// Lists objects. With [`ResponseSource::StoredText`] the client accepts them as JSON without a table, so that they are
/// sent as stored. Pages are consistent: a continue token names the revision of the first page, and later pages read
/// that revision from the history. The `resourceVersion` of the list is the revision that it reads, not the revision of
/// the newest item, so a watch from it misses nothing.
///
/// # Errors
/// 400 for invalid options, 410 for a revision that is compacted, and errors of the conversion.
pub(super) fn list(state: &mut State, info: &RequestInfo, source: ResponseSource) -> Result<VerbResponse, StatusError> {
    let ListQuery { options, selector } = ListQuery::read(info)?;
    let scope = ListScope::from_options(&state.store, info, &options)?;
    let revision = state.store.revision;
    let table = state.store.table(&info.resource.id);
    let scope = match table.stale(info).filter(|_| scope.revision.is_none()) {
        // A fault makes this server lag: it returns its old state even if that is compacted.
        Some(behind) => ListScope { revision: Some(behind), compacted: 0, ..scope },
        None => scope,
    };
    let past = scope.table_at_revision(info, table, revision)?;
    let table = past.as_deref().unwrap_or(table);
    let list_revision = scope.revision.unwrap_or(revision);
    let (limit, start) = (scope.limit, scope.after.as_ref());
    if conversion::uses_webhook(&info.resource) && !selector.is_empty() {
        let all = select_stored_page(table, info, &Selector::default(), start, 0);
        let all = all.items.iter().map(|object| table.value(object)).collect();
        let page = select_page(conversion::convert_list(state, info, all)?, &selector, limit);
        return Ok(VerbResponse::ok(list_object(info, &selector, list_items(&info.resource, page), list_revision)));
    }
    let Page { items, more } = select_stored_page(table, info, &selector, start, limit);
    if source == ResponseSource::StoredText
        && let Some(texts) = stored_json(&info.resource, &items)
    {
        let list = list_without_items(info, &selector, more, list_revision);
        return Ok(VerbResponse::text(serialize_list(list, &texts), String::new()));
    }
    let items = items.iter().map(|object| table.value(object)).collect();
    let items = conversion::convert_list(state, info, items)?;
    let page = list_items(&info.resource, Page { items, more });
    Ok(VerbResponse::ok(list_object(info, &selector, page, list_revision)))
}

/// The validated options and the selector of a list or of a delete of a collection. Used by both verbs, so that a
/// delete of a collection rejects the same options.
pub(super) struct ListQuery {
    options: ListOptions,
    selector: Selector,
}

impl ListQuery {
    /// Reads the options of a request.
    ///
    /// # Errors
    /// Fails with the first invalid option, in the order of kube-apiserver.
    pub(super) fn read(info: &RequestInfo) -> Result<Self, StatusError> {
        let options = ListOptions::read(info)?;
        ListOptions::check_versions(info)?;
        let selector = options.selector(info)?;
        Ok(Self { options, selector })
    }
}

/// The objects that a delete of a collection selects, and the metadata of its response.
pub(super) struct CollectionToDelete {
    /// The selected objects with their keys, in list order. They are in the stored version, which the deletion needs.
    pub(super) objects: Vec<(Key, Arc<Value>)>,
    /// The revision of the list, for its `resourceVersion`.
    revision: u64,
    /// The objects after them, if the list has a limit.
    more: Option<RemainingItems>,
}

impl CollectionToDelete {
    /// Returns the objects that a list with these options returns. With a conversion webhook all objects are read and
    /// converted first, and the limit is applied afterwards.
    ///
    /// # Errors
    /// Fails as that list does.
    pub(super) fn select(state: &mut State, info: &RequestInfo, query: &ListQuery) -> Result<Self, StatusError> {
        let ListQuery { options, selector } = query;
        let scope = ListScope::from_options(&state.store, info, options)?;
        let revision = state.store.revision;
        let table = state.store.table(&info.resource.id);
        let past = scope.table_at_revision(info, table, revision)?;
        let table = past.as_deref().unwrap_or(table);
        let start = scope.after.as_ref();
        let converts_first = conversion::uses_webhook(&info.resource) && !selector.is_empty();
        let (all, limit) = if converts_first { (&Selector::default(), 0) } else { (selector, scope.limit) };
        let Page { items, mut more } = select_stored_page(table, info, all, start, limit);
        let mut objects: Vec<_> =
            items.iter().map(|object| table.value(object)).map(|it| (key::object_key(&it), it)).collect();
        if converts_first {
            let converted =
                conversion::convert_list(state, info, objects.iter().map(|(_, object)| object.clone()).collect())?;
            let selected = select_page(converted, selector, scope.limit);
            let keys: BTreeSet<Key> = selected.items.iter().map(|object| key::object_key(object)).collect();
            objects.retain(|(key, _)| keys.contains(key));
            more = selected.more;
        }
        Ok(Self { objects, revision: scope.revision.unwrap_or(revision), more })
    }

    /// Returns the list of deleted objects. `converted` are the converted objects, in the order of `objects`.
    pub(super) fn list(self, info: &RequestInfo, query: &ListQuery, converted: &[Arc<Value>]) -> Value {
        let items = converted.iter().map(|object| item(&info.resource, object)).collect();
        list_object(info, &query.selector, Page { items, more: self.more }, self.revision)
    }
}

/// Selects from converted objects. A selector of a kind with a conversion webhook applies to the requested version, so
/// all objects are converted first. A limit of 0 means all.
fn select_page(mut items: Vec<Arc<Value>>, selector: &Selector, limit: usize) -> Page<Arc<Value>> {
    items.retain(|object| selector.matches(object));
    let last = limit.checked_sub(1).and_then(|last| items.get(last)).filter(|_| items.len() > limit);
    let more = last.map(|last| RemainingItems { after: key::object_key(last), count: None });
    if more.is_some() {
        items.truncate(limit);
    }
    debug_assert!(limit == 0 || items.len() <= limit, "a page ends at the limit");
    Page { items, more }
}

/// Formats a page of objects as items.
fn list_items(resource: &Resource, page: Page<Arc<Value>>) -> Page<Value> {
    Page { items: page.items.iter().map(|object| item(resource, object)).collect(), more: page.more }
}

/// A page of a list.
struct Page<T> {
    /// The items. Invariant: at most as many as the limit, unless that is 0.
    items: Vec<T>,
    /// The objects after the page, if there are any.
    more: Option<RemainingItems>,
}

/// The objects of a list after a page.
struct RemainingItems {
    /// The last key of the page, which becomes the continue token.
    after: Key,
    /// Their number, which becomes `remainingItemCount`. `None` for a list with a selector, as upstream.
    count: Option<usize>,
}

/// Returns the objects that match, up to the limit. `after` is exclusive. A limit of 0 means all. With a limit, a page
/// that ends exactly at the last object has no continue token.
fn select_stored_page(
    table: &Table,
    info: &RequestInfo,
    selector: &Selector,
    after: Option<&Key>,
    limit: usize,
) -> Page<Arc<Object>> {
    let namespace = Some(info.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let is_selected = |(_, name): &Key, object: &Object| {
        if selector.is_empty() {
            return true;
        }
        // If the selector has a name, only the object of that name is parsed.
        if selector.name().is_some_and(|selected| selected != name) {
            return false;
        }
        matches(&info.resource, selector, &table.value(object))
    };
    let mut matching = table.range(namespace, after).filter(|(key, object)| is_selected(key, object));
    let mut items = Vec::new();
    let mut last = None;
    while limit == 0 || items.len() < limit {
        let Some((key, object)) = matching.next() else { return Page { items, more: None } };
        last = Some(key.clone());
        items.push(object.clone());
    }
    debug_assert!(items.len() == limit, "a shorter page has returned");
    // Objects after the page are counted without the selector: the number is reported only for lists without one.
    let n_remaining = if selector.name().is_some() { 0 } else { table.range(namespace, last.as_ref()).count() };
    let count = selector.is_empty().then_some(n_remaining);
    Page { items, more: last.filter(|_| n_remaining > 0).map(|after| RemainingItems { after, count }) }
}

/// Returns `true` if the selector selects the object in the version of the resource.
pub(super) fn matches(resource: &Resource, selector: &Selector, object: &Value) -> bool {
    match conversion::plan(resource, object) {
        ConversionPlan::Done(converted) => selector.matches(&converted),
        ConversionPlan::Same | ConversionPlan::CallWebhook => selector.matches(object),
    }
}

/// Returns the stored JSON of all items, or `None` if an item is stored in another version.
fn stored_json<'a>(resource: &Resource, items: &'a [Arc<Object>]) -> Option<Vec<&'a [u8]>> {
    let head = head(resource);
    let text = |object: &'a Arc<Object>| {
        let rest = object.text().strip_prefix(head.as_bytes())?;
        Some(if resource.custom.is_some() { object.text() } else { rest })
    };
    items.iter().map(text).collect()
}

/// Returns a list of stored items as a line of JSON. An item whose `kind` and `apiVersion` were cut off gets its
/// bracket back. The length is computed first, so the buffer is allocated once. 20 bytes are for the brackets.
fn serialize_list(list: Map<String, Value>, texts: &[&[u8]]) -> Bytes {
    let start = Value::Object(list).to_string();
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

/// Returns an item of a list. Items of built-in kinds have no `kind` and `apiVersion`; items of custom kinds do.
/// Upstream's built-in lists are typed, so the items' type is known from the list.
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

/// Returns a list object with its metadata.
fn list_object(info: &RequestInfo, selector: &Selector, page: Page<Value>, revision: u64) -> Value {
    let mut list = list_without_items(info, selector, page.more, revision);
    list.insert("items".into(), page.items.into());
    Value::Object(list)
}

/// Returns the fields of a list object besides its items. `more` are the objects after the page.
fn list_without_items(
    info: &RequestInfo,
    selector: &Selector,
    more: Option<RemainingItems>,
    revision: u64,
) -> Map<String, Value> {
    let resource = &info.resource;
    let mut meta = Map::new();
    // Lists of custom kinds write an empty `continue`.
    if resource.custom.is_some() {
        meta.insert("continue".into(), "".into());
    }
    meta.insert("resourceVersion".into(), revision.to_string().into());
    if let Some(RemainingItems { after, count }) = more {
        meta.insert("continue".into(), list_scope::encode_token(info, Some(revision), &after).into());
        if let Some(count) = count {
            meta.insert("remainingItemCount".into(), count.into());
        }
    }
    if let Some(shard) = selector.shard_text() {
        meta.insert("shardInfo".into(), json!({ "selector": shard }));
    }
    let (kind, api_version) = (resource.list_kind.clone().into(), resource.api_version().into());
    let fields = [("kind", kind), ("apiVersion", api_version), ("metadata", Value::Object(meta))];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
