//! The way of a write: [`write`] is the list of its steps, and each step has a file.
//!
//! `POST`, `PUT`, `PATCH`, apply and the writes of subresources decode what was sent (`body`, `verbs/patch`), and hand the
//! object to the pipeline. Steps ask the kind of the object (`resource.rules`) for what differs between kinds.

mod admin_access;
mod admit;
pub(crate) mod body;
mod escalation;
mod mutate;
mod name;
pub(crate) mod ownership;
pub(crate) mod place;
mod plugins;
pub(crate) mod precondition;
mod prepare;
mod quotas;
mod sizes;
mod store;
pub(crate) mod unpersisted_fields;
mod validate;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::{
    ownership::{FieldManager, Ownership},
    plugins::topology,
    prepare::{answers_deleted, default},
    unpersisted_fields::Unpersisted,
    validate::changes_of_metadata,
};
use crate::{
    admission::Attributes,
    request::{Call, Operation},
    state::State,
    status::StatusError,
};

/// A decoded object on its way to the store.
pub(crate) struct Write {
    /// The stored object, in the version of the request; `None` if the write creates the object.
    pub(crate) old: Option<Arc<Value>>,
    pub(crate) object: Value,
    pub(crate) ownership: Ownership,
    pub(crate) unpersisted: Unpersisted,
    pub(crate) admission: Admission,
}

/// The object that admission sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    OfObject,
    /// The verb has admitted the object of its subresource, such as a `Scale`.
    Done,
}

impl Write {
    pub(crate) fn create(object: Value, ownership: Ownership) -> Self {
        let (unpersisted, admission) = (Unpersisted::Nothing, Admission::OfObject);
        Self { old: None, object, ownership, unpersisted, admission }
    }

    pub(crate) fn update(old: &Arc<Value>, object: Value, ownership: Ownership) -> Self {
        Self { old: Some(old.clone()), ..Self::create(object, ownership) }
    }

    fn is_new(&self) -> bool {
        self.old.is_none()
    }

    fn old(&self) -> Option<&Value> {
        self.old.as_deref()
    }

    /// Returns the write as admission sees it.
    fn attributes<'a>(&mut self, call: &'a Call, name: &str) -> Attributes<'a> {
        let object = std::mem::take(&mut self.object);
        match &self.old {
            None => Attributes::new(call, Operation::Create, name, object),
            Some(old) => Attributes::new(call, Operation::Update, name, object).with_old(old),
        }
    }
}

/// Stores a decoded object. Returns it as it is answered.
///
/// # Errors
/// Fails with the first step that rejects the object, or if the response of a webhook is still outstanding.
pub(crate) fn write(state: &mut State, call: &Call, mut write: Write) -> Result<Arc<Value>, StatusError> {
    place::check(state, call, &mut write)?;
    let owned = mutate::admit(state, call, &mut write)?;
    escalation::check(state, call, write.old(), &write.object)?;
    precondition::check(call, &write)?;
    place::match_namespace(call, &mut write.object)?;
    let errors = validate::change(state, call, &write);
    let new = prepare::prepare(state, call, &mut write);
    plugins::complete(state, call, &mut write)?;
    let key = name::assign(state, call, new.as_ref(), &mut write);
    validate::validate(call, &write, errors)?;
    ownership::set(state, call, owned, new, &mut write)?;
    let charges = admit::admit(state, call, &key, &mut write)?;
    store::store(state, call, &key, write, charges)
}
