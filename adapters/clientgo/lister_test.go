// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
)

func TestInformerOfAListerWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod1"}})
		informer := clientgo.NewSharedIndexInformer(source, &corev1.Pod{}, 0, nil)
		var got notes
		add(t, informer, &got)
		stop := run(t, informer)
		if !informer.HasSynced() {
			t.Error("not synced")
		}
		source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod2"}})
		source.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod1"}, Spec: corev1.PodSpec{NodeName: "n"}})
		source.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod2"}})
		synctest.Wait()
		want(t, "the handler got", got.was(), "initial pod1\nadd pod2\nupdate pod1 →n\ndelete pod2 on ")
		o, _, err := informer.GetStore().GetByKey("pod1")
		if err != nil || o.(*corev1.Pod).Spec.NodeName != "n" || o.(*corev1.Pod).Kind != "" {
			t.Errorf("the store has %v %v", o, err)
		}
		stop()
		source.Shutdown()
	})
}

func TestListerWatcherThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		source.ListError = apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("not yours"))
		informer := clientgo.NewSharedIndexInformer(source, &corev1.Pod{}, 0, nil)
		var failure error
		if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failure = err }); err != nil {
			t.Fatal(err)
		}
		stop := run(t, informer)
		if !apierrors.IsForbidden(failure) {
			t.Errorf("the failure is %v", failure)
		}
		stop()
		source.Shutdown()
	})
}

func TestUnstructuredObjectsOfAListerWatcherNeedAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		informer := clientgo.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, nil)
		var failure error
		if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failure = err }); err != nil {
			t.Fatal(err)
		}
		stop := run(t, informer)
		if failure == nil || !strings.Contains(failure.Error(), "no apiVersion and kind") {
			t.Errorf("the failure is %v", failure)
		}
		stop()
		source.Shutdown()
	})
}
