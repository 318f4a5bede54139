# The role is printed from what the controller declares: a client of its own would do what the role does not say, also on a real cluster
# while `dev` or a test runs.
disallowed-types = [
  { path = "kube_client::Client", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
]
disallowed-methods = [
  { path = "kctl_runtime::connection::client", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
  { path = "kctl_runtime::connection::builder", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
  { path = "kube_client::Client::try_default", reason = "go through `Context`: this finds whatever cluster the environment names", allow-invalid = true },
  { path = "kube_client::Config::infer", reason = "go through `Context`: this finds whatever cluster the environment names", allow-invalid = true },
  { path = "kube_client::Config::from_kubeconfig", reason = "go through `Context`: this finds whatever cluster the environment names", allow-invalid = true },
  { path = "kube_client::Config::from_custom_kubeconfig", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
  { path = "kube_client::Config::incluster", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
  { path = "kube_client::Config::incluster_env", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
  { path = "kube_client::Config::incluster_dns", reason = "go through `Context`: what it does is in the role", allow-invalid = true },
  { path = "kube_client::config::Kubeconfig::read", reason = "go through `Context`: this finds whatever cluster the environment names", allow-invalid = true },
  { path = "kube_client::config::Kubeconfig::from_env", reason = "go through `Context`: this finds whatever cluster the environment names", allow-invalid = true },
]
