// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
)

func TestTheCacheOfControllerRuntimeReadsFromNewInformer(t *testing.T) {
	inWorld(t, crcache.Options{NewInformer: controllerruntime.NewInformer}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a", on("node-1"), labelled("app", "web"), func(p *corev1.Pod) {
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate}}
		})
		byNode := func(o crclient.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
		if err := w.cache.IndexField(t.Context(), &corev1.Pod{}, "spec.nodeName", byNode); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		for _, o := range []crclient.Object{&corev1.Pod{}, unstructuredOf(podKind), metadataOf(podKind)} {
			informer, err := w.cache.GetInformer(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := informer.(*clientgo.Informer); !ok {
				t.Errorf("the informer of %T is a %T", o, informer)
			}
			if err := w.cache.Get(t.Context(), crclient.ObjectKey{Namespace: "team-a", Name: "a"}, o); err != nil {
				t.Fatal(err)
			}
			if o.GetLabels()["app"] != "web" || len(o.GetManagedFields()) != 1 || o.GetObjectKind().GroupVersionKind() != podKind {
				t.Errorf("%T is %v", o, o)
			}
		}
		w.pod(t, "team-a", "b", on("node-2"))
		w.pod(t, "team-b", "c", on("node-2"))
		var list corev1.PodList
		if err := w.cache.List(t.Context(), &list, crclient.InNamespace("team-b"), crclient.MatchingFields{"spec.nodeName": "node-2"}); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 1 || list.Items[0].Name != "c" {
			t.Errorf("the list has %v", list.Items)
		}
	})
}

// Mapping functions of programs read the kind of the metadata that they get.
func TestHandlersOfNewInformerGetMetadataWithItsKind(t *testing.T) {
	inWorld(t, crcache.Options{NewInformer: controllerruntime.NewInformer}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		defer w.start(t)()
		informer, err := w.cache.GetInformer(t.Context(), metadataOf(podKind))
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *metav1.PartialObjectMetadata, 2)
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) { got <- o.(*metav1.PartialObjectMetadata) }}); err != nil {
			t.Fatal(err)
		}
		w.pod(t, "team-a", "b")
		synctest.Wait()
		for range 2 {
			if m := <-got; m.GroupVersionKind() != podKind {
				t.Errorf("the handler got %s with the kind %s", m.Name, m.GroupVersionKind())
			}
		}
	})
}
