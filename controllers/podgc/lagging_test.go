// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"io"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// gate holds back what watches of nodes bring, as a slow network or API server does.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while it is open
}

func newGate() *gate {
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.opened)
}

func (g *gate) passed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (g *gate) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil && r.URL.Path == "/api/v1/nodes" && r.URL.Query().Get("watch") != "" {
			answer.Body = gated{answer.Body, g, r}
		}
		return answer, err
	})
}

type gated struct {
	io.ReadCloser
	gate    *gate
	request *http.Request
}

// Read hands on what has come only while the gate is open.
func (b gated) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.gate.passed():
	case <-b.request.Context().Done():
	}
	return n, err
}

func (w *world) taint(node string, taints ...corev1.Taint) {
	w.t.Helper()
	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := client.For[*corev1.Node](w.Client).Patch(w.t.Context(), object.Key{Name: node}, patch); err != nil {
		w.t.Fatal(err)
	}
}

// sentinel waits until the controller has worked on a Pod that comes only now. With one worker,
// all that it found before is done by then.
func (w *world) sentinel(name string) {
	w.t.Helper()
	key := w.pod(name, "", func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/wait"} })
	w.delete(key)
	controlplanetest.Await(w.t, w.eyes, key, "a look of the controller", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
}

func TestATaintThatIsOffAgainForcesNoPodToGo(t *testing.T) {
	w := newWorld(t)
	outOfService := corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}
	out := w.node(outOfService)
	pod := w.pod("terminates", out)

	g := newGate()
	config := rest.CopyConfig(w.Config)
	config.Wrap(g.wrap)
	o := hasty
	o.Workers = 1
	p := managertest.Run(t, config, managertest.Making(New, o))
	isOut := func(node *corev1.Node) bool { return isOutOfService(node) }
	controlplanetest.Await(t, p, object.Key{Name: out}, "the controller knows the taint", isOut)

	g.shut()
	w.taint(out)
	w.delete(pod)
	controlplanetest.Await(t, p, pod, "the controller knows that the Pod terminates", func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	w.sentinel("first")
	w.sentinel("second")
	if node, err := cache.Informer[*corev1.Node](p).Get(object.Key{Name: out}); err != nil || !isOut(node) {
		t.Fatalf("the informer of nodes does not lag: %v, %v", node, err)
	}
	w.until("the Pod is still there", "first", "second", "terminates")
	there, err := w.pods.Get(t.Context(), pod)
	if err != nil || there.Status.Phase == corev1.PodFailed {
		t.Fatalf("the Pod is %v, %v", there, err)
	}

	g.open()
	controlplanetest.Await(t, p, object.Key{Name: out}, "the controller knows that the taint is off", func(node *corev1.Node) bool { return !isOut(node) })
	w.taint(out, outOfService)
	w.until("the Pod goes once the server has the taint", "first", "second")
}
