//! A rule: one function for one operation on one kind. The function is typed; callers see
//! [`Inputs`] and JSON.

use std::{fmt, sync::Arc};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl_webhook::{change, panic::catch_unwind};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{call_inputs::CallInputs, error::FunctionError, function_info::FunctionInfo, item::StatusItem};
use crate::{
    canonical,
    chain::{LayerError, LayerFuture},
    kind::Gvk,
    operation::{Inputs, InterpretComponent, Op, Operation, field},
};

/// A kind that functions can take: a custom resource, or a type of k8s-openapi. Every
/// [`kube::Resource`] with a static kind that can be serialized implements it.
///
/// ```
/// use k8s_openapi::api::batch::v1::Job;
/// use kctl_interpreter::function::Interpreted;
///
/// assert_eq!(Job::gvk().to_string(), "batch/v1, Kind=Job");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: write the name of a type with `#[resource(…)]`, or of a built-in kind",
    note = "code: K0030"
)]
pub trait Interpreted: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Returns the group, version and kind of objects of the type.
    fn gvk() -> Gvk;
}

#[diagnostic::do_not_recommend]
impl<K> Interpreted for K
where
    K: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    fn gvk() -> Gvk {
        let [group, version, kind] = [K::group(&()), K::version(&()), K::kind(&())].map(Into::into);
        Gvk { group, version, kind }
    }
}

/// A function that returns the `CustomResourceDefinition` of a kind.
pub type MakeDefinition = fn() -> CustomResourceDefinition;

/// The function with its conversions: takes inputs, returns the answer as JSON.
type RuleFn = Arc<dyn for<'a> Fn(&'a Inputs) -> LayerFuture<'a> + Send + Sync>;

/// One function, with its operation, its kind and the conversions of its input and output.
///
/// There is one constructor for each form of function:
///
/// | constructor | operations | the function takes | and returns |
/// |---|---|---|---|
/// | [`Rule::read`] | `InterpretReplica`, `InterpretComponent`, `InterpretDependency`, `InterpretHealth`, `InterpretStatus` | the object | an answer, by a trait such as [`IntoHealth`](super::IntoHealth) |
/// | [`Rule::revise`] | `ReviseReplica` | the object, the number | the changed object |
/// | [`Rule::retain`] | `Retain` | the desired and the observed object | the changed desired object |
/// | [`Rule::aggregate`] | `AggregateStatus` | the object, the statuses | the changed object |
/// | [`Rule::change`] | `Prune` | the object | the changed object |
///
/// A clone shares the function.
#[derive(Clone)]
pub struct Rule {
    about: FunctionInfo,
    kind: Gvk,
    /// Returns the definition of a custom resource.
    crd: Option<MakeDefinition>,
    /// Returns the JSON schema of the kind's Rust type.
    schema: Option<fn() -> Value>,
    call: RuleFn,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} by `{}`", self.about.operation, self.kind, self.about.name)
    }
}

impl Rule {
    /// Creates a rule for a function that reads its object.
    ///
    /// The future returns the result in the form of [`Op::encode`](crate::operation::Op::encode);
    /// the traits of this module make it, such as [`IntoReplicas`](super::IntoReplicas).
    ///
    /// ```
    /// use k8s_openapi::api::batch::v1::CronJob;
    /// use kctl_interpreter::{function::{FunctionInfo, IntoHealth, Rule}, operation::{Object, Operation}};
    /// use serde_json::json;
    ///
    /// let about = FunctionInfo::new(Operation::InterpretHealth, "is_not_suspended", file!(), line!());
    /// let rule = Rule::read(about, |job: CronJob| async move {
    ///     (job.spec.suspend != Some(true)).into_result()
    /// });
    /// let inputs = Object(json!({ "apiVersion": "batch/v1", "kind": "CronJob", "spec": { "schedule": "@daily" } })).into();
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// assert_eq!(rule.call(&inputs).await?, json!({ "healthy": true }));
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// # })?;
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// ```
    pub fn read<K, F, Fut>(about: FunctionInfo, call: F) -> Self
    where
        K: Interpreted,
        F: Fn(K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, LayerError>> + Send + 'static,
    {
        Self::new::<K>(about, move |inputs| {
            let called = CallInputs { about, inputs }.object::<K>().map(&call);
            Box::pin(async move {
                canonicalize_answer(about.operation, called?.await?).map_err(|problem| {
                    let (function, operation, object) = (about, about.operation, inputs.object_name());
                    FunctionError::AnswerInvalid { function, operation, object, problem }.into()
                })
            })
        })
    }

    /// Creates a rule for a function that changes its object, and needs nothing else: `Prune`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kctl_interpreter::{function::{FunctionInfo, Rule}, operation::{Object, Operation}};
    /// use serde_json::json;
    ///
    /// let about = FunctionInfo::new(Operation::Prune, "without_data", file!(), line!());
    /// let rule = Rule::change(about, |mut object: ConfigMap| async move {
    ///     object.data = None;
    ///     Ok(object)
    /// });
    /// let inputs = Object(json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" }, "unknown": 1 })).into();
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let answer = rule.call(&inputs).await?;
    /// assert_eq!(answer["pruned"], json!({ "apiVersion": "v1", "kind": "ConfigMap", "unknown": 1 }), "unknown fields stay");
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// # })?;
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// ```
    pub fn change<K, F, Fut>(about: FunctionInfo, call: F) -> Self
    where
        K: Interpreted,
        F: Fn(K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::mutating(about, move |object, _request| Ok(call(object)))
    }

    /// Creates a rule for a function that sets the number of replicas, for `ReviseReplica`.
    ///
    /// A number that does not fit into 32 bits is an error before the function runs.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kctl_interpreter::{function::{FunctionInfo, Rule}, operation::{Operation, Revision}};
    /// use serde_json::json;
    ///
    /// let about = FunctionInfo::new(Operation::ReviseReplica, "revise", file!(), line!());
    /// let rule = Rule::revise(about, |mut object: Deployment, replicas| async move {
    ///     object.spec.replicas = Some(replicas);
    ///     Ok(object)
    /// });
    /// let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "selector": {}, "template": {} } });
    /// let inputs = Revision { object, replicas: 5 }.into();
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// assert_eq!(rule.call(&inputs).await?["revised"]["spec"]["replicas"], 5);
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// # })?;
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// ```
    pub fn revise<K, F, Fut>(about: FunctionInfo, call: F) -> Self
    where
        K: Interpreted,
        F: Fn(K, i32) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::mutating(about, move |object, call_inputs| Ok(call(object, call_inputs.replicas()?)))
    }

    /// Creates a rule for a function that copies fields of the observed object to the desired one,
    /// for `Retain`. The function takes the desired object first.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Service;
    /// use kctl_interpreter::{function::{FunctionInfo, Rule}, operation::{Operation, Retention}};
    /// use serde_json::json;
    ///
    /// let about = FunctionInfo::new(Operation::Retain, "keep_ip", file!(), line!());
    /// let rule = Rule::retain(about, |mut desired: Service, observed: Service| async move {
    ///     desired.spec.get_or_insert_default().cluster_ip = observed.spec.and_then(|spec| spec.cluster_ip);
    ///     Ok(desired)
    /// });
    /// let service = |spec| json!({ "apiVersion": "v1", "kind": "Service", "spec": spec });
    /// let (desired, observed) = (service(json!({})), service(json!({ "clusterIP": "10.0.0.7" })));
    /// let inputs = Retention { desired, observed }.into();
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// assert_eq!(rule.call(&inputs).await?["retained"]["spec"]["clusterIP"], "10.0.0.7");
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// # })?;
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// ```
    pub fn retain<K, F, Fut>(about: FunctionInfo, call: F) -> Self
    where
        K: Interpreted,
        F: Fn(K, K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::mutating(about, move |object, call_inputs| {
            let observed =
                call_inputs.inputs.observed.as_ref().ok_or_else(|| call_inputs.missing_input("the observed object"))?;
            Ok(call(object, call_inputs.read("the observed object", observed)?))
        })
    }

    /// Creates a rule for a function that merges the statuses of all clusters into one, for `AggregateStatus`.
    ///
    /// Each status is read as `I`, usually a [`ClusterStatus`](super::ClusterStatus). Clusters that
    /// have not reported are in the list, without a status.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
    /// use kctl_interpreter::{
    ///     function::{FunctionInfo, ClusterStatus, Rule},
    ///     operation::{AggregatedStatusItem, Aggregation, Operation},
    /// };
    /// use serde_json::json;
    ///
    /// let about = FunctionInfo::new(Operation::AggregateStatus, "sum", file!(), line!());
    /// let rule = Rule::aggregate(about, |mut object: Deployment, items: Vec<ClusterStatus<DeploymentStatus>>| async move {
    ///     let ready = items.iter().filter_map(|item| item.status.as_ref()?.ready_replicas).sum();
    ///     object.status.get_or_insert_default().ready_replicas = Some(ready);
    ///     Ok(object)
    /// });
    /// let item = |n: i32| AggregatedStatusItem { status: Some(json!({ "readyReplicas": n })), ..AggregatedStatusItem::default() };
    /// let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
    /// let inputs = Aggregation { object, items: vec![item(2), item(3)] }.into();
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// assert_eq!(rule.call(&inputs).await?["aggregatedStatus"]["status"]["readyReplicas"], 5);
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// # })?;
    /// # Ok::<_, kctl_interpreter::chain::LayerError>(())
    /// ```
    pub fn aggregate<K, I, F, Fut>(about: FunctionInfo, call: F) -> Self
    where
        K: Interpreted,
        I: StatusItem,
        F: Fn(K, Vec<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::mutating(about, move |object, call_inputs| Ok(call(object, call_inputs.items()?)))
    }

    /// Creates a rule for a function that changes its object.
    ///
    /// The object is serialized from its type before and after the call. Only the difference is
    /// applied to the given JSON, so that unknown fields and their order are kept.
    fn mutating<K, F, Fut>(about: FunctionInfo, call: F) -> Self
    where
        K: Interpreted,
        F: for<'a> Fn(K, CallInputs<'a>) -> Result<Fut, FunctionError> + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::new::<K>(about, move |inputs| {
            let call_inputs = CallInputs { about, inputs };
            let called = call_inputs.object::<K>().and_then(|object| {
                // Serializes the object before the function changes it.
                let before = call_inputs.write(&object)?;
                Ok((before, call(object, call_inputs)?))
            });
            Box::pin(async move {
                let (before, call) = called?;
                let after = call_inputs.write(&call.await?)?;
                let mut object = call_inputs.object_json()?.clone();
                change::apply(&mut object, &before, &after);
                Ok(field(about.operation, object))
            })
        })
    }

    /// Creates a rule without a definition.
    fn new<K: Interpreted>(
        about: FunctionInfo,
        call: impl for<'a> Fn(&'a Inputs) -> LayerFuture<'a> + Send + Sync + 'static,
    ) -> Self {
        Self { about, kind: K::gvk(), crd: None, schema: None, call: Arc::new(call) }
    }

    /// Adds the definition and the schema of a custom resource. Generated code calls it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_definition(mut self, crd: Option<MakeDefinition>, schema: Option<fn() -> Value>) -> Self {
        (self.crd, self.schema) = (crd, schema);
        self
    }

    /// Returns the function that makes the definition of the kind; `None` for a built-in kind.
    #[doc(hidden)]
    pub fn definition(&self) -> Option<MakeDefinition> {
        self.crd
    }

    /// Returns the function that makes the JSON schema of the kind; `None` if its type has no
    /// schema.
    #[doc(hidden)]
    pub fn schema(&self) -> Option<fn() -> Value> {
        self.schema
    }

    /// Returns the operation, the name and the position of the function.
    pub fn function_info(&self) -> FunctionInfo {
        self.about
    }

    /// Returns the kind of the function's object.
    pub fn kind(&self) -> &Gvk {
        &self.kind
    }

    /// Calls the function with the inputs, and returns its answer in the form of
    /// [`Op::encode`](crate::operation::Op::encode).
    ///
    /// A panic of the function becomes [`FunctionError::Panicked`]. All other errors are
    /// [`FunctionError`]s of the conversions, or errors that the function returned.
    ///
    /// # Cancel safety
    /// Dropping the returned future drops the function's future.
    pub fn call<'a>(&self, inputs: &'a Inputs) -> LayerFuture<'a> {
        let (about, call) = (self.about, self.call.clone());
        Box::pin(async move {
            let called = catch_unwind(|| call(inputs)).await;
            called.unwrap_or_else(|message| Err(panic_error(about, inputs, message).into()))
        })
    }
}

/// Returns an answer whose requirements are as Karmada's types write them, such as `1Gi` for `1024Mi`: the other layers
/// return that form, and Karmada compares results as a whole.
///
/// # Errors
/// A field of the requirements has another type in Karmada, for example a request that is not a quantity.
fn canonicalize_answer(operation: Operation, mut answer: Value) -> Result<Value, String> {
    let field = match operation {
        Operation::InterpretReplica => "requires",
        Operation::InterpretComponent => InterpretComponent::FIELD,
        // Their answers have no requirements. Without a wildcard the compiler asks about a new operation.
        Operation::ReviseReplica
        | Operation::Retain
        | Operation::InterpretStatus
        | Operation::AggregateStatus
        | Operation::InterpretDependency
        | Operation::InterpretHealth
        | Operation::Prune => return Ok(answer),
    };
    if let Some(output) = answer.get_mut(field).filter(|output| !output.is_null()) {
        *output = if operation == Operation::InterpretReplica {
            canonical::write(&canonical::read::<canonical::ReplicaRequirements>(output.take())?)?
        } else {
            canonical::write(&canonical::read_list::<canonical::Component>(output.take())?)?
        };
    }
    Ok(answer)
}

/// Returns the error for a function that panicked, and logs it.
fn panic_error(function: FunctionInfo, inputs: &Inputs, text: String) -> FunctionError {
    let error = FunctionError::Panicked { function, operation: function.operation, object: inputs.object_name(), text };
    tracing::error!("{error}");
    error
}
