//! Compares the generated role with the verbs that the types of a controller allow: two products of
//! one declaration.
//!
//! `#[controller(…)]` generates a [`ControllerSpec`](kctl_runtime::spec::ControllerSpec), from
//! which the role is printed, and types, from which the compiler decides which operations compile.
//! [`permissions_test!`](crate::permissions_test) fails when the two disagree.
//!
//! The macro asks the compiler about each verb with *autoref specialization*. Method lookup on
//! `&&Probe` prefers [`Allowed`], which has a bound, and falls back to [`Denied`], which has none.

use std::{collections::BTreeSet, marker::PhantomData};

use kctl_runtime::{
    manifest::{PermissionTarget, permissions, verbs_of},
    object::{Kind, Object},
    reconcile::{Allows, Cluster, Controller, Error, ReadsLive, ReadsLiveOn, Result},
};

/// Generates a test that the printed role of a controller equals the verbs that its types allow.
///
/// List the kinds after the controller and a semicolon. The primary is always included; its kind is
/// not written.
///
/// * `owns K` for a kind of `owns = K(…)`.
/// * `uses K` for a kind of `watches` or `reads`.
/// * `live K` for a kind of `reads = K(live)`.
/// * `uses(on = M) K` and `live(on = M) K` for a kind on another
///   [cluster](crate::reconcile::Cluster).
///
/// Several tests in one module need names: `fn name: controller; …`. Rules of `rbac(…)` and
/// permissions that kctl itself needs, such as those on events, are not compared.
///
/// Most projects don't need this macro: the declaration is the single source of both. It is a guard
/// for code that names verbs in two places, such as macros of your own.
/// [`role_tests!`](crate::role_tests) tests the role against what a program does.
///
/// ```
/// # use kctl::prelude::*;
/// # pub struct Edge;
/// # impl Cluster for Edge {
/// #     const NAME: &'static str = "edge";
/// # }
/// #[controller(owns = Pod(create), reads = Node(patch), reads = Secret(live))]
/// async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
///     Ok(Action::await_change())
/// }
/// kctl::permissions_test!(configs; owns Pod, uses Node, live Secret);
///
/// #[controller(reads = Pod(delete, on = Edge), reads = Secret(live, on = Edge))]
/// async fn edges(_node: Arc<Node>, _cx: Context<edges>) -> Result<Action> {
///     Ok(Action::await_change())
/// }
/// kctl::permissions_test!(fn permissions_of_edges: edges; uses(on = Edge) Pod, live(on = Edge) Secret);
/// ```
#[macro_export]
macro_rules! permissions_test {
    (fn $test:ident: $controller:ty $(; $($role:ident $((on = $cluster:ty))? $kind:path),+)?) => {
        #[test]
        fn $test() {
            let allowed = [
                $crate::permissions_test!(@verbs <$controller as $crate::reconcile::Controller>::Verbs,
                    $controller, <$controller as $crate::reconcile::Controller>::Primary),
                $($($crate::permissions_test!(@$role $(($cluster))? $controller, $kind)),+)?
            ];
            $crate::testing::check_permissions::<$controller>(&allowed.concat()).unwrap();
        }
    };
    (@owns $controller:ty, $kind:ty) => {
        $crate::permissions_test!(@verbs <$controller as $crate::reconcile::bounds::Declares<$kind>>::Verbs, $controller, $kind)
    };
    (@uses $controller:ty, $kind:ty) => {
        $crate::permissions_test!(@verbs <$controller as $crate::reconcile::Writes<$kind>>::Verbs, $controller, $kind)
    };
    (@uses ($cluster:ty) $controller:ty, $kind:ty) => {
        $crate::testing::AllowedVerb::on::<$cluster>($crate::permissions_test!(
            @verbs <$controller as $crate::reconcile::bounds::WritesOn<$cluster, $kind>>::Verbs, $controller, $kind))
    };
    (@live $controller:ty, $kind:ty) => {
        ::std::vec![$crate::testing::AllowedVerb::live::<$controller, $kind>()]
    };
    (@live ($cluster:ty) $controller:ty, $kind:ty) => {
        ::std::vec![$crate::testing::AllowedVerb::live_on::<$controller, $cluster, $kind>()]
    };
    (@verbs $verbs:ty, $controller:ty, $kind:ty) => {
        $crate::permissions_test!(@each $verbs, $controller, $kind;
            get list watch create update patch apply delete deletecollection status scale eviction binding token)
    };
    (@each $verbs:ty, $controller:ty, $kind:ty; $($verb:ident)*) => {{
        #[allow(unused_imports, reason = "which one is used depends on the verbs")]
        use $crate::testing::{Allowed as _, Denied as _};
        let mut allowed: ::std::vec::Vec<$crate::testing::AllowedVerb> = ::std::vec::Vec::new();
        $(
            let probe = $crate::testing::Probe::<$verbs, $crate::__private_0_1::verb::$verb, $controller, $kind>::NEW;
            allowed.extend((&&probe).allowed_verb(::core::stringify!($verb)));
        )*
        allowed
    }};
    ($controller:ty $(; $($roles:tt)+)?) => {
        $crate::permissions_test!(fn printed_role_is_what_the_types_grant: $controller $(; $($roles)+)?);
    };
}

/// One verb on one kind that the types of a controller allow.
#[derive(Debug, Clone)]
pub struct AllowedVerb {
    /// Name of the cluster; empty for the one that the app is started against.
    cluster: &'static str,
    kind: Kind,
    verb: &'static str,
}

impl AllowedVerb {
    /// Returns the verb of `reads = K(live)`: `get`. It compiles only if `C` may read `K` live.
    pub fn live<C: ReadsLive<K>, K: Object>() -> Self {
        Self { cluster: "", kind: Kind::of::<K>(), verb: "get" }
    }

    /// Returns the verb of `reads = K(live, on = M)`: `get` on cluster `M`.
    pub fn live_on<C: ReadsLiveOn<M, K>, M: Cluster, K: Object>() -> Self {
        Self { cluster: M::NAME, kind: Kind::of::<K>(), verb: "get" }
    }

    /// Moves verbs to cluster `M`, since the macro collects them without one.
    pub fn on<M: Cluster>(allowed: Vec<Self>) -> Vec<Self> {
        allowed.into_iter().map(|allowed| Self { cluster: M::NAME, ..allowed }).collect()
    }
}

/// Asks the compiler whether the verbs `G` contain verb `V` for controller `C` and kind `K`.
///
/// Method lookup on `&&Probe` tries [`Allowed`] first, then [`Denied`].
pub struct Probe<G, V, C, K>(PhantomData<(G, V, C, K)>);

impl<G, V, C, K> std::fmt::Debug for Probe<G, V, C, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").finish_non_exhaustive()
    }
}

impl<G, V, C, K> Probe<G, V, C, K> {
    /// The only value; all information is in the type parameters.
    pub const NEW: Self = Self(PhantomData);
}

/// Implemented for a [`Probe`] whose verbs contain this one.
pub trait Allowed {
    /// Returns the verb for the kind of the probe. The macro adds the cluster.
    fn allowed_verb(&self, verb: &'static str) -> Option<AllowedVerb>;
}

impl<G: Allows<V, C, K>, V, C, K: Object> Allowed for &Probe<G, V, C, K> {
    fn allowed_verb(&self, verb: &'static str) -> Option<AllowedVerb> {
        Some(AllowedVerb { cluster: "", kind: Kind::of::<K>(), verb })
    }
}

/// Implemented for every [`Probe`], with the lower priority: its verbs do not contain this one.
pub trait Denied {
    /// Returns `None`.
    fn allowed_verb(&self, _verb: &'static str) -> Option<AllowedVerb> {
        None
    }
}

impl<G, V, C, K> Denied for Probe<G, V, C, K> {}

/// Compares the role of a controller with what its types allow;
/// [`permissions_test!`](crate::permissions_test) calls it.
///
/// Extra rules (`rbac(…)`) and permissions of the framework are left out on both sides.
///
/// # Errors
/// The two differ. The error lists the rules that only the role has, and those that only the types
/// allow.
pub fn check_permissions<C: Controller>(allowed: &[AllowedVerb]) -> Result<()> {
    let mut spec = C::spec();
    spec.rbac.clear();
    let mut typed = BTreeSet::new();
    for AllowedVerb { cluster, kind, verb } in allowed {
        let (subresource, verbs) = verbs_of(verb);
        typed.extend(verbs.iter().map(|verb| text(cluster, kind, subresource, verb)));
    }
    let primary = |subresource| text(&spec.primary.cluster, &spec.primary.kind, subresource, "patch");
    typed.extend(spec.has_status.then(|| primary("/status")));
    typed.extend(spec.finalizer.is_some().then(|| primary("")));

    let clusters: BTreeSet<String> = spec.relations.iter().chain([&spec.primary]).map(|r| r.cluster.clone()).collect();
    let (mut own, mut printed) = (BTreeSet::new(), BTreeSet::new());
    for cluster in &clusters {
        for permission in permissions(std::slice::from_ref(&spec), cluster) {
            let PermissionTarget::Resource { group, resource, .. } = &permission.target else { continue };
            let text = format!("{} {resource}.{group}{}", permission.verb, on_cluster(cluster));
            if permission.framework {
                own.insert(text);
            } else {
                printed.insert(text);
            }
        }
    }
    let typed: BTreeSet<String> = typed.difference(&own).cloned().collect();
    if printed == typed {
        return Ok(());
    }
    Err(Error::from(format!(
        "the role and the types of `{}` differ: only printed {:?}, only allowed {:?}",
        spec.name,
        printed.difference(&typed).collect::<Vec<_>>(),
        typed.difference(&printed).collect::<Vec<_>>(),
    )))
}

/// Formats a rule so that both sides compare as strings: `get pods. on edge`, `patch
/// sites/status.example.com`.
fn text(cluster: &str, kind: &Kind, subresource: &str, verb: &str) -> String {
    format!("{verb} {}{subresource}.{}{}", kind.plural, kind.group, on_cluster(cluster))
}

fn on_cluster(cluster: &str) -> String {
    if cluster.is_empty() { String::new() } else { format!(" on {cluster}") }
}
