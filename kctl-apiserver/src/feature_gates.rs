//! Feature gates of kube-apiserver, as they are by default in the version of the embedded API server.
//!
//! Only `data/features.json` defines which gates are on. Fields of disabled gates are dropped when an object is
//! decoded. Other code asks [`is_enabled`], so that it follows the data when a gate changes. The exceptions are the gates
//! of [`FeatureGates`], which a user can switch.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    error::Error,
    fmt,
    str::FromStr,
    sync::LazyLock,
};

use kctl_apimachinery::strconv;
use serde::Deserialize;

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

/// The feature gates that a server can switch. All others have the default of its Kubernetes version.
///
/// As a string they have the form of the flag of kube-apiserver: `NAME=true`, separated by commas.
///
/// ```
/// use kctl_apiserver::FeatureGates;
///
/// let gates: FeatureGates = "ShardedListAndWatch=true".parse().unwrap();
/// assert_eq!(gates, FeatureGates::default().sharded_list_and_watch(true));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeatureGates {
    pub(crate) sharded_list_and_watch: bool,
}

impl FeatureGates {
    /// Switches `ShardedListAndWatch`: the parameter `shardSelector` of a list or a watch selects the objects whose uid or
    /// namespace has a hash in a range (KEP-5866). It is off by default, and the parameter is ignored then.
    #[must_use]
    pub fn sharded_list_and_watch(mut self, is_enabled: bool) -> Self {
        self.sharded_list_and_watch = is_enabled;
        self
    }
}

impl FromStr for FeatureGates {
    type Err = FeatureGateError;

    fn from_str(text: &str) -> Result<Self, FeatureGateError> {
        let mut gates = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let wrong = || FeatureGateError(pair.to_owned());
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let is_enabled = strconv::parse_bool(value.trim()).ok_or_else(wrong)?;
            gates = match name.trim() {
                "ShardedListAndWatch" => gates.sharded_list_and_watch(is_enabled),
                _ => return Err(wrong()),
            };
        }
        Ok(gates)
    }
}

/// A feature gate that this server cannot switch, or a value that is not a boolean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureGateError(String);

impl fmt::Display for FeatureGateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a feature gate of this server: write ShardedListAndWatch=true", self.0)
    }
}

impl Error for FeatureGateError {}

/// Defines [`Gate`] with the name of each gate, so that the enum and the list of its names cannot differ.
macro_rules! gates {
    ($($name:ident),* $(,)?) => {
        /// The feature gates that code asks for. When a gate is removed after it was on for good, remove its variant and
        /// the code for the disabled gate.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Gate {
            $($name),*
        }

        impl Gate {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name of the gate, as in the flag `--feature-gates`.
            fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name)),*
                }
            }
        }
    };
}

gates! {
    ContainerStopSignals,
    CoordinatedLeaderElection,
    CrossNamespaceVolumeDataSource,
    DRAFractionalCapacityRange,
    DRANodeAllocatableResources,
    ImageVolumeWithDigest,
    TaintTolerationComparisonOperators,
}

/// An entry of `data/features.json`.
#[derive(Deserialize)]
struct GateEntry {
    name: String,
    /// The stages of the gate, by version. The last one applies to the version of the data.
    stages: Vec<GateStage>,
    /// The fields that need the gate, by type.
    #[serde(default)]
    fields: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct GateStage {
    default: bool,
}

impl GateEntry {
    fn is_enabled(&self) -> bool {
        self.stages.last().is_some_and(|stage| stage.default)
    }
}

static GATES: LazyLock<Vec<GateEntry>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/features.json")).expect("the file is generated and tested")
});

static ENABLED: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| GATES.iter().filter(|gate| gate.is_enabled()).map(|gate| gate.name.as_str()).collect());

/// Returns `true` if a feature gate is on by default in the Kubernetes version of the data.
pub(crate) fn is_enabled(gate: Gate) -> bool {
    ENABLED.contains(gate.name())
}

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
    use crate::{ApiServer, schema::Schema};

    /// Gates whose fields have rules that are left out, and the function of Kubernetes with these rules.
    const LEFT_OUT: [(Gate, &str); 3] = [
        (Gate::ContainerStopSignals, "validateStopSignal"),
        (Gate::DRANodeAllocatableResources, "validateNodeAllocatableResourceClaimStatus"),
        (Gate::ImageVolumeWithDigest, "validateImageVolumeStatus"),
    ];

    #[test]
    fn gates_of_left_out_rules_are_off() {
        for (gate, function) in LEFT_OUT {
            assert!(!is_enabled(gate), "{gate:?} is on: add the rules of {function}, then remove the line");
        }
    }

    #[test]
    fn gates_that_code_asks_for_exist() {
        for gate in Gate::ALL {
            let exists = GATES.iter().any(|entry| entry.name == gate.name());
            assert!(exists, "{gate:?} was removed, so it is on for good: remove the variant");
        }
    }

    #[test]
    fn gates_are_parsed_from_name_and_boolean() {
        let on = FeatureGates::default().sharded_list_and_watch(true);
        let cases = [
            ("", FeatureGates::default()),
            ("ShardedListAndWatch=TRUE", on),
            ("ShardedListAndWatch=1", on),
            (" ShardedListAndWatch=true, ", on),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in
            ["ShardedListAndWatch", "ShardedListAndWatch=on", "ShardedListAndWatch=tRUE", "AllAlpha=true", "=true"]
        {
            let error = text.parse::<FeatureGates>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{text:?} is not")) && error.ends_with("ShardedListAndWatch=true"),
                "{error}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn shard_selector_is_ignored_unless_switched_on() {
        let server = ApiServer::new();
        let list = async |server: &ApiServer| server.send("GET", "/api/v1/namespaces?shardSelector=x", "", "").await;
        let (code, namespaces) = list(&server).await;
        assert_eq!((code, namespaces["items"].as_array().map(Vec::len)), (200, Some(4)));
        assert!(namespaces["metadata"].get("shardInfo").is_none(), "{namespaces}");
        server.set_feature_gates(FeatureGates::default().sharded_list_and_watch(true));
        for server in [server.fork(1), server] {
            assert_eq!(list(&server).await.0, 500, "the selector is read, and it is not valid");
        }
    }

    #[test]
    fn gated_fields_are_fields_of_served_types() {
        for (type_name, field) in GATES
            .iter()
            .flat_map(|gate| &gate.fields)
            .flat_map(|(name, fields)| fields.iter().map(move |field| (name, field)))
        {
            let schema = Schema::for_type(type_name).unwrap();
            assert!(schema.property(field).is_some(), "{type_name}.{field}");
        }
        for (type_name, field) in BY_FUNCTION {
            assert!(
                Schema::for_type(type_name).is_some_and(|schema| schema.property(field).is_some()),
                "{type_name}.{field}"
            );
        }
    }
}
