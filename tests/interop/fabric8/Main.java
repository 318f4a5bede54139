// The Kubernetes client of the Java Operator SDK and of Quarkus against the API server of KUBECONFIG: reads, writes,
// server-side apply, conflicts, watches, informers, custom kinds and evictions. Exits with status 1 at the first difference.

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public class Main {
    static final String NAMESPACE = "fabric8";

    static final String WIDGETS = """
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: { name: widgets.fabric8.example.com }
        spec:
          group: fabric8.example.com
          scope: Namespaced
          names: { kind: Widget, plural: widgets, singular: widget, listKind: WidgetList }
          versions:
            - name: v1
              served: true
              storage: true
              subresources: { status: {} }
              schema:
                openAPIV3Schema:
                  type: object
                  properties:
                    spec: { type: object, properties: { size: { type: integer, default: 3 } } }
                    status: { type: object, properties: { ready: { type: boolean } } }
        """;

    public static void main(String[] arguments) throws Exception {
        try (KubernetesClient client = new KubernetesClientBuilder().build()) {
            client.namespaces().resource(new io.fabric8.kubernetes.api.model.NamespaceBuilder()
                .withNewMetadata().withName(NAMESPACE).endMetadata().build()).create();
            configMaps(client);
            informer(client);
            workloads(client);
            customKinds(client);
            client.namespaces().withName(NAMESPACE).delete();
        }
        System.out.println("fabric8: all as expected");
        System.exit(0);
    }

    static ConfigMap configMap(String name, String value) {
        return new ConfigMapBuilder().withNewMetadata().withName(name).withNamespace(NAMESPACE).endMetadata()
            .addToData("key", value).build();
    }

    static void configMaps(KubernetesClient client) {
        var maps = client.configMaps().inNamespace(NAMESPACE);
        ConfigMap created = maps.resource(configMap("written", "1")).create();
        expect("a created object has a uid", created.getMetadata().getUid() != null);
        ConfigMap edited = maps.withName("written").edit(map -> new ConfigMapBuilder(map).addToData("key", "2").build());
        expect("an edit is a patch", edited.getData().get("key").equals("2"));
        expect("a second create is 409", 409 == code(() -> maps.resource(configMap("written", "1")).create()));
        expect("a stale update is 409", 409 == code(() -> maps.resource(created).lockResourceVersion().update()));
        ConfigMap applied = maps.resource(configMap("applied", "1")).fieldManager("java").serverSideApply();
        expect("an apply has its manager", applied.getMetadata().getManagedFields().stream()
            .anyMatch(entry -> entry.getManager().equals("java") && entry.getOperation().equals("Apply")));
        int conflict = code(() -> maps.resource(configMap("applied", "2")).fieldManager("other").serverSideApply());
        expect("another manager's apply conflicts", conflict == 409);
        maps.resource(configMap("applied", "2")).fieldManager("other").forceConflicts().serverSideApply();
        expect("a field selector selects", maps.withField("metadata.name", "applied").list().getItems().size() == 1);
        expect("a limited list continues", maps.list(new io.fabric8.kubernetes.api.model.ListOptionsBuilder()
            .withLimit(1L).build()).getMetadata().getContinue() != null);
        maps.withName("written").delete();
        expect("a deleted object is gone", maps.withName("written").get() == null);
    }

    static void informer(KubernetesClient client) throws Exception {
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        var handler = new ResourceEventHandler<ConfigMap>() {
            public void onAdd(ConfigMap map) {
                events.add("add " + map.getMetadata().getName());
            }

            public void onUpdate(ConfigMap before, ConfigMap map) {
                events.add("update " + map.getMetadata().getName());
            }

            public void onDelete(ConfigMap map, boolean isUnknown) {
                events.add("delete " + map.getMetadata().getName());
            }
        };
        var maps = client.configMaps().inNamespace(NAMESPACE);
        try (SharedIndexInformer<ConfigMap> informer = maps.withLabel("watched", "yes").inform(handler)) {
            ConfigMap map = configMap("watched", "1");
            map.getMetadata().setLabels(Map.of("watched", "yes"));
            maps.resource(map).create();
            next(events, "add watched");
            maps.withName("watched").edit(one -> new ConfigMapBuilder(one).addToData("key", "2").build());
            next(events, "update watched");
            expect("the informer has a store", informer.getStore().list().size() == 1);
            maps.withName("watched").delete();
            next(events, "delete watched");
        }
    }

    static void workloads(KubernetesClient client) {
        Deployment deployment = new DeploymentBuilder().withNewMetadata().withName("web").endMetadata()
            .withNewSpec().withReplicas(2).withNewSelector().addToMatchLabels("app", "web").endSelector()
            .withNewTemplate().withNewMetadata().addToLabels("app", "web").endMetadata()
            .withNewSpec().addNewContainer().withName("web").withImage("web:1").endContainer().endSpec()
            .endTemplate().endSpec().build();
        var deployments = client.apps().deployments().inNamespace(NAMESPACE);
        Deployment created = deployments.resource(deployment).create();
        expect("defaults are set", created.getSpec().getStrategy().getType().equals("RollingUpdate"));
        expect("a scale is written", deployments.withName("web").scale(3).getSpec().getReplicas() == 3);

        Pod pod = new PodBuilder().withNewMetadata().withName("one").endMetadata()
            .withNewSpec().addNewContainer().withName("one").withImage("one:1").endContainer().endSpec().build();
        var pods = client.pods().inNamespace(NAMESPACE);
        pods.resource(pod).create();
        expect("a pod is evicted", pods.withName("one").evict());
        var wrong = new PodBuilder(pod).editSpec().removeFromContainers(pod.getSpec().getContainers().get(0)).endSpec().build();
        expect("a pod without containers is 422", 422 == code(() -> pods.resource(wrong).create()));
    }

    static void customKinds(KubernetesClient client) throws Exception {
        var definition = (CustomResourceDefinition) client
            .load(new ByteArrayInputStream(WIDGETS.getBytes(StandardCharsets.UTF_8))).items().get(0);
        client.apiextensions().v1().customResourceDefinitions().resource(definition).create();
        client.apiextensions().v1().customResourceDefinitions().withName("widgets.fabric8.example.com").waitUntilCondition(
            crd -> crd != null && crd.getStatus() != null && crd.getStatus().getConditions().stream()
                .anyMatch(one -> one.getType().equals("Established") && one.getStatus().equals("True")),
            30, TimeUnit.SECONDS);
        var context = new ResourceDefinitionContext.Builder().withGroup("fabric8.example.com").withVersion("v1")
            .withKind("Widget").withPlural("widgets").withNamespaced(true).build();
        var widgets = client.genericKubernetesResources(context).inNamespace(NAMESPACE);
        GenericKubernetesResource widget = new GenericKubernetesResource();
        widget.setApiVersion("fabric8.example.com/v1");
        widget.setKind("Widget");
        widget.setMetadata(new io.fabric8.kubernetes.api.model.ObjectMetaBuilder().withName("one").build());
        widget.setAdditionalProperty("spec", Map.of());
        GenericKubernetesResource stored = widgets.resource(widget).create();
        expect("a default of the schema is set", Integer.valueOf(3).equals(stored.get("spec", "size")));
        stored.setAdditionalProperty("status", Map.of("ready", true));
        expect("a status is written", Boolean.TRUE.equals(widgets.resource(stored).updateStatus().get("status", "ready")));
        widgets.withName("one").delete();
    }

    static void next(BlockingQueue<String> events, String expected) throws InterruptedException {
        String event = events.poll(30, TimeUnit.SECONDS);
        expect("the next event is `" + expected + "`, not `" + event + "`", expected.equals(event));
    }

    static int code(Runnable request) {
        try {
            request.run();
            return 0;
        } catch (KubernetesClientException error) {
            return error.getCode();
        }
    }

    static void expect(String what, boolean holds) {
        if (!holds) {
            System.out.println("fabric8: not so: " + what);
            System.exit(1);
        }
    }
}
