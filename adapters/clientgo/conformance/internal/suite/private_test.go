// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package suite

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
)

type sharedIndexInformer = clientgo.Informer

func newSharedInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration) cache.SharedInformer {
	return clientgo.NewSharedIndexInformer(lw, example, resync, cache.Indexers{})
}

func eventHandlerCount(i cache.SharedInformer) int {
	return clientgo.HandlersOf(i.(*clientgo.Informer))
}

func isStarted(i cache.SharedInformer) bool { return clientgo.HasStarted(i.(*clientgo.Informer)) }

func isRegistered(i cache.SharedInformer, h cache.ResourceEventHandlerRegistration) bool {
	return clientgo.HasHandler(i.(*clientgo.Informer), h)
}

// sharedProcessorRunHook delays the start of client-go's handlers, which these have no part for.
var sharedProcessorRunHook atomic.Pointer[func()]

func newFakeControllerSource(tb testing.TB) *fcache.FakeControllerSource {
	source := fcache.NewFakeControllerSource()
	tb.Cleanup(source.Shutdown)
	return source
}

// threadSafeBuffer is a buffer for the logs of several goroutines.
type threadSafeBuffer struct {
	buffer bytes.Buffer
	mu     sync.Mutex
}

func (b *threadSafeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *threadSafeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// servedIndexer is the indexer of an informer that runs. Its writes go to what the informer
// watches, and return when they have come back.
type servedIndexer struct {
	cache.Indexer
	t      *testing.T
	source *fcache.FakeControllerSource
}

func newIndexer(t *testing.T, indexers cache.Indexers) cache.Indexer {
	source := newFakeControllerSource(t)
	informer := clientgo.NewSharedIndexInformer(source, &corev1.Pod{}, 0, indexers)
	var done sync.WaitGroup
	done.Go(func() { informer.RunWithContext(t.Context()) })
	t.Cleanup(done.Wait)
	if !cache.WaitFor(t.Context(), "", informer.HasSyncedChecker()) {
		t.Fatal("the informer has not synced")
	}
	return &servedIndexer{informer.GetIndexer(), t, source}
}

func (s *servedIndexer) Add(o any) error    { return s.write(s.source.Add, o) }
func (s *servedIndexer) Update(o any) error { return s.write(s.source.Modify, o) }
func (s *servedIndexer) Delete(o any) error { return s.write(s.source.Delete, o) }

func (s *servedIndexer) write(write func(runtime.Object), o any) error {
	before := s.LastStoreSyncResourceVersion()
	write(o.(runtime.Object).DeepCopyObject())
	for s.LastStoreSyncResourceVersion() == before {
		if s.t.Context().Err() != nil {
			return s.t.Context().Err()
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
