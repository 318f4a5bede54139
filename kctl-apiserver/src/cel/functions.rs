//! CEL functions that the evaluator lacks, or lacks for some types.

use std::sync::{Arc, LazyLock};

use chrono::{DateTime, FixedOffset, TimeDelta};
use jiff::SignedDuration;
use kctl_apimachinery::{strconv, time::SECONDS};
use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, ResolveResult, Value as Cel,
        extractors::This,
        objects::{Key, Map},
    },
};

use crate::evaluate::{TYPE, type_name};

/// Names of types that expressions use as values, as in `type(x) == int`.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type"];

/// Returns a timestamp at a time since 1970, with a UTC offset of `minutes`; `None` if chrono cannot represent it.
pub(crate) fn timestamp(since_1970: SignedDuration, minutes: i64) -> Option<Cel> {
    let nanoseconds = u32::try_from(since_1970.subsec_nanos()).ok();
    let (seconds, nanoseconds) = match nanoseconds {
        Some(nanoseconds) => (since_1970.as_secs(), nanoseconds),
        // Before 1970, seconds and nanoseconds are negative.
        None => (since_1970.as_secs() - 1, (since_1970.subsec_nanos() + 1_000_000_000).unsigned_abs()),
    };
    let offset = i32::try_from(minutes * 60).ok().and_then(FixedOffset::east_opt);
    let time = DateTime::from_timestamp(seconds, nanoseconds)?.fixed_offset();
    Some(Cel::Timestamp(offset.map_or(time, |offset| time.with_timezone(&offset))))
}

/// Creates a CEL map with string keys.
pub(crate) fn map(fields: impl IntoIterator<Item = (String, Cel)>) -> Cel {
    let map = fields.into_iter().map(|(name, value)| (Key::String(Arc::new(name)), value)).collect();
    Cel::Map(Map { map: Arc::new(map) })
}

/// Returns a duration, if it fits into 64 bits of nanoseconds.
pub(crate) fn duration(duration: SignedDuration) -> Option<Cel> {
    i64::try_from(duration.as_nanos()).ok().map(|nanoseconds| Cel::Duration(TimeDelta::nanoseconds(nanoseconds)))
}

/// Returns the error for a string that does not parse. `expected` is the type, and also the name of the function.
fn invalid(text: &str, expected: &'static str) -> ResolveResult {
    Err(ExecutionError::function_error(expected, format!("{text:?} is not a valid {expected}")))
}

/// All functions, and the names of types.
pub(super) static ALL: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    add(&mut context);
    context
});

/// Adds all functions, and the names of types, to a context.
pub(super) fn add(context: &mut Context<'static>) {
    for name in TYPES {
        context.add_variable_from_value(name, type_named(name));
    }
    context.add_variable_from_value("uint", type_named("uint"));
    let times = ["Duration", "Timestamp"].map(|name| (name.to_owned(), type_named(&format!("google.protobuf.{name}"))));
    context.add_variable_from_value("google", map([("protobuf".to_owned(), map(times))]));
    let addresses = ["CIDR", "IP"].map(|name| (name.to_owned(), type_named(&format!("net.{name}"))));
    context.add_variable_from_value("net", map(addresses));
    context.add_function("type", |value: Cel| ResolveResult::Ok(type_named(&type_name(&value))));
    context.add_function("dyn", |value: Cel| ResolveResult::Ok(value));
    context.add_function("bool", |value: Cel| match &value {
        Cel::Bool(_) => Ok(value),
        Cel::String(text) => {
            strconv::parse_bool(text).map_or_else(|| invalid(text, "bool"), |value| Ok(Cel::Bool(value)))
        }
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("timestamp", |value: Cel| match &value {
        Cel::Timestamp(_) => Ok(value),
        Cel::Int(seconds) => {
            let time = Some(*seconds).filter(|seconds| SECONDS.contains(seconds));
            let time = time.and_then(|seconds| timestamp(SignedDuration::from_secs(seconds), 0));
            time.ok_or_else(|| ExecutionError::function_error("timestamp", "timestamp overflow"))
        }
        Cel::String(text) => kctl_apimachinery::time::parse_with_offset(text)
            .and_then(|(since_1970, minutes)| timestamp(since_1970, minutes))
            .map_or_else(|| invalid(text, "timestamp"), Ok),
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("duration", |value: Cel| match &value {
        Cel::Duration(_) => Ok(value),
        Cel::String(text) => {
            kctl_apimachinery::duration::parse(text).and_then(duration).map_or_else(|| invalid(text, "duration"), Ok)
        }
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("size", |This(value): This<Cel>| {
        let size = match &value {
            Cel::String(text) => text.chars().count(),
            Cel::Bytes(bytes) => bytes.len(),
            Cel::List(items) => items.len(),
            Cel::Map(map) => map.map.len(),
            _ => return Err(ExecutionError::NoSuchOverload),
        };
        Ok(Cel::Int(i64::try_from(size).unwrap_or(i64::MAX)))
    });
}

/// Returns the value that represents a type: a map with the single key `TYPE`, which `type_name` recognizes.
fn type_named(name: &str) -> Cel {
    let name = Cel::String(Arc::new(name.to_owned()));
    Cel::Map(Map { map: Arc::new(std::iter::once((TYPE, name)).collect()) })
}
