//! Preparation of objects that are written, by the rules of their kind: generation, status, names, allocated values.

mod generation;
mod status;

use serde_json::{Value, json};

use self::generation::{changes_generation, has_generation};
pub(super) use self::{
    generation::counts_generations,
    status::{kept_metadata, reset, reset_fields, writes_part},
};
use crate::{
    crd, go,
    registry::{
        Resource,
        kind::{DeleteAnswer, Environment, NewStatus},
    },
    request::Call,
    state::State,
    store::address,
    ways::set,
};

impl Environment for State {
    fn now(&self) -> String {
        self.clock.seconds()
    }

    fn uid(&mut self) -> String {
        self.chance.uid()
    }

    fn cluster_ip(&mut self) -> String {
        self.n_addresses += 1;
        address(self.n_addresses)
    }
}

/// Returns `true` if the `OpenAPI` document says that a delete answers the object, not a `Status`.
pub(crate) fn answers_deleted(resource: &Resource) -> bool {
    resource.rules.delete_answer == DeleteAnswer::Object
}

/// Makes an object ready to be stored for the first time.
pub(super) fn prepare_create(state: &mut State, resource: &Resource, object: &mut Value) {
    let rules = resource.rules;
    if let Value::Object(map) = object {
        if resource.has_status() && rules.new_status != NewStatus::AsSent {
            map.remove("status");
        }
        let Some(Value::Object(meta)) = map.get_mut("metadata") else { return };
        for server_owned in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            meta.remove(server_owned);
        }
        meta.insert("uid".into(), state.chance.uid().into());
        meta.insert("creationTimestamp".into(), state.clock.seconds().into());
        if has_generation(resource) {
            meta.insert("generation".into(), 1.into());
        }
    }
    if rules.new_status == NewStatus::Empty {
        object["status"] = json!({});
    }
    (rules.complete_by_plugins)(object);
    (rules.prepare_create)(state, object);
    (rules.allocate)(state, object);
    (rules.drop_unstored)(object);
}

/// Fills in what a read from the store would: the writer has not set it, and does not own it.
pub(super) fn default_stored(call: &Call, object: &mut Value) {
    (call.resource.rules.default_metadata)(object);
    read_again(call, object);
}

/// Sets the times in a status that was written.
pub(super) fn set_status_times(state: &State, call: &Call, old: &Value, new: &mut Value) {
    if call.subresource == "status" {
        (call.resource.rules.set_status_times)(state, old, new);
    }
}

/// Makes an object what it is after it was written and read: a custom one has numbers as JSON of Go has them, and no null
/// that an apply has left.
pub(super) fn read_again(call: &Call, object: &mut Value) {
    let list = call.resource.rules.null_when_empty.and_then(|list| object.pointer_mut(list));
    if let Some(list) = list.filter(|list| **list == json!([])) {
        *list = Value::Null;
    }
    if let (Some(_), Some(schema)) = (&call.resource.custom, call.resource.schema()) {
        go::whole_numbers(object);
        if call.applies() {
            crd::default(schema, object);
        }
    }
}

/// Takes over what a write of the object or of its subresource may not change, and counts the generation.
pub(super) fn prepare_update(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
    let rules = resource.rules;
    reset(resource, subresource, old, new);
    (rules.prepare_update)(subresource, old, new);
    let meta = &old["metadata"];
    for server_owned in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"]
    {
        set(&mut new["metadata"], server_owned, meta.get(server_owned).cloned());
    }
    if counts_generations(resource) && changes_generation(resource, subresource, old, new) {
        new["metadata"]["generation"] = (meta["generation"].as_i64().unwrap_or(0) + 1).into();
    }
    // A field that is sent and not stored has changed the object all the same.
    (rules.drop_unstored)(new);
}
