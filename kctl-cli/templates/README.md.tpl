# {{name}}

A controller of `{{kind}}` objects, made with [kctl](https://github.com/kctl-rs/kctl).

Watch it work, without a cluster:

    cargo run -- dev -f sample.yaml --until-idle

Run its tests: what it does, that its role is exactly what it needs, and that no crash and no lost answer changes the end:

    cargo test

`KUBECONFIG=/dev/null cargo test` keeps a client that does not come from the `Context` from a real cluster; `dev` does that by itself.

As a program on this machine, against the cluster of your kubeconfig:

    cargo run -- generate-crds | kubectl apply -f -
    kubectl apply -f sample.yaml
    cargo run -- run

In the cluster, with exactly the permissions that the controller declares:

    docker build --build-arg COMMIT="$(git rev-parse --short HEAD)" -t registry.example.com/{{name}}:1 .
    docker push registry.example.com/{{name}}:1
    cargo run -- generate-manifests --leader-elect --image registry.example.com/{{name}}:1 --out deploy
    kubectl apply -k deploy
