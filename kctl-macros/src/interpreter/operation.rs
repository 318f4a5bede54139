//! The operations: what a function of each takes and returns, as it is checked, emitted and shown to the user.

/// One operation.
pub(super) struct Operation {
    /// Its name on Karmada's wire.
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// The trait of what may be answered.
    pub(super) answer: &'static str,
    /// What the function returns in a `Result`, as shown.
    pub(super) returns: &'static str,
    /// Whether it is about the status: the kind must have one.
    pub(super) needs_status: bool,
    /// Whether Karmada asks webhooks for it.
    pub(super) is_served: bool,
}

/// What goes in, and whether the object comes out.
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
    /// The parameters, as shown.
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

    pub(super) fn n_parameters(self) -> usize {
        if matches!(self, Self::Read | Self::Change) { 1 } else { 2 }
    }
}

impl Operation {
    /// The right signature for a function.
    pub(super) fn signature(&self, function: &str, kind: &str) -> String {
        let parameters = self.shape.parameters(kind).join(", ");
        format!("fn {function}({parameters}) -> Result<{}>", self.returns)
    }

    pub(super) fn of(name: &str) -> Option<&'static Self> {
        OPERATIONS.iter().find(|operation| operation.name == name)
    }
}

const fn read(name: &'static str, answer: &'static str, returns: &'static str) -> Operation {
    Operation { name, shape: Shape::Read, answer, returns, needs_status: false, is_served: true }
}

const fn change(name: &'static str, shape: Shape) -> Operation {
    Operation { name, shape, answer: "IsUnit", returns: "()", needs_status: false, is_served: true }
}

/// Every operation.
pub(super) const OPERATIONS: [Operation; 9] = [
    read("InterpretReplica", "IsReplicas", "Replicas"),
    read("InterpretComponent", "IsComponents", "Vec<Component>"),
    change("ReviseReplica", Shape::Revise),
    change("Retain", Shape::Retain),
    Operation { needs_status: true, ..read("InterpretStatus", "IsStatus", "KindStatus") },
    Operation { needs_status: true, ..change("AggregateStatus", Shape::Aggregate) },
    read("InterpretDependency", "IsDependencies", "Vec<DependentReference>"),
    read("InterpretHealth", "IsHealth", "bool"),
    Operation { is_served: false, ..change("Prune", Shape::Change) },
];
