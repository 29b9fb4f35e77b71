// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

var podResource = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}

// podWatch follows the Pods of a namespace version by version. An informer would
// not do: it may show several changes as one.
type podWatch struct {
	stream *client.WatchStream
	pods   map[string]*corev1.Pod
	check  func(version string, pods map[string]*corev1.Pod) error
	done   chan error
}

// watchPods calls check after every single change of a Pod of the namespace, from
// now on.
func watchPods(c *cluster, check func(version string, pods map[string]*corev1.Pod) error) *podWatch {
	c.t.Helper()
	list, version, err := client.For[*corev1.Pod](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		c.t.Fatal(err)
	}
	w := &podWatch{pods: map[string]*corev1.Pod{}, check: check, done: make(chan error, 1)}
	for _, pod := range list {
		w.pods[pod.Name] = pod
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	w.stream, err = c.Client.Watch(ctx, podResource, client.Selection{Namespace: c.namespace}, client.WatchOptions{ResourceVersion: string(version)})
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	go func() {
		defer cancel()
		w.done <- w.run()
	}()
	return w
}

// lastPod ends a watch: all that happened before it was created has been seen.
const lastPod = "the-last"

func (w *podWatch) run() error {
	defer w.stream.Close()
	for changes := 0; ; {
		event, err := w.stream.Next()
		if err != nil {
			return err
		}
		pod := &corev1.Pod{}
		switch event.Type {
		case wire.Bookmark:
			continue
		case wire.Added, wire.Modified, wire.Deleted:
			if err := w.stream.Encoding.Decode(event.Object, pod); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the watch says %s: %q", event.Type, event.Object)
		}
		if pod.Name == lastPod {
			if changes == 0 {
				return fmt.Errorf("not a single change was seen")
			}
			return nil
		}
		changes++
		w.pods[pod.Name] = pod
		if event.Type == wire.Deleted {
			delete(w.pods, pod.Name)
		}
		if err := w.check(pod.ResourceVersion, w.pods); err != nil {
			return err
		}
	}
}

// end waits until the watch has seen all that has happened, and fails the test
// with what check said.
func (w *podWatch) end(c *cluster) {
	c.t.Helper()
	c.kubectl("run", lastPod, "--image", "last", "--labels", "last=yes")
	select {
	case err := <-w.done:
		if err != nil {
			c.t.Error(err)
		}
	case <-c.t.Context().Done():
		c.t.Error("the watch did not end")
	}
}

// alive reports whether a Pod counts: it has not ended and is not being deleted.
func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestRolloutKeepsItsBoundsAtEveryVersion(t *testing.T) {
	for _, readyAfter := range []string{"0s", "20ms+300ms"} {
		t.Run("ready after "+readyAfter, func(t *testing.T) {
			c := start(t)
			c.create("web", 20, readyAfter)
			c.rolledOut("web")

			const most, least = 25, 15 // 25 % above, 25 % below
			var highest, lowest = 0, 20
			w := watchPods(c, func(version string, pods map[string]*corev1.Pod) error {
				count, available := 0, 0
				for _, pod := range pods {
					if alive(pod) {
						count++
						if ready(pod) {
							available++
						}
					}
				}
				highest, lowest = max(highest, count), min(lowest, available)
				if count > most || available < least {
					return fmt.Errorf("resourceVersion %s: %d Pods of at most %d, %d available of at least %d", version, count, most, available, least)
				}
				return nil
			})
			c.kubectl("set", "image", "deployment/web", "main=web:2")
			c.rolledOut("web")
			// Into the middle of it, and back.
			c.kubectl("set", "image", "deployment/web", "main=web:3")
			c.kubectl("rollout", "undo", "deployment/web")
			c.kubectl("rollout", "restart", "deployment/web")
			c.rolledOut("web")
			w.end(c)
			t.Logf("between %d available and %d Pods", lowest, highest)
		})
	}
}

func TestRecreateNeverRunsTwoTemplatesAtOnce(t *testing.T) {
	c := start(t)
	c.create("web", 5, "0s")
	c.kubectl("patch", "deployment", "web", "--type", "merge", "--patch", `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`)
	c.rolledOut("web")
	w := watchPods(c, func(version string, pods map[string]*corev1.Pod) error {
		hashes := map[string]bool{}
		for _, pod := range pods { // terminating ones too, until they have ended: their containers run
			if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
				continue
			}
			hashes[pod.Labels["pod-template-hash"]] = true
		}
		if len(hashes) > 1 {
			return fmt.Errorf("resourceVersion %s: Pods of %d templates", version, len(hashes))
		}
		return nil
	})
	c.kubectl("set", "image", "deployment/web", "main=web:2")
	c.rolledOut("web")
	c.kubectl("rollout", "undo", "deployment/web")
	c.rolledOut("web")
	w.end(c)
}
