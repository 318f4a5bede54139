//! Expansion of `interpreter.rs`.
#[allow(
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "an interpreter may be async and return a Result even if it never waits or fails"
)]
/// A site is healthy when all of its replicas are ready.
pub fn is_healthy(site: &Site) -> Result<bool> {
    Ok(site.status.as_ref().is_some_and(|status| status.ready == site.spec.replicas))
}
/// A site is healthy when all of its replicas are ready.
#[allow(missing_copy_implementations, missing_debug_implementations, reason = "a name")]
#[allow(non_camel_case_types, reason = "it has the name of its function")]
#[allow(clippy::empty_structs_with_brackets, reason = "the function is the value")]
pub struct is_healthy {}
#[doc(hidden)]
#[allow(
    non_camel_case_types,
    dead_code,
    reason = "only its name counts: there is one function for it"
)]
enum K0070_one_InterpretHealth_of_Site {}
const _: () = {
    use ::kctl::karmada::__private_0_1 as __p;
    type __Kind = Site;
    impl __p::Interpreter for is_healthy {
        type Transport = __p::OnTheWire;
        fn rules() -> __p::Vec<__p::Rule> {
            #[allow(unused_imports, reason = "which one is used depends on the kind")]
            use __p::{HasCrd as _, HasSchema as _, NoCrd as _};
            let probe = __p::CrdProbe::<__Kind>::NEW;
            __p::Vec::from([
                __p::Rule::read::<
                    __Kind,
                    _,
                    _,
                >(
                        __p::FunctionInfo::new(
                            __p::Operation::InterpretHealth,
                            "is_healthy",
                            ::core::file!(),
                            ::core::line!(),
                        ),
                        |object| async move {
                            __p::IntoHealth::into_result(
                                is_healthy(&object).map_err(__p::failed)?,
                            )
                        },
                    )
                    .with_definition((&&probe).crd(), (&&probe).schema()),
            ])
        }
    }
};
