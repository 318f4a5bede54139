//! Expansion of `clusters.rs`.
#[allow(clippy::unused_async, reason = "a reconcile function is async")]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}
#[allow(missing_copy_implementations, missing_debug_implementations, reason = "a name")]
#[allow(non_camel_case_types, reason = "it has the name of its function")]
#[allow(clippy::empty_structs_with_brackets, reason = "the function is the value")]
struct configs {}
const _: () = {
    use ::kctl::__private_0_1 as __p;
    type __Primary = ConfigMap;
    type __K0 = Secret;
    type __K1 = Pod;
    type __K2 = Secret;
    type __K3 = Node;
    type __M1 = Edge;
    type __M2 = regions::North;
    impl __p::Controller for configs {
        type Primary = __Primary;
        type Verbs = __Verbs;
        fn spec() -> __p::ControllerSpec {
            __p::spec_of!(__Primary, "configs"; __K0 __K1 __K2 __K3)
                .primary(&[])
                .primary_on(<Edge as __p::Cluster>::NAME)
                .owns::<__K0>("owns = Secret(on = Edge)")
                .watches::<__K1>("watches = Pod(patch, on = Edge)")
                .verbs(&["patch"])
                .map(configs_of)
                .on_cluster::<__M1>()
                .live::<__K2>("reads = Secret(live, on = regions::North)")
                .on_cluster::<__M2>()
                .reads::<__K3>("reads = Node(on = \"far\")")
                .on("far")
                .build()
        }
    }
    __p::function!(
        configs, __Primary : | object, cx | __p::outcome(configs(object, cx). await)
    );
    __p::primary!(pub struct __Verbs; configs, __Primary :);
    __p::has!(configs : WritesStatus);
    __p::permission!(
        pub struct __Verbs0; configs : Caches < __K0 >, Declares < __K0 > : create update
        patch apply delete
    );
    __p::permission!(
        pub struct __Verbs1; configs : CachesOn < __K1 @ __M1 >, WritesOn < __K1 @ __M1 >
        : patch
    );
    __p::has!(configs : ReadsLiveOn < __M2, __K2 >);
    __p::permission!(pub struct __Verbs3; configs : Caches < __K3 >, Writes < __K3 > :);
};
