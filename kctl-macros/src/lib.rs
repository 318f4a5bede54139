//! The attribute macros of [kctl](https://docs.rs/kctl), which re-exports and documents them: depend on that crate.
//!
//! # How a macro works
//!
//! Each macro works in four steps:
//!
//! | step | input → output | may fail |
//! |---|---|---|
//! | *parse* | tokens → what the user wrote, without rules | collects syntax errors and continues |
//! | *check* | what was written → the model: plain data, valid | reports all mistakes at once, each at the smallest wrong token |
//! | *emit* | model → code | never |
//! | *recover* | errors → the user's item, stubs, and the errors | never |
//!
//! *check* and *emit* are files or folders of the attribute, except for `simulated_test`, which is one file. *parse* is
//! `controller/parse.rs` for `#[controller]`, and `attribute` for `#[admission]` and `#[interpreter]`; elsewhere *check*
//! reads the tokens, too. *recover* is `controller/stub.rs`, `marker_type`, or `expand` in the attribute's `mod.rs`.
//!
//! The stubs replace the types that the rest of the file names, such as the controller of a function. So one mistake is
//! one error, and completion in an editor works while an attribute is half typed.
//!
//! A diagnostic has three parts: what is wrong, `help:` with what to write, and a code such as `code: K0042`, which
//! the [book](https://github.com/kctl-rs/kctl/blob/main/guide/errors.md) explains:
//!
//! ```text
//! error: `#[controller]` has no option `own`
//!        help: did you mean `owns`?
//!        code: K0011
//! ```
//!
//! # Which error is reported where
//!
//! A macro sees the tokens of one item. It reports what these tokens show: names of options, forms of values,
//! contradictions. The compiler reports what needs types, through `#[diagnostic::on_unimplemented]` on traits of the
//! runtime: a verb that is not declared, a type that is not a Kubernetes kind. Tokens in generated code have the span
//! of the user's word that they depend on, so that rustc points there.
//!
//! Some checks look further than the item: `source_file` reads the file around the attribute, to find a struct that
//! lacks `#[resource]` or a callback with a wrong signature. Where the file can't be read, as in some editors, rustc
//! reports the mistake in its own words.
//!
//! # Generated code
//!
//! Generated code names types by paths into `::kctl`, mostly by way of `::kctl::__private_0_1`, which it imports as
//! `__p`. A crate that renames or re-exports kctl writes `crate = path` in the attributes that have this option.
//!
//! The generated code is kept small, so that it compiles fast and can be read: `tests/expand` in the repository has
//! examples, and `cargo expand` shows your own. Code that is the same for each use belongs in the runtime, as a
//! function, a trait or a `macro_rules!` macro.
//!
//! # Files
//!
//! | file | task |
//! |---|---|
//! | `attribute` | the parser of options of `#[admission]` and `#[interpreter]`, and parts that `#[controller]` uses |
//! | `codes` | the error codes, each with its reason |
//! | `crate_path` | the option `crate = path` |
//! | `diagnostics` | the form of an error, and "did you mean" |
//! | `function` | signatures, and types as text |
//! | `marker_type` | the type with the name of a function, and its stub after an error |
//! | `registered_function` | checks and generated items that `admission`, `conversion` and `interpreter` share |
//! | `source_file` | the file around an attribute |
//! | `admission`, `conversion`, `interpreter` | attributes on functions that the app registers |
//! | `controller` | `#[controller]`: relations, permissions, the `ControllerSpec` |
//! | `resource` | `#[resource]`, `#[schema]` and the field attributes `#[kctl(…)]` |
//! | `simulated_test` | `#[kctl::test]` |
//! | `view` | `#[view]` |
//!
//! # Where to add what
//!
//! * An option of an attribute, or a verb: [`CONTRIBUTING.md`][contributing] has the steps.
//! * An error: a line in `codes`, a case in `tests/ui`, and a section and an index line in `guide/errors.md`.
//! * A field attribute `#[kctl(…)]`: to `resource::markers::FORMS`, and to the transform in `kctl-runtime`.
//!
//! [contributing]: https://github.com/kctl-rs/kctl/blob/main/CONTRIBUTING.md#typical-changes

mod admission;
mod attribute;
mod codes;
mod controller;
mod conversion;
mod crate_path;
mod diagnostics;
mod function;
mod interpreter;
mod marker_type;
mod registered_function;
mod resource;
mod simulated_test;
mod source_file;
mod view;

use proc_macro::TokenStream;

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The function itself, callable as before, and in addition:
///
/// * a struct of the same name with braces, for `App::admission::<name>()`;
/// * `impl Admits`, with the kind, the options and a closure that calls the function;
/// * an item whose name follows from action and kind. Two functions of the same action for one kind in one module
///   share the name, so the second one is a compile error.
#[proc_macro_attribute]
pub fn admission(options: TokenStream, item: TokenStream) -> TokenStream {
    admission::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The function itself, callable as before, and in addition a struct of the same name with `impl Converts`, for
/// `App::conversion::<name>()`. The types of the parameter and the result become the two versions.
#[proc_macro_attribute]
pub fn conversion(options: TokenStream, item: TokenStream) -> TokenStream {
    conversion::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// For a function, the function itself and a struct of the same name. For a struct, the struct.
/// In addition:
///
/// * `impl Controller`, whose `spec()` returns the declaration as data: the `generate-…` commands
///   and the manager read it;
/// * one type per kind that represents its declared verbs (`Verbs`). `Context` takes it as a type parameter, which is
///   why an operation that is not declared does not compile;
/// * `impl Reconcile` for a function.
#[proc_macro_attribute]
pub fn controller(options: TokenStream, item: TokenStream) -> TokenStream {
    controller::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// The function itself, callable as before, and in addition a struct of the same name with `impl Interpreter`, for
/// `App::interpreter::<name>()`. Two functions for the same operation and kind in one module are a compile error.
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
/// The type with derives of serde and schemars, as for `#[resource]`, without kube's.
#[proc_macro_attribute]
pub fn schema(options: TokenStream, item: TokenStream) -> TokenStream {
    resource::expand_schema(&options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import it from `kctl`.
///
/// # Expansion
///
/// A `#[test]` function that builds the scenario, simulates it with each seed, and panics with the failure.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    simulated_test::expand(options.into(), &item.into()).into()
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

#[cfg(test)]
mod golden;
