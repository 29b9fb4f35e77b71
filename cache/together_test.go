// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

// For the race detector: readers decode, indexes are added and handlers come and go while
// states are listed, given up, and followed. At the end the accounts agree with the store.
func TestReadersIndexesAndHandlersMeetAWriter(t *testing.T) {
	_, pods := newTestInformer(t)
	i := pods.informer
	i.running = t.Context()
	var tasks sync.WaitGroup
	var over atomic.Bool
	for range 2 {
		tasks.Go(func() {
			for !over.Load() {
				for _, item := range pods.All() {
					if o, err := item.Object(); err != nil || o.Name != item.Key().Name || o.ResourceVersion != string(item.Meta().Version) {
						t.Errorf("%s reads as %v, %v", item.Key(), o, err)
						return
					}
				}
			}
		})
	}
	tasks.Go(func() {
		for n := 0; !over.Load(); n++ {
			SharedIndex(pods, n%5, func(item Item[*corev1.Pod]) ([]string, error) {
				o, err := item.Object()
				return []string{o.Spec.NodeName}, err
			})
			r, err := pods.AddHandler(func(e Event[*corev1.Pod]) { _, _ = e.Item().Object() }, HandlerOptions{EveryStep: n%2 == 0, Limit: 1 << 30})
			if err != nil {
				t.Error(err)
				return
			}
			pods.Handle().Status()
			r.Remove()
		}
	})
	version := 10
	next := func(n int) *frame {
		version++
		p := realPod(n)
		p.Name, p.ResourceVersion = fmt.Sprint("pod-", n), fmt.Sprint(version)
		if n%3 == 0 {
			p.ResourceVersion = "5" // did not change
		}
		f, err := frameOf(p)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	at := func() object.Version { return object.Version(fmt.Sprint(version)) }
	for round := range 5 {
		i.begin(round%3 == 0)
		for n := range 120 {
			f := next(n + 20*round)
			if err := i.add(f); err != nil {
				t.Fatal(err)
			}
			if n%17 == 0 {
				i.omit(f)
			}
		}
		if round%4 == 1 {
			i.abandon()
		} else {
			i.whole(at())
		}
		for n := range 60 {
			change := i.put
			if n%5 == 0 {
				change = i.remove
			}
			if err := change(next(3*n+1), at()); err != nil {
				t.Fatal(err)
			}
		}
	}
	i.flush()
	over.Store(true)
	tasks.Wait()
	i.tasks.wait()

	count, raw, stored, kin := 0, 0, 0, 0
	i.store.current.Load().all(func(e *entry) bool {
		count++
		raw += e.rawSize()
		stored += len(e.body())
		return true
	})
	for _, f := range i.archive.families {
		if f.members == 0 {
			t.Errorf("a family of nobody is kept: %+v", f)
		}
		kin += int(f.members)
	}
	if s := pods.Snapshot(); s.Len() != count || kin != count || raw != i.archive.raw || stored != i.archive.stored {
		t.Errorf("%d objects, counted %d, in families %d; %d bytes raw, counted %d; %d stored, counted %d",
			count, s.Len(), kin, raw, i.archive.raw, stored, i.archive.stored)
	}
}
