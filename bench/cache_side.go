// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/object"
)

// liveHeap is what is reachable, in bytes. The second collection frees what
// the first one found to be held weakly.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// lap is what a step cost this process.
type lap struct{ wall, cpu float64 } // seconds

func timed(f func() error) (l lap, err error) {
	before, err := processCPU()
	if err != nil {
		return l, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return l, err
	}
	l.wall = time.Since(began).Seconds()
	after, err := processCPU()
	l.cpu = after - before
	return l, err
}

// timed is timed with a CPU profile of the step, if profiles are wanted.
func (s *sideSpec) timed(step string, f func() error) (l lap, err error) {
	if s.Profile == "" {
		return timed(f)
	}
	file, err := os.Create(filepath.Join(s.Profile, fmt.Sprintf("%s-%s-%s-cpu.pb.gz", s.Kind, s.Side, step)))
	if err != nil {
		return l, fmt.Errorf("writing a profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return l, fmt.Errorf("writing a profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return timed(f)
}

// changesRest is how long a side is left alone after changes, so that the work that it puts off counts too.
// Setpoint packs objects that have been at rest for one to two seconds.
const changesRest = 2500 * time.Millisecond

// measureCache measures one informer over the life of a cache: it is filled, changes
// come, and a reader reads.
func measureCache(ctx context.Context, s *sideSpec) (_ readings, err error) {
	from, err := s.server()
	if err != nil {
		return nil, err
	}
	var h handler
	i, err := newInformer(s, from, &h)
	if err != nil {
		return nil, err
	}
	found := readings{}
	base := liveHeap()
	l, err := s.timed("sync", func() error { return i.sync(ctx) })
	if err != nil {
		return nil, err
	}
	defer i.stop()
	found["sync-cpu"] = l.cpu
	found["sync-wall"] = l.wall
	found["heap"] = liveHeap() - base
	if got := i.walk(); got != s.Objects {
		return nil, fmt.Errorf("the informer has %d objects, the server %d", got, s.Objects)
	}
	if s.Events == 0 {
		return found, nil
	}
	for _, decode := range []bool{false, true} {
		h.decode.Store(decode)
		name := "events"
		if decode {
			name = "events-decoded"
		}
		l, err := s.timed(name, func() error {
			version, err := from.ask(ctx, "publish", s.Events)
			if err != nil {
				return err
			}
			return h.wait(ctx, version)
		})
		if err != nil {
			return nil, err
		}
		found[name] = float64(s.Events) / l.wall
		after, err := s.timed(name+"-rest", func() error { time.Sleep(changesRest); return nil })
		if err != nil {
			return nil, err
		}
		found[name+"-cpu"] = (l.cpu + after.cpu) / float64(s.Events) * 1e6
	}
	found["heap-after"] = liveHeap() - base
	return found, errors.Join(measureGet(i, found), measureLists(i, found))
}

// sortedKeys are an informer's keys in an order that is the same for both sides.
func sortedKeys(i informer) []object.Key {
	keys := i.keys()
	slices.SortFunc(keys, func(a, b object.Key) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return keys
}

// Warm objects are a thousand that a reader holds, as a reconciler holds those that it
// works on.
const (
	warmObjects = 1000
	warmRounds  = 300
	coldGets    = 3000
)

// measureGet measures reads of one object by its key, as the median of what one
// takes: a machine that is busy with something else makes the mean say nothing. A
// cold read leaves something for a collection to clear up, which the median does
// not see; so its CPU time is measured too.
func measureGet(i informer, found readings) error {
	keys := sortedKeys(i)
	random := rand.New(rand.NewPCG(corpusSeed, 0))
	random.Shuffle(len(keys), func(a, b int) { keys[a], keys[b] = keys[b], keys[a] })
	cold := keys[:min(coldGets, len(keys))]
	took := make([]float64, 0, max(len(cold), warmRounds))
	liveHeap() // frees what was decoded before
	l, err := timed(func() error {
		for _, key := range cold {
			began := time.Now()
			if _, err := i.get(key); err != nil {
				return err
			}
			took = append(took, time.Since(began).Seconds())
		}
		return nil
	})
	if err != nil {
		return err
	}
	found["get-cold"] = median(took) * 1e6
	found["get-cold-cpu"] = l.cpu / float64(len(cold)) * 1e6

	warm := keys[:min(warmObjects, len(keys))]
	held := make([]object.Object, len(warm))
	took = took[:0]
	for range warmRounds {
		began := time.Now()
		for n, key := range warm {
			if held[n], err = i.get(key); err != nil {
				return err
			}
		}
		took = append(took, time.Since(began).Seconds()/float64(len(warm)))
	}
	runtime.KeepAlive(held)
	found["get-warm"] = median(took) * 1e9
	return nil
}

// measureLists measures lists of decoded objects: of a namespace of middling size,
// and of the objects in all namespaces that bear a label; in CPU time, with what is
// left to be cleared up.
func measureLists(i informer, found readings) error {
	sizes := map[string]int{}
	for _, key := range i.keys() {
		sizes[key.Namespace]++
	}
	names := make([]string, 0, len(sizes))
	for name := range sizes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(sizes[a]-sizes[b], strings.Compare(a, b)) })
	middle := names[len(names)/2]
	const rounds = 3
	for range rounds {
		liveHeap() // each list finds nothing decoded
		l, err := timed(func() error {
			n, err := i.listNamespace(middle)
			if err == nil && n != sizes[middle] {
				err = fmt.Errorf("a list of namespace %q has %d objects, want %d", middle, n, sizes[middle])
			}
			return err
		})
		if err != nil {
			return err
		}
		found["list-namespace"] += l.cpu / float64(sizes[middle]) * 1e6 / rounds
	}
	selector := labels.SelectorFromSet(labels.Set{"team": team})
	for range rounds {
		liveHeap()
		l, err := timed(func() error {
			n, err := i.listSelected(selector)
			found["selected"] = float64(n)
			return err
		})
		if err != nil {
			return err
		}
		found["list-selected"] += l.cpu * 1000 / rounds
	}
	return nil
}
