// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

var podResource = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

// podWatch follows the Pods of a namespace version by version. An informer would
// not do: it may show several changes as one.
type podWatch struct {
	client    *client.Client
	namespace string

	mu      sync.Mutex
	check   func(pods map[types.UID]*corev1.Pod) error // nil: nothing
	pods    map[types.UID]*corev1.Pod
	changes int
	changed chan struct{} // closed and replaced with each change
	broken  error         // the first thing that check did not like
	lists   int
}

// watchPods follows the Pods of a namespace until the end of the test.
func watchPods(t *testing.T, c *client.Client, namespace string) *podWatch {
	t.Helper()
	w := &podWatch{client: c, namespace: namespace, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// holds calls check now and after every single change, and the test fails if it
// ever returns an error.
func (w *podWatch) holds(check func(map[types.UID]*corev1.Pod) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check = check
	w.look("now")
}

// run lists, watches for as long as the server lets it, and begins anew. A server
// that was restarted has forgotten the versions before; nothing happens while
// there is none, so that all which is missed is between the last event and its
// end.
func (w *podWatch) run(ctx context.Context) {
	for ctx.Err() == nil {
		version, err := w.list(ctx)
		if err == nil {
			err = w.follow(ctx, version)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
		_ = err // the server is away: that is what the test is about
	}
}

func (w *podWatch) list(ctx context.Context) (object.Version, error) {
	list, version, err := client.For[*corev1.Pod](w.client).List(ctx, client.Selection{Namespace: w.namespace})
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists++
	w.pods = map[types.UID]*corev1.Pod{}
	for _, pod := range list {
		w.pods[pod.UID] = pod
	}
	w.look(string(version))
	return version, nil
}

func (w *podWatch) follow(ctx context.Context, version object.Version) error {
	stream, err := w.client.Watch(ctx, podResource, client.Selection{Namespace: w.namespace}, client.WatchOptions{ResourceVersion: string(version)})
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		event, err := stream.Next()
		if err != nil {
			return err
		}
		pod := &corev1.Pod{}
		switch event.Type {
		case wire.Bookmark:
			continue
		case wire.Added, wire.Modified, wire.Deleted:
			if err := stream.Encoding.Decode(event.Object, pod); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the watch says %s: %q", event.Type, event.Object)
		}
		w.mu.Lock()
		w.pods[pod.UID] = pod
		if event.Type == wire.Deleted {
			delete(w.pods, pod.UID)
		}
		w.changes++
		w.look(pod.ResourceVersion)
		w.mu.Unlock()
	}
}

// look is called with mu held.
func (w *podWatch) look(version string) {
	if w.check != nil && w.broken == nil {
		if err := w.check(w.pods); err != nil {
			w.broken = fmt.Errorf("at resourceVersion %s: %w", version, err)
		}
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits until f is content with the Pods and with the number of changes seen
// so far, or until stop is closed. It reports which, and fails the test if neither
// comes, or if a check failed meanwhile.
func (w *podWatch) until(t *testing.T, what string, stop <-chan struct{}, f func(pods map[types.UID]*corev1.Pod, changes int) bool) bool {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		w.mu.Lock()
		pods, changes, changed, broken := maps.Clone(w.pods), w.changes, w.changed, w.broken
		w.mu.Unlock()
		if broken != nil {
			t.Fatal(broken)
		}
		if f(pods, changes) {
			return true
		}
		select {
		case <-changed:
		case <-stop:
			return false
		case <-deadline.C:
			t.Fatalf("after %s, %d changes and %d Pods: waited in vain for %s", patience, changes, len(pods), what)
		}
	}
}

// seen returns how many changes were seen, and the first thing that was wrong.
func (w *podWatch) seen() (changes int, broken error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lists == 0 {
		return 0, errors.New("the watch never began")
	}
	return w.changes, w.broken
}

// count returns how many changes were seen.
func (w *podWatch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes
}

// now returns the Pods as they were seen last.
func (w *podWatch) now() map[types.UID]*corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.pods)
}
