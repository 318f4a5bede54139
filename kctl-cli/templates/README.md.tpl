# {{name}}

A controller of `{{kind}}` objects, built with [kctl](https://github.com/kctl-rs/kctl).

Watch it work, without a cluster:

    cargo run -- dev -f sample.yaml --until-idle

Run its tests. They check the controller, that its role is exactly what it needs, and that crashes and lost responses don't change
the final state:

    cargo test

`kctl add controller NAME`, `kctl add webhook KIND` and `kctl add version VERSION` add to the project. The
[concepts](https://github.com/kctl-rs/kctl/blob/main/guide/concepts.md) explain the loop, and the [recipes](https://github.com/kctl-rs/kctl/blob/main/guide/recipes/README.md) are complete controllers with tests.

`rust-toolchain.toml` pins the version of Rust, and the `Dockerfile` the same one, so that a new release of Rust does not break CI. To
move, change both and fix what clippy reports.

With `.github/dependabot.yml`, GitHub proposes new versions of crates, images and actions each week.

`KUBECONFIG=/dev/null cargo test` also keeps other clients in your code away from a real cluster; `dev` does that by itself.

Run it on this machine, against the cluster of your kubeconfig. As in the image, `--no-default-features` leaves out the embedded API server
and the simulator:

    cargo run -- generate-crds | kubectl apply --server-side -f -
    kubectl apply -f sample.yaml
    cargo run --no-default-features -- run

With webhooks or several versions of a kind, the API server also has to reach the program:
[on a workstation](https://github.com/kctl-rs/kctl/blob/main/guide/webhooks.md#certificates), that takes one more file.

Run it in the cluster, with exactly the permissions that the controller declares. `--version` of the image prints the commit that it
was built from, so commit first (`git add --all && git commit --message "New project"`):

    docker build --build-arg COMMIT="$(git rev-parse --short HEAD)" -t registry.example.com/{{name}}:1 .
    docker push registry.example.com/{{name}}:1
    kubectl apply --server-side -k deploy

`deploy/` has the CRD, the role, the Deployment and what belongs to them, as the program generates them. Generate them again
after a change of the kind, of the declaration or of the image:

    cargo run -- generate-manifests --leader-elect --image registry.example.com/{{name}}:1 --out deploy

With `--check` at its end, this command compares the files and changes nothing. A change of the CRD that breaks stored objects is rejected;
before the first deployment no objects are stored, so add `--allow-breaking`.

CI runs it that way. If you change its options, such as the image or `--namespace`, change them in `.github/workflows/ci.yml` too.

The same as a [Helm chart](https://github.com/kctl-rs/kctl/blob/main/guide/operations.md#a-helm-chart), for `helm install {{name}} chart`:

    cargo run -- generate-manifests --leader-elect --image registry.example.com/{{name}}:1 --helm chart

For changes by hand, such as a label, write a kustomization that has `deploy` as its resource.
