//! Expansion of `structure.rs`.
pub struct Configs {
    db: String,
}
const _: () = {
    use ::kctl::__private_0_1 as __p;
    type __Primary = ConfigMap;
    type __K0 = Pod;
    impl __p::Controller for Configs {
        type Primary = __Primary;
        type Verbs = __Verbs;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "Configs"; __K0)
                .finalizer("example.com/configs")
                .owns::<__K0>("owns = Pod(create, delete)")
                .verbs(&["create", "delete"])
                .build()
        }
        fn finalize_fn() -> ::core::option::Option<__p::FinalizeFn<Self>> {
            ::core::option::Option::Some(__p::finalize_fn::<Self>())
        }
    }
    impl __p::DeclaresFinalizer for Configs {}
    const _: fn() = || {
        fn is_reconcile<C: __p::Reconcile>() {}
        is_reconcile::<Configs>();
    };
    __p::primary!(pub struct __Verbs; Configs, __Primary :);
    __p::has!(Configs : WritesStatus);
    __p::writes_nothing!(Configs);
    __p::permission!(
        pub struct __Verbs0; Configs : Caches < __K0 >, Declares < __K0 > : create delete
    );
};
