// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcapublisher

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// running is a manager with nothing but this controller, and how to end it.
type running struct {
	*manager.Manager
	end func()
}

// start runs the controller until the test ends, as somebody who has its rights and
// no others.
func start(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) running {
	t.Helper()
	cluster := shared.Get(t)
	config := cluster.Restricted(t, Rights())
	if wrap != nil {
		config.Wrap(wrap)
	}
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(mgr, Options{Workers: 1, RootCA: cluster.Config.CAData})
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

// watcher is somebody who may look at everything.
func watcher(t *testing.T) *manager.Manager {
	t.Helper()
	mgr, err := manager.New(shared.Get(t).Config, manager.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = mgr.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return mgr
}

func asItShouldBe(t *testing.T) func(*corev1.ConfigMap) bool {
	certificates := string(shared.Get(t).Config.CAData)
	return func(c *corev1.ConfigMap) bool {
		return len(c.Data) == 1 && c.Data["ca.crt"] == certificates && strings.HasPrefix(c.Annotations["kubernetes.io/description"], "Contains a CA bundle")
	}
}

func TestEveryNamespaceHasTheCertificates(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	for _, name := range []string{"default", "kube-system", shared.Get(t).Namespace(t), shared.Get(t).Namespace(t)} {
		controlplanetest.Await(t, w, object.Key{Namespace: name, Name: "kube-root-ca.crt"}, "the ConfigMap of "+name, asItShouldBe(t))
	}
}

func TestWhatSomebodyDeletesComesBack(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	key := object.Key{Namespace: shared.Get(t).Namespace(t), Name: "kube-root-ca.crt"}
	first := controlplanetest.Await(t, w, key, "the ConfigMap", asItShouldBe(t))
	if err := client.For[*corev1.ConfigMap](w.Client()).Delete(t.Context(), key, client.IfUID(first.UID)); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, w, key, "another ConfigMap", func(c *corev1.ConfigMap) bool { return c.UID != first.UID && asItShouldBe(t)(c) })
}

func TestWhatSomebodyChangesIsChangedBackAndTheirsIsLeft(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	key := object.Key{Namespace: shared.Get(t).Namespace(t), Name: "kube-root-ca.crt"}
	controlplanetest.Await(t, w, key, "the ConfigMap", asItShouldBe(t))
	patch, err := client.MergePatch(map[string]any{
		"data":     map[string]any{"ca.crt": "mine", "more": "x"},
		"metadata": map[string]any{"annotations": map[string]any{annotation: nil, "mine": "too"}, "labels": map[string]any{"mine": "too"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*corev1.ConfigMap](w.Client()).Patch(t.Context(), key, patch); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, w, key, "the ConfigMap is mended", func(c *corev1.ConfigMap) bool {
		return asItShouldBe(t)(c) && c.Labels["mine"] == "too" && c.Annotations["mine"] == "too"
	})
}

func TestATerminatingNamespaceIsLeftAlone(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	name := shared.Get(t).Namespace(t)
	key := object.Key{Namespace: name, Name: "kube-root-ca.crt"}
	controlplanetest.Await(t, w, key, "the ConfigMap", asItShouldBe(t))
	// No namespace controller runs: it stays terminating.
	if err := client.For[*corev1.Namespace](w.Client()).Delete(t.Context(), object.Key{Name: name}); err != nil {
		t.Fatal(err)
	}
	maps := client.For[*corev1.ConfigMap](w.Client())
	if err := maps.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	// What comes later has been worked on, so what came before has been too.
	controlplanetest.Await(t, w, object.Key{Namespace: shared.Get(t).Namespace(t), Name: "kube-root-ca.crt"}, "the ConfigMap of a later namespace", asItShouldBe(t))
	if _, err := maps.Get(t.Context(), key); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap of the terminating namespace: %v, want that it is gone", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The controller dies with its first write, again and again. In the end each namespace
// has one ConfigMap, which was made once.
func TestKilledInTheMiddleNothingIsMadeTwice(t *testing.T) {
	var names []string
	for range 10 {
		names = append(names, shared.Get(t).Namespace(t))
	}
	var mu sync.Mutex
	created := map[string]int{}
	live := func(dies bool) (running, <-chan struct{}) {
		wrote := make(chan struct{}, 1)
		var dead atomic.Bool
		return start(t, func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if dead.Load() {
					return nil, errors.New("the process is dead")
				}
				answer, err := next.RoundTrip(r)
				if err == nil && r.Method == http.MethodPost && answer.StatusCode == http.StatusCreated && strings.HasSuffix(r.URL.Path, "/configmaps") {
					for _, name := range names {
						if strings.Contains(r.URL.Path, "/"+name+"/") {
							mu.Lock()
							created[name]++
							mu.Unlock()
							dead.Store(dies)
							select {
							case wrote <- struct{}{}:
							default:
							}
						}
					}
				}
				return answer, err
			})
		}), wrote
	}
	for range 3 {
		one, wrote := live(true)
		select {
		case <-wrote:
		case <-time.After(controlplanetest.Patience):
			t.Fatal("nothing is written")
		}
		one.end()
	}
	live(false)
	w := watcher(t)
	for _, name := range names {
		controlplanetest.Await(t, w, object.Key{Namespace: name, Name: "kube-root-ca.crt"}, "the ConfigMap of "+name, asItShouldBe(t))
	}
	// One whose answer a dead process did not live to see is made and not counted.
	mu.Lock()
	defer mu.Unlock()
	for name, n := range created {
		if n > 1 {
			t.Errorf("%d ConfigMaps were created in %s", n, name)
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{RootCA: []byte("x"), Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New with -1 workers = %v, want an error that says so", err)
	}
	if _, err := New(mgr, Defaults()); !errors.Is(err, errNoCertificates) {
		t.Errorf("New without certificates = %v, want an error that says so", err)
	}
}

func TestARightConfigMapIsNotWritten(t *testing.T) {
	r := &reconciler{data: map[string]string{certificatesKey: "a"}}
	own := map[string]string{annotation: "somebody's own words"}
	for name, c := range map[string]struct {
		c    corev1.ConfigMap
		want bool
	}{
		"as it should be":    {corev1.ConfigMap{Data: map[string]string{"ca.crt": "a"}, ObjectMeta: metav1.ObjectMeta{Annotations: own}}, true},
		"other certificates": {corev1.ConfigMap{Data: map[string]string{"ca.crt": "b"}, ObjectMeta: metav1.ObjectMeta{Annotations: own}}, false},
		"more data":          {corev1.ConfigMap{Data: map[string]string{"ca.crt": "a", "b": "c"}, ObjectMeta: metav1.ObjectMeta{Annotations: own}}, false},
		"no description":     {corev1.ConfigMap{Data: map[string]string{"ca.crt": "a"}}, false},
	} {
		if got := r.right(&c.c); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
