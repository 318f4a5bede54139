//! The names of objects, which the server may generate.
//!
//! A generated name is `generateName` and five characters of a fixed alphabet, drawn from the store's random sequence.

use serde_json::Value;

use super::{Write, prepare::NewObjectStates};
use crate::{
    request::RequestInfo,
    store::{Key, Store},
};

/// The number of attempts to find a free generated name (`maxNameGenerationCreateAttempts`). At the bound the last name
/// is used, and the write fails if it is taken.
const NAME_ATTEMPTS_MAX: usize = 8;
/// The length to which `generateName` is cut (`MaxGeneratedNameLength` of `k8s.io/apiserver/pkg/storage/names`). 58 and
/// the suffix make 63, the length of a DNS label.
const NAME_BASE_LEN_MAX: usize = 58;

/// Returns the key of an object. A new object without a name gets a generated one. If all attempts find taken names,
/// the last one is kept, and the write fails with `AlreadyExists` in `store`. For an update the key comes from the
/// path.
pub(super) fn assign(store: &mut Store, info: &RequestInfo, new: Option<&NewObjectStates>, write: &mut Write) -> Key {
    let Some(NewObjectStates { sent, .. }) = new else { return info.key() };
    let key = generate_key(store, info, &mut write.object);
    if sent["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
        (info.resource.kind.strategy.set_generated_name)(sent, &mut write.object);
    }
    key
}

/// Returns a key. If the object has only `generateName`, its name is generated. It is free unless all attempts find
/// taken names.
fn generate_key(store: &mut Store, info: &RequestInfo, object: &mut Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (name, base) = (text("name"), text("generateName"));
    if !name.is_empty() || base.is_empty() {
        return (info.namespace.clone(), name);
    }
    let base: String = base.chars().take(NAME_BASE_LEN_MAX).collect();
    let mut key = Key::default();
    for _ in 0..NAME_ATTEMPTS_MAX {
        key = (info.namespace.clone(), format!("{base}{}", store.rng.suffix()));
        if store.get(&info.resource.id, &key).is_none() {
            break;
        }
    }
    object["metadata"]["name"] = key.1.clone().into();
    key
}
