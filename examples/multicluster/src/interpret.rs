//! How kinds are understood: the chain of interpreters.

use std::sync::LazyLock;

use kctl::{
    interpreter::{
        chain::{Chain, ChainError},
        kind::Gvk,
        operation::Op,
    },
    prelude::*,
};
use serde_json::Value;

/// Add layers here to teach the fleet a kind.
static CHAIN: LazyLock<Chain> = LazyLock::new(Chain::native);

/// The answer to an operation on an object; nothing where no interpreter of its kind has one.
pub(crate) async fn ask<O: Op>(object: &Value, input: O::Input) -> Result<Option<O::Output>, ChainError> {
    if !CHAIN.hook_enabled(O::OPERATION, &Gvk::of(object)) {
        return Ok(None);
    }
    CHAIN.interpret::<O>(input).await.map(Some)
}
