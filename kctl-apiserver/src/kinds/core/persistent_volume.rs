//! `PersistentVolume` of the core group.

pub(crate) mod table;
pub(crate) mod validation;

use serde_json::{Value, json};

use crate::{
    admit::{defaults, warnings},
    json_path::set,
    kinds::storage::protect,
    registry::kind::{DeleteAnswer, Environment, Kind},
};

pub(crate) static KIND: Kind = Kind {
    resource: "persistentvolumes",
    kind: "PersistentVolume",
    delete_answer: DeleteAnswer::Object,
    prepare_create,
    complete_by_plugins: |object| protect("pv", object),
    set_status_times,
    default: defaults::api::persistent_volume,
    filled_in: &["/metadata/finalizers"],
    validate: validation::validate,
    validate_update: validation::validate_update,
    warn: |_, object, warnings| warnings::volume(object, warnings),
    printer: Some(table::cells),
    ..Kind::DEFAULT
};

const PHASE_TIME: &str = "lastPhaseTransitionTime";

fn prepare_create(environment: &mut dyn Environment, object: &mut Value) {
    object["status"] = json!({ "phase": "Pending", PHASE_TIME: environment.now() });
}

/// Sets the time at which the phase was entered, unless the status has it
/// (`persistentvolumeStatusStrategy.PrepareForUpdate`).
fn set_status_times(environment: &dyn Environment, old: &Value, new: &mut Value) {
    let (was, is) = (&old["status"], &mut new["status"]);
    if was["phase"] == is["phase"] {
        if is[PHASE_TIME].is_null() {
            set(is, PHASE_TIME, was.get(PHASE_TIME).cloned());
        }
    } else if is[PHASE_TIME].is_null() || is[PHASE_TIME] == was[PHASE_TIME] {
        is[PHASE_TIME] = environment.now().into();
    }
}
