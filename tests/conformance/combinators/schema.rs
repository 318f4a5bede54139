//! Schemas with combinators and values for them, by chance.

use serde_json::{Map, Value, json};

use crate::chance::Chance;

const FORMATS: [&str; 14] = [
    "ipv4",
    "ipv6",
    "uuid",
    "date",
    "date-time",
    "duration",
    "email",
    "uri",
    "byte",
    "cidr",
    "mac",
    "hostname",
    "int32",
    "password",
];
const PATTERNS: [&str; 3] = ["^a", "[0-9]+$", "^[a-z.:0-9-]*$"];
const TEXTS: [&str; 18] = [
    "",
    "a",
    "abc",
    "10.0.0.1",
    "1.2.3.4:80",
    "::1",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "5m",
    "a@b.c",
    "http://a/b",
    "YQ==",
    "10.0.0.0/8",
    "00:11:22:33:44:55",
    "host",
    "12",
    "xxxxxxxxxxxxx",
    "c9a646d3-9c61-4cb7-bfcd-ee2522c8f633",
];
const NUMBERS: [f64; 8] = [-4.0, 0.0, 0.5, 1.5, 2.0, 3.0, 6.0, 1e10];
const INTEGERS: [i64; 12] = [-4, -1, 0, 1, 2, 3, 5, 6, 9, 10, 1 << 31, 1 << 40];

/// Types of properties and items, which keywords below combinators have to fit.
type Types = Map<String, Value>;

/// Returns a structural schema: a type with keywords, and mostly a combinator beside them.
pub(crate) fn schema(chance: &mut Chance) -> Value {
    structural(chance, 2)
}

fn structural(chance: &mut Chance, depth: usize) -> Value {
    let kinds = ["string", "string", "integer", "number", "boolean", "array", "object"];
    let kind = chance.one_of(if depth > 0 { &kinds } else { &kinds[..5] });
    let mut schema = json!({ "type": kind });
    if chance.one_in(5) {
        schema["nullable"] = true.into();
    }
    let mut types = Types::new();
    match kind {
        "array" => {
            schema["items"] = structural(chance, depth - 1);
            types.insert("items".into(), schema["items"]["type"].clone());
        }
        "object" if chance.one_in(3) => schema["additionalProperties"] = structural(chance, depth - 1),
        "object" => {
            for name in &["x", "y", "z"][..=chance.below(3)] {
                schema["properties"][name] = structural(chance, depth - 1);
                types.insert((*name).into(), schema["properties"][name]["type"].clone());
            }
        }
        _ => {}
    }
    if chance.one_in(2) {
        merge(&mut schema, keywords(chance, kind));
    }
    if !chance.one_in(4) {
        merge(&mut schema, combinator(chance, kind, 2, &types));
    }
    schema
}

fn merge(schema: &mut Value, keywords: Value) {
    if let (Some(schema), Value::Object(keywords)) = (schema.as_object_mut(), keywords) {
        schema.extend(keywords);
    }
}

/// Returns keywords about values of a type.
fn keywords(chance: &mut Chance, kind: &str) -> Value {
    let mut all = json!({});
    let mut set = |chance: &mut Chance, name: &str, choices: &[Value]| {
        if chance.one_in(3) {
            all[name] = chance.one_of(choices);
        }
    };
    let numbers = |numbers: std::ops::Range<i64>| numbers.map(Value::from).collect::<Vec<_>>();
    match kind {
        "string" => {
            set(chance, "minLength", &numbers(0..5));
            set(chance, "maxLength", &numbers(3..13));
            set(chance, "pattern", &PATTERNS.map(Value::from));
            set(chance, "format", &FORMATS.map(Value::from));
            set(chance, "enum", &[json!(["a", "10.0.0.1"]), json!(["::1", "2020-01-01"]), json!(["", "12"])]);
        }
        "integer" | "number" => {
            set(chance, "minimum", &numbers(-3..4));
            set(chance, "maximum", &numbers(0..10));
            set(chance, "multipleOf", &numbers(2..4));
            set(chance, "format", &["int32", "int64", "double", "float"].map(Value::from));
            set(chance, "enum", &[json!([0, 1]), json!([2, 5])]);
            if all["minimum"].is_number() && chance.one_in(3) {
                all["exclusiveMinimum"] = true.into();
            }
        }
        "array" => {
            set(chance, "minItems", &numbers(0..3));
            set(chance, "maxItems", &numbers(1..5));
        }
        "object" => {
            set(chance, "minProperties", &numbers(0..3));
            set(chance, "maxProperties", &numbers(1..4));
            set(chance, "required", &[json!(["x"]), json!(["y"])]);
        }
        _ => {}
    }
    all
}

/// Returns one of `anyOf`, `oneOf`, `allOf` and `not`, up to `depth` below each other.
fn combinator(chance: &mut Chance, kind: &str, depth: usize, types: &Types) -> Value {
    let name = chance.one_of(&["anyOf", "oneOf", "allOf", "not"]);
    if name == "not" {
        return json!({ name: branch(chance, kind, depth, types) });
    }
    let branches: Vec<Value> = (0..=chance.below(3)).map(|_| branch(chance, kind, depth, types)).collect();
    json!({ name: branches })
}

fn branch(chance: &mut Chance, kind: &str, depth: usize, types: &Types) -> Value {
    let mut branch = if chance.one_in(4) { json!({}) } else { keywords(chance, kind) };
    for (name, kind) in types.iter().filter(|_| kind == "object" || kind == "array") {
        if chance.one_in(2) {
            let below = self::branch(chance, kind.as_str().unwrap_or_default(), 0, &Types::new());
            let at = if name == "items" { &mut branch["items"] } else { &mut branch["properties"][name] };
            *at = below;
        }
    }
    if depth > 0 && chance.one_in(2) {
        merge(&mut branch, combinator(chance, kind, depth - 1, types));
    }
    branch
}

/// Returns a value, mostly one of the type that a structural schema asks for.
pub(crate) fn value(chance: &mut Chance, schema: &Value) -> Value {
    if chance.one_in(16) {
        return Value::Null;
    }
    let kind = schema["type"].as_str().unwrap_or_default();
    match if chance.one_in(10) { chance.one_of(&["string", "integer", "boolean", "array"]) } else { kind } {
        "string" => chance.one_of(&TEXTS).into(),
        "integer" => chance.one_of(&INTEGERS).into(),
        "number" => chance.one_of(&NUMBERS).into(),
        "boolean" => chance.one_in(2).into(),
        "array" => (0..chance.below(5)).map(|_| value(chance, &schema["items"])).collect(),
        _ => {
            let of_all = schema.get("additionalProperties");
            let mut object = Map::new();
            for name in ["x", "y", "z"] {
                if let Some(schema) = of_all.or_else(|| schema["properties"].get(name)).filter(|_| !chance.one_in(3)) {
                    object.insert(name.into(), value(chance, schema));
                }
            }
            object.into()
        }
    }
}
