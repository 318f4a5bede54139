//! Expansion of `admission.rs`.
#[allow(
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "an admission function may be async and return a Result even if it never waits or fails"
)]
pub fn defaults(site: &mut Site, request: &Admission<Site>) {
    site.spec.replicas.get_or_insert(2);
}
#[allow(missing_copy_implementations, missing_debug_implementations, reason = "a name")]
#[allow(non_camel_case_types, reason = "it has the name of its function")]
#[allow(clippy::empty_structs_with_brackets, reason = "the function is the value")]
pub struct defaults {}
#[doc(hidden)]
#[allow(
    non_camel_case_types,
    dead_code,
    reason = "only its name counts: there is one function for it"
)]
enum K0109_one_mutate_of_Site {}
const _: () = {
    use ::kctl::admission::__private_0_1 as __p;
    type __Kind = Site;
    impl __p::Admits for defaults {
        fn webhooks() -> __p::Vec<__p::Webhook> {
            #[allow(unused_imports, reason = "which one is used depends on the kind")]
            use __p::{HasCrd as _, HasSchema as _, NoCrd as _};
            let probe = __p::CrdProbe::<__Kind>::NEW;
            let mut options = __p::Options::new(__p::Action::Mutate);
            options.timeout_seconds = 3;
            let definition = __p::Definition {
                crd: (&&probe).crd(),
                schema: (&&probe).schema(),
            };
            __p::Vec::from([
                __p::Webhook::object::<
                    __Kind,
                    _,
                    _,
                >(
                        __p::FunctionInfo::new(
                            "defaults",
                            ::core::file!(),
                            ::core::line!(),
                        ),
                        options,
                        |mut object, request| async move {
                            __p::IntoAdmissionResult::into_result(
                                defaults(&mut object, &request),
                            )?;
                            __p::Ok(object)
                        },
                    )
                    .with_definition(definition),
            ])
        }
    }
};
