//! Expansion of `view.rs`.
pub struct Placed {
    /// Name, namespace, uid, labels, finalizers and owners of the object; annotations only if a field reads them.
    pub metadata: ::kctl::__private_0_1::ObjectMeta,
    /// The node of the pod.
    pub node: Option<String>,
    pub team: Option<String>,
}
const _: () = {
    use ::kctl::__private_0_1 as __p;
    #[allow(
        unused_imports,
        reason = "a view may have no path through what is always there"
    )]
    use __p::Open as _;
    type __Of = Pod;
    impl __p::View for Placed {
        type Of = __Of;
        fn paths() -> &'static __p::FieldPaths {
            static PATHS: __p::LazyLock<__p::FieldPaths> = __p::LazyLock::new(|| __p::FieldPaths::new([
                __p::TypedPath::<__Of, _>::root()
                    .field("spec", |__it| &__it.spec)
                    .open()
                    .field("node_name", |__it| &__it.node_name)
                    .end::<Option<String>>(),
                __p::TypedPath::<__Of, _>::root()
                    .field("metadata", |__it| &__it.metadata)
                    .open()
                    .field("annotations", |__it| &__it.annotations)
                    .open()
                    .key("example.com/team")
                    .end::<Option<String>>(),
            ]));
            &PATHS
        }
    }
    impl __p::ViewOf<__Of> for Placed {}
    __p::resource_of!(Placed, __Of);
    impl<'de> __p::serde::Deserialize<'de> for Placed {
        fn deserialize<D: __p::serde::Deserializer<'de>>(
            __from: D,
        ) -> ::core::result::Result<Self, D::Error> {
            #[allow(unused_mut, reason = "a view may have no field")]
            let mut __parts = __p::ViewReader::read(
                <Self as __p::View>::paths(),
                __from,
            )?;
            ::core::result::Result::Ok(Self {
                metadata: __parts.metadata()?,
                node: __parts.field()?,
                team: __parts.field()?,
            })
        }
    }
};
