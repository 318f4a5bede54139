//! The operations of a resource interpreter: parameters and result of each, as they are checked, emitted and shown in
//! help.
//!
//! The names come from Karmada's `InterpreterOperation`, and Prune, for which Karmada calls no webhook.

/// One operation.
pub(super) struct Operation {
    /// The name in requests of Karmada.
    pub(super) name: &'static str,
    /// The parameters of a function for the operation.
    pub(super) shape: Shape,
    /// The trait in the runtime of the return types of the operation. It names the code K0058 in its diagnostic.
    pub(super) return_trait: &'static str,
    /// The type in the `Result`, as the help shows it.
    pub(super) returns: &'static str,
    /// `true` if the operation is about the status, so that the kind must have one: K0032.
    pub(super) needs_status: bool,
    /// `true` if Karmada calls webhooks for the operation. Prune is not served: kctl calls it in the process.
    pub(super) is_served: bool,
}

/// The parameters of an operation. All but `Read` return the object that the function changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `&Kind`.
    Read,
    /// `&mut Kind`.
    Change,
    /// `&mut Kind, i32`.
    Revise,
    /// `&mut Kind, &Kind`.
    Retain,
    /// `&mut Kind, &[AggregatedStatusItem]`.
    Aggregate,
}

impl Shape {
    /// Returns the parameters as the help shows them.
    fn parameters(self, kind: &str) -> Vec<String> {
        let object = if self == Self::Read { format!("object: &{kind}") } else { format!("object: &mut {kind}") };
        let second = match self {
            Self::Read | Self::Change => None,
            Self::Revise => Some("replicas: i32".to_owned()),
            Self::Retain => Some(format!("observed: &{kind}")),
            Self::Aggregate => Some("items: &[AggregatedStatusItem]".to_owned()),
        };
        std::iter::once(object).chain(second).collect()
    }

    /// Returns the number of parameters.
    pub(super) fn n_parameters(self) -> usize {
        if matches!(self, Self::Read | Self::Change) { 1 } else { 2 }
    }
}

impl Operation {
    /// Returns the whole signature that a function needs, for the help.
    pub(super) fn signature(&self, function: &str, kind: &str) -> String {
        let parameters = self.shape.parameters(kind).join(", ");
        format!("fn {function}({parameters}) -> Result<{}>", self.returns)
    }

    /// Returns the operation of a name. Names are spelled as Karmada spells them.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        OPERATIONS.iter().find(|operation| operation.name == name)
    }
}

/// Returns an operation that reads its object and returns something else.
const fn read(name: &'static str, return_trait: &'static str, returns: &'static str) -> Operation {
    Operation { name, shape: Shape::Read, return_trait, returns, needs_status: false, is_served: true }
}

/// Returns an operation that changes its object in place.
const fn change(name: &'static str, shape: Shape) -> Operation {
    Operation { name, shape, return_trait: "IntoUnit", returns: "()", needs_status: false, is_served: true }
}

/// Every operation, in the order of the help.
pub(super) const OPERATIONS: [Operation; 9] = [
    read("InterpretReplica", "IntoReplicas", "Replicas"),
    read("InterpretComponent", "IntoComponents", "Vec<Component>"),
    change("ReviseReplica", Shape::Revise),
    change("Retain", Shape::Retain),
    Operation { needs_status: true, ..read("InterpretStatus", "IntoStatus", "KindStatus") },
    Operation { needs_status: true, ..change("AggregateStatus", Shape::Aggregate) },
    read("InterpretDependency", "IntoDependencies", "Vec<DependentReference>"),
    read("InterpretHealth", "IntoHealth", "bool"),
    Operation { is_served: false, ..change("Prune", Shape::Change) },
];
