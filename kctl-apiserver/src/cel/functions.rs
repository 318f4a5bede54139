//! CEL functions that the evaluator lacks, or lacks for some types.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use chrono::{DateTime, FixedOffset, TimeDelta};
use jiff::SignedDuration;
use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, ResolveResult, common::ast::IdedExpr, extractors::This, objects::OptionalValue,
        parser::Parser,
    },
};

use super::conditions::{Cel, map};
use crate::evaluate::{TYPE, type_name};

/// Names of types that expressions use as values, as in `type(x) == int`.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type"];
/// The seconds since 1970 of the years 1 to 9999.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A context with only the evaluator's own functions. Functions here that accept more types call these for the rest.
static PLAIN: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());
/// Parsed calls of the evaluator's own functions, by their source. The argument is the variable `x`.
static CALLS: LazyLock<HashMap<&'static str, IdedExpr>> = LazyLock::new(|| {
    let calls = ["string(x)", "format.named(x)", "size(x)"];
    calls.into_iter().filter_map(|call| Some((call, Parser::default().parse(call).ok()?))).collect()
});

/// Calls the evaluator's own function. Used for types that the function of the same name in this file does not handle.
fn plain(call: &str, value: Cel) -> ResolveResult {
    let unknown = || ExecutionError::UndeclaredReference(Arc::new(call.to_owned()));
    let mut scope = PLAIN.new_inner_scope();
    scope.add_variable_from_value("x", value);
    CALLS.get(call).map_or_else(|| Err(unknown()), |call| Cel::resolve(call, &scope))
}

/// Returns a timestamp at a time since 1970, with a UTC offset of `minutes`; `None` if chrono cannot represent it.
pub(crate) fn timestamp((since_1970, minutes): (SignedDuration, i64)) -> Option<Cel> {
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

/// Returns a duration, if it fits into 64 bits of nanoseconds.
///
/// `None` beyond 292 years.
pub(crate) fn duration(duration: SignedDuration) -> Option<Cel> {
    i64::try_from(duration.as_nanos()).ok().map(|nanoseconds| Cel::Duration(TimeDelta::nanoseconds(nanoseconds)))
}

/// Returns the error for a string that does not parse. `expected` is the type, and also the name of the function.
fn invalid(text: &str, expected: &'static str) -> ResolveResult {
    Err(ExecutionError::function_error(expected, format!("{text:?} is not a valid {expected}")))
}

/// All functions, and the names of types.
///
/// Shared by all scopes of CRD rules.
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
    context.add_variable_from_value("google", map([("protobuf".to_owned(), map(times.into()))].into()));
    let addresses = ["CIDR", "IP"].map(|name| (name.to_owned(), type_named(&format!("net.{name}"))));
    context.add_variable_from_value("net", map(addresses.into()));
    context.add_function("type", |value: Cel| ResolveResult::Ok(type_named(&type_name(&value))));
    context.add_function("dyn", |value: Cel| ResolveResult::Ok(value));
    context.add_function("bool", |value: Cel| match &value {
        Cel::Bool(_) => Ok(value),
        Cel::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Cel::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Cel::Bool(false)),
            _ => invalid(text, "bool"),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("string", |value: Cel| match value {
        Cel::Bool(value) => Ok(Cel::String(Arc::new(value.to_string()))),
        value => plain("string(x)", value),
    });
    context.add_function("timestamp", |value: Cel| match &value {
        Cel::Timestamp(_) => Ok(value),
        Cel::Int(seconds) => {
            let time = Some(*seconds).filter(|seconds| TIMES.contains(seconds));
            let time = time.and_then(|seconds| timestamp((SignedDuration::from_secs(seconds), 0)));
            time.ok_or_else(|| ExecutionError::function_error("timestamp", "timestamp overflow"))
        }
        Cel::String(text) => kctl_apimachinery::time::parse_with_offset(text)
            .and_then(timestamp)
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
}

/// Returns the value that represents a type.
///
/// A map with the single key `TYPE`, which `type_name` recognizes.
fn type_named(name: &str) -> Cel {
    map([(TYPE.to_owned(), Cel::String(Arc::new(name.to_owned())))].into())
}
