//! A controller with all that is needed to try it: what a user does, and what must hold.

use std::{fmt::Debug, future::Future, pin::Pin};

use kctl::{
    kube::{
        Api, Client,
        api::{DynamicObject, ListParams, PostParams},
        core::{ApiResource, GroupVersionKind},
    },
    prelude::*,
    reconcile::FunctionController,
    testing::TestServer,
};
use parking_lot::Mutex;

use crate::site::Site;

type Step = Arc<dyn Fn(Client) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;
type Rule = Arc<dyn Fn(&State) -> Result<(), String> + Send + Sync>;

/// A system outside of the cluster. Clones share it, and it survives crashes of the app.
#[derive(Default)]
pub(crate) struct External<T>(Arc<Mutex<T>>);

impl<T> Clone for External<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> External<T> {
    /// Asks or tells the system something.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock())
    }

    /// Makes it as new.
    pub(crate) fn reset(&self) {
        *self.0.lock() = T::default();
    }
}

/// The objects that rules are about.
pub(crate) struct State {
    pub(crate) sites: Vec<Site>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) pods: Vec<Pod>,
}

/// A controller, its user, and what must hold.
pub(crate) struct Case {
    pub(crate) make: Arc<dyn Fn() -> App + Send + Sync>,
    pub(crate) objects: Vec<&'static str>,
    pub(crate) reset: Arc<dyn Fn() + Send + Sync>,
    pub(crate) instances: usize,
    pub(crate) steps: Vec<(&'static str, Step)>,
    pub(crate) always: Vec<(&'static str, Rule)>,
    pub(crate) in_the_end: Vec<(&'static str, Rule)>,
}

impl Case {
    /// A controller that is made at each start, and may know a system outside. Every run finds that one as new.
    pub(crate) fn of<T: Default + Send + 'static, C: Reconcile>(
        outside: &External<T>,
        make: fn(External<T>) -> C,
    ) -> Self {
        let (known, reset) = (outside.clone(), outside.clone());
        let make = move || {
            let outside = known.clone();
            App::new("planted").controller_with(move |_env| std::future::ready(Ok(make(outside.clone()))))
        };
        Self {
            make: Arc::new(make),
            objects: Vec::new(),
            reset: Arc::new(move || reset.reset()),
            instances: 1,
            steps: Vec::new(),
            always: Vec::new(),
            in_the_end: Vec::new(),
        }
    }

    /// What is there when the controller starts.
    pub(crate) fn objects(mut self, yaml: &'static str) -> Self {
        self.objects.push(yaml);
        self
    }

    /// Adds a controller without state to the program.
    pub(crate) fn and<C: FunctionController>(mut self) -> Self {
        let make = self.make;
        self.make = Arc::new(move || make().controller::<C>());
        self
    }

    /// How many programs run, of which one leads.
    pub(crate) fn instances(mut self, n: usize) -> Self {
        self.instances = n;
        self
    }

    /// What the user does next, once the controller has nothing to do.
    pub(crate) fn step<F, Fut>(mut self, name: &'static str, act: F) -> Self
    where
        F: Fn(Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.steps.push((name, Arc::new(move |client| Box::pin(act(client)))));
        self
    }

    /// What must hold at every moment.
    pub(crate) fn always(
        mut self,
        name: &'static str,
        rule: impl Fn(&State) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.always.push((name, Arc::new(rule)));
        self
    }

    /// What must hold when the controller has nothing left to do.
    pub(crate) fn in_the_end(
        mut self,
        name: &'static str,
        rule: impl Fn(&State) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.in_the_end.push((name, Arc::new(rule)));
        self
    }

    /// Runs it on a server without faults. Says what does not hold.
    pub(crate) async fn calmly(&self) -> Result<(), String> {
        (self.reset)();
        let server = TestServer::start((self.make)()).await.map_err(|error| error.to_string())?;
        let client = server.client();
        for object in self.objects.iter().flat_map(|yaml| documents(yaml)) {
            create(&client, object).await;
        }
        self.settle("the start", &server).await?;
        for (name, step) in &self.steps {
            step(client.clone()).await.map_err(|error| format!("{name}: {error}"))?;
            self.settle(name, &server).await?;
        }
        Ok(())
    }

    async fn settle(&self, after: &str, server: &TestServer) -> Result<(), String> {
        server.idle().await.map_err(|error| format!("after {after}: {error}"))?;
        let state = State::of(&server.client()).await;
        for (name, rule) in self.always.iter().chain(&self.in_the_end) {
            rule(&state).map_err(|error| format!("after {after}: {name}: {error}"))?;
        }
        Ok(())
    }
}

fn documents(yaml: &str) -> Vec<DynamicObject> {
    yaml.split("---\n")
        .filter(|part| !part.trim().is_empty())
        .map(|part| serde_saphyr::from_str(part).unwrap())
        .collect()
}

async fn create(client: &Client, object: DynamicObject) {
    let types = object.types.clone().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
    let api = Api::<DynamicObject>::default_namespaced_with(client.clone(), &resource);
    let made = api.create(&PostParams::default(), &object).await;
    assert!(made.is_ok(), "{object:?}: {made:?}");
}

impl State {
    async fn of(client: &Client) -> Self {
        Self { sites: all(client).await, secrets: all(client).await, pods: all(client).await }
    }
}

async fn all<K>(client: &Client) -> Vec<K>
where
    K: kctl::kube::Resource<DynamicType = (), Scope = kctl::kube::core::NamespaceResourceScope>
        + Clone
        + Debug
        + serde::de::DeserializeOwned,
{
    Api::<K>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap().items
}
