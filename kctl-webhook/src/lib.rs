//! Webhooks from functions: what API servers ask before they store an object, or when they show it in another version. And who asks
//! those of others.

#[cfg(feature = "function")]
pub mod admission;
#[cfg(feature = "function")]
mod call;
pub mod change;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "connections")]
pub mod connections;
#[cfg(feature = "function")]
pub mod conversion;
#[cfg(feature = "giving-way")]
pub mod giving_way;
#[cfg(feature = "function")]
mod kind;
#[cfg(feature = "function")]
mod metrics;
#[cfg(feature = "function")]
pub mod rotation;
#[cfg(feature = "function")]
mod routes;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "connections")]
pub mod slots;

#[cfg(feature = "function")]
pub use self::{
    call::About,
    kind::{Definition, Kind, MakeDefinition},
    metrics::Metrics,
    routes::routes,
};

/// Tuples of functions are functions, up to a dozen.
#[cfg(feature = "function")]
macro_rules! tuples {
    ($function:ident, $rule:ident) => {
        crate::tuples!($function, $rule, A B C D E F G H I J K L);
    };
    ($function:ident, $rule:ident,) => {};
    ($function:ident, $rule:ident, $first:ident $($name:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$first: $function, $($name: $function),*> $function for ($first, $($name,)*) {
            fn rules() -> Vec<$rule> {
                [$first::rules(), $($name::rules()),*].into_iter().flatten().collect()
            }
        }
        crate::tuples!($function, $rule, $($name)*);
    };
}
#[cfg(feature = "function")]
pub(crate) use tuples;
