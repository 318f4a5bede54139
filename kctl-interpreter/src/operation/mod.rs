//! The operations as types: inputs, result, and the JSON form that layers exchange.

mod result;

use std::{fmt, str::FromStr};

use serde::{
    Serialize,
    de::{self, DeserializeOwned},
};
use serde_json::{Map, Value};

#[cfg(any(feature = "function", feature = "lua", feature = "webhook-client"))]
pub(crate) use self::result::or_null;
pub use self::result::{AggregatedStatusItem, Component, DependentReference, NodeClaim, ReplicaRequirements, Replicas};
use crate::kind::Gvk;

/// An operation as a value, for tables and for names that are read at run time.
///
/// Use the types with the same names, such as [`InterpretHealth`], if the operation is known when the program is
/// compiled. They check the types of inputs and outputs. All but `Prune` are constants of Karmada's
/// `config.karmada.io/v1alpha1` (`InterpreterOperation`).
///
/// ```
/// use kctl_interpreter::operation::Operation;
///
/// assert_eq!("Retain".parse::<Operation>()?, Operation::Retain);
/// assert!("retain".parse::<Operation>().is_err(), "names are case-sensitive, as on the wire");
/// # Ok::<_, kctl_interpreter::operation::UnknownOperationError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Returns the number of replicas that an object wants, and the requirements of one replica ([`Replicas`]).
    InterpretReplica,
    /// Returns the parts of an object that has several pod templates ([`Component`]s), such as the head and workers of a `RayCluster`.
    InterpretComponent,
    /// Writes another number of replicas into an object, for one member cluster.
    ReviseReplica,
    /// Copies fields that the member cluster sets, such as `spec.clusterIP`, from the observed to the desired object.
    Retain,
    /// Returns the part of the status that the control plane collects from a member cluster.
    InterpretStatus,
    /// Writes one status into the object from the statuses of all member clusters.
    AggregateStatus,
    /// Returns the objects that must follow the object to its clusters, such as a `ConfigMap` ([`DependentReference`]s).
    InterpretDependency,
    /// Returns `true` if the object is healthy in its member cluster.
    InterpretHealth,
    /// Removes fields that must not be copied to another cluster, such as `metadata.uid`. Karmada has no webhook for it.
    Prune,
}

impl Operation {
    /// Every operation, in a fixed order.
    pub const ALL: [Self; 9] = [
        Self::InterpretReplica,
        Self::InterpretComponent,
        Self::ReviseReplica,
        Self::Retain,
        Self::InterpretStatus,
        Self::AggregateStatus,
        Self::InterpretDependency,
        Self::InterpretHealth,
        Self::Prune,
    ];

    /// Returns the name, which is the variant's; Karmada writes it in requests and rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::InterpretReplica => InterpretReplica::NAME,
            Self::InterpretComponent => InterpretComponent::NAME,
            Self::ReviseReplica => ReviseReplica::NAME,
            Self::Retain => Retain::NAME,
            Self::InterpretStatus => InterpretStatus::NAME,
            Self::AggregateStatus => AggregateStatus::NAME,
            Self::InterpretDependency => InterpretDependency::NAME,
            Self::InterpretHealth => InterpretHealth::NAME,
            Self::Prune => Prune::NAME,
        }
    }

    /// Returns `true` if Karmada calls webhooks for the operation.
    #[cfg(any(feature = "webhook", feature = "webhook-client"))]
    pub(crate) fn has_webhook(self) -> bool {
        match self {
            Self::InterpretReplica
            | Self::InterpretComponent
            | Self::ReviseReplica
            | Self::Retain
            | Self::InterpretStatus
            | Self::AggregateStatus
            | Self::InterpretDependency
            | Self::InterpretHealth => true,
            Self::Prune => false,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of parsing an [`Operation`] from an unknown name. The message lists all names.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is not an operation: use one of {}", Operation::ALL.map(Operation::name).join(", "))]
pub struct UnknownOperationError {
    name: String,
}

impl FromStr for Operation {
    type Err = UnknownOperationError;

    fn from_str(name: &str) -> Result<Self, UnknownOperationError> {
        let found = Self::ALL.into_iter().find(|operation| operation.name() == name);
        found.ok_or_else(|| UnknownOperationError { name: name.to_owned() })
    }
}

/// The inputs of any operation, in the form that layers take.
///
/// Each operation reads only the fields that it needs: see the `From` conversions of [`Object`], [`Revision`], [`Retention`]
/// and [`Aggregation`].
///
/// ```
/// use kctl_interpreter::operation::{Inputs, Object};
/// use serde_json::json;
///
/// let inputs = Inputs::from(Object(json!({ "apiVersion": "v1", "kind": "Pod" })));
/// assert_eq!(inputs.kind().kind, "Pod");
/// assert_eq!((inputs.replicas, inputs.status_items), (None, None));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// The object as the control plane has it.
    pub desired: Option<Value>,
    /// The object as the member cluster has it.
    pub observed: Option<Value>,
    /// The number of replicas for [`ReviseReplica`].
    pub replicas: Option<i64>,
    /// The statuses that member clusters reported, for [`AggregateStatus`].
    ///
    /// `None` is Go's nil slice: scripts get nil, and the native rule for Pods keeps the status. An empty list is an empty table
    /// for scripts, and Pods lose their status.
    pub status_items: Option<Vec<AggregatedStatusItem>>,
}

impl Inputs {
    /// Returns the desired object, or the observed one if the desired one is absent.
    pub fn object(&self) -> Option<&Value> {
        self.desired.as_ref().or(self.observed.as_ref())
    }

    /// Returns the kind of [`Inputs::object`], which layers use to look up their rules; all parts are empty without an
    /// object.
    pub fn kind(&self) -> Gvk {
        self.object().map_or_else(|| Gvk::from_object(&Value::Null), Gvk::from_object)
    }

    /// `namespace/name` of the object, or its name; empty where it has none.
    pub(crate) fn name(&self) -> String {
        self.object().map_or_else(String::new, name_of)
    }

    /// Returns `Kind namespace/name` for messages, or a description of an object without them.
    #[cfg(feature = "function")]
    pub(crate) fn object_name(&self) -> String {
        let Some(object) = self.object() else { return "no object".to_owned() };
        let (kind, name) = (object["kind"].as_str().unwrap_or_default(), self.name());
        if kind.is_empty() || name.is_empty() {
            return "an object without kind or name".to_owned();
        }
        format!("{kind} {name}")
    }
}

/// Returns `namespace/name` of an object, or its name; empty where it has none.
fn name_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match (text("namespace"), text("name")) {
        ("", name) => name.to_owned(),
        (_, "") => String::new(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// Returns the problem of an answer to this input, whose object has no `kind`.
///
/// It begins as Karmada's. The rest of Karmada's is the returned object, which does not belong into logs and Events: it
/// may be a Secret.
#[cfg(any(feature = "webhook-client", feature = "lua"))]
pub(crate) fn kind_missing(input: &Value) -> String {
    let (kind, name) = (input["kind"].as_str().unwrap_or("object"), name_of(input));
    format!("Object 'Kind' is missing in the answer for {kind} {name}: return the object with its `kind`")
}

/// One operation as a type. It gives input and output their types, so that a call with others does not compile.
///
/// ```
/// use kctl_interpreter::operation::{InterpretHealth, Op};
/// use serde_json::json;
///
/// assert_eq!(InterpretHealth::encode(&true)?, json!({ "healthy": true }));
/// assert!(InterpretHealth::decode(json!({ "healthy": true }))?);
/// # Ok::<_, serde_json::Error>(())
/// ```
pub trait Op: Send + Sync + 'static {
    /// The input, such as [`Object`].
    type Input: Into<Inputs> + Send;
    /// The output, such as `bool` for [`InterpretHealth`].
    type Output: Serialize + DeserializeOwned + Send;
    /// The operation as a value.
    const OPERATION: Operation;
    /// The name, as [`Operation::name`] returns it.
    const NAME: &'static str;
    /// The field of the result that holds the output; empty if the output is the whole result.
    const FIELD: &'static str;

    /// Converts an output to the JSON result that layers return.
    ///
    /// # Errors
    /// The output can't be serialized as JSON, for example a map whose keys are not strings.
    fn encode(output: &Self::Output) -> Result<Value, serde_json::Error> {
        let output = serde_json::to_value(output)?;
        Ok(if Self::FIELD.is_empty() { output } else { Value::Object(Map::from_iter([(Self::FIELD.into(), output)])) })
    }

    /// Converts the JSON result of a layer to an output.
    ///
    /// # Errors
    /// The result is not an object, or its field [`Op::FIELD`] is missing or has another type.
    fn decode(result: Value) -> Result<Self::Output, serde_json::Error> {
        if Self::FIELD.is_empty() {
            return serde_json::from_value(result);
        }
        let Value::Object(mut fields) = result else {
            return Err(de::Error::custom(format_args!("expected an object with the field `{}`", Self::FIELD)));
        };
        let Some(output) = fields.remove(Self::FIELD) else { return Err(de::Error::missing_field(Self::FIELD)) };
        serde_json::from_value(output)
    }
}

/// The input of operations on one object, such as [`InterpretHealth`] and [`InterpretReplica`].
#[derive(Clone, Debug, PartialEq)]
pub struct Object(
    /// The complete object, with `apiVersion` and `kind`.
    pub Value,
);

/// The input of [`ReviseReplica`]: an object, and the replicas that one member cluster gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// The object to change.
    pub object: Value,
    /// The new number of replicas.
    pub replicas: i64,
}

/// The input of [`Retain`]: the same object in the control plane and in a member cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Retention {
    /// The object as the control plane has it. The answer is a changed copy of it.
    pub desired: Value,
    /// The object as the member cluster has it. It is only read.
    pub observed: Value,
}

/// The input of [`AggregateStatus`]: an object of the control plane, and its statuses in the member clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregation {
    /// The object whose status is written.
    pub object: Value,
    /// One item per member cluster. An item without a status is a cluster that has not reported yet.
    pub items: Vec<AggregatedStatusItem>,
}

impl From<Object> for Inputs {
    fn from(Object(object): Object) -> Self {
        Self { desired: Some(object), ..Self::default() }
    }
}

impl From<Revision> for Inputs {
    fn from(Revision { object, replicas }: Revision) -> Self {
        Self { desired: Some(object), replicas: Some(replicas), ..Self::default() }
    }
}

impl From<Retention> for Inputs {
    fn from(Retention { desired, observed }: Retention) -> Self {
        Self { desired: Some(desired), observed: Some(observed), ..Self::default() }
    }
}

impl From<Aggregation> for Inputs {
    fn from(Aggregation { object, items }: Aggregation) -> Self {
        Self { desired: Some(object), status_items: Some(items), ..Self::default() }
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $input:ty => $output:ty, $field:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Op for $name {
            type Input = $input;
            type Output = $output;
            const OPERATION: Operation = Operation::$name;
            const NAME: &'static str = stringify!($name);
            const FIELD: &'static str = $field;
        }
    )*};
}

operations! {
    /// Returns how many replicas an object wants, and the requirements of one replica, so that a scheduler can divide them.
    InterpretReplica: Object => Replicas, "";
    /// Returns the parts of an object that has several pod templates; `None` for an object without such parts.
    InterpretComponent: Object => Option<Vec<Component>>, "components";
    /// Returns the object with another number of replicas.
    ReviseReplica: Revision => Value, "revised";
    /// Returns the desired object with the fields that the member cluster sets, so that a write does not reset them.
    Retain: Retention => Value, "retained";
    /// Returns the part of the status that the control plane collects; JSON `null` for an object without a status.
    InterpretStatus: Object => Value, "status";
    /// Returns the object with one status, made from the statuses in all member clusters.
    AggregateStatus: Aggregation => Value, "aggregatedStatus";
    /// Returns the objects that must follow the object to its clusters; `None` if there are no such objects.
    InterpretDependency: Object => Option<Vec<DependentReference>>, "dependencies";
    /// Returns `true` if the object is healthy in its member cluster.
    InterpretHealth: Object => bool, "healthy";
    /// Returns the object without the fields that must not be copied to another cluster.
    Prune: Object => Value, "pruned";
}

pub(crate) fn field(operation: Operation, output: Value) -> Value {
    let name = match operation {
        Operation::InterpretReplica => return output,
        Operation::InterpretComponent => InterpretComponent::FIELD,
        Operation::ReviseReplica => ReviseReplica::FIELD,
        Operation::Retain => Retain::FIELD,
        Operation::InterpretStatus => InterpretStatus::FIELD,
        Operation::AggregateStatus => AggregateStatus::FIELD,
        Operation::InterpretDependency => InterpretDependency::FIELD,
        Operation::InterpretHealth => InterpretHealth::FIELD,
        Operation::Prune => Prune::FIELD,
    };
    // `json!` would copy `output`.
    Value::Object(Map::from_iter([(name.to_owned(), output)]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn result_without_the_field_is_an_error() {
        for malformed in [json!(true), json!([]), json!(null), json!({}), json!({ "health": true })] {
            assert!(InterpretHealth::decode(malformed.clone()).is_err(), "{malformed}");
            assert!(ReviseReplica::decode(malformed.clone()).is_err(), "{malformed}");
            assert!(InterpretComponent::decode(malformed.clone()).is_err(), "{malformed}");
        }
        let error = InterpretHealth::decode(json!([])).unwrap_err();
        assert_eq!(error.to_string(), "expected an object with the field `healthy`");
        assert_eq!(InterpretComponent::decode(json!({ "components": null })).unwrap(), None);
        assert_eq!(InterpretStatus::decode(json!({ "status": null })).unwrap(), Value::Null);
    }
}
