// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: 3}}

// atOnce are options that wait for no other API server.
func atOnce() Options {
	o := Defaults()
	o.Settle = 0
	return o
}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// running is a manager with nothing but this controller, and how to end it: at once,
// as a process ends that is killed, but for the connections.
type running struct {
	*manager.Manager
	end func()
}

// start runs the controller until the test ends, as somebody who has its rights and
// no others.
func start(t *testing.T, o Options) running {
	t.Helper()
	return startWith(t, shared.Get(t).Restricted(t, Rights()), o)
}

func startWith(t *testing.T, config *rest.Config, o Options) running {
	t.Helper()
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(mgr, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	end := sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	t.Cleanup(end)
	return running{mgr, end}
}

// remove deletes a namespace, without waiting for its end.
func remove(t *testing.T, name string) {
	t.Helper()
	if err := client.For[*corev1.Namespace](shared.Get(t).Client).Delete(t.Context(), object.Key{Name: name}); err != nil {
		t.Fatal(err)
	}
}

// awaitGone waits until a namespace is gone, and says what holds it if it stays.
func awaitGone(t *testing.T, name string, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	gone := awaitState(ctx, t, name, func(ns *corev1.Namespace) bool { return ns == nil })
	if gone {
		return
	}
	ns, err := client.For[*corev1.Namespace](shared.Get(t).Client).Get(t.Context(), object.Key{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Fatalf("namespace %s is still there after %s; its conditions: %v", name, patience, ns.Status.Conditions)
}

// awaitState waits until a namespace, nil if there is none, is as wanted.
func awaitState(ctx context.Context, t *testing.T, name string, holds func(*corev1.Namespace) bool) bool {
	t.Helper()
	factory := cache.NewFactory(shared.Get(t).Client, nil)
	namespaces := cache.Informer[*corev1.Namespace](factory, cache.WithFields("metadata.name="+name))
	changed := make(chan struct{}, 1)
	if _, err := namespaces.AddHandler(func(cache.Event[*corev1.Namespace]) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}, cache.HandlerOptions{Name: t.Name()}); err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(context.Background())
	var task sync.WaitGroup
	task.Go(func() { _ = factory.Run(run) })
	defer task.Wait()
	defer stop()
	if namespaces.WaitForSync(ctx) != nil {
		return false
	}
	for {
		ns, err := namespaces.Get(object.Key{Name: name})
		if err != nil {
			ns = nil
		}
		if holds(ns) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// awaitCondition waits until a condition of a namespace is true, and returns it.
func awaitCondition(t *testing.T, name string, kind corev1.NamespaceConditionType, part string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
	defer cancel()
	var last []corev1.NamespaceCondition
	found := awaitState(ctx, t, name, func(ns *corev1.Namespace) bool {
		if ns == nil {
			return false
		}
		last = ns.Status.Conditions
		for _, c := range last {
			if c.Type == kind && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, part) {
				return true
			}
		}
		return false
	})
	if !found {
		t.Fatalf("no condition %s of %s says %q; there are %v", kind, name, part, last)
	}
}

var widgets = object.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}

// twentyKinds are bodies of objects, one for each kind, with a place for the number.
var twentyKinds = []struct {
	resource object.Resource
	rest     string
}{
	{object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap"}, `"data":{"a":"b"}`},
	{object.Resource{Version: "v1", Plural: "secrets", Kind: "Secret"}, `"stringData":{"a":"b"}`},
	{object.Resource{Version: "v1", Plural: "serviceaccounts", Kind: "ServiceAccount"}, ``},
	{object.Resource{Version: "v1", Plural: "services", Kind: "Service"}, `"spec":{"clusterIP":"None","ports":[{"port":80}]}`},
	{object.Resource{Version: "v1", Plural: "endpoints", Kind: "Endpoints"}, ``},
	{object.Resource{Version: "v1", Plural: "limitranges", Kind: "LimitRange"}, `"spec":{"limits":[]}`},
	{object.Resource{Version: "v1", Plural: "podtemplates", Kind: "PodTemplate"}, `"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}`},
	{object.Resource{Version: "v1", Plural: "replicationcontrollers", Kind: "ReplicationController"}, `"spec":{"replicas":0,"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`},
	{object.Resource{Version: "v1", Plural: "pods", Kind: "Pod"}, `"spec":{"containers":[{"name":"c","image":"i"}]}`},
	{object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment"}, workload},
	{object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet"}, workload},
	{object.Resource{Group: "apps", Version: "v1", Plural: "statefulsets", Kind: "StatefulSet"}, workload},
	{object.Resource{Group: "apps", Version: "v1", Plural: "daemonsets", Kind: "DaemonSet"}, `"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`},
	{object.Resource{Group: "batch", Version: "v1", Plural: "jobs", Kind: "Job"}, `"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}`},
	{object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease"}, ``},
	{object.Resource{Group: "networking.k8s.io", Version: "v1", Plural: "networkpolicies", Kind: "NetworkPolicy"}, `"spec":{"podSelector":{}}`},
	{object.Resource{Group: "policy", Version: "v1", Plural: "poddisruptionbudgets", Kind: "PodDisruptionBudget"}, `"spec":{"maxUnavailable":1,"selector":{"matchLabels":{"a":"b"}}}`},
	{object.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "roles", Kind: "Role"}, `"rules":[]`},
	{object.Resource{Group: "discovery.k8s.io", Version: "v1", Plural: "endpointslices", Kind: "EndpointSlice"}, `"addressType":"IPv4","endpoints":[]`},
	{widgets, ``},
}

const workload = `"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`

// fill makes objects of twenty kinds. Of widgets each has a finalizer.
func fill(t *testing.T, namespace string, count int) {
	t.Helper()
	var wait sync.WaitGroup
	failed := make([]error, len(twentyKinds))
	for i, kind := range twentyKinds {
		wait.Go(func() {
			for n := range count / len(twentyKinds) {
				body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"o-%d"`, kind.resource.APIVersion(), kind.resource.Kind, n)
				if kind.resource == widgets {
					body += `,"finalizers":["example.com/hold"]`
				}
				body += "}"
				if kind.rest != "" {
					body += "," + kind.rest
				}
				_, err := shared.Get(t).Client.Request(http.MethodPost).Resource(kind.resource).Namespace(namespace).
					Body("application/json", []byte(body+"}")).Do(t.Context())
				if err != nil {
					failed[i] = fmt.Errorf("making %s: %w", kind.resource, err)
					return
				}
			}
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// release takes the finalizers off all widgets.
func release(t *testing.T, namespace string) {
	t.Helper()
	held := client.ForResource[*unstructured.Unstructured](shared.Get(t).Client, widgets)
	list, _, err := held.List(t.Context(), client.Selection{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if _, err := held.Patch(t.Context(), object.KeyOf(o), patch); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// objects is how many the large namespace holds: 400, or what
// SETPOINT_NAMESPACE_OBJECTS says.
func objects(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SETPOINT_NAMESPACE_OBJECTS")
	if text == "" {
		return 400
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("$SETPOINT_NAMESPACE_OBJECTS: %v", err)
	}
	return n
}

func TestANamespaceOfTwentyKindsSaysWhatHoldsItAndEnds(t *testing.T) {
	shared.Get(t).Define(t, widgets)
	count := objects(t)
	name := shared.Get(t).Namespace(t)
	fill(t, name, count)
	start(t, Defaults())
	began := time.Now()
	if _, err := shared.Get(t).Kubectl("delete", "namespace", name, "--wait=false"); err != nil {
		t.Fatal(err)
	}
	held := fmt.Sprintf("widgets.example.com has %d resource instances", count/20)
	awaitCondition(t, name, corev1.NamespaceContentRemaining, "Some resources are remaining: "+held)
	awaitCondition(t, name, corev1.NamespaceFinalizersRemaining, fmt.Sprintf("example.com/hold in %d resource instances", count/20))
	t.Logf("all but the widgets of %d objects are gone after %s", count, time.Since(began).Round(time.Millisecond))
	release(t, name)
	awaitGone(t, name, 5*controlplanetest.Patience)
}

func TestPodsGoFirstAndTheConditionsSayThatTheyRemain(t *testing.T) {
	name := shared.Get(t).Namespace(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "held", Finalizers: []string{"example.com/hold"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	pods := client.For[*corev1.Pod](shared.Get(t).Client)
	if _, err := pods.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	settings := client.For[*corev1.ConfigMap](shared.Get(t).Client)
	if _, err := settings.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}}); err != nil {
		t.Fatal(err)
	}
	start(t, atOnce())
	remove(t, name)
	awaitCondition(t, name, corev1.NamespaceContentRemaining, "pods. has 1 resource instances")
	awaitCondition(t, name, corev1.NamespaceFinalizersRemaining, "example.com/hold in 1 resource instances")
	if _, err := settings.Get(t.Context(), object.Key{Namespace: name, Name: "settings"}); err != nil {
		t.Errorf("while a Pod is there, a ConfigMap is not: %v", err)
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Patch(t.Context(), object.KeyOf(pod), patch); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, name, controlplanetest.Patience)
}

// A group whose server is away: what else there is goes, and the namespace stays.
func TestDiscoveryErrorsDoNotStopTheRestButBlockFinalization(t *testing.T) {
	cluster := shared.Get(t)
	services := object.Resource{Group: "apiregistration.k8s.io", Version: "v1", Plural: "apiservices", Kind: "APIService"}
	_, err := cluster.Client.Request(http.MethodPost).Resource(services).Body("application/json", []byte(`{
		"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.away.example.com"},
		"spec":{"group":"away.example.com","version":"v1","groupPriorityMinimum":1000,"versionPriority":10,"insecureSkipTLSVerify":true,
		"service":{"namespace":"default","name":"nobody"}}}`)).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	back := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), controlplanetest.Patience)
		defer cancel()
		if _, err := cluster.Client.Request(http.MethodDelete).Resource(services).Name("v1.away.example.com").Do(ctx); err != nil {
			t.Error(err)
		}
	})
	defer back()
	// The server notices in its own time that nobody answers for the group.
	ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
	defer cancel()
	for {
		if _, err := cluster.Client.Discover(ctx); err != nil && strings.Contains(err.Error(), "away.example.com/v1") {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the server does not notice that the group is away")
		}
	}
	name := cluster.Namespace(t)
	start(t, atOnce())
	remove(t, name)
	awaitCondition(t, name, corev1.NamespaceDeletionDiscoveryFailure, "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: away.example.com/v1: stale GroupVersion discovery: away.example.com/v1")
	if accounts, _, err := client.For[*corev1.ServiceAccount](cluster.Client).List(t.Context(), client.Selection{Namespace: name}); err != nil || len(accounts) > 0 {
		t.Errorf("%d ServiceAccounts are left (%v), want none", len(accounts), err)
	}
	back()
	awaitGone(t, name, 2*controlplanetest.Patience)
}

func TestFinalizersOfOthersStay(t *testing.T) {
	cluster := shared.Get(t)
	name := cluster.Namespace(t)
	namespaces := client.For[*corev1.Namespace](cluster.Client)
	ns, err := namespaces.Get(t.Context(), object.Key{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/mine")
	if _, err := namespaces.Sub("finalize").Update(t.Context(), object.KeyOf(ns), ns); err != nil {
		t.Fatal(err)
	}
	start(t, atOnce())
	remove(t, name)
	ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
	defer cancel()
	var last *corev1.Namespace
	if !awaitState(ctx, t, name, func(ns *corev1.Namespace) bool { last = ns; return ns != nil && !ours(ns) }) {
		t.Fatalf("the finalizer kubernetes stays: %v", last)
	}
	if len(last.Spec.Finalizers) != 1 || last.Spec.Finalizers[0] != "example.com/mine" {
		t.Errorf("the finalizers are %v, want that of somebody else alone", last.Spec.Finalizers)
	}
	for _, c := range last.Status.Conditions {
		if c.Status != corev1.ConditionFalse {
			t.Errorf("%s is %s (%s), and nothing remains", c.Type, c.Status, c.Message)
		}
	}
	if len(last.Status.Conditions) != 5 {
		t.Errorf("there are %d conditions, want 5", len(last.Status.Conditions))
	}
	last = last.DeepCopy()
	last.Spec.Finalizers = nil
	if _, err := namespaces.Sub("finalize").Update(t.Context(), object.KeyOf(last), last); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, name, controlplanetest.Patience)
}

// A deleted Namespace has no finalizers in its metadata, and stays until those of its spec are removed. A write of its conditions
// was once taken for its removal, and the next run waited until the server was asked.
func TestAWriteOfTheConditionsIsNotWaitedForAsTheRemoval(t *testing.T) {
	cluster := shared.Get(t)
	name := cluster.Namespace(t)
	configMaps := client.For[*corev1.ConfigMap](cluster.Client)
	kept, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: name, Name: "kept", Finalizers: []string{"example.com/kept"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	mgr := start(t, atOnce())
	remove(t, name)
	ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
	defer cancel()
	if !awaitState(ctx, t, name, func(ns *corev1.Namespace) bool {
		return ns != nil && slices.ContainsFunc(ns.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue
		})
	}) {
		t.Fatal("no condition says that a finalizer remains")
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps.Patch(t.Context(), object.KeyOf(kept), patch); err != nil {
		t.Fatal(err)
	}
	namespaces := client.For[*corev1.Namespace](cluster.Client)
	for ; ; time.Sleep(20 * time.Millisecond) {
		ns, err := namespaces.Get(ctx, object.Key{Name: name})
		if apierrors.IsNotFound(err) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		for _, state := range mgr.KeyStates(runs.Object{Kind: "Namespace", Name: name, UID: ns.UID}) {
			if state.Unseen != nil && state.Unseen.Verb == "delete" && ours(ns) {
				t.Fatalf("the controller waits until namespace %s is gone, and has not finalized it", name)
			}
		}
	}
}

// wires are the connections of a process that can be killed. What goes through them
// and changes something is counted.
type wires struct {
	namespace string
	cut       chan struct{} // closed when the process is dead
	deleted   chan struct{} // gets one when something has been deleted

	finalized, elsewhere, deletes *atomic.Int64
}

func (w wires) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		select {
		case <-w.cut:
			return nil, errors.New("the process is dead")
		default:
		}
		answer, err := next.RoundTrip(r)
		if r.Method == http.MethodGet || r.Method == http.MethodPost {
			return answer, err
		}
		if !strings.Contains(r.URL.Path+"/", "/namespaces/"+w.namespace+"/") {
			w.elsewhere.Add(1)
		}
		if err == nil && answer.StatusCode < 300 && strings.HasSuffix(r.URL.Path, "/finalize") {
			w.finalized.Add(1)
		}
		if r.Method == http.MethodDelete {
			w.deletes.Add(1)
			select {
			case w.deleted <- struct{}{}:
			default:
			}
		}
		return answer, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The controller dies when it has just deleted something, again and again. What it left
// is found by the next one, and nothing is done twice that counts.
func TestKilledInTheMiddleTheNextOneGoesOn(t *testing.T) {
	shared.Get(t).Define(t, widgets)
	name := shared.Get(t).Namespace(t)
	fill(t, name, 200)
	release(t, name)
	rights := shared.Get(t).Restricted(t, Rights())
	var finalized, elsewhere, deletes atomic.Int64
	live := func() (wires, running) {
		w := wires{name, make(chan struct{}), make(chan struct{}, 1), &finalized, &elsewhere, &deletes}
		config := rest.CopyConfig(rights)
		config.Wrap(w.wrap)
		return w, startWith(t, config, Options{Workers: 10, Kinds: 1})
	}
	remove(t, name)
	for range 4 {
		w, one := live()
		select {
		case <-w.deleted:
		case <-time.After(controlplanetest.Patience):
			t.Fatal("nothing is deleted")
		}
		close(w.cut)
		one.end()
	}
	live()
	awaitGone(t, name, controlplanetest.Patience)
	// The answer may be lost to a life that ended.
	if finalized.Load() > 1 || elsewhere.Load() != 0 {
		t.Errorf("the namespace was finalized %d times, and %d writes went elsewhere; want at most 1 and 0", finalized.Load(), elsewhere.Load())
	}
	t.Logf("%d requests to delete, for 200 objects of 20 kinds, in five lives", deletes.Load())
}

func TestTheNextLookComesWhenTheLastObjectIsGone(t *testing.T) {
	cluster := shared.Get(t)
	name := cluster.Namespace(t)
	maps := client.For[*corev1.ConfigMap](cluster.Client)
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "held", Finalizers: []string{"example.com/hold"}}}
	held, err := maps.Create(t.Context(), held)
	if err != nil {
		t.Fatal(err)
	}
	kind := client.Served{Resource: object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}, Verbs: []string{"list", "delete"}}
	// Without deletecollection, objects are deleted one by one.
	left, err := newContent(cluster.Client, 1).remove(t.Context(), kind, name, time.Hour)
	if err != nil || left.count() != 1 || left.deleting != 1 || left.estimate != finalizerWait || left.finalizers["example.com/hold"] != 1 {
		t.Fatalf("left is %+v (%v), want the object that is held", left, err)
	}
	v := newVigils(cluster.Client, slog.New(slog.NewTextHandler(t.Output(), nil)))
	looks := make(chan object.Key, 1)
	ctx, stop := context.WithCancel(t.Context())
	var task sync.WaitGroup
	task.Go(func() { v.run(ctx, func(key object.Key) { looks <- key }) })
	defer task.Wait()
	defer stop()
	// Of two vigils of a namespace the later counts.
	v.begin(ctx, object.Key{Name: name}, []leftover{left})
	v.begin(ctx, object.Key{Name: name}, []leftover{left})
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(t.Context(), object.KeyOf(held), patch); err != nil {
		t.Fatal(err)
	}
	select {
	case key := <-looks:
		if key.Name != name {
			t.Errorf("%s is looked at, want %s", key, name)
		}
	case <-time.After(controlplanetest.Patience):
		t.Fatal("nobody looks")
	}
}

func TestWhatStaysForNoReasonIsAnErrorInUpstreamsWords(t *testing.T) {
	deployments := object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}
	server := fakeapi.New().Serve(deployments)
	if err := server.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "stuck"}}); err != nil {
		t.Fatal(err)
	}
	// The server takes the delete and leaves the object.
	server.RefuseNext(1, "deletecollection", &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK})
	c := clientOf(t, server.Server)
	kind := client.Served{Resource: deployments, Verbs: []string{"list", "delete", "deletecollection"}}
	left, err := newContent(c, 1).remove(t.Context(), kind, "team-a", time.Hour)
	if left.count() != 1 || err == nil || err.Error() != "unexpected items still remain in namespace: team-a for gvr: apps/v1, Resource=deployments" {
		t.Errorf("left %d, error %v", left.count(), err)
	}
}

func TestAKindThatIsNotServedAnyMoreIsEmpty(t *testing.T) {
	c := clientOf(t, fakeapi.New())
	kind := client.Served{Resource: widgets, Verbs: []string{"list", "delete", "deletecollection"}}
	if left, err := newContent(c, 1).remove(t.Context(), kind, "team-a", time.Hour); err != nil || left.count() != 0 {
		t.Errorf("left %d, error %v, want nothing", left.count(), err)
	}
}
