//! Memory of a cache, measured by the allocator: bytes per object, bytes of an idle informer, and the peak during a
//! list.

mod server;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kctl_runtime::{
    object::{DECODED_BYTES_MAX, FieldMask, Kind, Readable, Stored},
    source::{Source, WatchConfig},
    store::SharedStore,
};
use kube::{Client, core::PartialObjectMeta};
use peak_alloc::PeakAlloc;
use tokio::{runtime::Runtime, task::JoinSet};

use crate::server::Fake;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Number of cached objects. With so many, the memory of the informer itself is negligible.
const OBJECTS: usize = 3_000;
/// Maximum net bytes of one cached Pod of 6 KB (3.3 KB without managedFields), including all indexes.
const POD_BYTES_MAX: usize = 650;
/// Maximum net bytes of one cached Pod that shares neither labels nor owner references with another.
const SINGLE_POD_BYTES_MAX: usize = 1_100;
/// Maximum net bytes of one cached `ConfigMap` with 2 KB of data.
const CONFIG_MAP_BYTES_MAX: usize = 830;
/// Maximum net bytes of one cached Pod with five kept fields.
const VIEW_BYTES_MAX: usize = 440;
/// Maximum net bytes of one cached Pod with its metadata alone.
const METADATA_BYTES_MAX: usize = 430;
/// Maximum bytes of an informer without objects, including the part of the client that its watch needs. State for
/// optional kinds and unreadable objects takes a tenth of it.
const INFORMER_BYTES_MAX: usize = 5_100;
/// Maximum allocation while all objects are listed, in percent of the memory that remains allocated afterwards.
const PEAK_PERCENT_MAX: usize = 120;

/// A running informer.
struct Informer {
    store: Arc<SharedStore>,
    _tasks: JoinSet<()>,
}

impl Informer {
    fn start<K: Readable>(client: &Client, field_mask: &FieldMask) -> Self {
        let store = Arc::new(SharedStore::default());
        let source = Source::new(client.clone(), WatchConfig::new(Kind::of::<K>()), store.clone());
        let source = Arc::new(source.with_field_mask(field_mask.clone()));
        // Objects are checked against their type, as in controllers.
        let _typed = source.view::<K>();
        let mut tasks = JoinSet::new();
        tasks.spawn(store.clone().write());
        tasks.spawn(async move { source.run().await });
        Self { store, _tasks: tasks }
    }
}

/// Returns the result of a step, the growth in allocated bytes after it, and the peak growth during it.
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

/// Lists and relists `n_objects` objects, and returns the bytes per object.
fn bytes_of_each<K: Readable>(n_objects: usize, make: fn(usize) -> String, field_mask: &FieldMask) -> usize {
    let runtime = runtime();
    let server = Fake::of(n_objects, make);
    let kind = Kind::of::<K>().kind;
    let client = runtime.block_on(async { server.client() });
    let (informer, steady, peak) = growth(|| {
        runtime.block_on(async {
            let informer = Informer::start::<K>(&client, field_mask);
            informer.store.wait_until_synced().await;
            server.wait_for_watches(1).await;
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

/// Decodes many objects, and returns how many bytes of decoded values remain in memory.
fn bytes_of_decoded<K: Readable>(make: fn(usize) -> String) -> usize {
    let accept = |n| Arc::new(Stored::accept(&Kind::of::<K>(), &make(n)).unwrap());
    let objects: Vec<Arc<Stored>> = (0..OBJECTS).map(accept).collect();
    let ((), bytes, _peak) = growth(|| objects.iter().for_each(|object| drop(object.decode::<K>().unwrap())));
    eprintln!("{bytes} bytes of decoded {}s", Kind::of::<K>().kind);
    bytes
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
            server.wait_for_watches(INFORMERS).await;
            // Wait until each watch has its response, because the client holds the request until then.
            tokio::time::sleep(Duration::from_secs(1)).await;
            informers
        })
    });
    eprintln!("{} bytes for an idle informer", steady / INFORMERS);
    steady / INFORMERS
}

/// A single test, because the allocations of tests that run concurrently would be counted as well.
#[test]
fn memory_is_within_its_bounds() {
    let whole = FieldMask::whole();
    let decoded = bytes_of_decoded::<Pod>(server::pod);
    assert!((DECODED_BYTES_MAX / 2..DECODED_BYTES_MAX).contains(&decoded), "{decoded} bytes of decoded Pods");
    fill_decoded::<Pod>(server::pod, &whole);
    let each = bytes_of_each::<Pod>(OBJECTS, server::pod, &whole);
    assert!(each <= POD_BYTES_MAX, "{each} bytes for a Pod");
    let few = bytes_of_each::<Pod>(OBJECTS / 2, server::pod, &whole);
    assert!(few.abs_diff(each) * 5 <= each, "{each} bytes for one of {OBJECTS} Pods, {few} for one of half of them");
    let each = bytes_of_each::<Pod>(OBJECTS, server::single_pod, &whole);
    assert!(each <= SINGLE_POD_BYTES_MAX, "{each} bytes for a Pod with an owner for itself");
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
