// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/object"
)

func podNames(t *testing.T) func([]*corev1.Pod, error) string {
	return func(pods []*corev1.Pod, err error) string {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		var all []string
		for _, p := range pods {
			all = append(all, p.Namespace+"/"+p.Name)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
}

func TestListersReadByKeyNamespaceLabelsAndIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := func(value string) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Labels = map[string]string{"team": value}; p.Spec.NodeName = "n-" + value }
		}
		_, informer := newTestInformer(t, watching(
			added(pod("a", "1", in("x"), team("red"))), added(pod("b", "2", in("x"), team("blue"))), added(pod("a", "3", in("y"), team("red"))), allSent("5")))
		byNode := NewIndex(informer, func(i Item[*corev1.Pod]) ([]string, error) {
			p, err := i.Object()
			return []string{p.Spec.NodeName}, err
		})
		defer start(t, informer)()
		synctest.Wait()
		red := labels.SelectorFromSet(labels.Set{"team": "red"})
		names := podNames(t)
		want(t, "all", names(informer.List(labels.Everything())), "x/a x/b y/a")
		want(t, "all, without a selector", names(informer.List(nil)), "x/a x/b y/a")
		want(t, "all in x, without a selector", names(Objects(informer.Snapshot().Select("x", nil))), "x/a x/b")
		want(t, "red", names(informer.List(red)), "x/a y/a")
		want(t, "red in x", names(Objects(informer.Snapshot().Select("x", red))), "x/a")
		want(t, "on a node", names(Objects(byNode.Find("n-blue"))), "x/b")
		want(t, "on no node", names(Objects(byNode.Find("n-none"))), "")
		if p, err := informer.Get(object.Key{Namespace: "y", Name: "a"}); err != nil || p.Namespace != "y" {
			t.Errorf("have %v, %v", p, err)
		}
		if _, err := informer.Get(object.Key{Namespace: "y", Name: "b"}); !apierrors.IsNotFound(err) {
			t.Errorf("what is not there: %v", err)
		}
	})
}

func TestControlledByFindsTheManagingOwnerAlone(t *testing.T) {
	s := testStore()
	both := func(p *corev1.Pod) {
		ownedBy("u1")(p)
		p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0])
		p.OwnerReferences[1].UID, p.OwnerReferences[1].Controller = "u2", nil
	}
	set(s, pod("a", "1", both))
	want(t, "controlled by the second", names(snapshot(s).ControlledBy("ns", "u2")), "")
	want(t, "controlled by the first", names(snapshot(s).ControlledBy("ns", "u1")), "ns/a")
	want(t, "controlled by one of another namespace", names(snapshot(s).ControlledBy("other", "u1")), "")
	want(t, "controlled by one without a namespace", names(snapshot(s).ControlledBy("", "u1")), "ns/a")
	want(t, "orphans", names(snapshot(s).Orphans("ns")), "")
}
