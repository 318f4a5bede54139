//! Converts Events between the core group and `events.k8s.io`.
//!
//! Upstream both groups are versions of one internal type. Here the form of the core group is stored.

use serde_json::{Map, Value};

/// Fields with different names in the core group and in `events.k8s.io` (`pkg/apis/events/v1/conversion.go`).
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Fields that are written even if they are empty in the core group, and left out in `events.k8s.io`.
const WRITTEN_EMPTY: [&str; 2] = ["reportingComponent", "reportingInstance"];

/// Converts an Event to the version of the other group, `v1` or `events.k8s.io/v1`. Seven fields have another name; all
/// others are the same. The core group writes an empty `reportingComponent` and `reportingInstance`, which
/// `events.k8s.io` omits.
pub(crate) fn convert(api_version: &str, object: &Value) -> Value {
    let to_core = api_version == "v1";
    let renamed = |name: &str| {
        let mut names = EVENT_FIELDS.iter().map(|(core, own)| if to_core { (*own, *core) } else { (*core, *own) });
        names.find(|(from, _)| *from == name).map_or(name, |(_, to)| to).to_owned()
    };
    let fields = object.as_object().into_iter().flatten().map(|(name, value)| (renamed(name), value.clone()));
    let mut event: Map<String, Value> = fields.collect();
    event.insert("apiVersion".into(), api_version.into());
    for name in WRITTEN_EMPTY {
        if to_core {
            event.entry(name).or_insert_with(|| "".into());
        } else if event.get(&renamed(name)).is_some_and(|value| value == "") {
            event.remove(&renamed(name));
        }
    }
    Value::Object(event)
}
