//! The attribute macros of [kctl](https://docs.rs/kctl), which re-exports and documents them:
//! depend on that crate.
//!
//! Each macro works in four steps: it *parses* the options and the item, *checks* them, and *emits*
//! code. If there are errors it *recovers*: it reports all of them at once, each at the smallest
//! wrong token, and still emits the user's item with stand-ins for the types that the rest of the
//! file names. So one mistake is one error.
//!
//! A diagnostic has three parts: what is wrong, `help:` with what to write, and a code such as
//! `code: K0042`, which the [book](https://github.com/kctl-rs/kctl/blob/main/guide/errors.md)
//! explains.
//!
//! Generated code names types by paths into `::kctl`. A crate that renames or re-exports kctl
//! writes `crate = path`, in the attributes that have this option.
//!
//! The generated code is kept small, so that it compiles fast and can be read: `tests/expand` in
//! the repository has examples, and `cargo expand` shows your own.

mod admission;
mod attribute;
mod codes;
mod controller;
mod conversion;
mod crate_path;
mod diagnostics;
mod function;
#[cfg(test)]
mod golden;
mod interpreter;
mod marker_type;
mod resource;
mod simulation;
mod source;
mod view;

use proc_macro::TokenStream;

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The function itself, callable as before, and beside it:
///
/// * a unit struct of the same name, for `App::admission::<name>()`;
/// * `impl Admits`, with the kind, the options and a closure that calls the function;
/// * an item whose name two functions of the same type for one kind would share, so that the second
///   one is a compile error.
#[proc_macro_attribute]
pub fn admission(options: TokenStream, item: TokenStream) -> TokenStream {
    admission::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The function itself, callable as before, and beside it a unit struct of the same name with `impl
/// Converts`, for `App::conversion::<name>()`. The types of the parameter and the result become the
/// two versions.
#[proc_macro_attribute]
pub fn conversion(options: TokenStream, item: TokenStream) -> TokenStream {
    conversion::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// For a function, the function itself and a struct of the same name. For a struct, the struct.
/// Beside it:
///
/// * `impl Controller`, whose `spec()` returns the declaration as data: the `generate-…` commands
///   and the manager read it;
/// * one *grant* type per kind, with the declared verbs. `Context` takes it as a type parameter,
///   which is why an operation that is not declared does not compile;
/// * `impl Reconcile` for a function.
#[proc_macro_attribute]
pub fn controller(options: TokenStream, item: TokenStream) -> TokenStream {
    controller::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The function itself, callable as before, and beside it a unit struct of the same name with `impl
/// Interpreter`, for `App::interpreter::<name>()`. Two functions for the same operation and kind in
/// one module are a compile error.
#[proc_macro_attribute]
pub fn interpreter(options: TokenStream, item: TokenStream) -> TokenStream {
    interpreter::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The struct with derives of serde, schemars and kube, whose paths lead into `kctl`: your crate
/// needs none of these dependencies. `#[kctl(…)]` becomes transformations of the schema, and
/// `Option` fields get `skip_serializing_if`.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    resource::expand_resource(&options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The type with derives of serde and schemars, as for `#[resource]`, without the one of kube.
#[proc_macro_attribute]
pub fn schema(options: TokenStream, item: TokenStream) -> TokenStream {
    resource::expand_schema(&options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// A `#[test]` function that builds the scenario, runs it, and panics with the failure.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    simulation::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The struct with the additional field `metadata`, `impl View` with the JSON paths of its fields,
/// and `Deserialize`, which reads only these paths. The compiler checks each path against the kind.
#[proc_macro_attribute]
pub fn view(options: TokenStream, item: TokenStream) -> TokenStream {
    view::expand(options.into(), &item.into()).into()
}
