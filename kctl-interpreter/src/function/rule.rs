//! One function for one operation on one kind: typed inside, [`Inputs`] and JSON outside.

use std::{
    any::Any,
    fmt,
    future::{poll_fn, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl_webhook::change;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::item::StatusItem;
use crate::{
    chain::{LayerError, LayerFuture},
    kind::Gvk,
    operation::{AggregatedStatusItem, Inputs, Operation, field},
};

/// A kind that functions can be about: a custom resource, or a kind of k8s-openapi.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: write the name of a type with `#[resource(…)]`, or of a built-in kind",
    note = "code: K0030"
)]
pub trait Interpreted: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Returns the group, version and kind.
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

/// Which function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The operation that it answers.
    pub operation: Operation,
    /// Its name.
    pub name: &'static str,
    file: &'static str,
    line: u32,
}

impl About {
    /// Says which function it is, and where it stands.
    pub fn new(operation: Operation, name: &'static str, file: &'static str, line: u32) -> Self {
        Self { operation, name, file, line }
    }

    /// Returns the file and the line.
    pub fn location(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({}:{})", self.name, self.file, self.line)
    }
}

/// Why a function was not called, or what it is missing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// There is no function.
    #[error("no function for {operation} of {kind:?}: write one with `#[interpreter(op = {operation})]`", kind = kind.to_string())]
    Missing {
        /// What was asked.
        operation: Operation,
        /// Of what.
        kind: Gvk,
    },
    /// An input that the operation takes was not given.
    #[error("{operation} of {object}: {input} is missing")]
    InputMissing {
        /// What was asked.
        operation: Operation,
        /// Of which object.
        object: String,
        /// The input.
        input: &'static str,
    },
    /// An input is not of the type that the function takes.
    #[error("{operation} of {object}: {input} can't be read as `{wanted}`")]
    InputUnreadable {
        /// What was asked.
        operation: Operation,
        /// Of which object.
        object: String,
        /// The input.
        input: String,
        /// The type.
        wanted: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The function panicked.
    #[error("panic in {function}, {operation} of {object}: {text}")]
    Panicked {
        /// The function, and where it stands.
        function: About,
        /// What was asked.
        operation: Operation,
        /// Of which object.
        object: String,
        /// What it said.
        text: String,
    },
    /// The object that the function made has no form in JSON.
    #[error("{operation} of {object}: the changed object can't be written")]
    ObjectUnwritable {
        /// What was asked.
        operation: Operation,
        /// Of which object.
        object: String,
        /// Why not.
        source: serde_json::Error,
    },
}

/// Makes the definition of a custom resource.
pub type MakeDefinition = fn() -> CustomResourceDefinition;

type Call = Arc<dyn for<'a> Fn(&'a Inputs) -> LayerFuture<'a> + Send + Sync>;

/// A function with what it is for.
#[derive(Clone)]
pub struct Rule {
    about: About,
    kind: Gvk,
    crd: Option<MakeDefinition>,
    schema: Option<fn() -> Value>,
    call: Call,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} by `{}`", self.about.operation, self.kind, self.about.name)
    }
}

impl Rule {
    /// Makes a rule of what reads its object.
    pub fn read<K, F, Fut>(about: About, call: F) -> Self
    where
        K: Interpreted,
        F: Fn(K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, LayerError>> + Send + 'static,
    {
        Self::new::<K>(about, move |inputs| {
            let called = Asked { about, inputs }.object::<K>().map(&call);
            Box::pin(async move { called?.await })
        })
    }

    /// Makes a rule of what changes its object.
    pub fn change<K, F, Fut>(about: About, call: F) -> Self
    where
        K: Interpreted,
        F: Fn(K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::changing(about, move |object, _asked| Ok(call(object)))
    }

    /// Makes a rule of what changes the number of replicas.
    pub fn revise<K, F, Fut>(about: About, call: F) -> Self
    where
        K: Interpreted,
        F: Fn(K, i32) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::changing(about, move |object, asked| Ok(call(object, asked.replicas()?)))
    }

    /// Makes a rule of what keeps fields of the observed object.
    pub fn retain<K, F, Fut>(about: About, call: F) -> Self
    where
        K: Interpreted,
        F: Fn(K, K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::changing(about, move |object, asked| {
            let observed = asked.inputs.observed.as_ref().ok_or_else(|| asked.missing("the observed object"))?;
            Ok(call(object, asked.read("the observed object", observed)?))
        })
    }

    /// Makes a rule of what makes one status of those of all clusters; `I` is what one of them is read as.
    pub fn aggregate<K, I, F, Fut>(about: About, call: F) -> Self
    where
        K: Interpreted,
        I: StatusItem,
        F: Fn(K, Vec<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::changing(about, move |object, asked| Ok(call(object, asked.items()?)))
    }

    fn changing<K, F, Fut>(about: About, call: F) -> Self
    where
        K: Interpreted,
        F: for<'a> Fn(K, Asked<'a>) -> Result<Fut, FunctionError> + Send + Sync + 'static,
        Fut: Future<Output = Result<K, LayerError>> + Send + 'static,
    {
        Self::new::<K>(about, move |inputs| {
            let asked = Asked { about, inputs };
            let called = asked.object::<K>().and_then(|object| {
                // As its type writes it, before the function changes it.
                let before = asked.write(&object)?;
                Ok((before, call(object, asked)?))
            });
            Box::pin(async move {
                let (before, call) = called?;
                let after = asked.write(&call.await?)?;
                let mut object = asked.given()?.clone();
                change::apply(&mut object, &before, &after);
                Ok(field(about.operation, object))
            })
        })
    }

    fn new<K: Interpreted>(
        about: About,
        call: impl for<'a> Fn(&'a Inputs) -> LayerFuture<'a> + Send + Sync + 'static,
    ) -> Self {
        Self { about, kind: K::gvk(), crd: None, schema: None, call: Arc::new(call) }
    }

    /// Adds how the kind is defined, where it is a custom resource; generated code calls it.
    #[must_use]
    pub fn defined(mut self, crd: Option<MakeDefinition>, schema: Option<fn() -> Value>) -> Self {
        (self.crd, self.schema) = (crd, schema);
        self
    }

    /// Returns what makes the definition of the kind, where it is a custom resource.
    pub fn definition(&self) -> Option<MakeDefinition> {
        self.crd
    }

    /// Returns what makes the JSON schema of the kind, where its type has one.
    pub fn schema(&self) -> Option<fn() -> Value> {
        self.schema
    }

    /// Returns which function it is.
    pub fn about(&self) -> About {
        self.about
    }

    /// Returns the kind that it is for.
    pub fn kind(&self) -> &Gvk {
        &self.kind
    }

    /// Calls the function; its panic is its error.
    pub fn call<'a>(&self, inputs: &'a Inputs) -> LayerFuture<'a> {
        let about = self.about;
        match catch_unwind(AssertUnwindSafe(|| (self.call)(inputs))) {
            Ok(mut called) => Box::pin(poll_fn(move |cx| {
                let polled = catch_unwind(AssertUnwindSafe(|| called.as_mut().poll(cx)));
                polled.unwrap_or_else(|panic| Poll::Ready(Err(panicked(about, inputs, panic.as_ref()).into())))
            })),
            Err(panic) => Box::pin(ready(Err(panicked(about, inputs, panic.as_ref()).into()))),
        }
    }
}

fn panicked(function: About, inputs: &Inputs, panic: &(dyn Any + Send)) -> FunctionError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("without a text").to_owned();
    let error = FunctionError::Panicked { function, operation: function.operation, object: inputs.object_name(), text };
    tracing::error!("{error}");
    error
}

/// Inputs, and who asks for them.
#[derive(Clone, Copy)]
struct Asked<'a> {
    about: About,
    inputs: &'a Inputs,
}

impl Asked<'_> {
    fn given(&self) -> Result<&Value, FunctionError> {
        self.inputs.object().ok_or_else(|| self.missing("the object"))
    }

    fn object<K: Interpreted>(&self) -> Result<K, FunctionError> {
        self.read("the object", self.given()?)
    }

    fn replicas(&self) -> Result<i32, FunctionError> {
        let replicas = self.inputs.replicas.ok_or_else(|| self.missing("the number of replicas"))?;
        self.read("the number of replicas", &replicas.into())
    }

    fn items<I: DeserializeOwned>(&self) -> Result<Vec<I>, FunctionError> {
        let read = |item: &AggregatedStatusItem| {
            let json = serde_json::to_value(item).map_err(|source| self.unwritable(source))?;
            self.read(&format!("the status item of cluster {:?}", item.cluster_name), &json)
        };
        self.inputs.status_items.iter().flatten().map(read).collect()
    }

    fn read<T: DeserializeOwned>(&self, input: &str, value: &Value) -> Result<T, FunctionError> {
        T::deserialize(value).map_err(|source| FunctionError::InputUnreadable {
            operation: self.about.operation,
            object: self.name(),
            input: input.to_owned(),
            wanted: without_paths(std::any::type_name::<T>()),
            source,
        })
    }

    fn write(&self, object: &impl Serialize) -> Result<Value, FunctionError> {
        serde_json::to_value(object).map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: serde_json::Error) -> FunctionError {
        FunctionError::ObjectUnwritable { operation: self.about.operation, object: self.name(), source }
    }

    fn missing(&self, input: &'static str) -> FunctionError {
        FunctionError::InputMissing { operation: self.about.operation, object: self.name(), input }
    }

    fn name(&self) -> String {
        self.inputs.object_name()
    }
}

/// A type as its user writes it: `WorkloadStatus` where the compiler says `workload::WorkloadStatus`.
fn without_paths(name: &str) -> String {
    name.split_inclusive(['<', '>', ',', ' ', '(', ')', '[', ']', '&'])
        .map(|part| part.rsplit("::").next().unwrap_or(part))
        .collect()
}
