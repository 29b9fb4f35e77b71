// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"strings"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/podgroupprotection"
	"github.com/setpoint-io/setpoint/controllers/resourcepoolstatusrequest"
	"github.com/setpoint-io/setpoint/controllers/storageversiongc"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// turn is one of two managers that work one after the other.
type turn struct {
	name string
	run  func() (stop func())
}

// turns are kube-controller-manager with a controller behind gates, and ours with its own rights.
func (c *cluster) turns(controller, gates string, rights []rbacv1.PolicyRule, ours managertest.Make) []turn {
	return []turn{
		{"theirs", func() (stop func()) { return c.runTheirs(controller, gates) }},
		{"ours", func() (stop func()) { return c.run(c.Restricted(c.t, rights), ours).Stop }},
	}
}

// A pool has four devices: one is allocated, one has a taint, and two are free. Each manager
// answers a request, and leaves that of the other one as it is.
func poolsAreCountedAlike(c *cluster) {
	c.manifest(strings.ReplaceAll(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "NS"}, "spec": {
		"driver": "pools.example.com", "nodeName": "node-0", "pool": {"name": "NS", "generation": 1, "resourceSliceCount": 1}, "devices": [
			{"name": "dev-0"}, {"name": "dev-1"}, {"name": "dev-2", "taints": [{"key": "example.com/broken", "effect": "NoSchedule"}]}, {"name": "dev-3"}]}}`, "NS", c.namespace))
	c.removeAtTheEnd("resourceslice", c.namespace)
	c.manifest(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "uses"},
		"spec": {"devices": {"requests": [{"name": "dev", "exactly": {"deviceClassName": "nobody.example.com"}}]}}}`)
	c.status("resourceclaim/uses", strings.ReplaceAll(`{"status": {"allocation": {"devices": {"results": [
		{"request": "dev", "driver": "pools.example.com", "pool": "NS", "device": "dev-0"}]}}}}`, "NS", c.namespace))

	requests := client.For[*resourcev1alpha3.ResourcePoolStatusRequest](c.Client)
	answer := func(of string) (string, object.Version) {
		r, err := requests.Get(c.t.Context(), object.Key{Name: c.namespace + "-" + of})
		if err != nil {
			c.t.Fatal(err)
		}
		if r.Status == nil || len(r.Status.Conditions) == 0 {
			return "", ""
		}
		s := r.Status.DeepCopy()
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime.Reset()
		}
		return c.json(s), object.Version(r.ResourceVersion)
	}
	answers, answered := map[string]string{}, map[string]object.Version{}
	for _, turn := range c.turns(resourcepoolstatusrequest.Name, "DRAResourcePoolStatus=true", resourcepoolstatusrequest.Rights(),
		managertest.Making(resourcepoolstatusrequest.New, resourcepoolstatusrequest.Defaults())) {
		request := &resourcev1alpha3.ResourcePoolStatusRequest{Spec: resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: "pools.example.com"}}
		request.Name = c.namespace + "-" + turn.name
		if _, err := requests.Create(c.t.Context(), request); err != nil {
			c.t.Fatal(err)
		}
		c.removeAtTheEnd("resourcepoolstatusrequest", request.Name)
		stop := turn.run()
		c.eventually(func() string {
			if answers[turn.name], answered[turn.name] = answer(turn.name); answers[turn.name] == "" {
				return "the request of " + turn.name + " has no answer"
			}
			return ""
		})
		stop()
	}
	if answers["theirs"] != answers["ours"] || !strings.Contains(answers["ours"], `"availableDevices":2`) {
		c.t.Errorf("kube-controller-manager answers\n%s\nand Setpoint answers\n%s", answers["theirs"], answers["ours"])
	}
	if _, version := answer("theirs"); version != answered["theirs"] {
		c.t.Error("Setpoint has written an answer of kube-controller-manager again")
	}
}

// runningServer returns the name under which the API server notes its versions.
func (c *cluster) runningServer() (id string) {
	c.t.Helper()
	c.eventually(func() string { // its Lease may come just after the server is ready
		leases, err := c.Kubectl("get", "leases", "-n", "kube-system", "-l", "apiserver.kubernetes.io/identity=kube-apiserver", "-o", "name")
		if err != nil {
			return err.Error()
		}
		if _, id, _ = strings.Cut(strings.TrimSpace(leases), "/"); id == "" {
			return "the server has no Lease"
		}
		return ""
	})
	return id
}

// storageVersion makes a StorageVersion in which servers have noted versions, each another one.
func (c *cluster) storageVersion(name string, servers ...string) {
	c.t.Helper()
	versions := client.For[*internalv1alpha1.StorageVersion](c.Client)
	v := &internalv1alpha1.StorageVersion{}
	v.Name = name
	v, err := versions.Create(c.t.Context(), v)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, id := range servers {
		encoding := fmt.Sprintf("example.com/v%d", i+1)
		v.Status.StorageVersions = append(v.Status.StorageVersions, internalv1alpha1.ServerStorageVersion{
			APIServerID: id, EncodingVersion: encoding, DecodableVersions: []string{encoding}, ServedVersions: []string{encoding},
		})
	}
	equal := internalv1alpha1.StorageVersionCondition{Type: internalv1alpha1.AllEncodingVersionsEqual, Status: internalv1alpha1.ConditionFalse, Reason: "Several", Message: "several"}
	if len(servers) == 1 {
		v.Status.CommonEncodingVersion = &v.Status.StorageVersions[0].EncodingVersion
		equal.Status, equal.Reason, equal.Message = internalv1alpha1.ConditionTrue, "One", "one"
	}
	v.Status.Conditions = []internalv1alpha1.StorageVersionCondition{equal}
	if _, err := versions.UpdateStatus(c.t.Context(), v); err != nil {
		c.t.Fatal(err)
	}
}

// labourBehindGates is the work of the controllers whose kinds are behind feature gates.
func labourBehindGates() []labour {
	return []labour{
		{
			controller: podgroupprotection.Name, flags: []string{"--feature-gates=GenericWorkload=true"},
			writes: map[string]int{`PUT .*/NS/podgroups/ITEM`: 1},
			item: func(c *cluster, name string) {
				c.manifest(fmt.Sprintf(`{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": %q, "finalizers": [%q]},
					"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}`, name, podgroupprotection.Finalizer))
				c.delete("podgroup", name)
			},
		}, {
			controller: resourcepoolstatusrequest.Name, flags: []string{"--feature-gates=DRAResourcePoolStatus=true"},
			writes: map[string]int{`PUT .*/resourcepoolstatusrequests/ITEM/status`: 1},
			item: func(c *cluster, name string) {
				c.manifest(fmt.Sprintf(`{"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourcePoolStatusRequest", "metadata": {"name": %q},
					"spec": {"driver": "none.example.com"}}`, name))
				c.removeAtTheEnd("resourcepoolstatusrequest", name)
			},
		}, {
			controller: storageversiongc.Name, flags: []string{"--feature-gates=StorageVersionAPI=true"},
			writes: map[string]int{`PUT .*/storageversions/example.com.ITEM/status`: 1, `DELETE .*/storageversions/gone.example.com.ITEM`: 1},
			item: func(c *cluster, name string) {
				c.storageVersion("example.com."+name, c.runningServer(), "kube-apiserver-gone")
				c.removeAtTheEnd("storageversion", "example.com."+name)
				c.storageVersion("gone.example.com."+name, "kube-apiserver-gone")
			},
		},
	}
}

// A StorageVersion names the server that runs and one that is gone, and another one names a server
// that is gone alone. What the running server has noted of its own kinds stays.
func goneServersAreForgotten(c *cluster) {
	versions := client.For[*internalv1alpha1.StorageVersion](c.Client)
	running := c.runningServer()
	left := map[string]string{}
	for _, turn := range c.turns(storageversiongc.Name, "StorageVersionAPI=true", storageversiongc.Rights(),
		managertest.Making(storageversiongc.New, storageversiongc.Defaults())) {
		c.storageVersion("example.com.things-"+turn.name, running, "kube-apiserver-gone")
		c.storageVersion("example.com.others-"+turn.name, "kube-apiserver-gone")
		stop := turn.run()
		c.eventually(func() string {
			things, err := versions.Get(c.t.Context(), object.Key{Name: "example.com.things-" + turn.name})
			if err != nil {
				c.t.Fatal(err)
			}
			for i := range things.Status.Conditions {
				things.Status.Conditions[i].LastTransitionTime.Reset()
			}
			if left[turn.name] = c.json(things.Status); strings.Contains(left[turn.name], "gone") {
				return "things are " + left[turn.name]
			}
			if _, err := versions.Get(c.t.Context(), object.Key{Name: "example.com.others-" + turn.name}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("others of the server that is gone: %v, want not found", err)
			}
			return ""
		})
		stop()
		c.removeAtTheEnd("storageversion", "example.com.things-"+turn.name)
	}
	if left["theirs"] != left["ours"] || !strings.Contains(left["ours"], running) {
		c.t.Errorf("kube-controller-manager leaves\n%s\nand Setpoint leaves\n%s", left["theirs"], left["ours"])
	}
}
