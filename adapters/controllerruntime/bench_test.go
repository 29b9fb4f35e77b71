// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controllerruntime_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/adapters/internal/podload"
)

// How many reads are in one round of a benchmark.
const (
	getsOfARound  = 5_000
	listsOfARound = 20
)

// BenchmarkCaches compares the caches of this package with that of controller-runtime: the heap of
// a cached Pod, and the CPU time of the first sync, of a Get and of a List of a namespace. A ratio is
// to controller-runtime in the same run.
//
// Budget is NewCache with a budget of decoded objects that holds all Pods, after each was read.
//
// The reads are with deep copies and, in those with Shared in their name, without. Get reads one
// Pod after the other, and GetAgain the same one each time. The CPU time is that of the process, with the
// garbage collector's, which collects the objects that the caller makes: the smaller the heap, the more often. The profile
// of GetAgainShared has 1 µs of the cache and 2 µs of the collector. The wall time shows what a reader waits for.
func BenchmarkCaches(b *testing.B) {
	ctrl.SetLogger(logr.Discard())
	config := podload.Serve(b)
	peer := map[string]float64{}
	for _, side := range []*side{
		{name: peerName, build: crcache.New},
		{name: "NewCache", build: controllerruntime.NewCache},
		{name: "Budget", build: controllerruntime.NewCacheWith(controllerruntime.DecodedBudget(holdsAll)), warm: true},
		{name: "NewInformer", build: withNewInformer},
	} {
		side.config, side.peer, side.sample = config, peer, new(corev1.Pod)
		b.Run(side.name, side.run)
	}
}

// BenchmarkTargets compares the caches with the objects that trust-manager caches in numbers, and its
// options: the metadata of the ConfigMaps that it writes, by their label.
func BenchmarkTargets(b *testing.B) {
	ctrl.SetLogger(logr.Discard())
	config := podload.ServeTargets(b)
	written, err := labels.NewRequirement(podload.TargetLabel, selection.Exists, nil)
	if err != nil {
		b.Fatal(err)
	}
	sample := new(metav1.PartialObjectMetadata)
	sample.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	options := crcache.Options{ReaderFailOnMissingInformer: true, DefaultLabelSelector: labels.NewSelector().Add(*written)}
	peer := map[string]float64{}
	for _, side := range []*side{{name: peerName, build: crcache.New}, {name: "NewCache", build: controllerruntime.NewCache}} {
		side.config, side.peer, side.sample, side.options = config, peer, sample, options
		b.Run(side.name, func(b *testing.B) {
			b.Run("FirstSync", side.firstSync)
			side.end()
		})
	}
}

// holdsAll is a budget of decoded objects that holds the Pods.
const holdsAll = 1 << 30

// peerName is the name of what the others are compared with.
const peerName = "controller-runtime"

// side is one of the caches that are compared.
type side struct {
	name    string
	build   crcache.NewCacheFunc
	config  *rest.Config
	sample  crclient.Object // of the kind that is cached
	options crcache.Options
	warm    bool               // every Pod is read before the reads are measured
	peer    map[string]float64 // what controller-runtime took, by benchmark and metric

	cache crcache.Cache
	stop  func()
}

func (s *side) run(b *testing.B) {
	b.Run("FirstSync", s.firstSync)
	defer s.end()
	if s.warm {
		for range 2 {
			for i := range podload.Namespaces {
				s.list(b, podload.NamespaceOf(i), false)
			}
		}
	}
	for _, shared := range []bool{false, true} {
		suffix := map[bool]string{true: "Shared"}[shared]
		b.Run("Get"+suffix, s.read(getsOfARound, func(b *testing.B, i int) {
			s.get(b, i*7919%podload.Count, new(corev1.Pod), shared)
		}))
		b.Run("GetAgain"+suffix, s.read(getsOfARound, func(b *testing.B, _ int) {
			s.get(b, 1, new(corev1.Pod), shared)
		}))
		b.Run("ListNamespace"+suffix, s.read(listsOfARound, func(b *testing.B, i int) {
			s.list(b, podload.NamespaceOf(i), shared)
		}))
	}
}

// withNewInformer makes controller-runtime's cache with the informers of this package.
func withNewInformer(config *rest.Config, o crcache.Options) (crcache.Cache, error) {
	o.NewInformer = controllerruntime.NewInformer
	return crcache.New(config, o)
}

// firstSync measures caches from their start until they have all Pods. The last of them stays for
// the reads.
func (s *side) firstSync(b *testing.B) {
	var heap, cpu float64
	for range b.N {
		s.end()
		before, start := podload.Heap(), podload.CPU(b)
		s.begin(b)
		cpu += micros(podload.CPU(b) - start)
		heap = float64(podload.Heap() - before)
	}
	s.report(b, "heap", "B/object", heap/podload.Count)
	s.report(b, "cpu", "µs/object", cpu/float64(b.N)/podload.Count)
	if _, ok := s.sample.(*corev1.Pod); ok {
		json, protobuf := podload.Size(b)
		b.ReportMetric(float64(json), "json-B/object")
		b.ReportMetric(float64(protobuf), "protobuf-B/object")
	}
}

// begin starts a cache, and waits until it has all Pods.
func (s *side) begin(b *testing.B) {
	c, err := s.build(s.config, s.options)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- c.Start(ctx) }()
	s.cache = c
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	if _, err := c.GetInformer(ctx, s.sample); err != nil {
		b.Fatal(err)
	}
	if !c.WaitForCacheSync(ctx) {
		b.Fatal("the cache has not synced")
	}
}

// end stops the cache, if there is one.
func (s *side) end() {
	if s.stop != nil {
		s.stop()
	}
	s.cache, s.stop = nil, nil
}

// read measures one way to read. A round has several reads.
func (s *side) read(ofARound int, once func(b *testing.B, i int)) func(*testing.B) {
	return func(b *testing.B) {
		runtime.GC() // what came before leaves no work
		start, began := podload.CPU(b), time.Now()
		for i := range b.N * ofARound {
			once(b, i)
		}
		wall := time.Since(began)
		s.report(b, "cpu", "µs/read", micros(podload.CPU(b)-start)/float64(b.N*ofARound))
		s.report(b, "wall", "µs/read", micros(wall)/float64(b.N*ofARound))
	}
}

func (s *side) get(b *testing.B, i int, into *corev1.Pod, shared bool) {
	var options []crclient.GetOption
	if shared {
		options = append(options, crclient.UnsafeDisableDeepCopy)
	}
	key := crclient.ObjectKey{Namespace: podload.NamespaceOf(i), Name: podload.NameOf(i)}
	if err := s.cache.Get(b.Context(), key, into, options...); err != nil {
		b.Fatal(err)
	}
}

func (s *side) list(b *testing.B, namespace string, shared bool) {
	options := []crclient.ListOption{crclient.InNamespace(namespace)}
	if shared {
		options = append(options, crclient.UnsafeDisableDeepCopy)
	}
	var found corev1.PodList
	if err := s.cache.List(b.Context(), &found, options...); err != nil || len(found.Items) != podload.Count/podload.Namespaces {
		b.Fatal(len(found.Items), err)
	}
}

// report reports a measured value, and its ratio to that of controller-runtime.
func (s *side) report(b *testing.B, what, unit string, value float64) {
	b.ReportMetric(0, "ns/op") // a round has no meaning of its own
	b.ReportMetric(value, what+"-"+unit)
	_, benchmark, _ := strings.Cut(b.Name(), "/"+s.name+"/")
	key := benchmark + " " + what
	if s.name == peerName {
		s.peer[key] = value
	} else if peer := s.peer[key]; peer > 0 {
		b.ReportMetric(value/peer, what+"-ratio")
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
