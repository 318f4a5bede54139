//! The attributes of kctl. Each one parses, checks and emits; after an error the user's item is still there.

mod controller;
mod interpreter;
mod mistake;
mod resource;
mod simulation;

use proc_macro::TokenStream;

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
