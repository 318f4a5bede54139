//! The attributes of kctl. Each one parses, checks and emits; after an error the user's item is still there.

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

/// Makes a function that API servers ask before they store an object: `#[admission(validate)]` or `#[admission(mutate)]`. See the
/// guide for its options.
#[proc_macro_attribute]
pub fn admission(options: TokenStream, item: TokenStream) -> TokenStream {
    admission::expand(options.into(), &item.into()).into()
}

/// Makes a function convert objects of one version of a kind into another: `#[conversion]`.
#[proc_macro_attribute]
pub fn conversion(options: TokenStream, item: TokenStream) -> TokenStream {
    conversion::expand(options.into(), &item.into()).into()
}

/// Makes a controller of a reconcile function or of a struct that implements `Reconcile`. See the guide for its options.
#[proc_macro_attribute]
pub fn controller(options: TokenStream, item: TokenStream) -> TokenStream {
    controller::expand(options.into(), &item.into()).into()
}

/// Makes a resource interpreter of a function: `#[interpreter(op = InterpretReplica)]`. See the guide for its operations.
#[proc_macro_attribute]
pub fn interpreter(options: TokenStream, item: TokenStream) -> TokenStream {
    interpreter::expand(options.into(), &item.into()).into()
}

/// Makes a custom resource of the struct that is its spec. It takes every option of kube's `#[kube(…)]`.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    resource::expand_resource(&options.into(), &item.into()).into()
}

/// Makes a struct or an enum usable as a part of a custom resource.
#[proc_macro_attribute]
pub fn schema(options: TokenStream, item: TokenStream) -> TokenStream {
    resource::expand_schema(&options.into(), &item.into()).into()
}

/// Makes a simulated test of a function that returns a scenario: `#[kctl::test(seeds = 64)]`. `KCTL_SEEDS` in the environment
/// changes the number of seeds, `KCTL_SEED` replays one run.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    simulation::expand(options.into(), &item.into()).into()
}

/// Makes a struct a view of a kind: some of its fields, each with its path, read only. Its `metadata` is added.
#[proc_macro_attribute]
pub fn view(options: TokenStream, item: TokenStream) -> TokenStream {
    view::expand(options.into(), &item.into()).into()
}
