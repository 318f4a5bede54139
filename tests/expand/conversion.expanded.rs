//! Expansion of `conversion.rs`.
#[allow(
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "a conversion may be async and return a Result even if it never waits or fails"
)]
/// The old version had one host.
pub fn up(old: v1alpha1::Site) -> Result<v1::Site> {
    Ok(v1::Site {
        metadata: old.metadata,
        spec: v1::SiteSpec {
            hosts: vec![old.spec.host],
        },
    })
}
/// The old version had one host.
#[allow(missing_copy_implementations, missing_debug_implementations, reason = "a name")]
#[allow(non_camel_case_types, reason = "it has the name of its function")]
#[allow(clippy::empty_structs_with_brackets, reason = "the function is the value")]
pub struct up {}
const _: () = {
    use ::kctl::conversion::__private_0_1 as __p;
    type __From = v1alpha1::Site;
    type __To = v1::Site;
    impl __p::Converts for up {
        fn rules() -> __p::Vec<__p::Rule> {
            #[allow(unused_imports, reason = "which one is used depends on the kind")]
            use __p::{HasCrd as _, HasSchema as _, NoCrd as _};
            let (from, to) = (__p::CrdProbe::<__From>::NEW, __p::CrdProbe::<__To>::NEW);
            let about = __p::FunctionInfo::new("up", ::core::file!(), ::core::line!());
            let from = __p::Definition {
                crd: (&&from).crd(),
                schema: (&&from).schema(),
            };
            let to = __p::Definition {
                crd: (&&to).crd(),
                schema: (&&to).schema(),
            };
            __p::Vec::from([
                __p::Rule::new::<
                    __From,
                    __To,
                    _,
                    _,
                >(about, |object| async move { up(object).map_err(__p::failed) })
                    .with_definitions(from, to),
            ])
        }
    }
};
