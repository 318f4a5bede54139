//! The library `kube`, which scripts load with `require("kube")`.
//!
//! | function | returns |
//! |---|---|
//! | `resourceAdd(a, b, …)` | the sum of quantities, as a string; nil counts as 0 |
//! | `accuratePodRequirements(template)` | the requirements of one Pod, or nil |
//! | `getPodDependencies(template, namespace)` | a list of references, or nil |
//! | `getResourceQuantity(quantity)` | a quantity as a number |
//!
//! The source is Karmada's `luavm/kube.go`. Requirements and references come from
//! [`crate::native`].

use mlua::{Lua, MultiValue, Value};

use super::Library;
use super::args::{Args, single_result};
use crate::lua::repair::{Root, repair};
use crate::lua::to_json::to_json;
use crate::lua::to_lua;
use crate::native::{pod_dependencies, pod_requirements};
use crate::quantity::Quantity;

/// The maximum number of characters that an error shows of an invalid quantity.
const QUANTITY_SHOWN_MAX: usize = 64;

pub(super) fn register(library: &Library<'_>) -> mlua::Result<()> {
    library.add("kube.resourceAdd", resource_add)?;
    library.add("kube.accuratePodRequirements", accurate_pod_requirements)?;
    library.add("kube.getPodDependencies", get_pod_dependencies)?;
    library.add("kube.getResourceQuantity", get_resource_quantity)
}

/// Reads an argument as a quantity; nil is 0.
fn quantity(args: &Args<'_>, n: usize) -> mlua::Result<Quantity> {
    match args.value(n) {
        Value::Nil => Ok(Quantity::default()),
        Value::String(_) => {
            let text = args.bounded_string(n)?.to_string_lossy();
            let wrong = |error| {
                let excerpt: String = text.chars().take(QUANTITY_SHOWN_MAX).collect();
                args.error_at_caller(format_args!("cannot parse '{excerpt}' as a quantity: {error}"))
            };
            text.parse().map_err(wrong)
        }
        _ => Err(args.type_error(n, "string")),
    }
}

/// `resourceAdd(a, b, …)`: returns the sum in canonical form.
fn resource_add(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let mut sum = Quantity::default();
    for n in 1..=args.values.len() {
        sum = sum.plus(quantity(args, n)?);
    }
    args.text(sum.to_string())
}

/// `getResourceQuantity(quantity)`: returns the value as a number, possibly rounded. A negative
/// quantity is an error, as in Karmada.
fn get_resource_quantity(args: &Args<'_>) -> mlua::Result<MultiValue> {
    if args.values.len() != 1 {
        return Err(args.error_at_caller("getResourceQuantity only accepts one argument"));
    }
    let number = quantity(args, 1)?.approximate_float64();
    if number < 0.0 {
        return Err(args.error_at_caller(format_args!("getResourceQuantity: {number} is negative")));
    }
    Ok(single_result(Value::Number(number)))
}

/// Converts the first argument to a Pod template, whose empty tables are removed.
fn pod_template(args: &Args<'_>) -> mlua::Result<serde_json::Value> {
    let table = args.table(1)?;
    args.budget.charge(TEMPLATE_STEPS)?;
    let template = without_memory_limit(args.lua, || to_json(args.lua, table, TEMPLATE_BYTES_MAX))?;
    let template = template.map_err(|error| invalid_template(args, error))?;
    Ok(repair(template, Root::Object, &[]))
}

fn invalid_template(args: &Args<'_>, error: impl std::fmt::Display) -> mlua::Error {
    args.error_at_caller(format_args!("{}: the pod template is invalid: {error}", args.name))
}

/// The maximum size of a Pod template as JSON, in bytes. etcd rejects objects over 1.5 MiB.
const TEMPLATE_BYTES_MAX: usize = 4 << 20;

/// The cost of reading a usual template, in instructions.
const TEMPLATE_STEPS: u64 = 5000;

/// Converts an answer to a Lua value; `None` is nil.
fn to_lua(args: &Args<'_>, answer: Option<impl serde::Serialize>) -> mlua::Result<MultiValue> {
    let value = serde_json::to_value(answer).map_err(|error| invalid_template(args, error))?;
    // The value is at most as large as its source, which fitted into the memory limit of the state.
    without_memory_limit(args.lua, || to_lua::to_lua(args.lua, &value, 0))?.map(single_result)
}

/// Runs a conversion without the memory limit of the state. The conversion has its own bound, and
/// with a limit each of its steps would be a protected call. An excess shows at the script's next
/// allocation.
fn without_memory_limit<T>(lua: &Lua, convert: impl FnOnce() -> T) -> mlua::Result<T> {
    let limit = lua.set_memory_limit(0)?;
    lua.gc_stop();
    let converted = convert();
    lua.gc_restart();
    lua.set_memory_limit(limit)?;
    Ok(converted)
}

/// `accuratePodRequirements(template)`: returns a table of requirements, or nil. The message for a
/// wrong number of arguments has another name, as in Karmada.
fn accurate_pod_requirements(args: &Args<'_>) -> mlua::Result<MultiValue> {
    if args.values.len() != 1 {
        return Err(args.error_at_caller("getPodRequirements only accepts one argument"));
    }
    let requirements = pod_requirements(&pod_template(args)?);
    to_lua(args, requirements.map_err(|error| invalid_template(args, error))?)
}

/// `getPodDependencies(template, namespace)`: returns a list of references, or nil if there is no
/// reference. The namespace is `default` if it is nil.
fn get_pod_dependencies(args: &Args<'_>) -> mlua::Result<MultiValue> {
    if args.values.len() != 2 {
        return Err(args.error_at_caller("getPodDependencies only accepts two argument"));
    }
    args.table(1)?;
    let namespace =
        if args.value(2).is_nil() { "default".to_owned() } else { args.bounded_string(2)?.to_string_lossy() };
    let dependencies = pod_dependencies(&pod_template(args)?, &namespace);
    let dependencies = dependencies.map_err(|error| invalid_template(args, error))?;
    to_lua(args, Some(dependencies).filter(|dependencies| !dependencies.is_empty()))
}
