// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
)

// side is one of the two that are compared, with a server of its own that has the same objects: the
// informers of this package, or those of client-go.
type side struct {
	*world
	ours bool
}

// informer returns an informer of Pods.
func (s *side) informer(t *testing.T, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	t.Helper()
	indexers = maps.Clone(indexers) // client-go adds later ones to the map
	if s.ours {
		return s.podInformer(t, clientgo.Options{ResyncPeriod: resync, Indexers: indexers})
	}
	return coreinformers.NewPodInformer(s.clientset(t), metav1.NamespaceAll, resync, indexers)
}

// factory returns a factory of typed informers.
func (s *side) factory(t *testing.T) informers.SharedInformerFactory {
	t.Helper()
	if s.ours {
		return clientgo.NewSharedInformerFactory(s.clientset(t), 0)
	}
	return informers.NewSharedInformerFactory(s.clientset(t), 0)
}

// dynamic returns a factory of informers of unstructured objects.
func (s *side) dynamic(t *testing.T) dynamicinformer.DynamicSharedInformerFactory {
	t.Helper()
	if s.ours {
		return clientgo.NewDynamicSharedInformerFactory(s.Config(), 0)
	}
	c, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	return dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
}

// metadata returns a factory of informers of metadata.
func (s *side) metadata(t *testing.T) metadatainformer.SharedInformerFactory {
	t.Helper()
	if s.ours {
		return clientgo.NewMetadataSharedInformerFactory(s.Config(), 0)
	}
	c, err := metadata.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	return metadatainformer.NewSharedInformerFactory(c, 0)
}

type comparison = methodtest.Comparison[*side]

// comparisons are those of all interfaces.
var comparisons = slices.Concat(comparisonsOfInformers, comparisonsOfHandlers, comparisonsOfStores, comparisonsOfFactories)

// TestSideBySideWithClientGo does the same with an informer of client-go and with one of this package.
func TestSideBySideWithClientGo(t *testing.T) {
	for _, c := range comparisons {
		t.Run(c.Name, func(t *testing.T) {
			c.Compare(t, func(t *testing.T, ours bool, run func(t *testing.T, s *side)) {
				inWorld(t, func(t *testing.T, w *world) { run(t, &side{w, ours}) })
			})
		})
	}
}

// The tables of docs/client-go.md have each method of client-go's interfaces, and each row is shown by a
// comparison.
func TestTheDocumentHasEachMethod(t *testing.T) {
	text, err := os.ReadFile("../../docs/client-go.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range methodtest.Check(string(text), []methodtest.Interface{
		methodtest.Of[cache.SharedIndexInformer]("cache.SharedIndexInformer"),
		methodtest.Of[cache.ResourceEventHandlerRegistration]("cache.ResourceEventHandlerRegistration"),
		methodtest.Of[cache.Controller]("cache.Controller"),
		methodtest.Of[cache.Indexer]("cache.Indexer"),
		methodtest.Of[informers.SharedInformerFactory]("informers.SharedInformerFactory"),
		methodtest.Of[informers.GenericInformer]("informers.GenericInformer"),
		methodtest.Of[dynamicinformer.DynamicSharedInformerFactory]("dynamicinformer.DynamicSharedInformerFactory"),
		methodtest.Of[metadatainformer.SharedInformerFactory]("metadatainformer.SharedInformerFactory"),
	}, methodtest.ShownBy(comparisons)) {
		t.Error("docs/client-go.md: " + wrong)
	}
}

// methods returns the full names of methods of an interface.
func methods(of string, names ...string) []string {
	for i, name := range names {
		names[i] = of + "." + name
	}
	return names
}

// text is an object as JSON.
func text(t *testing.T, o any) string {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
