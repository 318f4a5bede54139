//! Bodies as kubectl sends them.

use serde_json::json;

use super::*;

/// Bodies that kubectl 1.32 sends, and the same objects as it prints them with `--dry-run=client -o json`, without
/// nulls: the command, the bytes, the JSON, an empty line.
const CAPTURED: &str = include_str!("captured.txt");

fn captured_messages() -> impl Iterator<Item = (&'static str, Vec<u8>, Value)> {
    CAPTURED.split("\n\n").map(|record| {
        let lines: Vec<&str> = record.lines().collect();
        let [command, hex, json] = lines.as_slice() else { panic!("{record}") };
        let byte = |offset: usize| u8::from_str_radix(&hex[offset..offset + 2], 16).unwrap();
        (*command, (0..hex.len()).step_by(2).map(byte).collect(), serde_json::from_str(json).unwrap())
    })
}

/// Returns an encoded field whose value has a length prefix.
fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
    let len = u8::try_from(value.len()).unwrap();
    match number {
        ..16 => [&[number << 3 | 2, len], value].concat(),
        _ => [&[(number & 15) << 3 | 0x82, number >> 4, len], value].concat(),
    }
}

fn varint(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn envelope(api: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, api.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [MAGIC, &bytes(1, &type_meta), &bytes(2, raw)].concat()
}

fn special(name: &str, raw: &[u8]) -> Result<Value, String> {
    well_known::message(name, raw, 0)
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const CRD: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

#[test]
fn recorded_kubectl_requests_are_decoded() {
    let mut n_read = 0;
    for (command, bytes, expected) in captured_messages() {
        assert_eq!(decode(&bytes), Ok(expected), "{command}");
        n_read += 1;
    }
    assert!(n_read > 10);
}

#[test]
fn no_cut_or_changed_body_panics() {
    for (_, bytes, _) in captured_messages() {
        for offset in 0..bytes.len() {
            let _cut_off = decode(&bytes[..offset]);
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[offset] ^= 1 << bit;
                let _changed = decode(&changed);
            }
        }
    }
}

#[test]
fn broken_envelopes_are_rejected() {
    for bytes in [&b""[..], b"abc", b"k8s\0", b"k8s\0\x0a", b"k8s\0\x0a\x05ab", b"k8s\0\x08\x01"] {
        assert!(decode(bytes).is_err(), "{bytes:x?}");
    }
    assert!(decode(&envelope("v1", "Foo", b"")).unwrap_err().contains("Foo"));
}

#[test]
fn errors_name_the_field() {
    for (raw, field) in [
        (varint(1, 0), "metadata"),
        (bytes(1, &varint(1, 0)), "metadata: name"),
        (bytes(2, &bytes(1, &bytes(2, &[0x12]))), "spec: volumes"),
        (bytes(1, &bytes(11, &varint(1, 0))), "metadata: labels"),
    ] {
        let error = decode(&envelope("v1", "Pod", &raw)).unwrap_err();
        assert!(error.starts_with(&format!("{field}: ")), "{error}");
    }
}

#[test]
fn unknown_fields_are_skipped_and_parts_are_joined() {
    let parts = [bytes(1, &bytes(1, b"a")), bytes(15, b"?"), bytes(1, &bytes(3, b"b"))].concat();
    let read = decode(&envelope("v1", "ConfigMap", &parts)).unwrap();
    let expected = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "b" } });
    assert_eq!(read, expected);
}

#[test]
fn options_keep_zeros_of_pointers() {
    let raw = [varint(1, 0), bytes(2, &bytes(1, b"u")), varint(3, 0), bytes(4, b"")].concat();
    let read = decode(&envelope("v1", "DeleteOptions", &raw)).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": { "uid": "u" },
        "orphanDependents": false, "propagationPolicy": "",
    });
    assert_eq!(read, expected);
    let read = decode(&envelope("policy/v1", "Eviction", &bytes(2, &varint(1, 0)))).unwrap();
    assert_eq!(read["deleteOptions"], json!({ "gracePeriodSeconds": 0 }));
}

#[test]
fn inline_messages_merge_into_their_parent() {
    let source = bytes(19, &bytes(1, &bytes(1, b"cm")));
    let volume = [bytes(1, b"v"), bytes(2, &source)].concat();
    let read = fields("io.k8s.api.core.v1.Volume", &volume, 0).unwrap();
    assert_eq!(Value::from(read), json!({ "name": "v", "configMap": { "name": "cm" } }));
}

#[test]
fn times_and_numbers_are_written_as_in_go() {
    let moment = [&[0x08][..], &[0x80, 0xf2, 0xd6, 0xca, 0x06], &[0x10, 0xc0, 0xc4, 0x07]].concat();
    let decode = |name: &str, raw: &[u8]| special(&format!("{META}.{name}"), raw);
    assert_eq!(decode("Time", &moment), Ok("2026-01-01T00:00:00Z".into()));
    assert_eq!(decode("MicroTime", &moment), Ok("2026-01-01T00:00:00.000123Z".into()));
    assert_eq!(decode("Time", &[]), Ok(Value::Null));
    let far = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    assert!(decode("Time", &far).is_err());
    assert_eq!([number(2.0), number(0.5), number(-0.0)], [json!(2), json!(0.5), json!(0)]);
    let int_or_string = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    assert_eq!(special(int_or_string, &[varint(1, 0), varint(2, 7)].concat()), Ok(json!(7)));
    assert_eq!(special(int_or_string, &[varint(1, 1), bytes(3, b"5%")].concat()), Ok(json!("5%")));
    let minus_one = [&[0x10][..], &[0xff; 9], &[0x01]].concat();
    assert_eq!(special(int_or_string, &minus_one), Ok(json!(-1)));
    let over = [0x10, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(special(int_or_string, &over).is_err());
}

#[test]
fn lists_are_packed_or_not() {
    let ids = |raw: &[u8]| fields("io.k8s.api.core.v1.PodSecurityContext", raw, 0).unwrap();
    assert_eq!(Value::from(ids(&[varint(4, 1), varint(4, 2)].concat())), json!({ "supplementalGroups": [1, 2] }));
    assert_eq!(Value::from(ids(&bytes(4, &[1, 2]))), json!({ "supplementalGroups": [1, 2] }));
}

#[test]
fn raw_json_and_lists_of_strings_are_values() {
    let raw = bytes(1, br#"{"a":[1]}"#);
    assert_eq!(special(&format!("{META}.FieldsV1"), &raw), Ok(json!({ "a": [1] })));
    assert_eq!(special("io.k8s.apimachinery.pkg.runtime.RawExtension", &raw), Ok(json!({ "a": [1] })));
    assert!(special(&format!("{CRD}.JSON"), &bytes(1, b"{")).is_err());
    let verbs = [bytes(1, b"get"), bytes(1, b"list")].concat();
    assert_eq!(special(&format!("{META}.Verbs"), &verbs), Ok(json!(["get", "list"])));
    let data = bytes(2, &[bytes(1, b"k"), bytes(2, &[0xff, 0])].concat());
    let secret = fields("io.k8s.api.core.v1.Secret", &data, 0).unwrap();
    assert_eq!(secret["data"], json!({ "k": "/wA=" }));
}

#[test]
fn schemas_of_definitions_are_one_of_two_shapes() {
    let schema = |raw: &[u8]| fields(&format!("{CRD}.JSONSchemaProps"), raw, 0).map(Value::from);
    let text = bytes(5, b"string");
    assert_eq!(schema(&bytes(24, &bytes(1, &text))), Ok(json!({ "items": { "type": "string" } })));
    assert_eq!(schema(&bytes(30, &varint(1, 1))), Ok(json!({ "additionalProperties": true })));
    assert_eq!(schema(&bytes(30, &varint(1, 0))), Ok(json!({ "additionalProperties": false })));
    assert_eq!(schema(&bytes(8, &bytes(1, b"0"))), Ok(json!({ "default": 0 })));
}

#[test]
fn messages_are_nested_to_a_bound() {
    // `not` of `not` of …
    let nested = |depth: usize| {
        let mut raw = Vec::new();
        for _ in 0..depth {
            let len = raw.len();
            let mut outer = vec![0xe2, 0x01];
            if len < 128 {
                outer.push(u8::try_from(len).unwrap());
            } else {
                outer.extend([u8::try_from(len & 127).unwrap() | 128, u8::try_from(len >> 7).unwrap()]);
            }
            outer.extend(raw);
            raw = outer;
        }
        fields(&format!("{CRD}.JSONSchemaProps"), &raw, 0)
    };
    assert!(nested(DEPTH_MAX).is_ok());
    assert!(nested(DEPTH_MAX + 1).is_err());
}
