//! Compares the printed role with what the types of a controller grant: two products of one declaration.

use std::{collections::BTreeSet, marker::PhantomData};

use kctl_runtime::{
    manifest::{On, grants, verbs_of},
    object::{Kind, Object},
    reconcile::{Allows, Cluster, Controller, Error, ReadsLive, ReadsLiveOn, Result},
};

/// A test that the printed role of a controller is what its types grant. After the controller stand the kinds beside its
/// primary: `owns` or `uses` (what it watches and reads), and `live`; what is declared on another cluster is `uses(on = M)`.
/// Several tests in one module get names of their own.
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
/// kctl::grants_test!(configs; owns Pod, uses Node, live Secret);
///
/// #[controller(reads = Pod(delete, on = Edge), reads = Secret(live, on = Edge))]
/// async fn edges(_node: Arc<Node>, _cx: Context<edges>) -> Result<Action> {
///     Ok(Action::await_change())
/// }
/// kctl::grants_test!(fn grants_of_edges: edges; uses(on = Edge) Pod, live(on = Edge) Secret);
/// ```
#[macro_export]
macro_rules! grants_test {
    (fn $test:ident: $controller:ty $(; $($role:ident $((on = $cluster:ty))? $kind:path),+)?) => {
        #[test]
        fn $test() {
            let granted = [
                $crate::grants_test!(@verbs <$controller as $crate::reconcile::Controller>::Grant,
                    $controller, <$controller as $crate::reconcile::Controller>::Primary),
                $($($crate::grants_test!(@$role $(($cluster))? $controller, $kind)),+)?
            ];
            $crate::testing::check_grants::<$controller>(&granted.concat()).unwrap();
        }
    };
    (@owns $controller:ty, $kind:ty) => {
        $crate::grants_test!(@verbs <$controller as $crate::reconcile::Declares<$kind>>::Grant, $controller, $kind)
    };
    (@uses $controller:ty, $kind:ty) => {
        $crate::grants_test!(@verbs <$controller as $crate::reconcile::Writes<$kind>>::Grant, $controller, $kind)
    };
    (@uses ($cluster:ty) $controller:ty, $kind:ty) => {
        $crate::testing::Emitted::on::<$cluster>($crate::grants_test!(
            @verbs <$controller as $crate::reconcile::WritesOn<$cluster, $kind>>::Grant, $controller, $kind))
    };
    (@live $controller:ty, $kind:ty) => {{
        let mut granted = $crate::grants_test!(@uses $controller, $kind);
        granted.push($crate::testing::Emitted::live::<$controller, $kind>());
        granted
    }};
    (@live ($cluster:ty) $controller:ty, $kind:ty) => {{
        let mut granted = $crate::grants_test!(@uses ($cluster) $controller, $kind);
        granted.push($crate::testing::Emitted::live_on::<$controller, $cluster, $kind>());
        granted
    }};
    (@verbs $grant:ty, $controller:ty, $kind:ty) => {
        $crate::grants_test!(@each $grant, $controller, $kind;
            get list watch create update patch apply delete deletecollection status scale eviction binding token)
    };
    (@each $grant:ty, $controller:ty, $kind:ty; $($verb:ident)*) => {{
        #[allow(unused_imports, reason = "which one is used depends on the grants")]
        use $crate::testing::{Granted as _, Refused as _};
        let mut granted: ::std::vec::Vec<$crate::testing::Emitted> = ::std::vec::Vec::new();
        $(
            let probe = $crate::testing::Probe::<$grant, $crate::reconcile::verb::$verb, $controller, $kind>::NEW;
            granted.extend((&&probe).emitted(::core::stringify!($verb)));
        )*
        granted
    }};
    ($controller:ty $(; $($roles:tt)+)?) => {
        $crate::grants_test!(fn printed_role_is_what_the_types_grant: $controller $(; $($roles)+)?);
    };
}

/// A verb on a kind that the types of a controller grant.
#[derive(Debug, Clone)]
pub struct Emitted {
    cluster: &'static str,
    kind: Kind,
    verb: &'static str,
}

impl Emitted {
    /// The permissions that `live` grants.
    pub fn live<C: ReadsLive<K>, K: Object>() -> Self {
        Self { cluster: "", kind: Kind::of::<K>(), verb: "get" }
    }

    /// The permissions that `live` grants on another cluster.
    pub fn live_on<C: ReadsLiveOn<M, K>, M: Cluster, K: Object>() -> Self {
        Self { cluster: M::NAME, kind: Kind::of::<K>(), verb: "get" }
    }

    /// The same on another cluster.
    pub fn on<M: Cluster>(granted: Vec<Self>) -> Vec<Self> {
        granted.into_iter().map(|granted| Self { cluster: M::NAME, ..granted }).collect()
    }
}

/// Finds whether a grant has a verb: method lookup on `&&Probe` tries [`Granted`], then [`Refused`].
pub struct Probe<G, V, C, K>(PhantomData<(G, V, C, K)>);

impl<G, V, C, K> Probe<G, V, C, K> {
    /// The probe.
    pub const NEW: Self = Self(PhantomData);
}

/// The grant has the verb.
pub trait Granted {
    /// What it grants.
    fn emitted(&self, verb: &'static str) -> Option<Emitted>;
}

impl<G: Allows<V, C, K>, V, C, K: Object> Granted for &Probe<G, V, C, K> {
    fn emitted(&self, verb: &'static str) -> Option<Emitted> {
        Some(Emitted { cluster: "", kind: Kind::of::<K>(), verb })
    }
}

/// The grant does not have the verb.
pub trait Refused {
    /// Nothing.
    fn emitted(&self, _verb: &'static str) -> Option<Emitted> {
        None
    }
}

impl<G, V, C, K> Refused for Probe<G, V, C, K> {}

/// Compares the role of a controller with what its types grant; extra rules and what kctl itself needs are left aside.
///
/// # Errors
/// When they differ: it names what is only in one of them.
pub fn check_grants<C: Controller>(granted: &[Emitted]) -> Result<()> {
    let mut spec = C::spec();
    spec.rbac.clear();
    let mut typed = BTreeSet::new();
    for Emitted { cluster, kind, verb } in granted {
        let (subresource, verbs) = verbs_of(verb);
        typed.extend(verbs.iter().map(|verb| text(cluster, kind, subresource, verb)));
    }
    let primary = |subresource| text(&spec.primary.cluster, &spec.primary.kind, subresource, "patch");
    typed.extend(spec.has_status.then(|| primary("/status")));
    typed.extend(spec.finalizer.is_some().then(|| primary("")));

    let clusters: BTreeSet<String> = spec.relations.iter().chain([&spec.primary]).map(|r| r.cluster.clone()).collect();
    let (mut own, mut printed) = (BTreeSet::new(), BTreeSet::new());
    for cluster in &clusters {
        for grant in grants(std::slice::from_ref(&spec), cluster) {
            let On::Resource { group, resource, .. } = &grant.on else { continue };
            let told = format!("{} {resource}.{group}{}", grant.verb, at(cluster));
            if grant.framework {
                own.insert(told);
            } else {
                printed.insert(told);
            }
        }
    }
    let typed: BTreeSet<String> = typed.difference(&own).cloned().collect();
    if printed == typed {
        return Ok(());
    }
    Err(Error::from(format!(
        "the role and the types of `{}` differ: only printed {:?}, only granted {:?}",
        spec.name,
        printed.difference(&typed).collect::<Vec<_>>(),
        typed.difference(&printed).collect::<Vec<_>>(),
    )))
}

fn text(cluster: &str, kind: &Kind, subresource: &str, verb: &str) -> String {
    format!("{verb} {}{subresource}.{}{}", kind.plural, kind.group, at(cluster))
}

fn at(cluster: &str) -> String {
    if cluster.is_empty() { String::new() } else { format!(" on {cluster}") }
}
