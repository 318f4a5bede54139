//! The scripts of customizations as a layer of the chain.

use serde_json::Value;

use super::{Inputs, Pool, Scripts};
use crate::{
    chain::{Layer, LayerFuture},
    kind::Gvk,
    operation::{self, Operation},
};

/// Scripts, and the pool in which they run. A script runs on the thread that asks, for as long as the limits of the pool
/// allow.
pub struct Configurable {
    scripts: Scripts,
    pool: Pool,
}

impl Configurable {
    /// Makes a layer of scripts.
    pub fn new(scripts: Scripts, pool: Pool) -> Self {
        Self { scripts, pool }
    }

    fn answer(&self, operation: Operation, inputs: &operation::Inputs) -> Result<Value, crate::chain::LayerError> {
        let status_items = inputs.status_items.as_ref().map(serde_json::to_value).transpose()?;
        let values = Inputs {
            desired: inputs.desired.as_ref(),
            observed: inputs.observed.as_ref(),
            status_items: status_items.as_ref(),
            replicas: inputs.replicas,
        };
        let answer = self.scripts.interpret(&self.pool, operation.name(), &values);
        answer.unwrap_or_else(|| unreachable!("the chain asks only for what the layer handles")).map_err(Into::into)
    }
}

impl Layer for Configurable {
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool {
        self.scripts.has(&kind.api_version(), &kind.kind, operation.name())
    }

    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a operation::Inputs) -> LayerFuture<'a> {
        Box::pin(std::future::ready(self.answer(operation, inputs)))
    }
}
