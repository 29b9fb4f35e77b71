// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
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
