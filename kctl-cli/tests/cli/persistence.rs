//! `kctl apiserver --data`: acknowledged writes survive a kill at any moment, and a corrupt file is rejected.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, TokenRequest},
    core::v1::{ConfigMap, ServiceAccount},
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const N_KILLS: usize = 30;
const N_WRITERS: usize = 4;
/// Number of objects per writer. Each write creates, changes or deletes one of them.
const N_NAMES: usize = 5;
/// Longest time for which a server runs before it is killed.
const LIFE_MS_MAX: u64 = 150;
/// Time limit for a server's start and for its responses.
const TIMEOUT: Duration = Duration::from_secs(60);
const FILE: &str = "objects.jsonl";

/// A seeded generator (splitmix64), which returns the same sequence for the same seed.
#[derive(Clone)]
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % n
    }
}

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kctl-persistence-{name}-{}", std::process::id()));
        let _absent = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kctl"));
        command.arg("apiserver").arg("--data").arg(self.data());
        command.arg("--write-kubeconfig").arg(self.0.join("kubeconfig"));
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

/// A server process, killed with `SIGKILL` when it is dropped.
struct Server(Child);

impl Server {
    fn start(folder: &Folder) -> Self {
        let mut child = folder.command().stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("serving https://"), "{line:?}");
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _over = self.0.kill();
        let _status = self.0.wait();
    }
}

async fn config(kubeconfig: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    // A write without a response must not be retried: the test has to know which write is unacknowledged.
    config.default_retry = false;
    config
}

async fn configs(folder: &Folder) -> Api<ConfigMap> {
    Api::default_namespaced(Client::try_from(config(&folder.0.join("kubeconfig")).await).unwrap())
}

/// The content of an object after a write; `None` if it was deleted.
type State = Option<String>;

/// The objects of a writer, as confirmed by responses.
#[derive(Clone, Default)]
struct Known {
    answered: BTreeMap<String, State>,
    /// The write without a response. The server may or may not have stored it.
    open: Option<(String, State)>,
    /// The highest `resourceVersion` in a response.
    version: u64,
    n_writes: u64,
}

impl Known {
    fn allows(&self, name: &str, found: &State) -> bool {
        let answered = self.answered.get(name).cloned().flatten();
        *found == answered || self.open.as_ref().is_some_and(|(of, state)| of == name && state == found)
    }

    /// Takes the state after the restart as the new reference.
    fn learn(&mut self, found: &BTreeMap<String, String>) {
        self.open = None;
        for (name, state) in &mut self.answered {
            *state = found.get(name).cloned();
        }
    }
}

fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Writes until the server is killed.
async fn write(configs: Api<ConfigMap>, writer: usize, mut known: Known, mut rng: Rng) -> Known {
    loop {
        let name = format!("config-{writer}-{}", rng.below(N_NAMES as u64));
        known.n_writes += 1;
        let text = format!("{writer}/{}", known.n_writes);
        let data = Some(BTreeMap::from([("text".to_owned(), text.clone())]));
        let exists = known.answered.get(&name).is_some_and(Option::is_some);
        let deletes = exists && rng.below(4) == 0;
        known.answered.entry(name.clone()).or_default();
        known.open = Some((name.clone(), (!deletes).then_some(text)));
        let written = if deletes {
            configs.delete(&name, &DeleteParams::default()).await.map(|_| None)
        } else if exists {
            let patch = Patch::Merge(json!({ "data": data }));
            configs.patch(&name, &PatchParams::default(), &patch).await.map(Some)
        } else {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let config = ConfigMap { metadata, data, ..ConfigMap::default() };
            configs.create(&PostParams::default(), &config).await.map(Some)
        };
        match written {
            Ok(object) => {
                known.version = object.map_or(known.version, |object| known.version.max(version(&object.metadata)));
                let (name, state) = known.open.take().unwrap();
                known.answered.insert(name, state);
            }
            Err(kube::Error::Api(status)) => panic!("{name}: {status}"),
            Err(_gone) => return known,
        }
    }
}

/// Checks that the server has all acknowledged writes, and updates the writers to the server's state.
async fn check(configs: &Api<ConfigMap>, writers: &mut [Known], kill: usize) {
    let list = configs.list(&ListParams::default()).await.unwrap();
    let text = |config: &ConfigMap| config.data.as_ref().and_then(|data| data.get("text").cloned()).unwrap_or_default();
    // The server's controllers write this ConfigMap.
    let written = list.items.iter().filter(|config| config.metadata.name.as_deref() != Some("kube-root-ca.crt"));
    let found: BTreeMap<String, String> =
        written.map(|config| (config.metadata.name.clone().unwrap_or_default(), text(config))).collect();
    let newest: u64 = list.metadata.resource_version.as_deref().unwrap().parse().unwrap();
    for known in writers.iter_mut() {
        for name in known.answered.keys() {
            let state = found.get(name).cloned();
            let answered = &known.answered[name];
            assert!(known.allows(name, &state), "kill {kill}: {name} is {state:?}, was answered {answered:?}");
        }
        assert!(newest >= known.version, "kill {kill}: the server is at {newest}, and {} was answered", known.version);
        known.learn(&found);
    }
    let all: usize = writers.iter().map(|known| known.answered.values().flatten().count()).sum();
    assert_eq!(all, found.len(), "kill {kill}: {found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_a_kill_at_any_moment() {
    let folder = Folder::new("kills");
    let seed = std::env::var("PERSISTENCE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut rng = Rng(seed);
    let mut writers = vec![Known::default(); N_WRITERS];
    for kill in 0..N_KILLS {
        let server = Server::start(&folder);
        let configs = configs(&folder).await;
        tokio::time::timeout(TIMEOUT, check(&configs, &mut writers, kill)).await.unwrap();
        let mut tasks = JoinSet::new();
        for (index, known) in std::mem::take(&mut writers).into_iter().enumerate() {
            let own = Rng(rng.below(u64::MAX));
            let configs = configs.clone();
            tasks.spawn(async move { (index, write(configs, index, known, own).await) });
        }
        tokio::time::sleep(Duration::from_millis(rng.below(LIFE_MS_MAX))).await;
        drop(server);
        let mut known = tokio::time::timeout(TIMEOUT, tasks.join_all()).await.unwrap();
        known.sort_by_key(|(index, _)| *index);
        writers = known.into_iter().map(|(_, known)| known).collect();
    }
    let _server = Server::start(&folder);
    check(&configs(&folder).await, &mut writers, N_KILLS).await;
    let n_writes: u64 = writers.iter().map(|known| known.n_writes).sum();
    assert!(n_writes > u64::try_from(N_KILLS).unwrap(), "{n_writes} writes are too few");
}

/// A function that corrupts the content of a file.
type Breaks = fn(&mut Vec<u8>);

/// Returns a folder that a server has written, after `breaks` has changed its data file.
fn broken(name: &str, breaks: impl Fn(&mut Vec<u8>)) -> Folder {
    let folder = Folder::new(name);
    drop(Server::start(&folder));
    let file = folder.data().join(FILE);
    let mut bytes = fs::read(&file).unwrap();
    breaks(&mut bytes);
    File::create(&file).unwrap().write_all(&bytes).unwrap();
    folder
}

/// Returns group, resource and key of the object in each complete line of a data file.
fn objects_in(bytes: &[u8]) -> BTreeSet<String> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let lines = bytes[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let objects = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    let present = objects.filter(|line| !line["object"].is_null());
    present.map(|line| format!("{} {} {}", line["group"], line["resource"], line["key"])).collect()
}

#[test]
fn corrupt_data_file_is_rejected_and_unchanged() {
    let cases: [(&str, Breaks, bool); 4] = [
        ("first", |bytes| bytes[0] = b'x', true),
        (
            "middle",
            |bytes| {
                let at = bytes.len() / 2;
                bytes[at..at + 20].fill(0);
            },
            false,
        ),
        // The line ends with a newline, so its write was acknowledged and must not be dropped.
        (
            "last",
            |bytes| {
                let at = bytes.len() - 3;
                bytes[at] = b'[';
            },
            false,
        ),
        ("strange", |bytes| bytes.extend_from_slice(b"{\"revision\":\"many\"}\n"), false),
    ];
    for (name, breaks, is_first) in cases {
        let folder = broken(name, breaks);
        let file = folder.data().join(FILE);
        let before = fs::read(&file).unwrap();
        let Output { status, stderr, .. } = folder.command().output().unwrap();
        let message = String::from_utf8(stderr).unwrap();
        let place =
            if is_first { format!("{}: line 1 cannot be read", file.display()) } else { " cannot be read".into() };
        assert!(message.contains(&place) && message.contains("restore a copy of the folder"), "{name}: {message}");
        assert_eq!(status.code(), Some(1), "{name}");
        assert_eq!(fs::read(&file).unwrap(), before, "{name}: the file is changed");
    }
}

#[test]
fn line_cut_off_by_a_kill_is_ignored() {
    const CUT_OFF: &[u8] = b"{\"revision\":9,\"group\":\"\",\"resour";
    let folder = broken("cut", |bytes| bytes.extend_from_slice(CUT_OFF));
    let file = folder.data().join(FILE);
    let before = objects_in(&fs::read(&file).unwrap());
    drop(Server::start(&folder));
    let after = fs::read(&file).unwrap();
    // A controller may have written more: the first server was killed as soon as it was ready.
    assert!(objects_in(&after).is_superset(&before), "acknowledged writes are kept");
    assert!(!after.windows(CUT_OFF.len()).any(|bytes| bytes == CUT_OFF), "the incomplete line is dropped");
}

/// Returns the user name under which the server knows the client.
async fn who(config: Config) -> Result<String, kube::Error> {
    let reviews = Api::<SelfSubjectReview>::all(Client::try_from(config).unwrap());
    let (params, question) = (PostParams::default(), SelfSubjectReview::default());
    let found = tokio::time::timeout(TIMEOUT, reviews.create(&params, &question)).await.unwrap()?;
    Ok(found.status.unwrap().user_info.unwrap().username.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn kubeconfig_and_token_survive_a_kill() {
    let folder = Folder::new("clients");
    let server = Server::start(&folder);
    let old = folder.0.join("old-kubeconfig");
    fs::copy(folder.0.join("kubeconfig"), &old).unwrap();
    let accounts = Api::<ServiceAccount>::default_namespaced(Client::try_from(config(&old).await).unwrap());
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some("robot".into()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let token = accounts.create_token_request("robot", &PostParams::default(), &TokenRequest::default()).await.unwrap();
    drop(server);

    let _server = Server::start(&folder);
    let admin = config(&old).await;
    let mut robot = admin.clone();
    robot.auth_info = kube::config::AuthInfo::default();
    robot.auth_info.token = token.status.unwrap().token.map(Into::into);
    assert_eq!(who(robot).await.unwrap(), "system:serviceaccount:default:robot");
    assert_eq!(who(admin).await.unwrap(), "kubernetes-admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_port_changes_if_it_is_in_use() {
    let folder = Folder::new("port");
    let server = Server::start(&folder);
    let port = || fs::read_to_string(folder.data().join("port")).unwrap().trim().parse::<u16>().unwrap();
    let first = port();
    drop(server);
    let taken = std::net::TcpListener::bind(("127.0.0.1", first)).unwrap();
    let _server = Server::start(&folder);
    assert_ne!(port(), first);
    configs(&folder).await.list(&ListParams::default()).await.unwrap();
    drop(taken);
}

#[test]
fn folder_with_broken_certificates_or_port_is_rejected() {
    for (name, text, why) in
        [("identity.pem", "-----BEGIN", "restore a copy"), ("port", "many", "\"many\" is not a port; remove the file")]
    {
        let folder = Folder::new(&format!("broken-{name}"));
        drop(Server::start(&folder));
        let file = folder.data().join(name);
        fs::write(&file, text).unwrap();
        let Output { status, stderr, .. } = folder.command().output().unwrap();
        let message = String::from_utf8(stderr).unwrap();
        assert!(message.contains(&format!("{}: ", file.display())) && message.contains(why), "{name}: {message}");
        assert_eq!((status.code(), fs::read_to_string(&file).unwrap().as_str()), (Some(1), text), "{name}");
    }
}
