//! Other objects of a new cluster: `PriorityClasses`, the objects of API priority and fairness, and the Service
//! `kubernetes`.
//!
//! They are stored without a write: they get the present revision, and no watch sees an event for
//! them.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{
    clock::Rng,
    status::GroupResource,
    store::{Key, Store},
};

/// The seed of their uids.
///
/// It differs from that of the roles, so that no uid is given twice.
const SEED: u64 = 0x7374_6e64;

/// All of these objects, from `data/standard.json`.
///
/// Uids and times are missing in the file.
static KNOWN: LazyLock<Vec<(GroupResource, Key, Value)>> = LazyLock::new(|| {
    let entries: Vec<Value> =
        serde_json::from_str(include_str!("../../data/standard.json")).expect("the file is generated and tested");
    let whole = |mut entry: Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = GroupResource::new(&text(&entry["group"]), &text(&entry["resource"]));
        let meta = &entry["object"]["metadata"];
        (resource, (text(&meta["namespace"]), text(&meta["name"])), entry["object"].take())
    };
    entries.into_iter().map(whole).collect()
});

/// Stores the objects that the server does not have yet.
///
/// All times in an object are the same: those of creation, of its field managers and of its
/// conditions.
pub(super) fn objects(store: &mut Store) {
    let now = store.clock.seconds();
    let mut rng = Rng::new(SEED);
    for (resource, key, object) in KNOWN.iter() {
        let uid = rng.uid();
        if store.get(resource, key).is_some() {
            continue;
        }
        let mut object = object.clone();
        let meta = &mut object["metadata"];
        meta["uid"] = uid.into();
        meta["creationTimestamp"] = now.clone().into();
        for entry in meta["managedFields"].as_array_mut().into_iter().flatten() {
            entry["time"] = now.clone().into();
        }
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            condition["lastTransitionTime"] = now.clone().into();
        }
        store.put_first(resource, key.clone(), object);
    }
}
