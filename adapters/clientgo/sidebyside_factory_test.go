// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

const (
	ofFactory  = "informers.SharedInformerFactory"
	ofGeneric  = "informers.GenericInformer"
	ofDynamic  = "dynamicinformer.DynamicSharedInformerFactory"
	ofMetadata = "metadatainformer.SharedInformerFactory"
)

var (
	podResource = corev1.SchemeGroupVersion.WithResource("pods")
	unserved    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
)

// groupsOfFactory are the methods that return the informers of a group.
func groupsOfFactory() (names []string) {
	for m := range reflect.TypeFor[informers.SharedInformerFactory]().Methods() {
		if m.Type.NumIn() == 0 && m.Type.NumOut() == 1 && m.Type.Out(0).Name() == "Interface" {
			names = append(names, m.Name)
		}
	}
	return names
}

// resourceFactory is what the factories of unstructured objects and of metadata have in common.
type resourceFactory interface {
	startable
	ForResource(schema.GroupVersionResource) informers.GenericInformer
	WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool
}

// compareResources compares factories of informers by resource.
func compareResources(of string, factory func(s *side, t *testing.T) resourceFactory) comparison {
	return comparison{
		Name: of,
		Of:   methods(of, "Start", "ForResource", "WaitForCacheSync", "Shutdown"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a", on("n"), labeled("app", "web")), pod("b", in("team-b")))
			f := factory(s, t)
			pods := f.ForResource(podResource)
			seen.Note("one informer for each resource: %t", pods.Informer() == f.ForResource(podResource).Informer())
			seen.Note("nothing has been started: %v", f.WaitForCacheSync(t.Context().Done()))
			end := make(chan struct{})
			f.Start(end)
			seen.Note("%v", f.WaitForCacheSync(t.Context().Done()))
			a, err := pods.Lister().ByNamespace("team-a").Get("a")
			if m, ok := a.(*metav1.PartialObjectMetadata); ok {
				a = &metav1.PartialObjectMetadata{ObjectMeta: m.ObjectMeta} // the kind is compared below
			}
			seen.Note("%s %v", text(t, a), err)
			_, err = pods.Lister().ByNamespace("team-b").Get("a")
			seen.Note("%v", err)
			web, err := pods.Lister().List(labels.SelectorFromSet(labels.Set{"app": "web"}))
			seen.Note("%d %v", len(web), err)
			seen.Note("the indexes are %v", slices.Sorted(maps.Keys(pods.Informer().GetIndexer().GetIndexers())))
			foos := f.ForResource(unserved)
			f.Start(end)
			time.Sleep(time.Second)
			close(end)
			f.Shutdown()
			synctest.Wait()
			seen.Note("stopped %t %t, of which synced %t", pods.Informer().IsStopped(), foos.Informer().IsStopped(), foos.Informer().HasSynced())
			f.ForResource(corev1.SchemeGroupVersion.WithResource("nodes"))
			f.Start(end)
			seen.Note("after the end: %d", len(f.WaitForCacheSync(end)))
		},
	}
}

var comparisonsOfFactories = []comparison{
	{
		Name: "the life of a factory",
		Of:   methods(ofFactory, "Start", "StartWithContext", "Shutdown", "WaitForCacheSync", "WaitForCacheSyncWithContext", "InformerName"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"))
			f := s.factory(t)
			seen.Note("nothing is there: %v %v", f.WaitForCacheSync(t.Context().Done()), f.WaitForCacheSyncWithContext(t.Context()))
			pods := f.Core().V1().Pods().Informer()
			seen.Note("nothing was started: %v, name %v", f.WaitForCacheSync(t.Context().Done()), f.InformerName())
			end := make(chan struct{})
			f.Start(end)
			seen.Note("started: %v", f.WaitForCacheSync(t.Context().Done()))
			f.Core().V1().Secrets().Informer() // the server does not serve them
			ctx, cancel := context.WithCancelCause(t.Context())
			f.StartWithContext(ctx)
			f.StartWithContext(ctx)
			waiting, giveUp := context.WithCancelCause(t.Context())
			giveUp(errors.New("it takes too long"))
			result := f.WaitForCacheSyncWithContext(waiting)
			seen.Note("one is not served: %v %v", result.Synced, result.AsError())
			close(end)
			cancel(nil)
			f.Shutdown()
			seen.Note("it has stopped: %t", pods.IsStopped())
			f.Core().V1().Nodes().Informer()
			f.Start(t.Context().Done())
			seen.Note("after the end: %v", f.WaitForCacheSync(end))
			f.Shutdown()
		},
	},
	{
		Name: "informers by type and by resource",
		Of:   append(methods(ofFactory, "InformerFor", "ForResource"), methods(ofGeneric, "Informer", "Lister")...),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"), pod("b", in("team-b")))
			f := s.factory(t)
			built := 0
			build := func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				built++
				return coreinformers.NewPodInformer(c, "team-a", resync, podIndexers)
			}
			informer := f.InformerFor(&corev1.Pod{}, build)
			before := built
			again := f.InformerFor(&corev1.Pod{}, build)
			generic, err := f.ForResource(podResource)
			seen.Note("built again %t, the same %t %t %t %v", built > before, informer == again,
				informer.GetIndexer() == generic.Informer().GetIndexer(), informer.GetIndexer() == f.Core().V1().Pods().Informer().GetIndexer(), err)
			defer start(f)()
			a, err := generic.Lister().ByNamespace("team-a").Get("a")
			seen.Note("%s %v", text(t, a), err)
			_, err = generic.Lister().ByNamespace("team-b").Get("b")
			seen.Note("%v", err)
			all, err := generic.Lister().List(labels.Everything())
			seen.Note("%d %v", len(all), err)
			seen.Note("%v", slices.Sorted(maps.Keys(informer.GetIndexer().GetIndexers())))
			_, err = f.ForResource(unserved)
			seen.Note("%v", err)
		},
	},
	{
		Name: "how often a constructor is called",
		Of:   methods(ofFactory, "InformerFor"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			calls := 0
			s.factory(t).InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				calls++
				return coreinformers.NewPodInformer(c, "team-a", resync, podIndexers)
			})
			seen.Note("calls: %d", calls)
		},
		Differs: &methodtest.Difference{Theirs: "calls: 1", Ours: "calls: 2"},
	},
	{
		Name: "the informers and listers of all groups",
		Of:   methods(ofFactory, groupsOfFactory()...),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			f := reflect.ValueOf(s.factory(t))
			for _, group := range groupsOfFactory() {
				of := f.MethodByName(group).Call(nil)[0]
				for version := range of.Type().Methods() {
					for resource := range of.MethodByName(version.Name).Call(nil)[0].Type().Methods() {
						one := of.MethodByName(version.Name).Call(nil)[0].MethodByName(resource.Name).Call(nil)[0].Interface()
						informer := reflect.ValueOf(one).MethodByName("Informer").Call(nil)[0].Interface().(cache.SharedIndexInformer)
						lister := reflect.ValueOf(one).MethodByName("Lister").Call(nil)[0].Interface()
						seen.Note("%s %s %s: %T %s, indexes %v, lister %T", group, version.Name, resource.Name, one, informer.HasSyncedChecker().Name(),
							slices.Sorted(maps.Keys(informer.GetIndexer().GetIndexers())), lister)
						if ours := isOurs(informer); ours != s.ours {
							t.Errorf("%s %s %s: the informer is ours: %t", group, version.Name, resource.Name, ours)
						}
					}
				}
			}
			if n := strings.Count(seen.String(), "\n"); n < 70 {
				t.Errorf("only %d informers were compared", n)
			}
		},
	},
	{
		Name: "a factory of which one resource is forbidden",
		Of:   methods(ofFactory, "WaitForCacheSync"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.nodes.Faults.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Forbidden("nodes") })
			f := s.factory(t)
			f.Core().V1().Pods().Informer()
			f.Core().V1().Nodes().Informer()
			end := make(chan struct{})
			f.Start(end)
			time.AfterFunc(time.Minute, func() { close(end) })
			synced := f.WaitForCacheSync(end)
			seen.Note("%s", fmt.Sprint(synced))
			f.Shutdown()
		},
	},
	compareResources(ofDynamic, func(s *side, t *testing.T) resourceFactory { return s.dynamic(t) }),
	compareResources(ofMetadata, func(s *side, t *testing.T) resourceFactory { return s.metadata(t) }),
	{
		Name: "the kind of metadata",
		Of:   methods(ofMetadata, "ForResource"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"))
			f := s.metadata(t)
			pods := f.ForResource(podResource)
			defer start(f)()
			a, err := pods.Lister().ByNamespace("team-a").Get("a")
			if err != nil {
				t.Fatal(err)
			}
			seen.Note("it is that of the object: %t", a.GetObjectKind().GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Pod"))
		},
		Differs: &methodtest.Difference{Theirs: "it is that of the object: false", Ours: "it is that of the object: true"},
	},
}

// isOurs reports whether an informer that a factory returns is one of this package, below the type of
// client-go that gives it typed methods.
func isOurs(informer cache.SharedIndexInformer) bool {
	inner := reflect.ValueOf(informer).Elem().FieldByName("SharedIndexInformer")
	_, ours := reflect.TypeAssert[*clientgo.Informer](inner)
	return ours
}
