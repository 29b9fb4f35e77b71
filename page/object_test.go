// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// A rollout that a controller holds: the Deployment shop/web, its ReplicaSet and a Pod, and two runs.
func rollout(t testing.TB) *source {
	t.Helper()
	s := newSource(t)
	labels := map[string]string{"app": "web"}
	born := metav1.NewTime(time.Now().Add(-10 * time.Minute))
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", CreationTimestamp: born},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "uid-web-1", Labels: labels, CreationTimestamp: born,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web"}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1-x", UID: "uid-web-1-x", Labels: labels, CreationTimestamp: born,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "uid-web-1"}}}}
	for _, o := range []metav1.Object{web, set, pod} {
		if err := s.resource[map[types.UID]string{"uid-web": "deployments", "uid-web-1": "replicasets", "uid-web-1-x": "pods"}[o.GetUID()]].Add(o); err != nil {
			t.Fatal(err)
		}
	}
	key := object.Key{Namespace: "shop", Name: "web"}
	began := time.Now().Add(-5 * time.Minute)
	runs.Add(s.record.Loop("deployment-controller", "apps", "Deployment"), key, &runs.Ended{Began: began, Took: 2 * time.Millisecond, Outcome: runs.Done,
		Causes: causeOf(t, workqueue.Cause{Source: "deployments", Verb: workqueue.Updated, Version: "41", From: "40",
			Ref: object.Ref{Group: "apps", Kind: "Deployment", Key: key, UID: "uid-web"}}),
		Writes: []runs.Write{{Verb: "create", Version: "42", Fields: []string{"spec.replicas"}, Object: runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-1", UID: "uid-web-1"}}},
	})
	runs.Add(s.record.Loop("deployment-controller", "apps", "Deployment"), key, &runs.Ended{Began: began.Add(time.Minute), Outcome: runs.Again, Next: 10 * time.Minute,
		Reasons: []runs.Reason{{Code: "HeldByMaxUnavailable", Text: "the rollout keeps 8 Pods", Ends: "a Pod becomes ready"}}})
	return s
}

// causeOf returns causes as a queue collects them.
func causeOf(t testing.TB, c workqueue.Cause) workqueue.Causes {
	t.Helper()
	q := workqueue.New(workqueue.Options[string]{Name: "causes"})
	defer q.ShutDown()
	q.AddWith(workqueue.Add{Cause: c}, "key")
	item, ok := q.Get()
	if !ok {
		t.Fatal("the queue has no key")
	}
	q.Done(item.Key)
	return item.Causes
}

func TestAnObjectSaysWhyItIsSo(t *testing.T) {
	p := newPage(rollout(t))
	w := get(t, p, "/o/apps/deployments/shop/web")
	body := w.Body.String()
	for _, want := range []string{
		`<a href="/o/apps/deployments/shop/web?run=1-`,
		`<p class="sentence"><span class="mark trouble" role="img" aria-label="needs attention" title="needs attention">▲</span> The rollout keeps 8 Pods, since 4 min.</p>`,
		`">deployment-controller, run 1</a> <span class="did">created ReplicaSet.apps shop/web-1: spec.replicas</span>`,
		`the rollout keeps 8 Pods (until a Pod becomes ready)`,
		`<svg class="graph"`, `<svg class="timeline"`,
		`<li class="depth0"><span class="mark well" role="img" aria-label="well" title="well">●</span> ReplicaSet <a href="/o/apps/ReplicaSet/shop/web-1">`,
		`<li class="depth1">`,
		`as of <time`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the view has no %s", want)
		}
	}
	if w.Code != http.StatusOK || t.Failed() {
		t.Logf("%d\n%s", w.Code, body)
	}
}

func TestALoopWithoutARunInTheRecordHasNoLastRun(t *testing.T) {
	s := rollout(t)
	began := time.Now().Add(-time.Minute)
	web := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-web"}
	s.states = []runs.KeyState{{Controller: "quota-controller", Key: "shop/web", Object: web, State: runs.StateReady, Since: &began, Ready: 9, Ahead: 3}}
	body := get(t, newPage(s), "/o/apps/deployments/shop/web").Body.String()
	if strings.Contains(body, "days ago") || !strings.Contains(body, "no run in the record, waits for a worker since") {
		t.Error(body)
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	s := rollout(t)
	runs.Add(s.record.Loop("deployment-controller", "apps", "Deployment"), object.Key{Namespace: "shop", Name: "web"}, &runs.Ended{Began: time.Now(), Outcome: runs.Failed, Error: "it is broken", Attempt: 2})
	body := get(t, newPage(s), "/o/apps/deployments/shop/web?run=3").Body.String()
	if strings.Contains(body, "trys") || !strings.Contains(body, "after 2 attempts before") || !strings.Contains(body, "attempt 3: it is broken") {
		t.Error(body)
	}
}

func TestObjectsThatOwnEachOtherAreNamed(t *testing.T) {
	s := rollout(t)
	for _, one := range [][2]string{{"x", "y"}, {"y", "x"}} {
		owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: one[1], UID: types.UID("uid-" + one[1])}}
		if one[0] == "x" {
			owners = append(owners, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "uid-web-1"})
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "pod-" + one[0], UID: types.UID("uid-" + one[0]), Labels: map[string]string{"app": "web"}, OwnerReferences: owners,
		}}
		if err := s.resource["pods"].Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	body := strings.ReplaceAll(get(t, newPage(s), "/o/apps/deployments/shop/web").Body.String(), "<wbr>", "")
	_, below, _ := strings.Cut(body, `data-part="below"`)
	part, _, _ := strings.Cut(below, "</section>")
	if !strings.Contains(part, "pod-x") || !strings.Contains(part, "pod-y") {
		t.Error(part)
	}
}
