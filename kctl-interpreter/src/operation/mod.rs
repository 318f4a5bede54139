//! The operations as types: what each takes, what it answers, and its form in JSON, which is what layers exchange.

mod result;

use std::{fmt, str::FromStr};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

pub use self::result::{AggregatedStatusItem, Component, DependentReference, NodeClaim, ReplicaRequirements, Replicas};
use crate::kind::Gvk;

/// An operation by name, for tables and for what is read at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// How many replicas, and what each needs.
    InterpretReplica,
    /// The pod templates of an object that has several.
    InterpretComponent,
    /// The object with another number of replicas.
    ReviseReplica,
    /// The desired object with what the cluster filled in.
    Retain,
    /// What of the status is worth collecting.
    InterpretStatus,
    /// The object with the statuses of all clusters made one.
    AggregateStatus,
    /// What must go where the object goes.
    InterpretDependency,
    /// Whether the object is healthy.
    InterpretHealth,
    /// The object without what only its own cluster can know. It has no form on the wire.
    Prune,
}

impl Operation {
    /// Every operation.
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

    /// Returns the name on the wire.
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
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown operation name.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is no operation: use one of {}", Operation::ALL.map(Operation::name).join(", "))]
pub struct OperationUnknown {
    name: String,
}

impl FromStr for Operation {
    type Err = OperationUnknown;

    fn from_str(name: &str) -> Result<Self, OperationUnknown> {
        let found = Self::ALL.into_iter().find(|operation| operation.name() == name);
        found.ok_or_else(|| OperationUnknown { name: name.to_owned() })
    }
}

/// The inputs of any operation, as layers take them; each operation reads those that it names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// The object of the control plane.
    pub desired: Option<Value>,
    /// The object as the cluster has it.
    pub observed: Option<Value>,
    /// The number of replicas to revise to.
    pub replicas: Option<i64>,
    /// The reported statuses of member clusters. `None` and an empty list differ, as Go's nil and empty slices do.
    pub status_items: Option<Vec<AggregatedStatusItem>>,
}

impl Inputs {
    /// Returns the object that the operation is about, whichever of the two was given.
    pub fn object(&self) -> Option<&Value> {
        self.desired.as_ref().or(self.observed.as_ref())
    }

    /// Returns the kind that rules are looked up by.
    pub fn kind(&self) -> Gvk {
        self.object().map_or_else(|| Gvk::of(&Value::Null), Gvk::of)
    }

    /// `namespace/name` of the object, or its name; empty where it has none.
    pub(crate) fn name(&self) -> String {
        let Some(object) = self.object() else { return String::new() };
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        match (text("namespace"), text("name")) {
            ("", name) => name.to_owned(),
            (_, "") => String::new(),
            (namespace, name) => format!("{namespace}/{name}"),
        }
    }

    /// `Kind ns/name`, as far as the object says so.
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

/// One operation: a type that says what goes in and what comes out, so that a call of the wrong shape does not compile.
pub trait Op: Send + Sync + 'static {
    /// What the operation takes.
    type Input: Into<Inputs> + Send;
    /// What the operation answers.
    type Output: Serialize + DeserializeOwned + Send;
    /// The operation as a value.
    const OPERATION: Operation;
    /// The name on the wire.
    const NAME: &'static str;
    /// The field of an answer that holds the output; empty where the output is the whole answer.
    const FIELD: &'static str;

    /// Puts an output in the form of an answer.
    ///
    /// # Errors
    /// The output has no form in JSON.
    fn answer(output: &Self::Output) -> Result<Value, serde_json::Error> {
        let output = serde_json::to_value(output)?;
        Ok(if Self::FIELD.is_empty() { output } else { Value::Object(Map::from_iter([(Self::FIELD.into(), output)])) })
    }

    /// Reads the output of an answer.
    ///
    /// # Errors
    /// The answer is not of this operation, or its output is of the wrong type.
    fn output(mut answer: Value) -> Result<Self::Output, serde_json::Error> {
        let output = if Self::FIELD.is_empty() { answer } else { answer[Self::FIELD].take() };
        serde_json::from_value(output)
    }
}

/// The object of an operation that is about one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(
    /// The whole object.
    pub Value,
);

/// The input of [`ReviseReplica`].
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// The object to change.
    pub object: Value,
    /// The number of replicas that it gets.
    pub replicas: i64,
}

/// The input of [`Retain`].
#[derive(Clone, Debug, PartialEq)]
pub struct Retention {
    /// The object of the control plane.
    pub desired: Value,
    /// The object as the cluster has it.
    pub observed: Value,
}

/// The input of [`AggregateStatus`].
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregation {
    /// The object whose status is to be filled.
    pub object: Value,
    /// The reported statuses of member clusters.
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
    /// Asks how many replicas an object wants, and what each of them needs.
    InterpretReplica: Object => Replicas, "";
    /// Asks for the pod templates of an object; `None` where it has no parts.
    InterpretComponent: Object => Option<Vec<Component>>, "components";
    /// Changes the number of replicas of an object.
    ReviseReplica: Revision => Value, "revised";
    /// Keeps in the desired object what the cluster filled in.
    Retain: Retention => Value, "retained";
    /// Asks what of an object's status is worth collecting; null where there is none.
    InterpretStatus: Object => Value, "status";
    /// Makes one status of the statuses of all clusters.
    AggregateStatus: Aggregation => Value, "aggregatedStatus";
    /// Asks what must go where the object goes; `None` for nothing.
    InterpretDependency: Object => Option<Vec<DependentReference>>, "dependencies";
    /// Asks whether an object is healthy.
    InterpretHealth: Object => bool, "healthy";
    /// Removes what only the object's own cluster can know.
    Prune: Object => Value, "pruned";
}

/// Returns the answer of an operation whose output is one field.
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
    // `json!` would copy it.
    Value::Object(Map::from_iter([(name.to_owned(), output)]))
}
