//! The memory of a cache, counted by the allocator: bytes of each object and of an idle informer, and the peak while it is listed.

mod server;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kctl_runtime::{
    object::{FieldMask, Kind, Readable},
    source::{Identity, Source},
    store::SharedStore,
};
use kube::{Client, core::PartialObjectMeta};
use peak_alloc::PeakAlloc;
use tokio::{runtime::Runtime, task::JoinSet};

use crate::server::Fake;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// So many objects make what an informer takes without any of them small beside them.
const OBJECTS: usize = 3_000;
/// Net bytes of one cached object of 6 KB (3.3 KB without managedFields), all indexes included.
const POD_BYTES_MAX: usize = 650;
/// The same of one whose data are 2 KB.
const CONFIG_MAP_BYTES_MAX: usize = 830;
/// The same of a Pod of which five fields are kept.
const VIEW_BYTES_MAX: usize = 440;
/// The same of a Pod of which the metadata is kept.
const METADATA_BYTES_MAX: usize = 430;
/// Bytes of an informer without objects, with the part of the client that its watch needs. The state of optional and of
/// unreadable objects is a tenth of it.
const INFORMER_BYTES_MAX: usize = 4_850;
/// The most that is allocated while all objects are listed, over what is kept.
const PEAK_PERCENT_MAX: usize = 120;

/// An informer that runs.
struct Informer {
    store: Arc<SharedStore>,
    _tasks: JoinSet<()>,
}

impl Informer {
    fn start<K: Readable>(client: &Client, field_mask: &FieldMask) -> Self {
        let store = Arc::new(SharedStore::default());
        let source = Source::new(client.clone(), Identity::all(Kind::of::<K>()), store.clone());
        let source = Arc::new(source.with_field_mask(field_mask.clone()));
        // As controllers do: objects are checked against their type.
        let _typed = source.view::<K>();
        let mut tasks = JoinSet::new();
        tasks.spawn(store.clone().write());
        tasks.spawn(async move { source.run().await });
        Self { store, _tasks: tasks }
    }
}

/// Returns the result of a step, and the bytes that were allocated more than before it: after the step, and at most.
fn growth<T>(step: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let kept = step();
    (kept, MEMORY.current_usage().saturating_sub(before), MEMORY.peak_usage().saturating_sub(before))
}

fn percent(peak: usize, steady: usize) -> usize {
    peak * 100 / steady
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Fills the cache of decoded objects, whose size does not depend on the number of cached objects.
fn fill_decoded<K: Readable>(make: fn(usize) -> String, field_mask: &FieldMask) {
    let (runtime, server) = (runtime(), Fake::of(OBJECTS / 2, make));
    runtime.block_on(async {
        let informer = Informer::start::<K>(&server.client(), field_mask);
        informer.store.wait_until_synced().await;
    });
}

/// Lists and relists so many objects; what each of them takes.
fn bytes_of_each<K: Readable>(n_objects: usize, make: fn(usize) -> String, field_mask: &FieldMask) -> usize {
    let runtime = runtime();
    let server = Fake::of(n_objects, make);
    let kind = Kind::of::<K>().kind;
    let client = runtime.block_on(async { server.client() });
    let (informer, steady, peak) = growth(|| {
        runtime.block_on(async {
            let informer = Informer::start::<K>(&client, field_mask);
            informer.store.wait_until_synced().await;
            server.watched(1).await;
            informer
        })
    });
    assert_eq!(informer.store.len(), n_objects);
    let (list, each) = (percent(peak, steady), steady / n_objects);
    assert!(list <= PEAK_PERCENT_MAX, "{kind}: while listing {list} % of what {n_objects} objects take");

    let ((), more, peak) = growth(|| runtime.block_on(server.expire()));
    assert_eq!(server.n_lists(), 2);
    let relist = percent(steady + peak, steady);
    assert!(relist <= PEAK_PERCENT_MAX, "{kind}: while relisting {relist} % of what {n_objects} objects take");
    assert!(more < steady / 20, "{kind}: a relist that changes nothing keeps {more} bytes more");
    eprintln!("{n_objects} {kind}s: {each} bytes each, {list} % while listing, {relist} % while relisting");
    each
}

fn bytes_of_an_idle_informer() -> usize {
    const INFORMERS: usize = 100;
    let runtime = runtime();
    let server = Fake::of(0, server::pod);
    let client = runtime.block_on(async { server.client() });
    let (_informers, steady, _peak) = growth(|| {
        runtime.block_on(async {
            let informers: Vec<_> =
                (0..INFORMERS).map(|_| Informer::start::<Pod>(&client, &FieldMask::whole())).collect();
            server.watched(INFORMERS).await;
            // Until each has its answer: before that it holds the request as well.
            tokio::time::sleep(Duration::from_secs(1)).await;
            informers
        })
    });
    eprintln!("{} bytes for an idle informer", steady / INFORMERS);
    steady / INFORMERS
}

/// One test: what others do at the same time would be counted, too.
#[test]
fn memory_stays_within_its_bounds() {
    let whole = FieldMask::whole();
    fill_decoded::<Pod>(server::pod, &whole);
    let each = bytes_of_each::<Pod>(OBJECTS, server::pod, &whole);
    assert!(each <= POD_BYTES_MAX, "{each} bytes for a Pod");
    let few = bytes_of_each::<Pod>(OBJECTS / 2, server::pod, &whole);
    assert!(few.abs_diff(each) * 5 <= each, "{each} bytes for one of {OBJECTS} Pods, {few} for one of half of them");
    fill_decoded::<ConfigMap>(server::config_map, &whole);
    let each = bytes_of_each::<ConfigMap>(OBJECTS, server::config_map, &whole);
    assert!(each <= CONFIG_MAP_BYTES_MAX, "{each} bytes for a ConfigMap");
    let metadata = FieldMask::metadata();
    fill_decoded::<PartialObjectMeta<Pod>>(server::pod, &metadata);
    let each = bytes_of_each::<PartialObjectMeta<Pod>>(OBJECTS, server::pod, &metadata);
    assert!(each <= METADATA_BYTES_MAX, "{each} bytes for the metadata of a Pod");
    let fields = ["spec.nodeName", "spec.priority", "status.phase", "status.podIP", "status.startTime"];
    let view = FieldMask::fields(fields.map(|path| path.split('.')));
    fill_decoded::<PartialObjectMeta<Pod>>(server::pod, &view);
    let each = bytes_of_each::<PartialObjectMeta<Pod>>(OBJECTS, server::pod, &view);
    assert!(each <= VIEW_BYTES_MAX, "{each} bytes for a view of a Pod");
    let informer = bytes_of_an_idle_informer();
    assert!(informer <= INFORMER_BYTES_MAX, "{informer} bytes for an idle informer");
}
