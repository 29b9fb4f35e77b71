// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/devicetainteviction"
	"github.com/setpoint-io/setpoint/controllers/podgroupprotection"
	"github.com/setpoint-io/setpoint/controllers/resourceclaim"
	"github.com/setpoint-io/setpoint/internal/managertest"
)

// sharingGang makes the PodGroup "gang", whose Pods share a claim from the template "devices", and
// two Pods of it. There is one device, so without sharing one of them could not run.
func (c *cluster) sharingGang() {
	c.t.Helper()
	c.publish()
	c.manifest(`{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "gang"}, "spec": {
		"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "devices"}]}}`)
	c.gangPod("a")
	c.gangPod("b")
}

func (c *cluster) gangPod(name string) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "annotations": {"sim.setpoint.io/exit-after": "never"}}, "spec": {
		"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "schedulingGroup": {"podGroupName": "gang"},
		"resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "devices"}], "containers": [{"name": "main", "image": "web"}]}}`, name))
}

// share says what is missing until there is one claim, which is reserved for the PodGroup, and the
// Pods of the namespace are these, and run with it.
func (c *cluster) share(pods ...string) string {
	c.t.Helper()
	group, err := client.For[*schedulingv1beta1.PodGroup](c.Client).Get(c.t.Context(), c.key("gang"))
	if err != nil {
		return err.Error()
	}
	claims, _, err := client.For[*resourcev1.ResourceClaim](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		return err.Error()
	}
	want := []resourcev1.ResourceClaimConsumerReference{{APIGroup: schedulingv1beta1.GroupName, Resource: "podgroups", Name: group.Name, UID: group.UID}}
	if len(claims) != 1 || !slices.Equal(claims[0].Status.ReservedFor, want) || claims[0].Status.Allocation == nil {
		return fmt.Sprintf("the claims are %+v, want one that is reserved for the PodGroup", claims)
	}
	if s := group.Status.ResourceClaimStatuses; len(s) != 1 || s[0].ResourceClaimName == nil || *s[0].ResourceClaimName != claims[0].Name {
		return fmt.Sprintf("the status of the PodGroup is %+v, and its claim %s", group.Status, claims[0].Name)
	}
	all, _, err := client.For[*corev1.Pod](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, pod := range all {
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("Pod %s is %s, and not running", pod.Name, pod.Status.Phase)
		}
		if s := pod.Status.ResourceClaimStatuses; len(s) != 1 || s[0].ResourceClaimName == nil || *s[0].ResourceClaimName != claims[0].Name {
			return fmt.Sprintf("Pod %s has the claims %+v, and the PodGroup %s", pod.Name, s, claims[0].Name)
		}
		names = append(names, pod.Name)
	}
	if slices.Sort(names); !slices.Equal(names, pods) {
		return fmt.Sprintf("there are the Pods %q, want %q", names, pods)
	}
	return ""
}

// taint gives the device of the namespace these taints.
func (c *cluster) taint(taints string) {
	c.t.Helper()
	c.kubectl("patch", "resourceslice/"+c.namespace, "--type=merge", "--patch", fmt.Sprintf(`{"spec": {"devices": [{"name": "dev-0", "taints": [%s]}]}}`, taints))
}

const brokenTaint = `{"key": "example.com/broken", "effect": "NoExecute"}`

func (c *cluster) delete(kind, name string) {
	c.t.Helper()
	if err := c.remove(kind, name); err != nil {
		c.t.Fatal(err)
	}
}

// runs says what is missing until a Pod runs.
func (c *cluster) runs(name string) string {
	c.t.Helper()
	pod, err := client.For[*corev1.Pod](c.Client).Get(c.t.Context(), c.key(name))
	if err != nil {
		return err.Error()
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Sprintf("Pod %s is %s: %+v", name, pod.Status.Phase, pod.Status.Conditions)
	}
	return ""
}

// runSharing runs the controllers that PodGroups with claims need, except resourceclaim-controller.
func (c *cluster) runSharing() {
	c.t.Helper()
	o := devicetainteviction.Defaults()
	o.SharedClaims = true
	c.run(c.Config, garbage, managertest.Making(podgroupprotection.New, podgroupprotection.Defaults()))
	c.run(c.Restricted(c.t, devicetainteviction.Rights()), managertest.Making(devicetainteviction.New, o))
}

// The claim of a PodGroup is made once, and is reserved for the PodGroup whichever Pods it has. A
// taint of its device evicts all of them. The device is free when the PodGroup is gone.
func gangSharesAClaim(c *cluster) {
	o := resourceclaim.Defaults()
	o.PodGroups, o.SharedClaims = true, true
	c.runSharing()
	p := c.run(c.Restricted(c.t, resourceclaim.Rights()), managertest.Making(resourceclaim.New, o))
	c.sharingGang()
	c.eventually(func() string { return c.share("a", "b") })
	c.delete("pod", "a")
	c.eventually(func() string { return c.share("b") })
	c.gangPod("later")
	c.eventually(func() string { return c.share("b", "later") })
	c.taint(brokenTaint)
	c.eventually(func() string { return c.share() })
	c.delete("podgroup", "gang")
	c.eventually(c.count("podgroups", 0))
	c.eventually(c.count("resourceclaims", 0))
	c.taint("")
	c.manifest(podOfDevice("next", `{"sim.setpoint.io/exit-after": "never"}`))
	c.eventually(func() string { return c.runs("next") })
	c.delete("pod", "next") // the next scene has a device of the same name
	c.eventually(c.count("resourceclaims", 0))
	made := 0
	for _, write := range p.Writes() {
		if strings.HasPrefix(write, http.MethodPost) && strings.HasSuffix(write, "/resourceclaims") {
			made++
		}
	}
	if made != 2 {
		c.t.Errorf("%d claims were made for a PodGroup and a Pod, want 2: %q", made, p.Writes())
	}
}

// A process that is killed after each of its writes makes the same, each write once. What happens
// while none runs is found by the next one.
func sharedClaimSurvivesKills(c *cluster) {
	c.runSharing()
	m := &mortal{cluster: c, alone: managertest.NewAlone(c.t, c.Cluster, resourceclaim.Name, resourceclaim.Rights(),
		"--feature-gates", "GenericWorkload=true,DRAWorkloadResourceClaims=true")}
	c.sharingGang()
	m.settle("the Pods share a claim", func() bool { return c.share("a", "b") == "" })
	c.gangPod("later")
	m.settle("a Pod comes later", func() bool { return c.share("a", "b", "later") == "" })
	c.taint(brokenTaint)
	c.eventually(c.count("pods", 0))
	m.settle("the Pods are evicted", func() bool { return c.share() == "" })
	c.delete("podgroup", "gang")
	c.eventually(c.count("podgroups", 0))
	m.settle("the PodGroup goes", func() bool { return c.count("resourceclaims", 0)() == "" })
	if made := m.check()[http.MethodPost]; made != 1 {
		c.t.Errorf("%d claims were made, want 1", made)
	}
}
