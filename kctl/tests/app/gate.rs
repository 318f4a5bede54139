//! A kind of another program, whose Rust type has no CRD, and a controller that reads it.

use std::borrow::Cow;

use kctl::{kube::Resource, prelude::*};
use serde::{Deserialize, Serialize};

/// The kind; only its metadata is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Gate {
    metadata: ObjectMeta,
}

impl Resource for Gate {
    type DynamicType = ();
    type Scope = kctl::kube::core::NamespaceResourceScope;

    fn kind(&(): &()) -> Cow<'_, str> {
        "Gate".into()
    }

    fn group(&(): &()) -> Cow<'_, str> {
        "other.example.com".into()
    }

    fn version(&(): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(&(): &()) -> Cow<'_, str> {
        "gates".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[controller(reads = Gate)]
pub(crate) async fn gated(_config: Arc<ConfigMap>, cx: Context<gated>) -> Result<Action> {
    let _n = cx.store::<Gate>().len();
    Ok(Action::await_change())
}

/// The CRD of the kind.
pub(crate) const GATES: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: gates.other.example.com }
spec:
  group: other.example.com
  scope: Namespaced
  names: { kind: Gate, plural: gates, singular: gate, listKind: GateList }
  versions:
    - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }
";
