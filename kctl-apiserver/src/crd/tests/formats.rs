//! Types, limits and formats of scalars.

use serde_json::json;

use super::check;
use kctl_apimachinery::formats;

#[test]
fn values_of_wrong_type_report_type_invalid() {
    check(&json!({"type": "integer"}), &json!("x"), &["TypeInvalid spec.f"]);
    check(&json!({"type": "integer"}), &json!(1.5), &["TypeInvalid spec.f", "Invalid <nil>"]);
    check(&json!({"type": "integer"}), &json!(true), &["TypeInvalid spec.f"]);
    check(&json!({"type": "integer"}), &json!(1.0), &[]);
    check(&json!({"type": "number"}), &json!(1), &[]);
    check(&json!({"type": "number"}), &json!("x"), &["TypeInvalid spec.f"]);
    check(&json!({"type": "string"}), &json!(1), &["TypeInvalid spec.f"]);
    check(&json!({"type": "boolean"}), &json!("true"), &["TypeInvalid spec.f"]);
    check(&json!({"type": "array", "items": {"type": "string"}}), &json!({}), &["TypeInvalid spec.f"]);
    check(
        &json!({"type": "array", "items": {"type": "string"}}),
        &json!([1, "x", null]),
        &["TypeInvalid spec.f[0]", "TypeInvalid spec.f[2]"],
    );
    check(&json!({"type": "object"}), &json!([1]), &["TypeInvalid spec.f"]);
    check(
        &json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        &json!({"a.b/c": "x"}),
        &["TypeInvalid spec.f.a.b/c"],
    );
}

#[test]
fn null_passes_where_it_is_allowed() {
    check(&json!({"type": "string", "nullable": true}), &json!(null), &[]);
    check(&json!({"type": "array", "items": {"type": "string", "nullable": true}}), &json!([null]), &[]);
}

#[test]
fn no_enumeration_holds_null() {
    check(&json!({"type": "string", "enum": ["a", null], "nullable": true}), &json!(null), &["NotSupported spec.f"]);
}

#[test]
fn enumerations_list_what_is_supported() {
    check(&json!({"type": "string", "enum": ["b", "a"]}), &json!("x"), &["NotSupported spec.f"]);
    check(&json!({"type": "string", "enum": ["a"]}), &json!(1), &["TypeInvalid spec.f", "NotSupported spec.f"]);
    check(&json!({"type": "integer", "enum": [1, 2]}), &json!(3), &["NotSupported spec.f"]);
    check(&json!({"type": "boolean", "enum": [true]}), &json!(false), &["NotSupported spec.f"]);
    check(
        &json!({"type": "object", "properties": {"a": {"type": "integer"}}, "enum": [{"a": 1}]}),
        &json!({"a": 2}),
        &["NotSupported spec.f"],
    );
    check(&json!({"type": "string", "enum": ["b"]}), &json!("x\"\n\u{2028}é"), &["NotSupported spec.f"]);
}

#[test]
fn float_equals_the_integer_it_is_truncated_to() {
    check(&json!({"type": "number", "enum": [1, 2.5]}), &json!(1.5), &[]);
    check(&json!({"type": "number", "enum": [1, 2.5]}), &json!(2.7), &["NotSupported spec.f"]);
}

#[test]
fn int_or_string_takes_integers_and_strings() {
    check(&json!({"x-kubernetes-int-or-string": true}), &json!(1), &[]);
    check(&json!({"x-kubernetes-int-or-string": true}), &json!("x"), &[]);
    check(&json!({"x-kubernetes-int-or-string": true}), &json!(1.5), &["TypeInvalid spec.f"]);
    check(&json!({"x-kubernetes-int-or-string": true}), &json!(true), &["TypeInvalid spec.f"]);
    check(
        &json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^x"}),
        &json!(1.5),
        &["TypeInvalid spec.f", "Invalid <nil>"],
    );
    check(&json!({"x-kubernetes-int-or-string": true, "pattern": "^a"}), &json!("b"), &["Invalid spec.f"]);
    check(&json!({"x-kubernetes-int-or-string": true, "minimum": 3}), &json!(2), &["Invalid spec.f"]);
}

#[test]
fn minimum_and_maximum_are_inclusive_unless_exclusive() {
    check(&json!({"type": "integer", "minimum": 1, "maximum": 10}), &json!(1), &[]);
    check(&json!({"type": "integer", "minimum": 1, "maximum": 10}), &json!(0), &["Invalid spec.f"]);
    check(&json!({"type": "integer", "minimum": 1, "maximum": 10}), &json!(11), &["Invalid spec.f"]);
    check(&json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}), &json!(1), &["Invalid spec.f"]);
    check(&json!({"type": "number", "maximum": 10, "exclusiveMaximum": true}), &json!(10), &["Invalid spec.f"]);
    check(&json!({"type": "number", "minimum": 1.5}), &json!(1.2), &["Invalid spec.f"]);
    check(
        &json!({"type": "integer", "minimum": 1}),
        &json!(-1e+21),
        &["TypeInvalid spec.f", "Invalid <nil>", "Invalid spec.f"],
    );
    check(&json!({"type": "integer", "minimum": 1}), &json!("x"), &["TypeInvalid spec.f"]);
}

#[test]
fn integers_are_compared_with_truncated_limits() {
    check(&json!({"type": "number", "minimum": 1.5}), &json!(1), &[]);
    check(&json!({"type": "number", "maximum": 2.5}), &json!(3), &["Invalid spec.f"]);
    check(&json!({"type": "number", "multipleOf": 0.5}), &json!(3), &["Invalid spec.f"]);
}

#[test]
fn multiples_are_reported_with_the_other_limits() {
    check(
        &json!({"type": "integer", "minimum": 5, "multipleOf": 2, "enum": [9]}),
        &json!(3),
        &["Invalid spec.f", "NotSupported spec.f"],
    );
    check(&json!({"type": "number", "multipleOf": 0.5}), &json!(3.25), &["Invalid spec.f"]);
    check(&json!({"type": "number", "multipleOf": 0.5}), &json!(3.5), &[]);
    check(&json!({"type": "integer", "multipleOf": 0.5}), &json!(3), &["Invalid <nil>"]);
}

#[test]
fn string_reports_only_its_first_violated_limit() {
    check(&json!({"type": "string", "minLength": 2}), &json!("é"), &["Invalid spec.f"]);
    check(&json!({"type": "string", "maxLength": 1}), &json!("éé"), &["TooLong spec.f"]);
    check(&json!({"type": "string", "maxLength": 4}), &json!("abcde"), &["TooLong spec.f"]);
    check(
        &json!({"type": "string", "minLength": 3, "maxLength": 1, "pattern": "^z"}),
        &json!("xx"),
        &["TooLong spec.f"],
    );
    check(&json!({"type": "string", "pattern": "^(?P<a>x)\\d+$"}), &json!("x"), &["Invalid spec.f"]);
}

#[test]
fn formats_of_numbers_are_ranges() {
    check(&json!({"type": "integer", "format": "int32"}), &json!(2_147_483_648_i64), &["Invalid <nil>"]);
    check(&json!({"type": "integer", "format": "int32"}), &json!(2_147_483_647), &[]);
    check(&json!({"type": "integer", "format": "int32"}), &json!(1.5), &["TypeInvalid spec.f", "Invalid <nil>"]);
    check(&json!({"type": "integer", "format": "int32"}), &json!(true), &["TypeInvalid spec.f"]);
    check(&json!({"type": "integer", "format": "int32"}), &json!([]), &["TypeInvalid spec.f"]);
    check(&json!({"type": "integer", "format": "int32"}), &json!("x"), &["TypeInvalid spec.f"]);
    check(
        &json!({"type": "integer", "format": "int64"}),
        &json!(9_223_372_036_854_775_808_u64),
        &["TypeInvalid spec.f", "Invalid <nil>"],
    );
    check(&json!({"type": "number", "format": "float"}), &json!(1e+39), &["Invalid <nil>"]);
    check(&json!({"type": "number", "format": "double"}), &json!("x"), &["TypeInvalid spec.f"]);
    check(&json!({"type": "integer", "format": "uint32"}), &json!(-1), &[]);
}

#[test]
fn formats_of_texts_are_types() {
    check(&json!({"type": "string", "format": "date-time"}), &json!("2020-01-01T00:00:00Z"), &[]);
    check(&json!({"type": "string", "format": "date-time"}), &json!("2020-01-01"), &["TypeInvalid spec.f"]);
    check(&json!({"type": "string", "format": "date-time"}), &json!(1), &["TypeInvalid spec.f"]);
    check(&json!({"type": "string", "format": "date-time"}), &json!(["a"]), &[]);
    check(
        &json!({"type": "string", "format": "date-time", "pattern": "^z", "minLength": 9, "enum": ["q"]}),
        &json!("x"),
        &["Invalid spec.f", "TypeInvalid spec.f", "NotSupported spec.f"],
    );
    check(&json!({"type": "string", "format": "zzz"}), &json!("x"), &[]);
}

#[test]
fn texts_have_the_formats_that_the_server_finds() {
    for (format, has, has_not) in [
        (
            "date-time",
            &["2020-01-01t00:00:00z", "2020-01-01T00:00:00.123+02:00", "2020-01-01T00:00:00+99:99"] as &[&str],
            &[
                "2020-13-01T00:00:00Z",
                "2020-01-01T00:00:00",
                "2020-01-01T24:00:00Z",
                "2020-01-01T23:59:60Z",
                "2020-02-30T00:00:00Z",
                "",
            ] as &[&str],
        ),
        ("date", &["2020-01-30"] as &[&str], &["2020-01-32"] as &[&str]),
        (
            "duration",
            &["1h", "1.5h", "-1h", "P1D", "1 day", "3 weeks", "1d2h"] as &[&str],
            &["", "h", "1 foo"] as &[&str],
        ),
        ("byte", &["YQ=="] as &[&str], &["YQ", "", "Y Q="] as &[&str]),
        ("email", &["a@b", "A <a@b>"] as &[&str], &["a@b@c", "a b@c", "???"] as &[&str]),
        (
            "uuid",
            &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"] as &[&str],
            &["x"] as &[&str],
        ),
        (
            "uuid4",
            &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"] as &[&str],
            &["A0EEBC99-9C0B-3EF8-BB6D-6BB9BD380A11"] as &[&str],
        ),
        ("uuid3", &["A0EEBC99-9C0B-3EF8-BB6D-6BB9BD380A11"] as &[&str], &[] as &[&str]),
        ("ipv4", &["1.2.3.4", "01.1.1.1"] as &[&str], &["::1", "256.1.1.1", "1.2.3"] as &[&str]),
        ("ipv6", &["::1", "::ffff:1.2.3.4"] as &[&str], &["1.1.1.1", "fe80::1%eth0"] as &[&str]),
        ("cidr", &["1.1.1.1/8", "::1/64"] as &[&str], &["1.1.1.1", "1.1.1.1/33"] as &[&str]),
        ("uri", &["/a", "http://x", "mailto:x", "//x"] as &[&str], &["a b", "a", "http://a b"] as &[&str]),
        ("hostname", &["a", "example.com"] as &[&str], &["a.b", "a_b", "-a", "example.com."] as &[&str]),
        ("mac", &["aa:bb:cc:dd:ee:ff", "AA-BB-CC-DD-EE-FF", "aabb.ccdd.eeff"] as &[&str], &["aa:bb"] as &[&str]),
        ("password", &[""] as &[&str], &[] as &[&str]),
        ("bsonobjectid", &["507f1f77bcf86cd799439011"] as &[&str], &["x"] as &[&str]),
        ("isbn10", &["0-306-40615-2"] as &[&str], &["0306406153"] as &[&str]),
        ("isbn13", &["978-0-306-40615-7"] as &[&str], &["9780306406158"] as &[&str]),
        ("creditcard", &["4111111111111111", "4111 1111 1111 1111"] as &[&str], &["4111111111111112"] as &[&str]),
        ("ssn", &["123-45-6789"] as &[&str], &["123456789", "123"] as &[&str]),
        ("hexcolor", &["#fff", "#ffffff", "fff"] as &[&str], &["#ff"] as &[&str]),
        ("rgbcolor", &["rgb(1,2,3)", "rgb( 1, 2,3 )"] as &[&str], &["rgb(256,0,0)"] as &[&str]),
        ("k8s-short-name", &["a-b"] as &[&str], &["a.b", "A"] as &[&str]),
        ("k8s-long-name", &["a.b"] as &[&str], &["A"] as &[&str]),
    ] {
        for text in has {
            assert!(formats::matches(format, text), "{format} {text:?}");
        }
        for text in has_not {
            assert!(!formats::matches(format, text), "{format} {text:?}");
        }
    }
}

/// Recorded from kube-apiserver 1.36.3: a schema below a combinator has no type, but string formats are still checked.
#[test]
fn formats_below_combinators_are_checked() {
    let judge = |field: &serde_json::Value, value: serde_json::Value| {
        let schema =
            json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { "f": field } } } });
        super::validate(super::Schema::structural(&schema), &json!({ "spec": { "f": value } }), None).is_empty()
    };
    let ipv4 = json!({ "format": "ipv4" });
    let either = json!({ "type": "string", "anyOf": [ipv4, { "format": "ipv6" }] });
    for (value, fits) in [("1.2.3.4", true), ("::1", true), ("1.2.3.4:8080", false)] {
        assert_eq!(judge(&either, json!(value)), fits, "anyOf: {value}");
    }
    for (field, value, fits) in [
        (json!({ "type": "string", "oneOf": [ipv4, { "format": "ipv6" }] }), json!("1.2.3.4:8"), false),
        (json!({ "type": "string", "allOf": [ipv4] }), json!("1.2.3"), false),
        (json!({ "type": "string", "not": ipv4 }), json!("1.2.3.4"), false),
        (json!({ "type": "string", "not": ipv4 }), json!("x"), true),
        (json!({ "type": "string", "nullable": true, "allOf": [ipv4] }), json!(null), true),
        (json!({ "type": "integer", "allOf": [ipv4] }), json!(5), false),
        (json!({ "type": "boolean", "allOf": [ipv4] }), json!(true), false),
        (json!({ "type": "array", "items": { "type": "string" }, "allOf": [ipv4] }), json!(["a"]), true),
        (json!({ "type": "array", "items": { "type": "string" }, "allOf": [{ "items": ipv4 }] }), json!(["a"]), false),
        (json!({ "type": "integer", "allOf": [{ "format": "int32" }] }), json!(3_000_000_000_u32), true),
        (json!({ "type": "string", "allOf": [{ "format": "nonsense" }] }), json!("a"), true),
    ] {
        assert_eq!(judge(&field, value.clone()), fits, "{field} {value}");
    }
}
