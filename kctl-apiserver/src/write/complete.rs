//! Completes an object after its defaults are set: by its strategy, by admission plugins, and with values of the
//! request.

use super::{
    Write,
    plugins::{self, Mutation},
};
use crate::{request::RequestInfo, state::State, status::StatusError};

/// Completes the object. Plugins run again on a new object, now that it has its defaults. No client owns the fields
/// that they add here, because `prepare::NewObjectStates` was taken before.
///
/// # Errors
/// Fails with the first plugin that rejects the object.
pub(super) fn complete(state: &mut State, info: &RequestInfo, write: &mut Write) -> Result<(), StatusError> {
    let (kind, object) = (info.resource.kind, &mut write.object);
    if let Some(old) = &write.old {
        (kind.strategy.finish_update)(&state.store, old, object);
        return Ok(());
    }
    (kind.strategy.complete_create)(object);
    plugins::admit(state, Mutation { info, old: None, object })?;
    (kind.strategy.finish_create)(info, object);
    Ok(())
}
