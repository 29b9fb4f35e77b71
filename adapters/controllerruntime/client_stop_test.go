// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// reading is a read and what it is called.
type reading struct {
	name string
	read func(ctx context.Context, r crclient.Reader) error
}

// readsOfNew are reads that may return the Pod team-a/new.
var readsOfNew = []reading{
	{"Get", func(ctx context.Context, r crclient.Reader) error {
		return r.Get(ctx, keyOf("team-a", "new"), &corev1.Pod{})
	}},
	{"List", func(ctx context.Context, r crclient.Reader) error { return r.List(ctx, &corev1.PodList{}) }},
	{"List of a namespace", func(ctx context.Context, r crclient.Reader) error {
		return r.List(ctx, &corev1.PodList{}, crclient.InNamespace("team-a"))
	}},
}

// begin calls a read in another goroutine. The returned function waits for its end, and returns how long it took,
// in the time of the bubble, and its error.
func (r reading) begin(ctx context.Context, from crclient.Reader) func() (time.Duration, error) {
	start, ended := time.Now(), make(chan error, 1)
	var took time.Duration
	go func() {
		err := r.read(ctx, from)
		took = time.Since(start)
		ended <- err
	}()
	return func() (time.Duration, error) {
		err := <-ended
		return took, err
	}
}

var ofTwoNamespaces = map[string]crcache.Config{"team-a": {}, "team-b": {}}

func TestReadsBeforeTheStartOfTheCacheFailAtOnce(t *testing.T) {
	for name, options := range map[string]crcache.Options{"one informer": {}, "two namespaces": {DefaultNamespaces: ofTwoNamespaces}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, options, func(t *testing.T, w *world) {
				c := w.client(t, crclient.Options{})
				if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}); err != nil {
					t.Fatal(err)
				}
				must(t, c.Create(t.Context(), podOf("team-a", "new")))
				for _, r := range readsOfNew {
					for from, reader := range map[string]crclient.Reader{"cache": w.cache, "client": c} {
						took, err := r.begin(t.Context(), reader)()
						if _, ok := errors.AsType[*crcache.ErrCacheNotStarted](err); !ok || took != 0 {
							t.Errorf("%s of the %s: %v after %s", r.name, from, err, took)
						}
					}
				}
				defer w.start(t)()
				if get(t, c, "team-a", "new") == nil {
					t.Error("the Pod is not there after the start")
				}
			})
		})
	}
}

func TestReadsFailAtOnceWhenTheCacheStops(t *testing.T) {
	for name, options := range map[string]crcache.Options{"one informer": {}, "two namespaces": {DefaultNamespaces: ofTwoNamespaces}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, options, func(t *testing.T, w *world) {
				c := w.client(t, crclient.Options{})
				w.pod(t, "team-b", "a")
				if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}); err != nil {
					t.Fatal(err)
				}
				stop := w.start(t)
				w.api.Faults.HoldWatches(true)
				must(t, c.Create(t.Context(), podOf("team-a", "new")))
				var ends []func() (time.Duration, error)
				for _, r := range readsOfNew {
					ends = append(ends, r.begin(t.Context(), c))
				}
				time.Sleep(time.Second) // of the bubble
				stop()
				for i, r := range readsOfNew {
					if took, err := ends[i](); err == nil || took != time.Second || apierrors.IsTimeout(err) {
						t.Errorf("%s during the stop: %v after %s", r.name, err, took)
					}
					if took, err := r.begin(t.Context(), c)(); err == nil || took != 0 || apierrors.IsTimeout(err) {
						t.Errorf("%s after the stop: %v after %s", r.name, err, took)
					}
				}
				if get(t, c, "team-b", "a") == nil {
					t.Error("a Pod that the cache has is not there after the stop")
				}
			})
		})
	}
}

// The cache waits for its handlers before it has stopped, so a handler that reads must not wait for that.
func TestAHandlerThatReadsDoesNotDelayTheStop(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		c := w.client(t, crclient.Options{})
		w.pod(t, "team-a", "a")
		informer, err := w.cache.GetInformer(t.Context(), &corev1.Pod{})
		must(t, err)
		goOn, read := make(chan struct{}), make(chan error, 1)
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			<-goOn
			read <- c.Get(context.Background(), keyOf("team-a", "new"), &corev1.Pod{})
		}})
		must(t, err)
		stop := w.start(t)
		w.api.Faults.HoldWatches(true)
		must(t, c.Create(t.Context(), podOf("team-a", "new")))
		close(goOn)
		synctest.Wait()
		start := time.Now()
		stop()
		if took := time.Since(start); took != 0 {
			t.Errorf("the stop took %s", took)
		}
		if err := <-read; err == nil {
			t.Error("the read has the Pod")
		}
	})
}

// The read goes on with the informer that there is then, which has listed after the write.
func TestReadsDoNotWaitForAnInformerThatIsRemoved(t *testing.T) {
	for name, options := range map[string]crcache.Options{
		"one informer": {}, "two namespaces": {DefaultNamespaces: ofTwoNamespaces},
		"no new informers": {ReaderFailOnMissingInformer: true},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, options, func(t *testing.T, w *world, c crclient.Client) {
				w.api.Faults.HoldWatches(true)
				must(t, c.Create(t.Context(), podOf("team-a", "new")))
				var ends []func() (time.Duration, error)
				for _, r := range readsOfNew {
					ends = append(ends, r.begin(t.Context(), c))
				}
				time.Sleep(time.Second) // of the bubble
				must(t, w.cache.RemoveInformer(t.Context(), &corev1.Pod{}))
				for i, r := range readsOfNew {
					took, err := ends[i]()
					_, notCached := errors.AsType[*crcache.ErrResourceNotCached](err)
					if err != nil && !notCached || notCached != options.ReaderFailOnMissingInformer || took != time.Second {
						t.Errorf("%s: %v after %s", r.name, err, took)
					}
				}
			})
		})
	}
}

// A view that is removed leaves the informer to the other views of the kind, and so the write to be waited for.
func TestReadsWaitOnWhenAViewOfTheirInformerIsRemoved(t *testing.T) {
	withClient(t, crcache.Options{}, func(t *testing.T, w *world, c crclient.Client) {
		if _, err := w.cache.GetInformer(t.Context(), metadataOf(podKind)); err != nil {
			t.Fatal(err)
		}
		w.api.Faults.HoldWatches(true)
		must(t, c.Create(t.Context(), podOf("team-a", "new")))
		seen := false
		read := make(chan bool)
		go func() { read <- c.Get(t.Context(), keyOf("team-a", "new"), metadataOf(podKind)) == nil && seen }()
		time.Sleep(time.Second) // of the bubble
		must(t, w.cache.RemoveInformer(t.Context(), metadataOf(podKind)))
		time.Sleep(time.Second)
		seen = true
		w.api.Faults.HoldWatches(false)
		if !<-read {
			t.Error("the read did not wait until the informer had seen the write")
		}
	})
}

// The order of the informers is random, so the test is made several times.
func TestTheLimitOfAWaitIsThatOfTheWholeRead(t *testing.T) {
	for range 8 {
		withClient(t, crcache.Options{DefaultNamespaces: ofTwoNamespaces}, func(t *testing.T, w *world, c crclient.Client) {
			for namespace, late := range map[string]time.Duration{"team-a": 29 * time.Second, "team-b": 31 * time.Second} {
				w.api.Faults.LagWatches(func() time.Duration { return late })
				must(t, c.Create(t.Context(), podOf(namespace, "new")))
			}
			start := time.Now()
			err := c.List(t.Context(), &corev1.PodList{})
			if took := time.Since(start); !apierrors.IsTimeout(err) || took != 30*time.Second {
				t.Errorf("the list ended after %s: %v", took, err)
			}
			w.api.Faults.LagWatches(nil)
			time.Sleep(time.Minute) // of the bubble
		})
	}
}

// Each namespace has a write that its informer will never see, which only the server knows.
func TestAListComparesAllItsWritesWithTheServerAtOnce(t *testing.T) {
	names := []string{"team-a", "team-b", "team-c", "team-d", "team-e", "team-f", "team-g", "team-h"}
	namespaces := map[string]crcache.Config{}
	for _, name := range names {
		namespaces[name] = crcache.Config{}
	}
	options := crcache.Options{DefaultNamespaces: namespaces, DefaultFieldSelector: fields.OneTermEqualSelector("spec.nodeName", "")}
	withClient(t, options, func(t *testing.T, w *world, c crclient.Client) {
		for _, name := range names {
			config := corev1apply.Pod("new", name).WithSpec(corev1apply.PodSpec().WithNodeName("node-1"))
			must(t, c.Apply(t.Context(), config, crclient.FieldOwner("test")))
		}
		start := time.Now()
		if n := count(t, c); n != 3 {
			t.Errorf("%d Pods, want 3", n)
		}
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("the list took %s", took)
		}
	})
}
