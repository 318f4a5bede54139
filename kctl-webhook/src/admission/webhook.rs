//! An admission function for one kind: typed inside, a review outside.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube::core::GroupVersionKind;
use serde_json::Value;

use super::{
    denial::Denial,
    options::{Action, Operation, Options, selector},
    request::{Admission, Notes},
    review::Request,
};
use crate::{
    call::{CallFuture, FunctionInfo},
    change,
    kind::{Definition, Kind, format_kind},
};

/// The result of an admission function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Decision {
    /// The rejection; `None` accepts the request.
    pub denied: Option<Denial>,
    /// The object to store, if the function changed it.
    pub object: Option<Value>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Annotations for the audit log.
    pub audit: BTreeMap<String, String>,
}

type Call = Arc<dyn Fn(&Request, Operation, OldObject) -> CallFuture<Decision> + Send + Sync>;

/// Selects if the stored object of an update or a delete is decoded for a function.
#[derive(Clone, Copy)]
enum OldObject {
    /// It is [`Admission::old`]. A request whose stored object does not fit the type is rejected.
    Decoded,
    /// The function has no access to it.
    Unused,
}

/// An admission function with its kind and options.
#[derive(Clone)]
pub struct Webhook {
    about: FunctionInfo,
    kind: GroupVersionKind,
    plural: String,
    options: Options,
    definition: Definition,
    old: OldObject,
    call: Call,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} by {}", self.options.action.name(), format_kind(&self.kind), self.about.named_location())
    }
}

impl Webhook {
    /// Creates a webhook from a function that gets the typed object, for a delete the stored one.
    ///
    /// The function returns the object, changed or not; changes of a validating function are
    /// ignored. An object that does not fit the type is rejected with 400, and the message has
    /// serde's reason. The same applies to the stored object of an update, which is
    /// [`Admission::old`].
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Service;
    /// use kctl_webhook::{FunctionInfo, admission::{Action, Denial, Options, Webhook}};
    ///
    /// let webhook = Webhook::object(
    ///     FunctionInfo::new("no_node_ports", file!(), line!()),
    ///     Options::new(Action::Validate),
    ///     |service: Service, request| async move {
    ///         let kind = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
    ///         if kind == Some("NodePort") && request.namespace.as_deref() != Some("edge") {
    ///             return Err(Denial::field("spec.type", "NodePort", "is allowed in the namespace `edge` only"));
    ///         }
    ///         Ok(service)
    ///     },
    /// );
    /// assert_eq!(webhook.kind().kind, "Service");
    /// ```
    pub fn object<K, F, Fut>(about: FunctionInfo, options: Options, call: F) -> Self
    where
        K: Kind,
        F: Fn(K, Arc<Admission<K>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, Denial>> + Send + 'static,
    {
        let action = options.action;
        Self::new::<K>(about, options, move |request, operation, old| {
            // A DELETE review has the deleted object in `oldObject`, and no `object`.
            let sent = if operation == Operation::Delete { &request.old_object } else { &request.object };
            let begun = read::<K>(request, "the object", sent).and_then(|object| {
                let before = match action {
                    Action::Mutate => to_json(request, &object)?,
                    Action::Validate => Value::Null,
                };
                let admission = Arc::new(Admission::new(request, operation, old.decode(request)?));
                Ok((before, call(object, admission.clone()), admission))
            });
            let (sent, shown) = (if action == Action::Mutate { sent.clone() } else { Value::Null }, request.describe());
            Box::pin(async move {
                let (before, called, admission) = match begun {
                    Ok(begun) => begun,
                    Err(denied) => return Decision { denied: Some(denied), ..Decision::default() },
                };
                let after = match (called.await, action) {
                    (Ok(object), Action::Mutate) => apply_changes(sent, &before, &object, &shown).map(Some),
                    (Ok(_), Action::Validate) => Ok(None),
                    (Err(denied), _) => Err(denied),
                };
                decide(after, admission.take_notes())
            })
        })
    }

    /// Creates a webhook from a function that gets the request alone, for example for `pods/exec`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_webhook::{FunctionInfo, admission::{Action, Admission, Denial, Operation, Options, Webhook}};
    ///
    /// let mut options = Options::new(Action::Validate);
    /// options.operations = vec![Operation::Connect];
    /// options.subresources = vec!["exec".into()];
    /// let webhook = Webhook::request(FunctionInfo::new("no_shell", file!(), line!()), options, |request: Arc<Admission<Pod>>| async move {
    ///     Err(Denial::because(format!("no shell in {}", request.name)))
    /// });
    /// assert_eq!(webhook.path(), "/validate--v1-pod-exec");
    /// ```
    pub fn request<K, F, Fut>(about: FunctionInfo, options: Options, call: F) -> Self
    where
        K: Kind,
        F: Fn(Arc<Admission<K>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Denial>> + Send + 'static,
    {
        Self::new::<K>(about, options, move |request, operation, old| {
            // The object of a subresource may be of another kind, and the old object then is as well.
            let old = if request.sub_resource.is_empty() {
                old.decode(request)
            } else {
                Ok(old.decode(request).ok().flatten())
            };
            let begun = old.map(|old| {
                let admission = Arc::new(Admission::new(request, operation, old));
                (call(admission.clone()), admission)
            });
            Box::pin(async move {
                match begun {
                    Ok((called, admission)) => decide(called.await.map(|()| None), admission.take_notes()),
                    Err(denied) => Decision { denied: Some(denied), ..Decision::default() },
                }
            })
        })
    }

    fn new<K: Kind>(
        about: FunctionInfo,
        options: Options,
        call: impl Fn(&Request, Operation, OldObject) -> CallFuture<Decision> + Send + Sync + 'static,
    ) -> Self {
        let (definition, old) = (Definition::default(), OldObject::Decoded);
        Self { about, kind: K::gvk(), plural: K::plural(), options, definition, old, call: Arc::new(call) }
    }

    /// Leaves [`Admission::old`] `None`, for a function that does not see the request; generated code calls it.
    ///
    /// A stored object that does not fit the type then can't block the update that repairs it.
    #[doc(hidden)]
    #[must_use]
    pub fn without_old_object(mut self) -> Self {
        self.old = OldObject::Unused;
        self
    }

    /// Adds the CRD of the kind, if it is a custom resource; generated code calls it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_definition(mut self, definition: Definition) -> Self {
        self.definition = definition;
        self
    }

    /// Returns the CRD of the kind.
    #[doc(hidden)]
    pub fn definition(&self) -> Definition {
        self.definition
    }

    /// Returns the name and location of the function.
    pub fn function_info(&self) -> FunctionInfo {
        self.about
    }

    /// Returns the kind that the function is for.
    pub fn kind(&self) -> &GroupVersionKind {
        &self.kind
    }

    /// Returns the options of the function.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the resources as a configuration names them, such as `pods/exec`.
    pub(super) fn resources(&self) -> Vec<String> {
        match self.options.subresources.as_slice() {
            [] => vec![self.plural.clone()],
            some => some.iter().map(|name| format!("{}/{name}", self.plural)).collect(),
        }
    }

    /// Returns the path that the function is served at, as kubebuilder names it:
    /// `/validate-apps-example-com-v1-podset`, followed by subresources.
    pub fn path(&self) -> String {
        let GroupVersionKind { group, version, kind } = &self.kind;
        let mut path = format!(
            "/{}-{}-{version}-{}",
            self.options.action.name(),
            group.replace('.', "-"),
            kind.to_ascii_lowercase()
        );
        for name in &self.options.subresources {
            path += &format!("-{}", name.to_ascii_lowercase());
        }
        path
    }

    pub(super) fn call(&self, request: &Request, operation: Operation) -> CallFuture<Decision> {
        (self.call)(request, operation, self.old)
    }
}

fn decide(object: Result<Option<Value>, Denial>, Notes { warnings, audit }: Notes) -> Decision {
    let (object, denied) = object.map_or_else(|denied| (None, Some(denied)), |object| (object, None));
    Decision { denied, object, warnings, audit }
}

impl OldObject {
    /// Returns the stored object for a function; `None` for a request without one.
    fn decode<K: Kind>(self, request: &Request) -> Result<Option<K>, Denial> {
        match self {
            Self::Decoded if !request.old_object.is_null() => {
                read(request, "the old object", &request.old_object).map(Some)
            }
            Self::Decoded | Self::Unused => Ok(None),
        }
    }
}

/// Parses an object of the request.
fn read<K: Kind>(request: &Request, what: &str, value: &Value) -> Result<K, Denial> {
    let type_name = std::any::type_name::<K>().rsplit("::").next().unwrap_or_default();
    K::deserialize(value).map_err(|error| {
        Denial::webhook_error(400, format!("{}: {what} can't be read as `{type_name}`: {error}", request.describe()))
    })
}

fn to_json<K: Kind>(request: &Request, object: &K) -> Result<Value, Denial> {
    serde_json::to_value(object).map_err(|error| serialization_error(&request.describe(), &error))
}

fn serialization_error(about: &str, error: &serde_json::Error) -> Denial {
    Denial::webhook_error(500, format!("{about}: the object can't be written as JSON: {error}"))
}

/// Applies what the function changed to the object as it was sent: fields that the type does not know are kept.
fn apply_changes<K: Kind>(mut sent: Value, before: &Value, after: &K, about: &str) -> Result<Value, Denial> {
    let after = serde_json::to_value(after).map_err(|error| serialization_error(about, &error))?;
    change::apply(&mut sent, before, &after);
    Ok(sent)
}

/// The reason why functions can't be served together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationError {
    /// Two functions do the same for one kind.
    #[error("two functions {action} {kind:?}: {first} and {second}; make one of them\ncode: K0109")]
    #[non_exhaustive]
    SameKind {
        /// `validate` or `mutate`.
        action: &'static str,
        /// The kind that both functions are for.
        kind: String,
        /// The function that was added first.
        first: String,
        /// The function that was added after it.
        second: String,
    },
    /// A label selector is invalid.
    #[error("{function}: {problem}\ncode: K0105")]
    #[non_exhaustive]
    Selector {
        /// The function.
        function: String,
        /// The reason why the selector is invalid.
        problem: String,
    },
    /// A kind has no such subresource, so no request would call the function.
    #[error("{function}: {kind:?} has no subresource `{name}`; {remedy}\ncode: K0106")]
    #[non_exhaustive]
    Subresource {
        /// The function.
        function: String,
        /// The kind that the function is for.
        kind: String,
        /// The subresource.
        name: String,
        /// The subresources that the kind has, or the way to add one.
        remedy: String,
    },
}

/// The subresources of built-in kinds that webhooks are called for, from the storages in `pkg/registry` of Kubernetes.
const BUILT_IN_SUBRESOURCES: [&str; 13] = [
    "approval",
    "attach",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "exec",
    "finalize",
    "portforward",
    "proxy",
    "resize",
    "scale",
    "status",
    "token",
];

/// Checks that the kind has the subresources of the rule. Kinds of aggregated API servers may have any.
fn check_subresources(webhook: &Webhook) -> Result<(), RegistrationError> {
    let GroupVersionKind { group, version, .. } = &webhook.kind;
    if webhook.options.subresources.is_empty() {
        return Ok(());
    }
    let known: Vec<&str> = if let Some(crd) = webhook.definition.crd {
        let crd = crd();
        let served = crd.spec.versions.iter().find(|served| served.name == *version);
        let Some(subresources) = served.map(|served| served.subresources.clone().unwrap_or_default()) else {
            return Ok(());
        };
        let status = subresources.status.map(|_| "status");
        status.into_iter().chain(subresources.scale.map(|_| "scale")).collect()
    } else if group.contains('.') && !group.ends_with(".k8s.io") {
        return Ok(());
    } else {
        BUILT_IN_SUBRESOURCES.to_vec()
    };
    let Some(name) = webhook.options.subresources.iter().find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let remedy = match known.as_slice() {
        [] => "add it to `#[resource]`, or remove `subresources`".to_owned(),
        known => format!("write one of {}", known.join(", ")),
    };
    let (function, kind) = (webhook.about.named_location(), format_kind(&webhook.kind));
    Err(RegistrationError::Subresource { function, kind, name: name.clone(), remedy })
}

/// Checks that each function has its own path, that selectors are valid, and that subresources exist.
pub(crate) fn check(webhooks: &[Webhook]) -> Result<(), RegistrationError> {
    let mut paths: BTreeMap<String, &Webhook> = BTreeMap::new();
    for webhook in webhooks {
        for text in [&webhook.options.namespace_selector, &webhook.options.object_selector] {
            let location = webhook.about.named_location();
            selector(text).map_err(|problem| RegistrationError::Selector { function: location, problem })?;
        }
        check_subresources(webhook)?;
        if let Some(first) = paths.insert(webhook.path(), webhook) {
            let (action, kind) = (webhook.options.action.name(), format_kind(&webhook.kind));
            let (first, second) = (first.about.named_location(), webhook.about.named_location());
            return Err(RegistrationError::SameKind { action, kind, first, second });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::{ConfigMap, Pod},
        apiextensions_apiserver::pkg::apis::apiextensions::v1::{
            CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
        },
    };
    use serde_json::json;

    use super::*;
    use crate::kind::MakeDefinition;

    /// Returns a webhook for a subresource of a kind, which has this CRD.
    fn webhook<K: Kind>(subresource: &str, crd: Option<MakeDefinition>) -> Webhook {
        let mut options = Options::new(Action::Validate);
        options.subresources = vec![subresource.into()];
        let about = FunctionInfo::new("rules", "src/main.rs", 1);
        Webhook::request(about, options, |_request: Arc<Admission<K>>| async { Ok(()) })
            .with_definition(Definition { crd, schema: None })
    }

    fn crd_without_subresources() -> CustomResourceDefinition {
        let mut crd = CustomResourceDefinition::default();
        crd.spec.versions = vec![CustomResourceDefinitionVersion { name: "v1".into(), ..Default::default() }];
        crd
    }

    fn crd_with_status() -> CustomResourceDefinition {
        let mut crd = crd_without_subresources();
        let subresources = crd.spec.versions[0].subresources.get_or_insert_default();
        subresources.status = Some(CustomResourceSubresourceStatus(json!({})));
        crd
    }

    #[test]
    fn subresource_that_the_crd_lacks_is_reported() {
        let problem = |name, crd: MakeDefinition| {
            check(&[webhook::<ConfigMap>(name, Some(crd))]).err().map(|error| error.to_string())
        };
        assert_eq!(problem("status", crd_with_status), None);
        let misspelt = problem("statuss", crd_with_status).unwrap();
        assert!(misspelt.contains("has no subresource `statuss`; write one of status\ncode: K0106"), "{misspelt}");
        let missing = problem("status", crd_without_subresources).unwrap();
        assert!(missing.contains("has no subresource `status`; add it to `#[resource]`"), "{missing}");
    }

    #[tokio::test]
    async fn unreadable_old_object_blocks_functions_that_see_it() {
        let about = FunctionInfo::new("rules", "src/main.rs", 1);
        let webhook =
            Webhook::object(about, Options::new(Action::Validate), |config: ConfigMap, _| async { Ok(config) });
        let (readable, unreadable) = (json!({ "data": { "port": "80" } }), json!({ "data": { "port": 80 } }));
        let update = Request { object: readable, old_object: unreadable.clone(), ..Request::default() };
        let denied = webhook.call(&update, Operation::Update).await.denied.unwrap().to_string();
        assert!(denied.contains("the old object can't be read as `ConfigMap`"), "{denied}");
        let webhook = webhook.without_old_object();
        assert!(webhook.call(&update, Operation::Update).await.denied.is_none());
        // The function itself gets the object of a delete.
        let delete = Request { old_object: unreadable, ..Request::default() };
        assert!(webhook.call(&delete, Operation::Delete).await.denied.is_some());
    }

    #[test]
    fn misspelt_subresource_of_a_pod_is_reported() {
        assert!(check(&[webhook::<Pod>("exec", None)]).is_ok());
        let misspelt = check(&[webhook::<Pod>("exek", None)]).unwrap_err().to_string();
        assert!(misspelt.contains("`rules` (src/main.rs:1)") && misspelt.contains("`exek`"), "{misspelt}");
    }
}
