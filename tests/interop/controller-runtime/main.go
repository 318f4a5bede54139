// A controller on controller-runtime that runs against the API server of KUBECONFIG. It uses For, Owns, server-side
// apply, a finalizer, leader election, events, a field index, and informers that stream their initial list. It prints
// its results and exits with 0 once everything has converged.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	namespace  = "interop"
	finalizer  = "interop.example.com/clean"
	readyMark  = "interop.example.com/ready"
	byTier     = "data.tier"
	nApps      = 5
	convergeIn = 60 * time.Second
)

// reconciler creates for each app, which is a ConfigMap, as many Secrets as the data of the ConfigMap requests.
type reconciler struct {
	client.Client
	events events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	app := &corev1.ConfigMap{}
	if err := r.Get(ctx, request.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.clean(ctx, app)
	}
	if controllerutil.AddFinalizer(app, finalizer) {
		return ctrl.Result{}, r.Update(ctx, app)
	}
	wanted, err := strconv.Atoi(app.Data["replicas"])
	if err != nil {
		return ctrl.Result{}, nil
	}
	for i := range wanted {
		if err := r.apply(ctx, app, i); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.shrink(ctx, app, wanted); err != nil {
		return ctrl.Result{}, err
	}
	if app.Annotations[readyMark] == app.Data["replicas"] {
		return ctrl.Result{}, nil
	}
	before := app.DeepCopy()
	if app.Annotations == nil {
		app.Annotations = map[string]string{}
	}
	app.Annotations[readyMark] = app.Data["replicas"]
	if err := r.Patch(ctx, app, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, err
	}
	r.events.Eventf(app, nil, corev1.EventTypeNormal, "Ready", "Reconcile", "has %s replicas", app.Data["replicas"])
	return ctrl.Result{}, nil
}

func (r *reconciler) apply(ctx context.Context, app *corev1.ConfigMap, index int) error {
	owner := metav1apply.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName(app.Name).
		WithUID(app.UID).WithController(true).WithBlockOwnerDeletion(true)
	secret := corev1apply.Secret(fmt.Sprintf("%s-%d", app.Name, index), app.Namespace).
		WithLabels(map[string]string{"app": app.Name}).WithOwnerReferences(owner).
		WithStringData(map[string]string{"index": strconv.Itoa(index)})
	return r.Apply(ctx, secret, client.FieldOwner("interop"), client.ForceOwnership)
}

func (r *reconciler) shrink(ctx context.Context, app *corev1.ConfigMap, wanted int) error {
	secrets := &corev1.SecretList{}
	if err := r.List(ctx, secrets, client.InNamespace(app.Namespace), client.MatchingLabels{"app": app.Name}); err != nil {
		return err
	}
	for i := range secrets.Items {
		index, err := strconv.Atoi(string(secrets.Items[i].Data["index"]))
		if err == nil && index >= wanted {
			if err := client.IgnoreNotFound(r.Delete(ctx, &secrets.Items[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reconciler) clean(ctx context.Context, app *corev1.ConfigMap) error {
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: app.Name + "-cleaned", Namespace: app.Namespace}}
	if err := r.Create(ctx, marker); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if controllerutil.RemoveFinalizer(app, finalizer) {
		return client.IgnoreNotFound(r.Update(ctx, app))
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	log.SetLogger(zap.New())
	ctx, cancel := context.WithTimeout(context.Background(), 2*convergeIn)
	defer cancel()
	config := ctrl.GetConfigOrDie()
	config.QPS, config.Burst = 500, 1000
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "interop",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	tier := func(object client.Object) []string { return []string{object.(*corev1.ConfigMap).Data["tier"]} }
	if err := manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, byTier, tier); err != nil {
		return err
	}
	isApp := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()["role"] == "app" })
	r := &reconciler{Client: manager.GetClient(), events: manager.GetEventRecorder("interop")}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}, builder.WithPredicates(isApp)).
		Owns(&corev1.Secret{}).Complete(r)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	direct, err := client.New(driver(config), client.Options{})
	if err != nil {
		stop()
		return err
	}
	err = errors.Join(scenario(ctx, direct, manager), stream(ctx, kubernetes.NewForConfigOrDie(config)))
	stop()
	return errors.Join(err, <-ended)
}

// driver returns the client configuration of the test driver. Injected faults skip requests with its user agent. It
// uses its own connections, which do not break together with the controller's.
func driver(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.UserAgent = "driver"
	own.Dial = (&net.Dialer{}).DialContext
	return own
}

func scenario(ctx context.Context, direct client.Client, manager ctrl.Manager) error {
	if err := direct.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	for i := range nApps {
		app := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%d", i), Namespace: namespace, Labels: map[string]string{"role": "app"}},
			Data:       map[string]string{"replicas": "3", "tier": []string{"front", "back"}[i%2]},
		}
		if err := direct.Create(ctx, app); err != nil {
			return err
		}
	}
	if err := secretsAre(ctx, direct, 3*nApps); err != nil {
		return fmt.Errorf("the first replicas: %w", err)
	}
	front := &corev1.ConfigMapList{}
	err := manager.GetClient().List(ctx, front, client.InNamespace(namespace), client.MatchingFields{byTier: "front"})
	if err != nil || len(front.Items) != 3 {
		return fmt.Errorf("the field index has %d of 3 apps: %w", len(front.Items), err)
	}
	for i := range nApps {
		app := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%d", i), Namespace: namespace}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"replicas":"1"}}`))
		if err := direct.Patch(ctx, app, patch); err != nil {
			return err
		}
	}
	if err := secretsAre(ctx, direct, nApps); err != nil {
		return fmt.Errorf("fewer replicas: %w", err)
	}
	app := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app-0", Namespace: namespace}}
	if err := direct.Delete(ctx, app); err != nil {
		return err
	}
	if err := secretsAre(ctx, direct, nApps-1); err != nil {
		return fmt.Errorf("the collection of what an app owns: %w", err)
	}
	marker := client.ObjectKey{Namespace: namespace, Name: "app-0-cleaned"}
	if err := direct.Get(ctx, marker, &corev1.ConfigMap{}); err != nil {
		return fmt.Errorf("the finalizer: %w", err)
	}
	return until(ctx, func() (string, bool, error) {
		recorded := &corev1.EventList{}
		err := direct.List(ctx, recorded, client.InNamespace(namespace))
		return fmt.Sprintf("%d events", len(recorded.Items)), len(recorded.Items) >= nApps, err
	})
}

func secretsAre(ctx context.Context, direct client.Client, wanted int) error {
	return until(ctx, func() (string, bool, error) {
		secrets := &corev1.SecretList{}
		err := direct.List(ctx, secrets, client.InNamespace(namespace))
		return fmt.Sprintf("%d of %d secrets", len(secrets.Items), wanted), len(secrets.Items) == wanted, err
	})
}

func until(ctx context.Context, look func() (string, bool, error)) error {
	seen := ""
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, convergeIn, true, func(context.Context) (bool, error) {
		what, done, err := look()
		seen = what
		return done, err
	})
	fmt.Println(seen)
	return err
}

// stream checks that a client-go informer sees the existing Secrets and one that is created later.
func stream(ctx context.Context, clientset kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Secrets().Informer()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the informer has not synced")
	}
	before := len(informer.GetStore().List())
	extra := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "extra"}}
	if _, err := clientset.CoreV1().Secrets(namespace).Create(ctx, extra, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, func() (string, bool, error) {
		now := len(informer.GetStore().List())
		return fmt.Sprintf("the informer has seen %d and %d secrets", before, now), now == before+1, nil
	})
}
