// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/devicetainteviction"
	"github.com/setpoint-io/setpoint/controllers/resourceclaim"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// claimingPod is a Pod with a claim from that template. No node has its devices.
const claimingPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {
	"resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "devices"}], "containers": [{"name": "main", "image": "web"}]}}`

// claimTemplate makes the ResourceClaimTemplate "devices".
func (c *cluster) claimTemplate() {
	c.t.Helper()
	c.manifest(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "devices"},
		"spec": {"spec": {"devices": {"requests": [{"name": "dev", "exactly": {"deviceClassName": "nobody.example.com"}}]}}}}`)
}

// claimOfEndedPod makes a Pod that has ended, and the claim that was made for it, which is
// allocated and reserved for it.
func (c *cluster) claimOfEndedPod(name string) {
	c.t.Helper()
	pod := c.boundPodOfClaim("ended-"+name, "of-"+name)
	c.claim("of-"+name, fmt.Sprintf(`"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": %q, "uid": %q, "controller": true}]`, pod.Name, pod.UID), pod)
	c.status("pod/"+pod.Name, `{"status": {"phase": "Succeeded"}}`)
}

// podWithDevice makes a Pod on a node, with a claim of a device of the pool of the namespace.
func (c *cluster) podWithDevice(name string) {
	c.t.Helper()
	c.claim("of-"+name, `"labels": {}`, c.boundPodOfClaim(name, "of-"+name))
}

// boundPodOfClaim makes a Pod on a node that nobody looks after, which uses a claim.
func (c *cluster) boundPodOfClaim(name, claim string) *corev1.Pod {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"nodeName": "nowhere",
		"resourceClaims": [{"name": "dev", "resourceClaimName": %q}], "containers": [{"name": "main", "image": "web"}]}}`, name, claim))
	pod, err := client.For[*corev1.Pod](c.Client).Get(c.t.Context(), object.Key{Namespace: c.namespace, Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

// brokenDevice publishes the device of the pool of the namespace, with a taint.
func (c *cluster) brokenDevice() {
	c.t.Helper()
	c.manifest(strings.ReplaceAll(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "NS"}, "spec": {
		"driver": "nobody.example.com", "nodeName": "nowhere", "pool": {"name": "NS", "generation": 1, "resourceSliceCount": 1},
		"devices": [{"name": "dev-0", "taints": [{"key": "example.com/broken", "effect": "NoExecute"}]}]}}`, "NS", c.namespace))
	c.removeAtTheEnd("resourceslice", c.namespace)
}

// rule makes a DeviceTaintRule about a device that no Pod has.
func (c *cluster) rule(name string) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": %q}, "spec": {
		"deviceSelector": {"driver": "nobody.example.com", "pool": "none"}, "taint": {"key": "example.com/broken", "effect": "NoExecute"}}}`, name))
	c.removeAtTheEnd("devicetaintrule", name)
}

// removeAtTheEnd deletes an object outside of the namespace when the test ends.
func (c *cluster) removeAtTheEnd(kind, name string) {
	c.t.Cleanup(func() {
		if err := c.remove(kind, name); err != nil && !apierrors.IsNotFound(err) {
			c.t.Error(err)
		}
	})
}

// claim makes a claim with a device, which is reserved for a Pod. more is added to its metadata.
func (c *cluster) claim(name, more string, pod *corev1.Pod) {
	c.t.Helper()
	c.manifest(strings.NewReplacer("NAME", name, "MORE", more).Replace(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
		"metadata": {"name": "NAME", "finalizers": ["resource.kubernetes.io/delete-protection"], MORE},
		"spec": {"devices": {"requests": [{"name": "dev", "exactly": {"deviceClassName": "nobody.example.com"}}]}}}`))
	c.status("resourceclaim/"+name, fmt.Sprintf(strings.ReplaceAll(`{"status": {
		"allocation": {"devices": {"results": [{"request": "dev", "driver": "nobody.example.com", "pool": "POOL", "device": "dev-0"}]}},
		"reservedFor": [{"resource": "pods", "name": %q, "uid": %q}]}}`, "POOL", c.namespace), pod.Name, pod.UID))
}

// publish makes a DeviceClass, and a device of it on a simulated node, both with the name of the
// namespace.
func (c *cluster) publish() {
	c.t.Helper()
	for kind, text := range map[string]string{
		"deviceclass": `{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "NS"},
			"spec": {"selectors": [{"cel": {"expression": "device.driver == 'devices.example.com'"}}]}}`,
		"resourceslice": `{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "NS"}, "spec": {
			"driver": "devices.example.com", "nodeName": "node-0", "pool": {"name": "node-0", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "dev-0"}]}}`,
		"resourceclaimtemplate": `{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "devices"},
			"spec": {"spec": {"devices": {"requests": [{"name": "dev", "exactly": {"deviceClassName": "NS", "tolerations": [
				{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}]}}]}}}}`,
	} {
		c.manifest(strings.ReplaceAll(text, "NS", c.namespace))
		if kind != "resourceclaimtemplate" {
			c.removeAtTheEnd(kind, c.namespace)
		}
	}
}

// claims returns the names of the claims of the namespace.
func (c *cluster) claims() (names []string) {
	c.t.Helper()
	all, _, err := client.For[*resourcev1.ResourceClaim](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, claim := range all {
		names = append(names, claim.Name)
	}
	return names
}

// The scheduler allocates the device of a Pod's claim, the Pod runs on the simulated node of the
// device, and its end leaves no claim. The next Pod gets the device. A taint of the device has that
// Pod go when its toleration is over.
func TestAPodGetsADeviceByATemplateAndLeavesNoClaimAndATaintEvictsTheNextOne(t *testing.T) {
	c := &cluster{Cluster: shared.Get(t), t: t}
	c.namespace = c.Namespace(t)
	c.run(c.Config, managertest.Making(resourceclaim.New, resourceclaim.Defaults()), managertest.Making(devicetainteviction.New, devicetainteviction.Defaults()))
	c.publish()
	pods := client.For[*corev1.Pod](c.Client)
	phase := func(name string, want corev1.PodPhase) func() string {
		return func() string {
			pod, err := pods.Get(t.Context(), object.Key{Namespace: c.namespace, Name: name})
			if err != nil || pod.Status.Phase != want {
				return fmt.Sprintf("Pod %s is %s, want %s (%v)", name, pod.Status.Phase, want, err)
			}
			return ""
		}
	}
	c.manifest(podOfDevice("first", `{"sim.setpoint.io/exit-after": "100ms"}`))
	c.eventually(phase("first", corev1.PodSucceeded))
	c.eventually(func() string {
		if left := c.claims(); len(left) > 0 {
			return fmt.Sprintf("the claims %q are left", left)
		}
		return ""
	})
	c.manifest(podOfDevice("second", `{}`))
	c.eventually(phase("second", corev1.PodRunning))
	c.kubectl("patch", "resourceslice/"+c.namespace, "--type=merge", "--patch",
		`{"spec": {"devices": [{"name": "dev-0", "taints": [{"key": "example.com/broken", "effect": "NoExecute"}]}]}}`)
	c.eventually(func() string {
		pod, err := pods.Get(t.Context(), object.Key{Namespace: c.namespace, Name: "second"})
		switch {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		}
		return fmt.Sprintf("the Pod with the tainted device is %s", pod.Status.Phase)
	})
}

// podOfDevice is a Pod that runs once, with a claim from the template "devices".
func podOfDevice(name, annotations string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "annotations": %s}, "spec": {"restartPolicy": "Never",
		"resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "devices"}], "containers": [{"name": "main", "image": "web"}]}}`, name, annotations)
}
