//! The pipeline of a write: [`write`] is the list of its steps, and each step has a file.
//!
//! `POST`, `PUT`, `PATCH`, apply and the writes of subresources decode the body (`body`, `verbs/patch`), and pass the
//! object to the pipeline. The object's kind (`resource.kind`) defines how the steps differ.
//!
//! The pipeline is synchronous and runs under the lock of the server. It may run several times for one request. A step
//! that needs a webhook returns `StatusError::waiting`, and `server::service` runs the verb again when the replies have
//! arrived. So steps before `store` change nothing in the state but its random sequence and the number of the last
//! cluster IP. `State::run_repeatably` restores both if the run waits, so that each run gets the same values.
//!
//! Deletions, and writes of controllers, do not use this pipeline: `lifecycle` and `controllers` write them. Bindings
//! (`verbs/subresources.rs`) and evictions (`verbs/evict.rs`) do not use it either. Their admission sees the `Binding`
//! or `Eviction`. Then they change the Pod by `lifecycle`, as `BindingREST` and `EvictionREST` of kube-apiserver write
//! the Pod directly, without the validation of an update.

mod admin_access;
mod allocate;
pub(crate) mod body;
mod complete;
mod escalation;
mod immutable;
mod mutating_admission;
mod name;
pub(crate) mod namespace;
pub(crate) mod ownership;
mod plugins;
pub(crate) mod precondition;
mod prepare;
mod quotas;
mod signer_authorization;
mod sizes;
mod store;
mod unpersisted_fields;
mod validate;
mod validating_admission;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::{
    ownership::{FieldManager, Ownership},
    plugins::topology,
    prepare::default,
    unpersisted_fields::Unpersisted,
};
use crate::{
    admission::Attributes,
    request::{Operation, RequestInfo},
    state::State,
    status::StatusError,
};

/// A decoded object on its way to the store.
pub(crate) struct Write {
    /// The stored object, in the version of the request; `None` if the write creates the object. Validation compares
    /// the object with it. It is converted with the CRD's conversion, if necessary.
    pub(crate) old: Option<Arc<Value>>,
    /// The object that is written. Each step may change it.
    pub(crate) object: Value,
    /// The source of `metadata.managedFields`.
    pub(crate) ownership: Ownership,
    /// Fields that count as a change although they are not stored.
    pub(crate) unpersisted: Unpersisted,
    /// The admission step: still to do, or already done by the verb.
    pub(crate) admission: AdmissionStep,
}

/// The state of the admission of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionStep {
    /// Admission sees the written object.
    Pending,
    /// The verb has admitted the object of its subresource, such as a `Scale`.
    Done,
}

impl Write {
    /// Creates the write of a new object. `ownership` is `Written` for requests of clients, apart from apply.
    pub(crate) fn create(object: Value, ownership: Ownership) -> Self {
        let (unpersisted, admission) = (Unpersisted::Nothing, AdmissionStep::Pending);
        Self { old: None, object, ownership, unpersisted, admission }
    }

    /// Creates the write of an existing object.
    pub(crate) fn update(old: &Arc<Value>, object: Value, ownership: Ownership) -> Self {
        Self { old: Some(old.clone()), ..Self::create(object, ownership) }
    }

    /// Returns `true` if the write creates the object.
    fn is_new(&self) -> bool {
        self.old.is_none()
    }

    /// Returns the stored object in the version of the request.
    fn old(&self) -> Option<&Value> {
        self.old.as_deref()
    }

    /// Returns the write in the form that admission uses.
    fn attributes<'a>(&mut self, info: &'a RequestInfo, name: &str) -> Attributes<'a> {
        let object = std::mem::take(&mut self.object);
        match &self.old {
            None => Attributes::new(info, Operation::Create, name, object),
            Some(old) => Attributes::new(info, Operation::Update, name, object).with_old(old),
        }
    }
}

/// Stores a decoded object, and returns it in the version of the request. The steps, in the order of kube-apiserver
/// (`handlers/create.go` and `handlers/update.go` around `Store.Create` and `Store.Update` of
/// `k8s.io/apiserver/pkg/registry/generic/registry/store.go`):
///
/// 1. `namespace::check`: the namespace of a new object exists and is not being deleted; an existing object has the
///    name of the path.
/// 2. `mutating_admission`: policies, webhooks and plugins change the object.
/// 3. `allocate::check_new`, `escalation`, `precondition`: the addresses of a new Service are free, and the writer may
///    grant these permissions and has seen the stored version.
/// 4. `namespace::match_namespace`: the object gets the namespace of the path, which admission may have changed or
///    removed.
/// 5. `immutable::errors`: changes of immutable metadata, and admin access to devices. It runs before `prepare`, which
///    restores stored values. Step 8 has the errors of other immutable fields: `validate_update`, or a tag of the API.
/// 6. `prepare`: defaults, fields that the write resets, generation.
/// 7. `complete`, `allocate`, `name`: plugins and the strategy complete the object; allocated values, and a generated
///    name.
/// 8. `validate::validate`, `signer_authorization`: field errors of the object and of the change, with the errors of
///    step 5 in one `Invalid`.
/// 9. `ownership`: `metadata.managedFields`.
/// 10. `validating_admission`: plugins, policies, webhooks and quotas may reject the object.
/// 11. `store`: conversion to the storage version, and the commit.
///
/// Nothing is written before the last step, so a request that waits for a webhook can run again from its start.
///
/// # Errors
/// Fails with the first step that rejects the object, or with [`StatusError::waiting`] if a webhook has not replied
/// yet.
pub(crate) fn write(state: &mut State, info: &RequestInfo, mut write: Write) -> Result<Arc<Value>, StatusError> {
    namespace::check(&state.store, info, &mut write)?;
    let source = mutating_admission::run(state, info, &mut write)?;
    allocate::check_new(&state.store, info, &write)?;
    escalation::check(state, info, write.old(), &write.object)?;
    precondition::check(info, &write)?;
    namespace::match_namespace(info, &mut write.object)?;
    let errors = immutable::errors(&state.store, info, &write);
    let new = prepare::prepare(&mut state.store, info, &mut write);
    complete::complete(state, info, &mut write)?;
    allocate::allocate(&mut state.store, info, &mut write)?;
    let key = name::assign(&mut state.store, info, new.as_ref(), &mut write);
    validate::validate(&state.store, info, &write, errors)?;
    signer_authorization::check(state, info, &key.1, &write)?;
    ownership::set(state, info, source, new, &mut write)?;
    let charges = validating_admission::run(state, info, &key, &mut write)?;
    store::store(state, info, &key, write, charges)
}
