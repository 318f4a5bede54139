//! Digests of documents that are too large to be recorded.

use serde_json::{Map, Value};

/// Returns the digests of parts of a body, by JSON pointer.
pub(crate) fn of_parts(pointers: &[String], mut body: Value) -> Value {
    let is_v2 = body["swagger"].is_string();
    // The OpenAPI v2 document has custom resources of all groups, including the resources of concurrent cases.
    for part in ["definitions", "paths"].into_iter().filter(|_| is_v2) {
        if let Some(part) = body.get_mut(part).and_then(Value::as_object_mut) {
            part.retain(|name, _| !is_custom(name));
        }
    }
    let part_digest = |pointer: &String| {
        let (at, each) = pointer.strip_suffix("/*").map_or((pointer.as_str(), false), |at| (at, true));
        let part = body.pointer(at).unwrap_or(&Value::Null);
        let digest = match part.as_object().filter(|_| each) {
            Some(parts) => {
                parts.iter().map(|(name, part)| (name.clone(), digest_of(part).into())).collect::<Map<_, _>>().into()
            }
            None => digest_of(part).into(),
        };
        (pointer.clone(), digest)
    };
    pointers.iter().map(part_digest).collect::<Map<_, _>>().into()
}

fn is_custom(name: &str) -> bool {
    name.contains(".example.com/") || name.contains("/example.com/") || name.starts_with("com.example.")
}

/// Returns length and digest of a value. The order of fields does not matter.
fn digest_of(value: &Value) -> String {
    let mut sum = Sum { digest: 0xcbf2_9ce4_8422_2325, length: 0 };
    sum.value(value);
    format!("{}:{:016x}", sum.length, sum.digest)
}

/// FNV-1a, which gives the same result in every build, unlike the hasher of `std`.
struct Sum {
    digest: u64,
    length: usize,
}

impl Sum {
    fn bytes(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        for byte in bytes {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                self.bytes(b"{");
                for key in keys {
                    self.bytes(format!("{key:?}:").as_bytes());
                    self.value(&map[key]);
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                for item in items {
                    self.value(item);
                }
                self.bytes(b"]");
            }
            scalar => self.bytes(format!("{scalar},").as_bytes()),
        }
    }
}
