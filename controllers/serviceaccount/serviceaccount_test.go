// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// shared is bare: what its namespaces and nodes lack is what is tested here.
var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: 1, Bare: true}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// prepare returns a manager on the test's cluster, and what starts it with a
// controller. It ends with the test.
func prepare(t *testing.T) (*manager.Manager, func(...controller.Runnable)) {
	t.Helper()
	return prepareAs(t, shared.Get(t).Config)
}

// prepareAs is prepare with the credentials of config.
func prepareAs(t *testing.T, config *rest.Config) (*manager.Manager, func(...controller.Runnable)) {
	t.Helper()
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	return mgr, func(controllers ...controller.Runnable) {
		t.Helper()
		for _, c := range controllers {
			if err := mgr.Add(c); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("the manager ended with %v", err)
			}
		})
	}
}

// start runs the controller.
func start(t *testing.T) *manager.Manager {
	t.Helper()
	mgr, run := prepare(t)
	c, err := serviceaccount.New(mgr, serviceaccount.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	run(c)
	return mgr
}

func exists[T object.Object](T) bool { return true }

func TestEveryNamespaceHasADefaultAccount(t *testing.T) {
	mgr := start(t)
	for _, name := range []string{"default", "kube-system", shared.Get(t).Namespace(t), shared.Get(t).Namespace(t)} {
		controlplanetest.Await(t, mgr, object.Key{Namespace: name, Name: "default"}, "the account of "+name, exists[*corev1.ServiceAccount])
	}
}

func TestADeletedDefaultAccountComesBack(t *testing.T) {
	mgr := start(t)
	key := object.Key{Namespace: shared.Get(t).Namespace(t), Name: "default"}
	first := controlplanetest.Await(t, mgr, key, "the account", exists[*corev1.ServiceAccount])
	if err := client.For[*corev1.ServiceAccount](mgr.Client()).Delete(t.Context(), key, client.IfUID(first.UID)); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, mgr, key, "another account", func(sa *corev1.ServiceAccount) bool { return sa.UID != first.UID })
}

func TestThereIsNoNeedOfOtherRightsThanThoseDeclared(t *testing.T) {
	cluster := shared.Get(t)
	restricted, run := prepareAs(t, cluster.Restricted(t, serviceaccount.Rights()))
	c, err := serviceaccount.New(restricted, serviceaccount.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	run(c)
	mgr, watch := prepare(t)
	watch()
	key := object.Key{Namespace: cluster.Namespace(t), Name: "default"}
	controlplanetest.Await(t, mgr, key, "the account", exists[*corev1.ServiceAccount])
}

func TestAProcessThatIsKilledInBetweenMakesEachAccountOnce(t *testing.T) {
	cluster := shared.Get(t)
	var namespaces []string
	for range 40 {
		namespaces = append(namespaces, cluster.Namespace(t))
	}
	making := managertest.Making(serviceaccount.New, serviceaccount.Defaults())
	var writes []string
	for range 3 {
		p := managertest.Run(t, cluster.Config, making)
		controlplanetest.Eventually(t, "some work done, or all", func() bool {
			n := len(p.Writes()) // nobody has counted the last one of each that was killed
			return n >= 5 || len(writes)+n >= len(namespaces)-2
		})
		p.Kill()
		writes = append(writes, p.Writes()...)
	}
	p := managertest.Run(t, cluster.Config, making)
	for _, name := range namespaces {
		controlplanetest.Await(t, p, object.Key{Namespace: name, Name: "default"}, "the account of "+name, exists[*corev1.ServiceAccount])
	}
	p.Stop()
	writes = append(writes, p.Writes()...)
	slices.Sort(writes)
	if once := slices.Compact(slices.Clone(writes)); len(once) != len(writes) {
		t.Errorf("%d accounts in %d writes: %q", len(once), len(writes), writes)
	}
}

func TestOtherAccountsAreNotRecreated(t *testing.T) {
	mgr := start(t)
	accounts := client.For[*corev1.ServiceAccount](mgr.Client())
	key := object.Key{Namespace: shared.Get(t).Namespace(t), Name: "builder"}
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
		t.Fatal(err)
	}
	if err := accounts.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	// What comes later has been worked on, so what came before has been too.
	controlplanetest.Await(t, mgr, object.Key{Namespace: shared.Get(t).Namespace(t), Name: "default"}, "the account of a later namespace", exists[*corev1.ServiceAccount])
	if _, err := accounts.Get(t.Context(), key); !apierrors.IsNotFound(err) {
		t.Errorf("the account builder: %v, want that it is gone", err)
	}
}

func TestATerminatingNamespaceIsLeftAlone(t *testing.T) {
	mgr := start(t)
	accounts := client.For[*corev1.ServiceAccount](mgr.Client())
	name := shared.Get(t).Namespace(t)
	key := object.Key{Namespace: name, Name: "default"}
	controlplanetest.Await(t, mgr, key, "the account", exists[*corev1.ServiceAccount])
	// No namespace controller runs: it stays terminating.
	if err := client.For[*corev1.Namespace](mgr.Client()).Delete(t.Context(), object.Key{Name: name}); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, mgr, object.Key{Name: name}, "the namespace terminates", func(ns *corev1.Namespace) bool { return ns.DeletionTimestamp != nil })
	if err := accounts.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, mgr, object.Key{Namespace: shared.Get(t).Namespace(t), Name: "default"}, "the account of a later namespace", exists[*corev1.ServiceAccount])
	if _, err := accounts.Get(t.Context(), key); !apierrors.IsNotFound(err) {
		t.Errorf("the account of the terminating namespace: %v, want that it is gone", err)
	}
}

// The smallest useful set: what admission asks for before it lets a Pod in, and
// what the scheduler asks for before it places one.
func TestABarePodIsScheduledWithNoOtherControllersThanThisAndNodeLifecycle(t *testing.T) {
	mgr, run := prepare(t)
	accounts, err := serviceaccount.New(mgr, serviceaccount.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := nodelifecycle.New(mgr, nodelifecycle.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	run(accounts, nodes)

	name := shared.Get(t).Namespace(t)
	controlplanetest.Await(t, mgr, object.Key{Namespace: name, Name: "default"}, "the account", exists[*corev1.ServiceAccount])
	pod, err := client.For[*corev1.Pod](mgr.Client()).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "bare"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, mgr, object.KeyOf(pod), "the Pod runs on a node", func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning
	})
}
