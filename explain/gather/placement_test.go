// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// asking is a Pod that asks for cores.
func asking(name, node, cores string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores)},
		}}}},
	}
}

// clusterWithout returns a server with Nodes of 4 cores, of which 3 are taken on node-00, and a Pod that asks for 2 and does not fit.
func clusterWithout(t *testing.T, count int, message string) (api *fakeapi.Server, pods *fakeapi.Resource) {
	t.Helper()
	api = fakeapi.New()
	nodes := api.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"})
	pods = api.Serve(kind("pods", "Pod").Resource, fakeapi.WithFields("spec.nodeName"))
	api.Serve(kind("events", "Event").Resource, fakeapi.WithFields("involvedObject.uid"))
	for i := range count {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%02d", i), UID: types.UID(fmt.Sprint("n", i))}, Spec: corev1.NodeSpec{Unschedulable: i > 0}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")}
		if err := nodes.Put(n); err != nil {
			t.Fatal(err)
		}
	}
	waiting := asking("train", "", "2")
	waiting.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	for _, p := range []*corev1.Pod{waiting, asking("web", "node-00", "3")} {
		if err := pods.Put(p); err != nil {
			t.Fatal(err)
		}
	}
	return api, pods
}

// refusals returns the facts about the Pod and what the answer says of Nodes: not done, and not known.
func refusals(t *testing.T, api *fakeapi.Server) (notDone, unknown string) {
	t.Helper()
	c, err := client.New(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	g := gather.Gatherer{Client: c, Record: gather.None("no manager")}
	facts, err := g.Facts(t.Context(), kind("pods", "Pod").Resource, object.Key{Namespace: "shop", Name: "train"})
	if err != nil {
		t.Fatal(err)
	}
	answer := explain.Tell(facts)
	var lines []string
	for _, n := range answer.NotDone {
		lines = append(lines, n.Controller+": "+n.Text)
	}
	return strings.Join(lines, "\n"), strings.Join(answer.Unknown, "\n")
}

func TestTheAnswerNamesTheRuleThatEachNodeFails(t *testing.T) {
	api, _ := clusterWithout(t, 2, "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.")
	notDone, unknown := refusals(t, api)
	if want := "default-scheduler: Node node-00: it does not fit Pod train: the Pod asks for 2 of cpu, and 1 of 4 are left\n" +
		"default-scheduler: Node node-01: it does not fit Pod train: it is cordoned (spec.unschedulable)"; notDone != want {
		t.Errorf("not done is\n%s\nwant\n%s", notDone, want)
	}
	if unknown != "what controllers did and why: no manager" {
		t.Errorf("not known is\n%s", unknown)
	}
}

func TestTheAnswerSaysThatTheSchedulerCountsOtherwise(t *testing.T) {
	api, _ := clusterWithout(t, 2, "0/2 nodes are available: 2 Insufficient cpu.")
	if _, unknown := refusals(t, api); !strings.Contains(unknown, `the scheduler counts 2 of "Insufficient cpu", and by their state it is 1`) {
		t.Errorf("not known is\n%s", unknown)
	}
}

func TestManyNodesAreCounted(t *testing.T) {
	api, _ := clusterWithout(t, 60, "0/60 nodes are available: 1 Insufficient cpu, 59 node(s) were unschedulable.")
	notDone, unknown := refusals(t, api)
	if n := strings.Count(notDone, "\n") + 1; n != 11 || !strings.HasSuffix(notDone, "default-scheduler: 50 more Nodes do not fit Pod train: 50 node(s) were unschedulable") {
		t.Errorf("%d lines, want 10 Nodes and the others counted:\n%s", n, notDone)
	}
	if strings.Contains(unknown, "differ") {
		t.Errorf("not known is\n%s", unknown)
	}
}

// A user who may list the Pods of no other namespace is told what the Nodes alone say, and a user who may not list Nodes that.
func TestRightsThatAreMissingAreNamed(t *testing.T) {
	refuse := func(r *fakeapi.Request) *metav1.Status {
		if r.Key.Name != "" {
			return nil
		}
		return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "you may not list it"}
	}
	api, pods := clusterWithout(t, 2, "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.")
	pods.Before(refuse)
	notDone, unknown := refusals(t, api)
	if !strings.Contains(notDone, "Node node-00: it is not known why it does not fit Pod train: it fails no rule by itself, and what its Pods ask for is not known") ||
		!strings.Contains(notDone, "Node node-01: it does not fit Pod train: it is cordoned") {
		t.Errorf("not done is\n%s", notDone)
	}
	if !strings.Contains(unknown, "what the Pods of each Node ask for: ") || !strings.Contains(unknown, "you may not list it") || strings.Contains(unknown, "differ") {
		t.Errorf("not known is\n%s", unknown)
	}
	api, _ = clusterWithout(t, 2, "0/2 nodes are available: 2 Insufficient cpu.")
	api.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}).Before(refuse)
	if notDone, unknown = refusals(t, api); notDone != "" || !strings.Contains(unknown, "which rule each Node fails: ") {
		t.Errorf("not done is\n%s\nnot known is\n%s", notDone, unknown)
	}
}
