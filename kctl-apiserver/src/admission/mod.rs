//! Admission by webhooks and policies: takes the [`Attributes`] of a request, and returns the changed object or the
//! error that rejects it.
//!
//! The plugins of kube-apiserver are in `write/plugins`.
//!
//! Mutating admission runs policies, then webhooks, and a second round if something changed; validating admission runs
//! policies, then all webhooks at once. Both wait for webhooks by returning `StatusError::waiting`, so the caller must
//! not change the state before admission has finished.

mod authorizer;
mod matching;
mod mutation;
mod patch;
mod policy;
mod redecode;
mod review;
mod webhook;

use std::sync::Arc;

use serde_json::{Value, json};

use self::{matching::Versioned, redecode::redecode};
use crate::{
    cel::Scope,
    conversion,
    kinds::admissionregistration::{mutating_admission_policy_binding, mutating_webhook_configuration},
    registry::{Kind, TypeMeta},
    request::{Operation, RequestInfo},
    state::State,
    status::StatusError,
    store::Store,
};

/// The group of webhook configurations and policies.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// The view that admission has of a request (`admission.Attributes`).
pub(crate) struct Attributes<'a> {
    /// The request, which also collects warnings and audit annotations (`info.round`).
    pub(crate) info: &'a RequestInfo,
    /// The operation that rules match.
    pub(crate) operation: Operation,
    /// The name of the object. Empty as long as it is not generated, and for each object of a deleted collection.
    pub(crate) name: String,
    /// The object of the request, such as the object to store, a `Binding` or the options of a connect. `None` for a
    /// delete.
    pub(crate) object: Option<Value>,
    /// The stored object or its `Scale`; `None` for a create and a connect.
    pub(crate) old: Option<Arc<Value>>,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`; null for a connect.
    pub(crate) options: Value,
    /// The version of the resource that a policy or webhook matches, and its kind, if that is not the requested
    /// version. The objects are in that version then.
    shown_as: Option<(Versioned, Value)>,
}

impl<'a> Attributes<'a> {
    /// Creates the attributes of a create or an update.
    pub(crate) fn new(info: &'a RequestInfo, operation: Operation, name: &str, object: Value) -> Self {
        let options = options(info, operation);
        Self { info, operation, name: name.into(), object: Some(object), old: None, options, shown_as: None }
    }

    /// Sets the stored object.
    pub(crate) fn with_old(self, old: &Arc<Value>) -> Self {
        Self { old: Some(old.clone()), ..self }
    }

    /// Creates the attributes of a delete with these options.
    ///
    /// `old` is the object that is deleted; webhooks see it as `oldObject`.
    pub(crate) fn delete(info: &'a RequestInfo, old: &Arc<Value>, options: &Value) -> Self {
        let mut options = options.clone();
        options["kind"] = "DeleteOptions".into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
        let (operation, name) = (Operation::Delete, info.name.clone());
        Self { info, operation, name, object: None, old: Some(old.clone()), options, shown_as: None }
    }

    /// Creates the attributes of a connection, whose options are the object.
    pub(crate) fn connect(info: &'a RequestInfo, object: Value) -> Self {
        let (operation, name) = (Operation::Connect, info.name.clone());
        Self { info, operation, name, object: Some(object), old: None, options: Value::Null, shown_as: None }
    }

    /// Returns the namespace of the request. For a Namespace object it is the object's own name (`namespaceGVR` of
    /// `endpoints/handlers/create.go`).
    fn namespace(&self) -> &str {
        if self.info.resource.kind.requests.is_own_namespace { &self.name } else { &self.info.namespace }
    }

    /// Returns `true` for a dry run, by the query parameters or by the body of a delete.
    fn is_dry(&self) -> bool {
        self.options["dryRun"].as_array().is_some_and(|all| !all.is_empty())
    }

    /// Returns the type of the sent object. For a subresource it may differ from the type of the resource.
    fn own_type(&self) -> TypeMeta {
        self.info.resource.type_at(self.info.subresource)
    }

    /// Returns the type of the sent object as reviews write it: a `GroupVersionKind` in JSON.
    fn kind(&self) -> Value {
        self.own_type().group_version_kind()
    }

    /// Returns the attributes with objects in another version of the resource, or `None` if that is not served.
    ///
    /// # Errors
    /// Fails if the objects cannot be converted, or with [`StatusError::waiting`].
    fn in_version(&self, state: &State, resource: &Versioned) -> Result<Option<Self>, StatusError> {
        let target = state.store.registry.get(&resource.group, &resource.version, &resource.resource);
        let Some(target) = target else { return Ok(None) };
        let convert = |object: &Value| conversion::convert(state, self.info, &target, object);
        let kind = json!({ "group": resource.group, "version": resource.version, "kind": target.kind_name() });
        Ok(Some(Self {
            info: self.info,
            operation: self.operation,
            name: self.name.clone(),
            object: self.object.as_ref().map(convert).transpose()?,
            old: self.old.as_deref().map(convert).transpose()?.map(Arc::new),
            options: self.options.clone(),
            shown_as: Some((resource.clone(), kind)),
        }))
    }

    /// Returns the scope in which the expressions of a webhook or policy (`subject`) are evaluated: `object`,
    /// `oldObject`, `request`, and `authorizer` if the expressions use it.
    fn scope(&self, store: &Store, subject: &Value) -> Scope {
        let requested = || (Versioned::for_resource(&self.info.resource), self.kind());
        let (resource, kind) = self.shown_as.clone().unwrap_or_else(requested);
        let mut request = review::request(self, &resource, &kind);
        // Expressions see fields that a review omits (`CreateAdmissionRequest` of `plugin/cel`).
        if request["userInfo"]["extra"].is_null() {
            request["userInfo"]["extra"] = json!({});
        }
        let null = Value::Null;
        let mut scope = Scope::new([
            ("object", self.object.as_ref().unwrap_or(&null)),
            ("oldObject", self.old.as_deref().unwrap_or(&null)),
            ("request", &request),
        ]);
        if authorizer::uses_authorizer(subject) {
            authorizer::add(&mut scope, store, self);
        }
        scope
    }
}

/// Returns the options of a create or an update, decoded from the query. Go omits empty parameters.
fn options(info: &RequestInfo, operation: Operation) -> Value {
    let kind = if operation == Operation::Create { "CreateOptions" } else { "UpdateOptions" };
    let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
    for field in ["fieldManager", "fieldValidation"] {
        let parameter = info.params.text(field);
        if !parameter.is_empty() {
            options[field] = parameter.into();
        }
    }
    if info.dry_run() {
        options["dryRun"] = json!(["All"]);
    }
    options
}

/// Returns `true` if a webhook or policy could change the object. Most servers have none, which saves copies.
///
/// A cheap check: it ignores rules.
pub(crate) fn may_mutate(store: &Store, info: &RequestInfo) -> bool {
    (matching::takes_webhooks(info) && has_any(store, &mutating_webhook_configuration::KIND))
        || (matching::takes_policies(info) && has_any(store, &mutating_admission_policy_binding::KIND))
}

/// Returns `true` if there is an object of the kind.
fn has_any(store: &Store, kind: &Kind) -> bool {
    store.objects(&kind.group_resource(), None).next().is_some()
}

/// A pass over the mutating policies and webhooks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// All policies and webhooks that match.
    First,
    /// The pass after a change, with `reinvocationPolicy: IfNeeded`.
    Reinvocation,
}

/// The stage of admission that a webhook belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its response may have a JSON patch of the object.
    Mutating,
    /// Its response must not have a patch.
    Validating,
}

/// Runs policies and then webhooks, which may change the object. If something has changed it, those with
/// `reinvocationPolicy: IfNeeded` run once more.
///
/// # Errors
/// Fails if one of them denies the request or fails, or with [`StatusError::waiting`].
pub(crate) fn mutate(state: &State, attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
    let mut webhooks = webhook::Mutating::new(&state.store, attributes.info);
    let by_policies = mutation::run(&state.store, attributes, Pass::First)?;
    let by_webhooks = webhooks.run(state, attributes, Pass::First)?;
    if by_policies || by_webhooks {
        if mutation::run(&state.store, attributes, Pass::Reinvocation)? {
            webhooks.call_again();
        }
        webhooks.run(state, attributes, Pass::Reinvocation)?;
    }
    Ok(())
}

/// Runs validating policies and webhooks.
///
/// # Errors
/// Fails as [`mutate`] does.
pub(crate) fn validate(state: &State, attributes: &Attributes<'_>) -> Result<(), StatusError> {
    policy::validate(state, attributes)?;
    webhook::validate(state, attributes)
}

/// Runs mutating and validating admission of a request whose object is not stored afterwards: a delete, a connection, or
/// an `Eviction`. Returns the object as the last webhook left it.
///
/// Bindings and tokens are validated between the two phases, so they call [`mutate`] and [`validate`] themselves.
pub(crate) fn admit(state: &State, mut attributes: Attributes<'_>) -> Result<Value, StatusError> {
    mutate(state, &mut attributes)?;
    validate(state, &attributes)?;
    Ok(attributes.object.unwrap_or_default())
}
