//! The request: a `ResourceInterpreterContext` with the fields and the order in which Karmada
//! writes it (`CreateV1alpha1ResourceInterpreterContext` in
//! `pkg/resourceinterpreter/customized/webhook/request/resourceinterpretercontext.go`).

use serde::Serialize;
use serde_json::Value;
use tokio_rustls::rustls::crypto::ring;

use super::{configuration::API_VERSION, error::CallError};
use crate::operation::{AggregatedStatusItem, Inputs, Operation};

pub(super) const KIND: &str = "ResourceInterpreterContext";
/// The version of the request that this client writes.
const VERSION: &str = "v1alpha1";

/// The envelope. Its fields are in the order in which Go writes them, so that recorded requests can
/// be compared byte by byte.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    kind: &'static str,
    api_version: &'static str,
    request: Request<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    /// A random uid, which the response must repeat.
    uid: &'a str,
    kind: GroupVersionKind<'a>,
    name: &'a str,
    /// The namespace of the object; left out if it has none.
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'static str,
    /// The desired object, or the observed one if the desired one is absent.
    object: &'a Value,
    /// The object of the member cluster, for `Retain` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_object: Option<&'a Value>,
    /// The number for `ReviseReplica`. Other operations send 0, as Go does.
    replicas: i32,
    /// The reported statuses, for `AggregateStatus`; left out if the list is empty.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    aggregated_status: &'a [AggregatedStatusItem],
}

/// A kind as the protocol has it.
#[derive(Serialize)]
struct GroupVersionKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// Returns the body of a request, with the newline that Go's encoder adds (`Encoder.Encode` in
/// `encoding/json/stream.go`).
///
/// # Errors
/// The webhook accepts no version that this client writes, the object is missing, or the number of
/// replicas does not fit into 32 bits.
pub(super) fn body(
    uid: &str,
    versions: &[String],
    operation: Operation,
    inputs: &Inputs,
) -> Result<Vec<u8>, CallError> {
    if !versions.iter().any(|version| version == VERSION) {
        return Err(CallError::VersionUnknown);
    }
    let object = inputs.object().ok_or(CallError::ObjectMissing)?;
    let kind = inputs.kind();
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let replicas = inputs.replicas.unwrap_or_default();
    let context = Context {
        kind: KIND,
        api_version: API_VERSION,
        request: Request {
            uid,
            kind: GroupVersionKind { group: &kind.group, version: &kind.version, kind: &kind.kind },
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
            operation: operation.name(),
            object,
            observed_object: inputs.observed.as_ref().filter(|_| operation == Operation::Retain),
            replicas: i32::try_from(replicas).map_err(|_| CallError::ReplicasTooMany { replicas })?,
            aggregated_status: inputs.status_items.as_deref().unwrap_or_default(),
        },
    };
    let mut body = serde_json::to_vec(&context)?;
    body.push(b'\n');
    Ok(body)
}

/// Returns a random UUID of version 4.
///
/// # Errors
/// The operating system returned no random numbers.
pub(super) fn uid() -> Result<String, CallError> {
    let mut bytes = [0; 16];
    ring::default_provider().secure_random.fill(&mut bytes).map_err(|_| CallError::RandomMissing)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operation::{Aggregation, Object, Retention, Revision};

    fn written(operation: Operation, inputs: impl Into<Inputs>) -> String {
        let versions = ["v9".to_owned(), VERSION.to_owned()];
        String::from_utf8(body("u", &versions, operation, &inputs.into()).unwrap()).unwrap()
    }

    #[test]
    fn request_has_karmadas_fields_in_order() {
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "d" } });
        let node = json!({ "apiVersion": "a.io/v1", "kind": "N", "metadata": { "name": "n" } });
        let item =
            |status| AggregatedStatusItem { cluster_name: "m".into(), status, ..AggregatedStatusItem::default() };
        let start =
            r#"{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1","request":{"uid":"u","#;
        let pod_fields = r#""kind":{"group":"","version":"v1","kind":"Pod"},"name":"a","namespace":"d","operation":"#;
        let object = r#""object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"d"}}"#;
        let cases = [
            (
                written(Operation::InterpretHealth, Object(pod.clone())),
                format!("{start}{pod_fields}\"InterpretHealth\",{object},\"replicas\":0}}}}\n"),
            ),
            (
                written(Operation::ReviseReplica, Revision { object: pod.clone(), replicas: 3 }),
                format!("{start}{pod_fields}\"ReviseReplica\",{object},\"replicas\":3}}}}\n"),
            ),
            (
                written(Operation::Retain, Retention { desired: pod.clone(), observed: json!({}) }),
                format!("{start}{pod_fields}\"Retain\",{object},\"observedObject\":{{}},\"replicas\":0}}}}\n"),
            ),
            (
                written(
                    Operation::AggregateStatus,
                    Aggregation { object: pod.clone(), items: vec![item(Some(json!(1)))] },
                ),
                format!(
                    "{start}{pod_fields}\"AggregateStatus\",{object},\"replicas\":0,\"aggregatedStatus\":[{{\"clusterName\":\"m\",\"status\":1}}]}}}}\n"
                ),
            ),
            (
                written(Operation::AggregateStatus, Aggregation { object: pod, items: Vec::new() }),
                format!("{start}{pod_fields}\"AggregateStatus\",{object},\"replicas\":0}}}}\n"),
            ),
            (
                written(Operation::InterpretStatus, Object(node)),
                format!(
                    "{start}\"kind\":{{\"group\":\"a.io\",\"version\":\"v1\",\"kind\":\"N\"}},\"name\":\"n\",\"operation\":\"InterpretStatus\",\
                     \"object\":{{\"apiVersion\":\"a.io/v1\",\"kind\":\"N\",\"metadata\":{{\"name\":\"n\"}}}},\"replicas\":0}}}}\n"
                ),
            ),
        ];
        for (written, expected) in cases {
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn unencodable_request_is_rejected_before_sending() {
        let object = json!({ "apiVersion": "v1", "kind": "Pod" });
        let inputs = |replicas| Inputs::from(Revision { object: object.clone(), replicas });
        let cases: [(&[&str], Inputs, &str); 3] = [
            (&["v1"], inputs(1), "webhook does not accept known ResourceInterpreterContext versions (v1alpha1)"),
            (&["v1alpha1"], inputs(1 << 40), "1099511627776 replicas do not fit into an int32"),
            (&["v1alpha1"], Inputs::default(), "there is no object"),
        ];
        for (versions, inputs, expected) in cases {
            let versions: Vec<_> = versions.iter().map(|version| (*version).to_owned()).collect();
            let error = body("u", &versions, Operation::ReviseReplica, &inputs).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn uid_is_a_fresh_version_4_uuid() {
        let (first, second) = (uid().unwrap(), uid().unwrap());
        assert_ne!(first, second);
        let dashes: Vec<_> = first.match_indices('-').map(|(idx, _)| idx).collect();
        assert_eq!((first.len(), dashes.as_slice()), (36, &[8, 13, 18, 23][..]), "{first}");
        assert_eq!(&first[14..15], "4");
        assert!("89ab".contains(&first[19..20]), "{first}");
    }
}
