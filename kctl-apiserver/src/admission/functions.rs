//! Functions of CEL that the evaluator does not have, or not for all types, added to what expressions of admission see.

use std::{collections::HashMap, sync::Arc};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, ResolveResult,
        common::ast::IdedExpr,
        extractors::This,
        objects::{Key, Map, OptionalValue},
        parser::Parser,
    },
};

use super::conditions::{Cel, map};
use crate::crd::{MAP_OF, SORTED_BY};

/// Names of types that are values.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type"];
/// The field that makes a map the value that a type is.
const TYPE: &str = "@type";

thread_local! {
    /// The functions of the evaluator, for those that have more types here than there.
    static PLAIN: Context<'static> = Context::default().with_all();
    static CALLS: HashMap<&'static str, IdedExpr> = ["string(x)", "timestamp(x)", "duration(x)", "format.named(x)", "size(x)"]
        .into_iter()
        .filter_map(|call| Some((call, Parser::default().parse(call).ok()?)))
        .collect();
}

/// What a function of the evaluator makes of a value.
fn plain(call: &str, value: Cel) -> ResolveResult {
    let unknown = || ExecutionError::UndeclaredReference(Arc::new(call.to_owned()));
    PLAIN.with(|context| {
        let mut scope = context.new_inner_scope();
        scope.add_variable_from_value("x", value);
        CALLS.with(|calls| calls.get(call).map_or_else(|| Err(unknown()), |call| Cel::resolve(call, &scope)))
    })
}

/// Adds them, and the names of types.
pub(super) fn add(context: &mut Context<'static>) {
    for name in TYPES {
        context.add_variable_from_value(name, type_named(name));
    }
    context.add_variable_from_value("uint", type_named("uint"));
    let times = ["Duration", "Timestamp"].map(|name| (name.to_owned(), type_named(&format!("google.protobuf.{name}"))));
    context.add_variable_from_value("google", map([("protobuf".to_owned(), map(times.into()))].into()));
    let addresses = ["CIDR", "IP"].map(|name| (name.to_owned(), type_named(&format!("net.{name}"))));
    context.add_variable_from_value("net", map(addresses.into()));
    context.add_function("type", |value: Cel| ResolveResult::Ok(type_named(&type_of(&value))));
    context.add_function("dyn", |value: Cel| ResolveResult::Ok(value));
    context.add_function("bool", |value: Cel| match &value {
        Cel::Bool(_) => Ok(value),
        Cel::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Cel::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Cel::Bool(false)),
            _ => Err(ExecutionError::function_error(
                "bool",
                format!("type conversion error from 'string' to 'bool': {text}"),
            )),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("string", |value: Cel| match value {
        Cel::Bool(value) => Ok(Cel::String(Arc::new(value.to_string()))),
        value => plain("string(x)", value),
    });
    context.add_function("timestamp", |value: Cel| match value {
        Cel::Timestamp(_) => Ok(value),
        Cel::Int(seconds) => {
            let time = jiff::Timestamp::from_second(seconds).map_err(|_| ExecutionError::NoSuchOverload)?;
            plain("timestamp(x)", Cel::String(Arc::new(time.to_string())))
        }
        value => plain("timestamp(x)", value),
    });
    context.add_function("duration", |value: Cel| match value {
        Cel::Duration(_) => Ok(value),
        value => plain("duration(x)", value),
    });
    context.add_function("size", |This(value): This<Cel>| match &value {
        Cel::String(text) => Ok(Cel::Int(i64::try_from(text.chars().count()).unwrap_or(i64::MAX))),
        Cel::Bytes(_) | Cel::List(_) | Cel::Map(_) => plain("size(x)", value),
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("format.named", |name: Arc<String>| {
        let found = plain("format.named(x)", Cel::String(name))?;
        let found = if found == Cel::Null { OptionalValue::none() } else { OptionalValue::of(found) };
        ResolveResult::Ok(Cel::Opaque(Arc::new(found)))
    });
    context.add_function(MAP_OF, |entries: Arc<Vec<Cel>>| map_of(&entries));
    context.add_function(SORTED_BY, |items: Arc<Vec<Cel>>, keys: Arc<Vec<Cel>>| sorted_by(&items, &keys));
}

/// The value that a type is.
fn type_named(name: &str) -> Cel {
    map([(TYPE.to_owned(), Cel::String(Arc::new(name.to_owned())))].into())
}

fn type_of(value: &Cel) -> String {
    let name = match value {
        Cel::List(_) => "list",
        Cel::Map(fields) if fields.map.contains_key(&Key::String(Arc::new(TYPE.into()))) => "type",
        Cel::Map(_) | Cel::Function(..) => "map",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::Bool(_) => "bool",
        Cel::Duration(_) => "google.protobuf.Duration",
        Cel::Timestamp(_) => "google.protobuf.Timestamp",
        Cel::Null => "null_type",
        Cel::Opaque(value) => return value.runtime_type_name().to_owned(),
    };
    name.into()
}

/// A map of entries, each of which is a key and a value, or a map of one.
fn map_of(entries: &[Cel]) -> ResolveResult {
    let mut made: HashMap<Key, Cel> = HashMap::new();
    for entry in entries {
        let pairs = match entry {
            Cel::List(pair) => {
                let [key, value] = pair.as_slice() else { return Err(ExecutionError::NoSuchOverload) };
                let key: Result<Key, _> = key.clone().try_into();
                vec![(key.map_err(|_| ExecutionError::NoSuchOverload)?, value.clone())]
            }
            Cel::Map(map) => map.map.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            _ => return Err(ExecutionError::NoSuchOverload),
        };
        for (key, value) in pairs {
            let why = format!("insert failed: key {key} already exists");
            if made.insert(key, value).is_some() {
                return Err(ExecutionError::function_error("transformMapEntry", why));
            }
        }
    }
    Ok(Cel::Map(Map { map: Arc::new(made) }))
}

/// The items in the order of their keys.
fn sorted_by(items: &[Cel], keys: &[Cel]) -> ResolveResult {
    let mut pairs: Vec<(&Cel, &Cel)> = keys.iter().zip(items).collect();
    if pairs.windows(2).any(|two| two[0].0.partial_cmp(two[1].0).is_none()) {
        return Err(ExecutionError::function_error("sortBy", "list elements must be comparable"));
    }
    pairs.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    Ok(Cel::List(Arc::new(pairs.into_iter().map(|(_, item)| item.clone()).collect())))
}
