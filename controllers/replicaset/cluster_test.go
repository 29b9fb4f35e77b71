// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{Options: controlplanetest.Options{Nodes: 3}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// patience is how long a test waits for what should take a second or two.
const patience = time.Minute

// observed is a namespace of a real cluster as a test sees it, through informers of
// its own.
type observed struct {
	t         *testing.T
	cluster   *controlplanetest.Cluster
	namespace string
	sets      cache.SharedInformer[*appsv1.ReplicaSet]
	pods      cache.SharedInformer[*corev1.Pod]
	changed   chan struct{}

	mu   sync.Mutex
	ever map[types.UID]bool // Pods that were seen, filled by the informer
}

// made returns how many Pods have ever been seen.
func (o *observed) made() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ever)
}

func observe(t *testing.T) *observed {
	t.Helper()
	cluster := shared.Get(t)
	o := &observed{t: t, cluster: cluster, namespace: cluster.Namespace(t), changed: make(chan struct{}, 1), ever: map[types.UID]bool{}}
	factory := cache.NewFactory(cluster.Client, slog.New(slog.DiscardHandler))
	o.sets = cache.Informer[*appsv1.ReplicaSet](factory, cache.InNamespace(o.namespace))
	o.pods = cache.Informer[*corev1.Pod](factory, cache.InNamespace(o.namespace))
	signal := func() {
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}
	_, err := o.sets.AddHandler(func(cache.Event[*appsv1.ReplicaSet]) { signal() }, cache.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.pods.AddHandler(func(e cache.Event[*corev1.Pod]) {
		o.mu.Lock()
		o.ever[e.Item().Meta().UID] = true
		o.mu.Unlock()
		signal()
	}, cache.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a node has room for 110 Pods: those that stayed would be in the way of other tests
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		all := client.Selection{Namespace: o.namespace}
		if err := errors.Join(
			client.For[*appsv1.ReplicaSet](cluster.Client).DeleteCollection(ctx, all), // or the next test's controller makes them anew
			client.For[*corev1.Pod](cluster.Client).DeleteCollection(ctx, all, client.GracePeriod(0)),
		); err != nil {
			t.Error(err)
		}
	})
	inBackground(t, factory.Run)
	return o
}

// inBackground runs f until the test or stop ends it.
func inBackground(t *testing.T, f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// until waits for a state.
func (o *observed) until(what string, reached func() bool) {
	o.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !reached() {
		select {
		case <-o.changed:
		case <-timeout.C:
			set := "none"
			if item := o.sets.Snapshot().Get(o.web()); item.Exists() {
				if got, err := item.Object(); err == nil {
					set = got.Status.String()
				}
			}
			o.t.Fatalf("waited %v for: %s; the status is %s, there are %d Pods", patience, what, set, o.pods.Snapshot().Len())
		}
	}
}

func (o *observed) web() object.Key { return object.Key{Namespace: o.namespace, Name: "web"} }

func (o *observed) status() appsv1.ReplicaSetStatus {
	set, err := o.sets.Get(o.web())
	if err != nil {
		return appsv1.ReplicaSetStatus{ObservedGeneration: -1}
	}
	if set.Generation != set.Status.ObservedGeneration {
		return appsv1.ReplicaSetStatus{ObservedGeneration: -1}
	}
	return set.Status
}

// create creates the ReplicaSet web.
func (o *observed) create(replicas int32) *appsv1.ReplicaSet {
	o.t.Helper()
	set := webSet(replicas)
	set.Namespace, set.UID = o.namespace, ""
	made, err := client.For[*appsv1.ReplicaSet](o.cluster.Client).Create(o.t.Context(), set)
	if err != nil {
		o.t.Fatal(err)
	}
	return made
}

func (o *observed) kubectl(args ...string) string {
	o.t.Helper()
	out, err := o.cluster.Kubectl(append(args, "-n", o.namespace)...)
	if err != nil {
		o.t.Fatal(err)
	}
	return out
}

// told waits for an event with a reason and returns its note.
func (o *observed) told(reason string) string {
	o.t.Helper()
	events := client.For[*eventsv1.Event](o.cluster.Client)
	deadline := time.Now().Add(patience)
	for {
		list, _, err := events.List(o.t.Context(), client.Selection{Namespace: o.namespace})
		if err != nil {
			o.t.Fatal(err)
		}
		for _, e := range list {
			if e.Reason == reason && e.Regarding.Name == "web" && e.ReportingController == Name {
				return e.Note
			}
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("waited %v for an event %s", patience, reason)
		}
	}
}

// runController runs the controller against the cluster.
func runController(t *testing.T, config *rest.Config) (stop func()) {
	t.Helper()
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(mgr, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	return inBackground(t, mgr.Run)
}

func TestClusterAReplicaSetComesAliveScalesAndGoes(t *testing.T) {
	o := observe(t)
	runController(t, o.cluster.Config)
	o.create(10)
	o.until("ten available replicas", func() bool { return o.status().AvailableReplicas == 10 && o.made() >= 10 })
	if n := o.made(); n != 10 {
		t.Errorf("%d Pods were made for 10", n)
	}
	if note := o.told("SuccessfulCreate"); !strings.HasPrefix(note, "Created pod: web-") {
		t.Errorf("SuccessfulCreate says %q", note)
	}
	o.kubectl("scale", "rs/web", "--replicas=3")
	o.until("three replicas and nothing that terminates", func() bool {
		s := o.status()
		return s.Replicas == 3 && s.ReadyReplicas == 3 && s.FullyLabeledReplicas == 3 && *s.TerminatingReplicas == 0
	})
	if note := o.told("SuccessfulDelete"); !strings.HasPrefix(note, "Deleted pod: web-") {
		t.Errorf("SuccessfulDelete says %q", note)
	}
	o.kubectl("delete", "pod", "--all", "--wait=false")
	o.until("three others", func() bool { return o.status().AvailableReplicas == 3 && o.made() == 13 })
}

func TestClusterPodsAreReleasedAndAdopted(t *testing.T) {
	o := observe(t)
	runController(t, o.cluster.Config)
	o.releasesAndAdopts(t)
}

func TestClusterThereIsNoNeedOfOtherRightsThanThoseDeclared(t *testing.T) {
	o := observe(t)
	runController(t, o.cluster.Restricted(t, Rights()))
	o.releasesAndAdopts(t)
	o.told("SuccessfulCreate")
	o.told("SuccessfulDelete")
}

// releasesAndAdopts has a ReplicaSet make Pods, give one up, and take it back.
func (o *observed) releasesAndAdopts(t *testing.T) {
	set := o.create(1)
	o.until("a Pod", func() bool { return o.status().AvailableReplicas == 1 && o.made() == 1 })
	var name string
	for key := range o.pods.Snapshot().ControlledBy(set.Namespace, set.UID) {
		name = key.Name
	}
	o.kubectl("label", "pod", name, "app=quarantine", "--overwrite")
	o.until("the Pod released and another one in its place", func() bool {
		item := o.pods.Snapshot().Get(object.Key{Namespace: o.namespace, Name: name})
		return item.Exists() && item.Meta().Controller() == nil && o.status().AvailableReplicas == 1 && o.made() == 2
	})
	o.kubectl("scale", "rs/web", "--replicas=2")
	o.until("two replicas", func() bool { return o.status().AvailableReplicas == 2 })
	// The first one comes back, and one of three is too many.
	o.kubectl("label", "pod", name, "app=web", "--overwrite")
	o.until("all adopted, and one gone", func() bool {
		orphans := 0
		for range o.pods.Snapshot().Orphans(o.namespace) {
			orphans++
		}
		s := o.status()
		return orphans == 0 && s.Replicas == 2 && o.pods.Snapshot().Len() == 2
	})
}

func TestClusterAQuotaIsReportedAndCreatingGoesOnWhenItIsLifted(t *testing.T) {
	o := observe(t)
	quotas := client.For[*corev1.ResourceQuota](o.cluster.Client)
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	})
	if err != nil {
		t.Fatal(err)
	}
	// What the quota controller would do.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
	if quota, err = quotas.UpdateStatus(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	runController(t, o.cluster.Config)
	o.create(5)
	o.until("the failure of the third Pod", func() bool {
		s := o.status()
		return s.Replicas == 2 && len(s.Conditions) == 1 && s.Conditions[0].Reason == "FailedCreate" &&
			strings.Contains(s.Conditions[0].Message, "exceeded quota")
	})
	if note := o.told("FailedCreate"); !strings.HasPrefix(note, "Error creating: pods \"web-") || !strings.Contains(note, "exceeded quota") {
		t.Errorf("FailedCreate says %q", note)
	}
	if err := quotas.Delete(t.Context(), object.KeyOf(quota)); err != nil {
		t.Fatal(err)
	}
	o.until("five replicas and no failure", func() bool { s := o.status(); return s.Replicas == 5 && len(s.Conditions) == 0 && o.made() >= 5 })
	if n := o.made(); n != 5 {
		t.Errorf("%d Pods were made for 5", n)
	}
}

func TestClusterANamespaceThatTerminatesIsLeftAlone(t *testing.T) {
	o := observe(t)
	set := o.create(50)
	o.kubectl("delete", "namespace", o.namespace, "--wait=false") // it stays: nobody finalizes namespaces here
	creates := make(chan string, 1000)
	config := rest.CopyConfig(o.cluster.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/namespaces/"+o.namespace+"/") {
				creates <- r.URL.Path
			}
			return next.RoundTrip(r)
		})
	})
	stop := runController(t, config)
	o.until("a status", func() bool { return o.status().ObservedGeneration == set.Generation })
	stop()
	close(creates)
	n := 0
	for path := range creates {
		if strings.HasSuffix(path, "/events") {
			t.Errorf("an event was sent to a namespace that terminates")
		}
		n++
	}
	// One a run: the first, the one that follows the status it wrote, and whatever
	// else the cluster says of the ReplicaSet meanwhile. A slow start that went on
	// would have sent all 50 in the first.
	if n > 10 {
		t.Errorf("%d creates were sent, want one a run", n)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestClusterNoPodTooManyIsMadeOverKilledProcessesAndLostAnswers(t *testing.T) {
	const replicas = 150
	o := observe(t)
	o.create(replicas)
	for round := range 10 {
		life, kill := context.WithCancel(t.Context())
		config := rest.CopyConfig(o.cluster.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				// When the process is killed its connections break, in the
				// midst of requests too.
				ctx, cancel := context.WithCancel(r.Context())
				context.AfterFunc(life, cancel)
				response, err := next.RoundTrip(r.WithContext(ctx))
				if err == nil && r.Method == http.MethodPost && rand.IntN(10) == 0 {
					response.Body.Close()
					return nil, fmt.Errorf("the answer was lost")
				}
				return response, err
			})
		})
		stop := runController(t, config)
		want := min(replicas, (round+1)*replicas/10)
		o.until(fmt.Sprintf("%d Pods", want), func() bool { return o.pods.Snapshot().Len() >= want })
		kill()
		stop()
	}
	runController(t, o.cluster.Config)
	o.until("all replicas available", func() bool { return o.status().AvailableReplicas == replicas && o.made() >= replicas })
	if n := o.made(); n != replicas {
		t.Errorf("%d Pods were made for %d", n, replicas)
	}
}
