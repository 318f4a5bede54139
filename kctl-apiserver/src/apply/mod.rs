//! Server-side apply: whose fields are whose, and what happens when two want the same.
//!
//! The rules are those of `sigs.k8s.io/structured-merge-diff` (`merge/update.go`) and of the API server's
//! `managedfields` package.

mod field_set;
mod managed;
mod typed;

use serde_json::Value;

pub(crate) use field_set::FieldSet;

use crate::schema::Schema;
use managed::Manager;

/// Managers that update are kept apart up to this number; the oldest are put together beyond it
/// (`managedfields/internal/capmanagers.go`).
const UPDATERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Places that belong to nobody (`managedfields/internal/stripmeta.go`).
const NOBODYS: [&[&str]; 9] = [
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:selfLink"],
    &["f:metadata", "f:uid"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:resourceVersion"],
];

/// Who writes, and what.
pub(crate) struct Request<'a> {
    pub(crate) schema: Option<Schema<'a>>,
    pub(crate) manager: String,
    pub(crate) subresource: &'a str,
    pub(crate) api_version: String,
    /// RFC 3339, in seconds.
    pub(crate) now: String,
    pub(crate) force: bool,
}

/// A field that belongs to somebody else.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) manager: String,
    /// As `.spec.replicas`.
    pub(crate) field: String,
}

impl Conflict {
    /// What a cause of the refusal says.
    pub(crate) fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// Why nothing was applied.
#[derive(Debug)]
pub(crate) enum ApplyError {
    Conflicts(Vec<Conflict>),
    Invalid(String),
    /// The configuration has no meaning as an object of its kind.
    Broken(String),
}

/// The text of a refusal.
pub(crate) fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: {}: {}", one.message(), one.field);
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut last = None;
    for conflict in conflicts {
        if last != Some(&conflict.manager) {
            let gap = if last.is_some() { "\n" } else { "" };
            text += &format!("{gap}conflicts with {}:", conflict.manager);
            last = Some(&conflict.manager);
        }
        text += &format!("\n- {}", conflict.field);
    }
    text
}

impl Request<'_> {
    fn manager(&self, operation: &str, set: FieldSet) -> Manager {
        Manager {
            name: self.manager.clone(),
            operation: operation.into(),
            api_version: self.api_version.clone(),
            subresource: self.subresource.into(),
            time: Some(self.now.clone()),
            set,
        }
    }

    /// Without what is nobody's.
    fn strip(set: &mut FieldSet) {
        set.remove(&["f:metadata", "f:managedFields"]);
        for path in NOBODYS {
            set.remove(path);
        }
    }
}

/// Writes down whose fields a create, an update or a patch has changed.
pub(crate) fn update(request: &Request<'_>, old: Option<&Value>, new: &mut Value) {
    let resets = new["metadata"]["managedFields"].as_array().is_some_and(|entries| {
        entries.is_empty() || entries.iter().all(|entry| entry.as_object().is_some_and(serde_json::Map::is_empty))
    });
    // What the client sent counts, so that it can be edited; when it sent nothing, what is there stays.
    let mut managers = match old {
        _ if resets => Vec::new(),
        Some(old) if new["metadata"]["managedFields"].is_null() => managed::decode(old),
        _ => managed::decode(new),
    };
    // An object whose owners were forgotten stays without until somebody applies it.
    if old.is_some() && managers.is_empty() {
        managed::encode(managers, new);
        return;
    }
    let mut comparison = match old {
        Some(old) => typed::compare(request.schema, old, new),
        None => typed::compare(request.schema, &Value::Object(serde_json::Map::new()), new),
    };
    Request::strip(&mut comparison.set);
    Request::strip(&mut comparison.removed);
    let own = request.manager("Update", FieldSet::default());
    let before = managers.iter().find(|manager| manager.is(&own)).cloned();
    for manager in &mut managers {
        manager.set = manager.set.difference(&comparison.set).difference(&comparison.removed);
    }
    let known = before.as_ref().map(|manager| manager.set.clone()).unwrap_or_default();
    let set = known.difference(&comparison.removed).union(&comparison.set);
    managers.retain(|manager| !manager.is(&own));
    let time = match before {
        Some(before) if before.set == set => before.time,
        _ => own.time.clone(),
    };
    managers.push(Manager { time, set, ..own });
    managed::encode(capped(managers), new);
}

fn capped(mut managers: Vec<Manager>) -> Vec<Manager> {
    let n_updaters =
        |managers: &[Manager]| managers.iter().filter(|m| m.operation == "Update" && m.subresource.is_empty()).count();
    while n_updaters(&managers) > UPDATERS_MAX {
        let oldest = |managers: &[Manager], but_ancient: bool| {
            let updaters =
                managers.iter().enumerate().filter(|(_, m)| m.operation == "Update" && m.subresource.is_empty());
            let updaters = updaters.filter(|(_, m)| !(but_ancient && m.name == ANCIENT));
            updaters.min_by(|(_, a), (_, b)| a.time.cmp(&b.time)).map(|(at, _)| at)
        };
        let Some(at) = oldest(&managers, true) else { break };
        let old = managers.remove(at);
        match managers.iter_mut().find(|m| m.name == ANCIENT && m.api_version == old.api_version) {
            Some(ancient) => ancient.set = ancient.set.union(&old.set),
            None => managers.push(Manager { name: ANCIENT.into(), ..old }),
        }
    }
    managers
}

/// Merges a configuration into an object.
///
/// # Errors
/// When a field belongs to somebody else and has another value there, unless it is forced, and when the configuration
/// cannot be merged.
pub(crate) fn apply(request: &Request<'_>, live: Option<&Value>, applied: &Value) -> Result<Value, ApplyError> {
    if !applied["metadata"]["managedFields"].is_null() {
        return Err(ApplyError::Invalid("metadata.managedFields must be nil".into()));
    }
    let mut errors = Vec::new();
    typed::check(request.schema, applied, "", &mut errors);
    if !errors.is_empty() {
        let text = |field: &str| applied["metadata"][field].as_str().unwrap_or_default();
        let (api, kind) = (&request.api_version, applied["kind"].as_str().unwrap_or_default());
        let api = if api.contains('/') { api.clone() } else { format!("/{api}") };
        let object = format!("{}/{}; {api}, Kind={kind}", text("namespace"), text("name"));
        return Err(ApplyError::Broken(format!(
            "failed to create typed patch object ({object}): {}",
            errors.join("\n")
        )));
    }
    let empty = Value::Object(serde_json::Map::new());
    let live = live.unwrap_or(&empty);
    let mut managers = managed::decode(live);
    if managers.is_empty() && live != &empty {
        managers.push(before_first_apply(request, live));
    }
    let mut own = request.manager("Apply", typed::field_set(request.schema, applied));
    Request::strip(&mut own.set);
    let last = managers.iter().find(|manager| manager.is(&own)).cloned();
    managers.retain(|manager| !manager.is(&own));

    let mut new = live.clone();
    typed::merge(request.schema, &mut new, applied);
    if let Some(last) = &last {
        let owned = managers.iter().fold(own.set.clone(), |all, manager| all.union(&manager.set));
        typed::prune(request.schema, &mut new, &last.set, &owned);
    }
    let mut comparison = typed::compare(request.schema, live, &new);
    Request::strip(&mut comparison.set);
    Request::strip(&mut comparison.removed);
    let conflicts = conflicts(&managers, &comparison.set);
    if !conflicts.is_empty() && !request.force {
        return Err(ApplyError::Conflicts(conflicts));
    }
    for manager in &mut managers {
        manager.set = manager.set.difference(&comparison.set).difference(&comparison.removed);
    }
    if let Some(last) = last.filter(|last| last.set == own.set && last.api_version == own.api_version) {
        own.time = last.time;
    }
    managers.push(own);
    managed::encode(managers, &mut new);
    Ok(new)
}

/// What is there when nobody is known belongs to whoever was before.
fn before_first_apply(request: &Request<'_>, live: &Value) -> Manager {
    let mut set = typed::field_set(request.schema, live);
    Request::strip(&mut set);
    Manager { name: "before-first-apply".into(), subresource: String::new(), ..request.manager("Update", set) }
}

fn conflicts(managers: &[Manager], changed: &FieldSet) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for manager in managers {
        let fields = manager.set.intersection(changed).paths();
        conflicts.extend(fields.into_iter().map(|field| Conflict { manager: manager.text(), field }));
    }
    conflicts.sort_by(|a, b| (&a.manager, &a.field).cmp(&(&b.manager, &b.field)));
    conflicts
}

#[cfg(test)]
mod tests;
