//! Cells of a custom kind, as kube-apiserver returned them for these objects and columns.

use serde_json::{Value, json};

use super::{CREATED, Include, custom_table, now};

fn cell(object: &Value, path: &str, kind: &str) -> Value {
    let column = json!({"name": "X", "jsonPath": path, "type": kind});
    let table = custom_table(&[column], std::slice::from_ref(object), now(), Include::None, json!({}));
    table["rows"][0]["cells"][1].clone()
}

fn check(object: &Value, columns: &[(&str, &str, Value)]) {
    for (path, kind, expected) in columns {
        assert_eq!(&cell(object, path, kind), expected, "{path} as {kind}");
    }
}

#[test]
fn without_columns_there_is_the_age() {
    let object = json!({"metadata": {"name": "one", "creationTimestamp": CREATED}});
    let table = custom_table(&[], &[object], now(), Include::None, json!({}));
    assert_eq!(table["rows"][0]["cells"], json!(["one", "59s"]));
    let age = &table["columnDefinitions"][1];
    assert_eq!((&age["name"], &age["type"], &age["priority"]), (&json!("Age"), &json!("date"), &json!(0)));
    assert!(age["description"].as_str().unwrap().starts_with("CreationTimestamp is a timestamp"));
}

#[test]
fn column_has_a_description_and_keeps_its_own() {
    let columns = [
        json!({
            "name": "S", "jsonPath": ".spec.s", "type": "string", "format": "byte", "description": "the s", "priority": 1,
        }),
        json!({"name": "I", "jsonPath": ".spec.i", "type": "integer"}),
    ];
    let table = custom_table(&columns, &[], now(), Include::None, json!({}));
    let described = "Custom resource definition column (in JSONPath format): .spec.i";
    let expected = [
        json!({"name": "S", "type": "string", "format": "byte", "description": "the s", "priority": 1}),
        json!({"name": "I", "type": "integer", "format": "", "description": described, "priority": 0}),
    ];
    assert_eq!(table["columnDefinitions"].as_array().unwrap()[1..], expected);
}

#[test]
fn columns_after_unsupported_json_path_are_omitted() {
    let columns =
        [".kind", ".spec[\"o\"].x", ".spec.s"].map(|path| json!({"name": path, "jsonPath": path, "type": "string"}));
    let object = json!({"kind": "Foo", "metadata": {"name": "a"}});
    let table = custom_table(&columns, &[object], now(), Include::None, json!({}));
    assert_eq!(table["rows"][0]["cells"], json!(["a", "Foo"]));
    assert_eq!(table["columnDefinitions"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_missing_is_null_in_every_type() {
    let object = json!({"metadata": {"name": "a"}});
    for kind in ["string", "integer", "number", "boolean", "date"] {
        assert_eq!(cell(&object, ".spec.x.y", kind), Value::Null, "{kind}");
    }
}

#[test]
fn descent_finds_the_first_below() {
    assert_eq!(cell(&json!({"spec": {"b": true}}), "..b", "string"), "true");
}

#[test]
fn values_print_by_the_type_of_the_column() {
    let object = json!(
        {"metadata": {"name": "a", "labels": {"a.b": "dot"}}, "spec": {"a": ["p", "q", "r"], "aa": [[1], ["z"]],
        "b": true, "big": 9_007_199_254_740_993_i64, "bigf": 1e+21, "d": "2020-01-01T00:00:00Z",
        "df": "2999-01-01T00:00:00Z", "dm": "2020-01-01T00:00:00.123456Z", "empty": "", "f": 1.5, "i": 5, "n": [1,
        2, 3], "o": {"x": "q<", "y": 1}, "oa": [{"b": 1}, {"b": 2, "c": true}], "ofl": 100_000.25, "s": "txt"},
        "status": {"conditions": [{"status": "x", "type": "A"}, {"lastTransitionTime": "2021-01-01T00:00:00Z",
        "status": "True", "type": "Ready"}]}}
    );
    check(
        &object,
        &[
            (".spec.s", "string", json!("txt")),
            (".spec.i", "integer", json!(5)),
            (".spec.i", "number", json!(5)),
            (".spec.f", "number", json!(1.5)),
            (".spec.f", "integer", json!(1)),
            (".spec.b", "boolean", json!(true)),
            (".spec.d", "date", json!("6y326d")),
            (".spec.i", "string", json!("5")),
            (".spec.f", "string", json!("1.5")),
            (".spec.b", "string", json!("true")),
            (".spec.o", "string", json!(r#"{"x":"q\u003c","y":1}"#)),
            (".spec.a", "string", json!(r#"["p","q","r"]"#)),
            (".spec.s", "integer", json!(null)),
            (".spec.s", "boolean", json!(null)),
            (".spec.s", "number", json!(null)),
            (".spec.s", "date", json!("<invalid>")),
            (".metadata.labels['a.b']", "string", json!(null)),
            (r".metadata.labels.a\.b", "string", json!("dot")),
            (".spec.a[0]", "string", json!("p")),
            (".spec.a[-1]", "string", json!("r")),
            (".spec.a[9]", "string", json!(null)),
            (".spec.a[*]", "string", json!("p")),
            (".spec.n[*]", "integer", json!(1)),
            (r#".status.conditions[?(@.type=="Ready")].status"#, "string", json!("True")),
            (".status.conditions[?(@.type=='Ready')].lastTransitionTime", "date", json!("5y325d")),
            (r#".status.conditions[?(@.type=="Nope")].status"#, "string", json!(null)),
            (".status.conditions[*].type", "string", json!("A")),
            (".spec.a[0:2]", "string", json!("p")),
            (".spec.a[0:9]", "string", Value::Null),
            (".spec.a[0,1]", "string", json!("p")),
            (".spec.a[0,9]", "string", Value::Null),
            (".spec.a[9:9]", "string", Value::Null),
            (".spec.big", "integer", json!(9_007_199_254_740_993_i64)),
            (".spec.bigf", "string", json!("1e+21")),
            (".spec.bigf", "number", json!(1e+21)),
            (".spec.empty", "string", json!("")),
            (".spec.n", "integer", json!(null)),
            (".spec.n", "string", json!("[1,2,3]")),
            (".spec.aa", "string", json!(r#"[[1],["z"]]"#)),
            (".spec.oa", "string", json!(r#"[{"b":1},{"b":2,"c":true}]"#)),
            (".spec.oa[*].b", "string", json!("1")),
            (".spec.oa[?(@.b>1)].b", "string", json!("2")),
            (".spec.oa[?(@.c)].b", "string", json!("2")),
            (".spec.n[*]", "string", json!("1")),
            (".spec.o.*", "string", json!("q<")),
            (".spec.oa[?(@.b!=1)].b", "string", json!("2")),
            (".spec['s']", "string", json!("txt")),
            (".spec.ofl", "string", json!("100000.25")),
            (".spec.i", "date", json!(null)),
            (".spec.dm", "date", json!("6y326d")),
            (".spec.df", "date", json!("<invalid>")),
        ],
    );
}

#[test]
fn odd_values_and_odd_paths() {
    let object = json!(
        {"metadata": {"name": "a", "labels": {"a.b": "dot", "c.d/e": "slash"}}, "spec": {"a": ["p", "q", "r"],
        "bool": false, "d0": "0001-01-01T00:00:00Z", "dateonly": "2020-01-01", "e20": 1e20,
        "empty": "", "emptyarr": [], "emptyobj": {}, "five": 5, "fo": {"a": 1, "b": 1e+21, "c": 1e-07, "d": 1.5},
        "n": [1, 2, 3], "neg": -2, "nul": null, "nula": [null, 1], "oa": [{"b": 1}, {"b": 2, "c": true,
        "m": {"k": "v"}, "t": "x"}], "s": "txt", "small": 1e-05, "tz": "2020-01-01T00:00:00+02:00", "uni": "é\n\"",
        "unio": {"a": "é\n\"&>\u{2028}\u{1}"}}}
    );
    check(
        &object,
        &[
            (r".metadata.labels['a\.b']", "string", json!("dot")),
            (r".metadata.labels.c\.d/e", "string", json!("slash")),
            (".spec.a[1:]", "string", json!("q")),
            (".spec.a[::2]", "string", json!("p")),
            (".spec.nul", "string", json!("<no value>")),
            (".spec.nul", "integer", json!(null)),
            (".spec.empty", "date", json!("<unknown>")),
            (".spec.nul", "date", json!(null)),
            (".spec.oa[?(@.b<=1)].b", "integer", json!(1)),
            (".spec.oa[?(@.t=='x')].b", "integer", json!(2)),
            (r#".spec.oa[?(@.b=="1")].b"#, "integer", json!(null)),
            (".spec.oa[?(@.b=='1')].b", "string", json!(null)),
            (".spec.oa[?(@.c==true)].b", "string", json!("2")),
            (".spec.s[0]", "string", json!(null)),
            (".spec.s.x", "string", json!(null)),
            (".spec.a.x", "string", json!(null)),
            (".spec.oa.b", "string", json!(null)),
            (".metadata.labels", "string", json!(r#"{"a.b":"dot","c.d/e":"slash"}"#)),
            (".spec.small", "string", json!("1e-05")),
            (".spec.e20", "string", json!("1e+20")),
            (".spec.fo", "string", json!(r#"{"a":1,"b":1e+21,"c":1e-7,"d":1.5}"#)),
            (".spec.neg", "number", json!(-2)),
            (".spec.oa[?(@.m.k=='v')].b", "integer", json!(2)),
            (".spec.a[?(@=='q')]", "string", json!("q")),
            (".spec.oa[?(@.b>=2)].t", "string", json!("x")),
            (".spec.bool", "string", json!("false")),
            (".spec.emptyarr", "string", json!("[]")),
            (".spec.emptyobj", "string", json!("{}")),
            (".spec.emptyarr[*]", "string", json!(null)),
            (".spec.emptyarr[0]", "string", json!(null)),
            (".spec.d0", "date", json!("<unknown>")),
            (".spec.tz", "date", json!("6y326d")),
            (".spec.dateonly", "date", json!("<invalid>")),
            (".spec.uni", "string", json!("é\n\"")),
            (".spec.unio", "string", json!(r#"{"a":"é\n\"\u0026\u003e\u2028\u0001"}"#)),
            (".spec.oa[?(@.b==2)]", "string", json!(r#"{"b":2,"c":true,"m":{"k":"v"},"t":"x"}"#)),
            (".spec.oa[*].t", "string", json!("x")),
            (".spec.n[5:]", "string", json!(null)),
        ],
    );
}

#[test]
fn numbers_print_as_go_prints_them() {
    let object = json!(
        {"metadata": {"name": "a"}, "spec": {"big": 9_007_199_254_740_993_i64, "bigf": 1_000_000_000_000_000_i64, "emptyobj": {},
        "f1": 1_234_567.5, "f2": 100_000, "f3": 123_456.75, "f4": 0.0001, "nula": [null, 1], "o": {"x": "q"},
        "oa": [{"b": 1}, {"b": 2, "t": "z"}], "obj": {"t": "x"}, "tzl": "2020-01-01t00:00:00z"}}
    );
    check(
        &object,
        &[
            (".spec.f1", "string", json!("1.2345675e+06")),
            (".spec.f2", "string", json!("100000")),
            (".spec.f3", "string", json!("123456.75")),
            (".spec.nula[0]", "string", json!("<no value>")),
            (".spec.nula[*]", "string", json!("<no value>")),
            (".spec.emptyobj.*", "string", json!(null)),
            (".spec.f4", "string", json!("0.0001")),
            (".spec.oa[?(@.b > 1)].b", "string", json!("2")),
            (".spec['o']['x']", "string", json!("q")),
            (".spec.nula[0:1]", "string", json!("<no value>")),
            (".spec.obj[?(@.t=='x')].t", "string", json!(null)),
            (".spec.big", "string", json!("9007199254740993")),
            (".spec.bigf", "integer", json!(1_000_000_000_000_000_i64)),
            (".spec.tzl", "date", json!("<invalid>")),
        ],
    );
}

#[test]
fn cells_have_a_bound_together() {
    let object = json!({"metadata": {"name": "a"}, "spec": {"x": "y".repeat(1 << 20)}});
    let columns = vec![json!({"name": "X", "jsonPath": ".spec", "type": "string"}); 100];
    let table = custom_table(&columns, &[object.clone(), object], now(), Include::None, json!({}));
    let rows = table["rows"].as_array().unwrap();
    let cells = rows.iter().flat_map(|row| row["cells"].as_array().unwrap());
    let n_large = cells.clone().filter(|cell| **cell == "<too large>").count();
    assert_eq!((n_large, cells.count()), (137, 202));
}
