//! Feature gates of kube-apiserver, as they are by default in the version of the embedded API server.
//!
//! Only `data/features.json` defines which gates are on. Fields of disabled gates are dropped when an object is
//! decoded. Code that depends on a gate otherwise calls [`FeatureGate::is_enabled`].

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::LazyLock,
};

use serde::Deserialize;

/// The feature gates on which code depends. Gates that only add fields need no variant.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
pub(crate) enum FeatureGate {
    /// `Lease.spec.strategy` and `preferredHolder`.
    CoordinatedLeaderElection,
    /// `lifecycle.stopSignal` of containers.
    ContainerStopSignals,
    /// `dataSourceRef.namespace` of claims.
    CrossNamespaceVolumeDataSource,
    /// `status.nodeAllocatableResourceClaimStatuses` of Pods.
    DRANodeAllocatableResources,
    /// `volumeStatus` of the mounts in the statuses of containers.
    ImageVolumeWithDigest,
    /// The operators `Gt` and `Lt` of tolerations.
    TaintTolerationComparisonOperators,
    /// All other gates of the table.
    #[serde(other)]
    Other,
}

impl FeatureGate {
    /// Returns `true` if the gate is on by default.
    pub(crate) fn is_enabled(self) -> bool {
        ENABLED.contains(&self)
    }
}

/// Fields of disabled gates that decoding keeps, because a function of their kind does more than drop the field.
const BY_FUNCTION: &[(&str, &str)] = &[
    // The strategy drops them after the owners of fields are computed.
    ("io.k8s.api.coordination.v1.LeaseSpec", "strategy"),
    ("io.k8s.api.coordination.v1.LeaseSpec", "preferredHolder"),
    // Without the gate a reference with a namespace is dropped as a whole.
    ("io.k8s.api.core.v1.TypedObjectReference", "namespace"),
    // Dropped from a written status only, together with the parent if that becomes empty.
    ("io.k8s.api.core.v1.VolumeStatus", "image"),
    ("io.k8s.api.core.v1.PodStatus", "nodeAllocatableResourceClaimStatuses"),
    // kube-apiserver stores the field whether the gate is on or off.
    ("io.k8s.api.core.v1.ContainerStatus", "stopSignal"),
];

#[derive(Deserialize)]
struct Gate {
    name: String,
    /// The stages of the gate, by version. The last one is that of the version of the data.
    stages: Vec<GateStage>,
    /// The fields that need the gate, by type.
    #[serde(default)]
    fields: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct GateStage {
    default: bool,
}

impl Gate {
    fn is_enabled(&self) -> bool {
        self.stages.last().is_some_and(|stage| stage.default)
    }

    fn key(&self) -> FeatureGate {
        serde_json::from_value(self.name.as_str().into()).unwrap_or(FeatureGate::Other)
    }
}

static GATES: LazyLock<Vec<Gate>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/features.json")).expect("the file is generated and tested")
});

static ENABLED: LazyLock<HashSet<FeatureGate>> =
    LazyLock::new(|| GATES.iter().filter(|gate| gate.is_enabled()).map(Gate::key).collect());

static DISABLED_FIELDS: LazyLock<HashMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for (type_name, fields) in GATES.iter().filter(|gate| !gate.is_enabled()).flat_map(|gate| &gate.fields) {
        let dropped = fields.iter().map(String::as_str).filter(|field| !BY_FUNCTION.contains(&(type_name, field)));
        found.entry(type_name.as_str()).or_default().extend(dropped);
    }
    found
});

/// Returns the fields of a type that kube-apiserver drops, because their feature gates are off.
pub(crate) fn disabled_fields(type_name: &str) -> Vec<&'static str> {
    DISABLED_FIELDS.get(type_name).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    #[test]
    fn feature_gates_used_in_code_still_exist() {
        use FeatureGate::*;
        let used = [
            CoordinatedLeaderElection,
            ContainerStopSignals,
            CrossNamespaceVolumeDataSource,
            DRANodeAllocatableResources,
            ImageVolumeWithDigest,
            TaintTolerationComparisonOperators,
        ];
        let listed: HashSet<_> = GATES.iter().map(Gate::key).collect();
        for gate in used {
            assert!(
                listed.contains(&gate),
                "Kubernetes has removed {gate:?}: remove it, and the code without the feature"
            );
        }
    }

    #[test]
    fn gated_fields_are_fields_of_served_types() {
        for (type_name, field) in GATES
            .iter()
            .flat_map(|gate| &gate.fields)
            .flat_map(|(name, fields)| fields.iter().map(move |field| (name, field)))
        {
            let schema = Schema::named(type_name).unwrap();
            assert!(schema.property(field).is_some(), "{type_name}.{field}");
        }
        for (type_name, field) in BY_FUNCTION {
            assert!(
                Schema::named(type_name).is_some_and(|schema| schema.property(field).is_some()),
                "{type_name}.{field}"
            );
        }
    }
}
