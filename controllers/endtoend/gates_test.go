// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"strings"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/resourcepoolstatusrequest"
	"github.com/setpoint-io/setpoint/controllers/storageversiongc"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

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
	for _, turn := range []struct {
		name string
		run  func() (stop func())
	}{
		{"theirs", func() func() { return c.runTheirs(resourcepoolstatusrequest.Name, "DRAResourcePoolStatus=true") }},
		{"ours", func() func() {
			rights := c.Restricted(c.t, resourcepoolstatusrequest.Rights())
			return c.run(rights, managertest.Making(resourcepoolstatusrequest.New, resourcepoolstatusrequest.Defaults())).Stop
		}},
	} {
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

// A StorageVersion names the server that runs and one that is gone, and another one names a server
// that is gone alone. What the running server has noted of its own kinds stays.
func goneServersAreForgotten(c *cluster) {
	versions := client.For[*internalv1alpha1.StorageVersion](c.Client)
	leases, err := c.Kubectl("get", "leases", "-n", "kube-system", "-l", "apiserver.kubernetes.io/identity=kube-apiserver", "-o", "name")
	if err != nil {
		c.t.Fatal(err)
	}
	_, running, _ := strings.Cut(strings.TrimSpace(leases), "/")
	note := func(name string, servers ...string) {
		c.t.Helper()
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
	left := map[string]string{}
	for _, turn := range []struct {
		name string
		run  func() (stop func())
	}{
		{"theirs", func() func() { return c.runTheirs(storageversiongc.Name, "StorageVersionAPI=true") }},
		{"ours", func() func() {
			rights := c.Restricted(c.t, storageversiongc.Rights())
			return c.run(rights, managertest.Making(storageversiongc.New, storageversiongc.Defaults())).Stop
		}},
	} {
		note("example.com.things-"+turn.name, running, "kube-apiserver-gone")
		note("example.com.others-"+turn.name, "kube-apiserver-gone")
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
