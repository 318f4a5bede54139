//! What `structure.rs` expands to.
pub struct Configs {
    db: String,
}
const _: () = {
    use ::kctl::__private as __p;
    type __Primary = ConfigMap;
    type __K0 = Pod;
    impl __p::Controller for Configs {
        type Primary = __Primary;
        type Grant = __Grant;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "Configs")
                .finalizer("example.com/configs")
                .relation(
                    __p::Relation::<Self, __K0>::owns("owns = Pod(create, delete)")
                        .verbs(&["create", "delete"]),
                )
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
    impl __p::Whole for Configs {}
    pub struct __Grant;
    impl __p::WritesStatus for Configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Caches<__Primary> for Configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__Grant, Configs, __Primary :);
    __p::writes_nothing!(Configs);
    pub struct __G0;
    impl __p::Caches<__K0> for Configs {
        const SEAL: __p::Seal = __p::Seal;
    }
    impl __p::Declares<__K0> for Configs {
        type Grant = __G0;
        const SEAL: __p::Seal = __p::Seal;
    }
    __p::allows!(__G0, Configs, __K0 : create delete);
};
