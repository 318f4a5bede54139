//! The attribute macros of [kctl](https://docs.rs/kctl), which re-exports and documents them: depend on that crate.
//!
//! Each macro parses, checks and emits. After an error it still emits the user's item, so that one mistake is one error.

mod admission;
mod attribute;
mod controller;
mod conversion;
mod function;
mod interpreter;
mod mistake;
mod resource;
mod simulation;
mod source;
mod stand_in;
mod view;

use proc_macro::TokenStream;

/// Defined in `kctl-macros`; import `admission` from `kctl`.
#[proc_macro_attribute]
pub fn admission(options: TokenStream, item: TokenStream) -> TokenStream {
    admission::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import `conversion` from `kctl`.
#[proc_macro_attribute]
pub fn conversion(options: TokenStream, item: TokenStream) -> TokenStream {
    conversion::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import `controller` from `kctl`.
#[proc_macro_attribute]
pub fn controller(options: TokenStream, item: TokenStream) -> TokenStream {
    controller::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import `interpreter` from `kctl`.
#[proc_macro_attribute]
pub fn interpreter(options: TokenStream, item: TokenStream) -> TokenStream {
    interpreter::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import `resource` from `kctl`.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    resource::expand_resource(&options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import `schema` from `kctl`.
#[proc_macro_attribute]
pub fn schema(options: TokenStream, item: TokenStream) -> TokenStream {
    resource::expand_schema(&options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import `test` from `kctl`.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    simulation::expand(options.into(), &item.into()).into()
}

/// Defined in `kctl-macros`; import `view` from `kctl`.
#[proc_macro_attribute]
pub fn view(options: TokenStream, item: TokenStream) -> TokenStream {
    view::expand(options.into(), &item.into()).into()
}
