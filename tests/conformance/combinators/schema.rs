//! Random schemas with combinators, and values for them.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

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

/// Types of properties and items, with which keywords below combinators have to agree.
type Types = Map<String, Value>;

/// Returns a structural schema: a type with keywords, and usually a combinator.
pub(crate) fn schema(rng: &mut Rng) -> Value {
    structural(rng, 2)
}

fn structural(rng: &mut Rng, depth: usize) -> Value {
    let kinds = ["string", "string", "integer", "number", "boolean", "array", "object"];
    let kind = rng.one_of(if depth > 0 { &kinds } else { &kinds[..5] });
    let mut schema = json!({ "type": kind });
    if rng.one_in(5) {
        schema["nullable"] = true.into();
    }
    let mut types = Types::new();
    match kind {
        "array" => {
            schema["items"] = structural(rng, depth - 1);
            types.insert("items".into(), schema["items"]["type"].clone());
        }
        "object" if rng.one_in(3) => schema["additionalProperties"] = structural(rng, depth - 1),
        "object" => {
            for name in &["x", "y", "z"][..=rng.below(3)] {
                schema["properties"][name] = structural(rng, depth - 1);
                types.insert((*name).into(), schema["properties"][name]["type"].clone());
            }
        }
        _ => {}
    }
    if rng.one_in(2) {
        merge(&mut schema, keywords(rng, kind));
    }
    if !rng.one_in(4) {
        merge(&mut schema, combinator(rng, kind, 2, &types));
    }
    schema
}

fn merge(schema: &mut Value, keywords: Value) {
    if let (Some(schema), Value::Object(keywords)) = (schema.as_object_mut(), keywords) {
        schema.extend(keywords);
    }
}

/// Returns random validation keywords for a type.
fn keywords(rng: &mut Rng, kind: &str) -> Value {
    let mut all = json!({});
    let mut set = |rng: &mut Rng, name: &str, choices: &[Value]| {
        if rng.one_in(3) {
            all[name] = rng.one_of(choices);
        }
    };
    let numbers = |numbers: std::ops::Range<i64>| numbers.map(Value::from).collect::<Vec<_>>();
    match kind {
        "string" => {
            set(rng, "minLength", &numbers(0..5));
            set(rng, "maxLength", &numbers(3..13));
            set(rng, "pattern", &PATTERNS.map(Value::from));
            set(rng, "format", &FORMATS.map(Value::from));
            set(rng, "enum", &[json!(["a", "10.0.0.1"]), json!(["::1", "2020-01-01"]), json!(["", "12"])]);
        }
        "integer" | "number" => {
            set(rng, "minimum", &numbers(-3..4));
            set(rng, "maximum", &numbers(0..10));
            set(rng, "multipleOf", &numbers(2..4));
            set(rng, "format", &["int32", "int64", "double", "float"].map(Value::from));
            set(rng, "enum", &[json!([0, 1]), json!([2, 5])]);
            if all["minimum"].is_number() && rng.one_in(3) {
                all["exclusiveMinimum"] = true.into();
            }
        }
        "array" => {
            set(rng, "minItems", &numbers(0..3));
            set(rng, "maxItems", &numbers(1..5));
        }
        "object" => {
            set(rng, "minProperties", &numbers(0..3));
            set(rng, "maxProperties", &numbers(1..4));
            set(rng, "required", &[json!(["x"]), json!(["y"])]);
        }
        _ => {}
    }
    all
}

/// Returns one of `anyOf`, `oneOf`, `allOf` and `not`, nested up to `depth` levels.
fn combinator(rng: &mut Rng, kind: &str, depth: usize, types: &Types) -> Value {
    let name = rng.one_of(&["anyOf", "oneOf", "allOf", "not"]);
    if name == "not" {
        return json!({ name: branch(rng, kind, depth, types) });
    }
    let branches: Vec<Value> = (0..=rng.below(3)).map(|_| branch(rng, kind, depth, types)).collect();
    json!({ name: branches })
}

fn branch(rng: &mut Rng, kind: &str, depth: usize, types: &Types) -> Value {
    let mut branch = if rng.one_in(4) { json!({}) } else { keywords(rng, kind) };
    for (name, kind) in types.iter().filter(|_| kind == "object" || kind == "array") {
        if rng.one_in(2) {
            let below = self::branch(rng, kind.as_str().unwrap_or_default(), 0, &Types::new());
            let at = if name == "items" { &mut branch["items"] } else { &mut branch["properties"][name] };
            *at = below;
        }
    }
    if depth > 0 && rng.one_in(2) {
        merge(&mut branch, combinator(rng, kind, depth - 1, types));
    }
    branch
}

/// Returns a value, usually of the type that a structural schema requires.
pub(crate) fn value(rng: &mut Rng, schema: &Value) -> Value {
    if rng.one_in(16) {
        return Value::Null;
    }
    let kind = schema["type"].as_str().unwrap_or_default();
    match if rng.one_in(10) { rng.one_of(&["string", "integer", "boolean", "array"]) } else { kind } {
        "string" => rng.one_of(&TEXTS).into(),
        "integer" => rng.one_of(&INTEGERS).into(),
        "number" => rng.one_of(&NUMBERS).into(),
        "boolean" => rng.one_in(2).into(),
        "array" => (0..rng.below(5)).map(|_| value(rng, &schema["items"])).collect(),
        _ => {
            let additional = schema.get("additionalProperties");
            let mut object = Map::new();
            for name in ["x", "y", "z"] {
                if let Some(schema) = additional.or_else(|| schema["properties"].get(name)).filter(|_| !rng.one_in(3)) {
                    object.insert(name.into(), value(rng, schema));
                }
            }
            object.into()
        }
    }
}
